"""STATES.md against the enums in the headers, and the tables' structure against what a table of a machine must be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolwire.errors import CODES

CORE = Path(__file__).resolve().parents[1] / "src" / "toolwire" / "_core"
#: Where each machine starts.
START = {
    "ST_JSON_": "ST_JSON_NEED_VALUE",
    "TW_NUM_": "TW_NUM_MINUS",
    "ST_SSE_": "ST_SSE_BOM",
    "ST_LINES_": "ST_LINES_BOM",
    "ST_ARRAY_": "ST_ARRAY_BOM",
}
pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="the C sources are not beside these tests")


def text_of_states() -> str:
    return (CORE / "STATES.md").read_text(encoding="utf-8")


def code_of(path: Path) -> str:
    """A C file without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def enums() -> dict[str, set[str]]:
    """Members of every state enum in the core, by prefix: ST_JSON_ -> {ST_JSON_DONE, ...}."""
    found: dict[str, set[str]] = {}
    for path in sorted(CORE.glob("*.[ch]")):
        for body in re.findall(r"\benum\s+\w*\s*\{(.*?)\}", code_of(path), flags=re.DOTALL):
            for name in re.findall(r"\b(?:ST_[A-Z0-9]+_|TW_NUM_)\w+", body):
                prefix = re.match(r"ST_[A-Z0-9]+_|TW_NUM_", name)
                assert prefix is not None
                found.setdefault(prefix.group(), set()).add(name)
    return found


def rows() -> list[list[str]]:
    """Table rows whose first cell is one state."""
    out = []
    for line in text_of_states().splitlines():
        if re.match(r"\|\s*`(?:ST|TW_NUM)_\w+`\s*\|", line):
            out.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return out


def described() -> dict[str, set[str]]:
    """Prefixes that STATES.md has a section for, with the states that have rows there."""
    found: dict[str, set[str]] = {prefix: set() for prefix in re.findall(r"prefix `((?:ST|TW)_[A-Z0-9]+_)`", text_of_states())}
    for row in rows():
        name = row[0].strip("`")
        for prefix, names in found.items():
            if name.startswith(prefix):
                names.add(name)
    return found


def test_every_machine_has_its_tables() -> None:
    assert described().keys() == enums().keys() == START.keys()


def test_every_state_has_rows_and_no_other() -> None:
    for prefix, states in described().items():
        # A number's states are a machine inside one state, which has no rows of its own.
        assert states == enums()[prefix] - {"ST_JSON_IN_NUMBER"}, prefix


def test_every_state_and_error_that_is_named_exists() -> None:
    code = set().union(*enums().values())
    errors = set(re.findall(r"\bTW_E_\w+", (CORE / "tw_common.h").read_text(encoding="utf-8")))
    prefixes = tuple(enums())
    for name in re.findall(r"`((?:ST|TW)_[A-Z0-9_]*[A-Z0-9])`", text_of_states()):
        if name.startswith("TW_E_"):
            assert name in errors
        elif name.startswith(prefixes):
            assert name in code


def test_every_state_says_what_any_other_byte_does_and_says_it_last() -> None:
    bytes_of: dict[str, list[str]] = {}
    for row in rows():
        assert len(row) == 5, row
        bytes_of.setdefault(row[0], []).append(row[1])
    for state, cells in bytes_of.items():
        assert cells.index("otherwise") == len(cells) - 1, state
        assert len(set(cells)) == len(cells), state


@pytest.mark.parametrize("prefix", ["ST_SSE_", "ST_LINES_", "ST_ARRAY_", "ST_JSON_"])
def test_every_state_can_be_reached_from_its_machines_start(prefix: str) -> None:
    ways: dict[str, set[str]] = {}
    for row in rows():
        to = ways.setdefault(row[0].strip("`"), set())
        to |= set(re.findall(r"`((?:ST_[A-Z]+|TW_NUM)_\w+)`", row[2]))
        if "value done" in row[2]:
            to |= {"ST_JSON_DONE", "ST_JSON_AFTER_VALUE"}
        if "TW_E_" in row[3] or "TW_E_" in row[2]:
            to.add("ST_JSON_ERROR" if prefix == "ST_JSON_" else f"{prefix}FAILED")
    reached, todo = set(), [START[prefix]]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += ways.get(state, ())
    code = enums()
    assert reached == (code["ST_JSON_"] | code["TW_NUM_"] if prefix == "ST_JSON_" else code[prefix])


def test_the_c_error_codes_are_those_of_the_python_list() -> None:
    names = re.findall(r"\bTW_E_(JSON|FRAME)_(\w+)", code_of(CORE / "tw_common.h"))
    in_c = {f"{machine.lower()}.{what.lower()}" for machine, what in names}
    assert in_c <= CODES.keys()
    assert {code for code in CODES if code.startswith("json.")} == {code for code in in_c if code.startswith("json.")}
