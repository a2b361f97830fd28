"""Every Python block of the documentation runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_one_after_the_other(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(code, f"docs/{page.name}", "exec"), names)


def test_the_loop_of_the_readme_runs_the_call_once_the_turn_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("jsonschema_rs")

    class Response:
        def iter_bytes(self) -> Iterator[bytes]:
            body = (ROOT / "fixtures/openai-chat/demo.sse").read_bytes()
            yield from (body[i : i + 40] for i in range(0, len(body), 40))

    @contextlib.contextmanager
    def stream(method: str, url: str, **options: Any) -> Iterator[Response]:
        yield Response()

    monkeypatch.setattr(httpx, "stream", stream)
    drafts: list[Any] = []
    ran: list[Any] = []
    names = {
        "url": "",
        "headers": {},
        "body": {},
        "show": lambda name, value: drafts.append((name, dict(value))),
        "run": lambda name, arguments: ran.append((name, arguments)),
    }
    (code,) = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    exec(compile(code, "README.md", "exec"), names)
    assert ran == [("lookup_demo_value", {"key": "alpha"})]
    assert drafts[-1] == ("lookup_demo_value", {"key": "alpha"})
    assert len(drafts) == 2


def test_the_first_two_blocks_of_the_readme_are_one_command_each() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert [len(block.splitlines()) for block in blocks[:2]] == [1, 1]
    assert "toolwire replay" in blocks[0]
    assert "pytest" in blocks[1]
