"""The fixtures are what their generator makes, and each expectation has the form that fixtures/README.md describes."""

from __future__ import annotations

import importlib.util
import json
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
EXPECTATIONS = sorted(FIXTURES.glob("*/*.expect.json"))
LARGE = {"openai-chat", "openai-responses", "anthropic", "google-generate", "google-interactions"}  # those with a 100 kB body
PROVIDERS = {*LARGE, "mistral", "cohere", "ollama", "bedrock"}
SUFFIXES = {"sse": {".sse"}, "json-array": {".json"}, "ndjson": {".jsonl"}, "aws-eventstream": {".bin"}}
OUTCOMES = {"TOOL_CALLS", "STOP", "LENGTH", "FILTERED", "REFUSED", "PAUSED", "CONTINUE", "ERROR", "CANCELLED", "CUT", "UNKNOWN"}
FIELDS = {
    "body",
    "provider",
    "framing",
    "description",
    "calls",
    "text",
    "reasoning",
    "refusal",
    "outcome",
    "reason",
    "truncated",
    "gate",
    "good_end_offset",
    "open",
}
OPTIONAL = {"row", "profiles", "tools", "usage"}
CALL_FIELDS = {"id", "name", "kind", "text", "arguments", "runs_on"}
DIGEST_FIELDS = {"text_sha256", "text_chars", "arguments_sha256"}


def load(path: Path) -> dict[str, Any]:
    expectation: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return expectation


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.removesuffix('.expect.json')}"


each_expectation = pytest.mark.parametrize("path", EXPECTATIONS, ids=name_of)


@pytest.fixture(scope="module")
def make(monkeypatch_module: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("toolwire_fixtures_make", FIXTURES / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    # make.py puts its folder on the path and should not write bytecode among the data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.dont_write_bytecode", True)
        patch.syspath_prepend(str(FIXTURES))
        yield patch


def test_every_file_is_what_the_generator_makes(make: ModuleType) -> None:
    assert make.differences(make.build()) == []


def test_generator_gives_the_same_bytes_twice(make: ModuleType) -> None:
    assert make.build() == make.build()


def test_each_provider_has_the_shared_cases() -> None:
    found = {name_of(path) for path in EXPECTATIONS}
    for provider in PROVIDERS:
        for case in ("demo", "parallel", "file_body", "no_arguments", "text_and_reasoning", "cut_mid_frame", "cut_mid_utf8", "error_first"):
            assert f"{provider}/{case}" in found or (case == "file_body" and provider not in LARGE)


def test_every_quirk_has_its_row_and_every_row_its_quirk(make: ModuleType) -> None:
    rows = list(make.quirks.ROWS)
    assert rows == [*map(str, range(1, 17)), "16b", *map(str, range(17, 54))]
    found = {load(path)["row"] for path in EXPECTATIONS if path.parent.name == "quirks"}
    assert found == set(rows)


def test_the_page_of_quirks_says_what_the_fixtures_say() -> None:
    """Read from the page, without the code that wrote it."""
    lines = [line for line in (FIXTURES.parent / "docs" / "quirks.md").read_text("utf-8").splitlines() if "../fixtures/" in line]
    bodies = set()
    for line in lines:
        body = line.split("../fixtures/quirks/")[1].split(")")[0]
        bodies.add(body)
        expectation = load(FIXTURES / "quirks" / f"{body.removesuffix('.sse')}.expect.json")
        for cell, profile in zip(line.split("|")[-4:-1], ("default", "strict", "tolerant"), strict=True):
            reason = expectation.get("profiles", {}).get(profile, expectation["gate"]["reason"])
            if expectation["gate"]["action"] == "nothing_to_run":
                assert cell.strip() == "nothing to run"
            else:
                assert cell.split(",")[0].strip() == ("runs" if reason == "ended" else f"`{reason}`")
    assert bodies == {load(path)["body"] for path in EXPECTATIONS if path.parent.name == "quirks"}


@each_expectation
def test_expectation_has_its_body_and_its_fields(path: Path) -> None:
    expectation = load(path)
    assert set(expectation) - OPTIONAL == FIELDS
    assert expectation["body"].split(".")[0] == path.name.split(".")[0]
    body = (path.parent / expectation["body"]).read_bytes()
    assert body
    assert path.parent.name in (expectation["provider"], "quirks")
    assert (path.parent / expectation["body"]).suffix in SUFFIXES[expectation["framing"]]
    assert expectation["provider"] in PROVIDERS
    assert expectation["description"] and "\n" not in expectation["description"]
    assert expectation["outcome"] in OUTCOMES
    assert expectation["truncated"] is (expectation["outcome"] == "CUT")
    assert expectation["reason"] is None or isinstance(expectation["reason"], str)
    assert all(isinstance(expectation[channel], str) for channel in ("text", "reasoning", "refusal"))
    assert all(isinstance(item, str) and item.split(".")[0] in FIELDS for item in expectation["open"])
    assert ("row" in expectation) is (path.parent.name == "quirks")
    for profile, reason in expectation.get("profiles", {}).items():
        assert profile in ("strict", "tolerant")
        assert reason != expectation["gate"]["reason"]


@each_expectation
def test_calls_have_their_fields(path: Path) -> None:
    for call in load(path)["calls"]:
        assert set(call) - {"extra"} in (CALL_FIELDS, CALL_FIELDS | DIGEST_FIELDS)
        assert call["kind"] in ("json", "text")
        assert call["runs_on"] in ("client", "provider")
        assert call["id"] is None or call["id"]
        assert call["name"] is None or call["name"]
        if "text_sha256" in call:
            assert call["text"] is None and call["arguments"] is None and call["text_chars"] > 50_000
        else:
            assert isinstance(call["text"], str)


@each_expectation
def test_gate_and_outcome_agree(path: Path) -> None:
    expectation = load(path)
    gate, calls = expectation["gate"], expectation["calls"]
    assert set(gate) == {"action", "reason", "refused"}
    clients = {str(i) for i, call in enumerate(calls) if call["runs_on"] == "client"}
    assert set(gate["refused"]) <= clients
    if gate["action"] == "run":
        assert set(gate["refused"]) < clients
        assert expectation["good_end_offset"] is not None
    elif gate["action"] == "refuse":
        assert set(gate["refused"]) == clients
    else:
        assert gate["action"] == "nothing_to_run" and not clients
    assert (gate["reason"] == "ended") is (gate["action"] != "refuse")
    if gate["action"] != "refuse":
        assert expectation["outcome"] in ("STOP", "TOOL_CALLS")


@each_expectation
def test_good_end_is_just_past_a_whole_payload(path: Path) -> None:
    expectation = load(path)
    end = expectation["good_end_offset"]
    if end is None:
        return
    body = (path.parent / expectation["body"]).read_bytes()
    assert 0 < end <= len(body)
    held = body[:end]
    if expectation["framing"] == "aws-eventstream":
        at = 0
        while at < end:  # messages end where their lengths say
            size = int.from_bytes(held[at : at + 4], "big")
            assert zlib.crc32(held[at : at + size - 4]) == int.from_bytes(held[at + size - 4 : at + size], "big")
            at += size
        assert at == end
        return
    payload = held if expectation["framing"] == "json-array" else held.replace(b"\r", b"\n").rsplit(b"\n", 1)[-1].removeprefix(b"data:")
    json.loads(payload)
    with pytest.raises(ValueError):
        json.loads(payload[:-1])
