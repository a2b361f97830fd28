"""Other functions for JSON that has been cut: LangChain's, partial-json-parser's, pydantic_core's. Their outcomes, with less work."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from test_compat_jiter import CORPUS, JSON, MODES, outcome, plain
from toolwire.compat import langchain, partial_json_parser, pydantic_core

#: Of each corpus entry: the peer and mode, and our function.
FACES: dict[tuple[str, str], Any] = {
    ("langchain_core parse_partial_json", "strict=False"): langchain.parse_partial_json,
    ("partial-json-parser (Python)", "ALL"): partial_json_parser.loads,
}


@pytest.mark.skipif(not CORPUS.exists(), reason="../shared is not here")
@pytest.mark.parametrize("face", FACES, ids=lambda face: face[0])
def test_the_recorded_outcomes(face: tuple[str, str]) -> None:
    pytest.importorskip("langchain_core" if "langchain" in face[0] else "partial_json_parser", reason="the peer is not installed")
    seen = 0
    for line in CORPUS.read_text("utf-8").splitlines():
        case = json.loads(line)
        text = case["input"] if "input" in case else base64.b64decode(case["input_base64"]).decode("utf-8", "surrogateescape")
        for result in case["results"]:
            if (result["peer"], result["mode"]) != face or "input" not in case:
                continue
            seen += 1
            try:
                value = FACES[face](text)
            except Exception as error:
                assert result.get("error") == type(error).__name__, text
            else:
                assert "error" not in result, text
                assert plain(value) == result["value"], text
    assert seen > 200


@given(JSON)
def test_cut_documents_have_the_peers_outcome(value: Any) -> None:
    lang = pytest.importorskip("langchain_core.utils.json", reason="langchain-core is not installed")
    peer = pytest.importorskip("partial_json_parser", reason="partial-json-parser is not installed")
    text = json.dumps(value, ensure_ascii=False)
    for end in range(1, len(text) + 1):
        for ours, theirs in ((langchain.parse_partial_json, lang.parse_partial_json), (partial_json_parser.loads, peer.loads)):
            expected = any_outcome(theirs, text[:end])
            assert any_outcome(ours, text[:end]) == expected
        completed = any_outcome(partial_json_parser.ensure_json, text[:end])
        if not completed.startswith("raises"):
            assert any_outcome(json.loads, partial_json_parser.ensure_json(text[:end])) == any_outcome(peer.loads, text[:end])


CUT = [
    *('["a ', '{"a": "b\u00a0 ', '"a ', "\n12", ' "a', "[1] ", "[1]\u00a0", '["\ud83d', '["\ud83dx", "y', "[" + "1" * 5000),
    *('{"a": "", "a": 1', '{"a": {}, "a": -', '{"a": [1], "a": tr', '{"a": "", "a": "1', '{"a": "b", "a"', '[{"a": [2], "a": [1'),
]


@pytest.mark.parametrize("text", CUT, ids=lambda text: repr(text)[:30])
def test_what_is_special_about_the_peers(text: str) -> None:
    lang = pytest.importorskip("langchain_core.utils.json", reason="langchain-core is not installed")
    peer = pytest.importorskip("partial_json_parser", reason="partial-json-parser is not installed")
    assert any_outcome(langchain.parse_partial_json, text) == any_outcome(lang.parse_partial_json, text)
    for fast in (True, False):
        assert any_outcome(lambda text: partial_json_parser.loads(text, use_fast_fix=fast), text) == any_outcome(  # noqa: B023
            lambda text: peer.loads(text, use_fast_fix=fast),  # noqa: B023
            text,
        )
    completed = any_outcome(partial_json_parser.ensure_json, text)
    assert completed.startswith("raises") or any_outcome(json.loads, partial_json_parser.ensure_json(text)) == any_outcome(peer.loads, text)


def any_outcome(parse: Any, text: str) -> str:
    try:
        return repr(parse(text))
    except Exception as error:
        return f"raises {type(error).__name__}"


def test_the_names_that_come_with_it() -> None:
    peer = pytest.importorskip("partial_json_parser", reason="partial-json-parser is not installed")
    assert {name: int(flag) for name, flag in partial_json_parser.Allow.__members__.items()} == {
        name: int(flag) for name, flag in peer.Allow.__members__.items()
    }
    assert partial_json_parser.STR is partial_json_parser.Allow.STR
    assert issubclass(partial_json_parser.PartialJSON, ValueError)
    missing = [name for name in vars(peer) if not name.startswith("_") and not hasattr(partial_json_parser, name)]
    assert missing == ["core"]  # a package
    with pytest.raises(partial_json_parser.MalformedJSON):
        partial_json_parser.loads("@")
    without_strings = partial_json_parser.Allow.ALL & ~partial_json_parser.Allow.STR
    assert partial_json_parser.loads('["a", "b', without_strings) == peer.loads('["a", "b', without_strings) == ["a"]
    with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
        partial_json_parser.NOTHING  # noqa: B018
    with pytest.raises(TypeError, match="takes text"):
        partial_json_parser.ensure_json(b"{}")  # type: ignore[arg-type]


@given(JSON)
def test_pydantic_core(value: Any) -> None:
    peer = pytest.importorskip("pydantic_core", reason="pydantic is not installed")
    data = json.dumps(value).encode()
    for end in range(len(data) + 1):
        for mode in MODES:
            expected = outcome(peer.from_json, data[:end], allow_partial=mode)
            assert outcome(pydantic_core.from_json, data[:end], allow_partial=mode) == expected
            assert outcome(pydantic_core.from_json, data[:end].decode(), allow_partial=mode) == expected


def test_pydantic_core_takes_no_numbers() -> None:
    with pytest.raises(TypeError, match="Expected bytes, bytearray or str"):
        pydantic_core.from_json(3)  # type: ignore[arg-type]


def test_good_input_needs_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "partial_json_parser", None)
    monkeypatch.setitem(__import__("sys").modules, "langchain_core.utils.json", None)
    text = '{"a": [1, {"b": "x'
    assert partial_json_parser.loads(text) == langchain.parse_partial_json(text) == {"a": [1, {"b": "x"}]}
    assert json.loads(partial_json_parser.ensure_json(text)) == {"a": [1, {"b": "x"}]}
    with pytest.raises(ImportError):
        partial_json_parser.loads('{"a": 1.')
    assert Path(partial_json_parser.__file__).name == "partial_json_parser.py"
