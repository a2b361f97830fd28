"""`toolwire.compat.json_stream`: the tokens by themselves, and json-stream on them where it is installed."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

import helpers
import toolwire as tw
from toolwire.compat.json_stream import tokenizer

DOCUMENT = '{"a": [1, -2.5e1, "x\\n\\ud83d\\ude00", []], "é": {"": true}, "z": [null, false, {}]}'
TOKENS = [
    (0, "{"), (1, "a"), (0, ":"), (0, "["), (2, 1), (0, ","), (2, -25.0), (0, ","), (1, "x\n😀"), (0, ","), (0, "["), (0, "]"), (0, "]"),
    (0, ","), (1, "é"), (0, ":"), (0, "{"), (1, ""), (0, ":"), (3, True), (0, "}"),
    (0, ","), (1, "z"), (0, ":"), (0, "["), (4, None), (0, ","), (3, False), (0, ","), (0, "{"), (0, "}"), (0, "]"), (0, "}"),
]  # fmt: skip


class Chunks:
    """A file whose reads are these, whatever is asked for."""

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk]

    def read(self, size: int) -> Any:
        return self.chunks.pop(0) if self.chunks else b""


def run(chunks: list[Any], **options: Any) -> tuple[list[Any], Any]:
    found: list[Any] = []
    try:
        found.extend(tokenizer(Chunks(chunks), **options))
    except tw.StreamError as error:
        assert isinstance(error, ValueError)
        return found, (type(error), error.code, error.offset)
    return found, None


def chunks_of(data: Any) -> Iterator[list[Any]]:
    yield from helpers.every_chunking(data, random.Random(3), most=80)


def test_tokens_at_every_cut_of_bytes_and_text() -> None:
    for chunks in chunks_of(DOCUMENT.encode()):
        assert run(chunks) == (TOKENS, None)
    for chunks in chunks_of(DOCUMENT):
        assert run(chunks) == (TOKENS, None)


def test_several_values_follow_each_other() -> None:
    for chunks in chunks_of(b'{"a": 1}[2]true null"x" 12\n-0.5 {}'):
        found, error = run(chunks)
        assert error is None
        assert [value for kind, value in found if kind] == ["a", 1, 2, True, None, "x", 12, -0.5]


def test_what_json_stream_takes_besides_json() -> None:
    found, error = run([b'[NaN, Infinity, -Infinity, 1e400, "a\tb\nc"]'])
    assert error is None
    values = [value for kind, value in found if kind]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, math.inf, "a\tb\nc"]


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (b"[1 2]", "json.unexpected_byte", 3),
        (b'{"a" 1}', "json.unexpected_byte", 5),
        (b'{"a": 1 "b": 2}', "json.unexpected_byte", 8),
        (b"[1,]", "json.unexpected_byte", 3),
        (b"1,2", "json.unexpected_byte", 1),
        (b"}", "json.unexpected_byte", 0),
        (b"[01]", "json.bad_number", 2),
        (b'"a"1', "json.trailing_data", 3),
        (b'["\\ud800x"]', "json.lone_surrogate", 8),
        (b"[tru]", "json.bad_literal", 4),
        (b"[" * 600, "json.too_deep", 512),
    ],
)
def test_malformed_input_has_code_and_offset_at_every_cut(data: bytes, code: str, offset: int) -> None:
    whole = run([data])
    assert whole[1][1:] == (code, offset)
    for chunks in chunks_of(data):
        assert run(chunks) == whole


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'["ab', "Unterminated string at end of file"),
        (b'{"ab', "Unterminated string at end of file"),
        (b'"\\ud83d', "Unterminated string at end of file"),
        (b"[12", "Unterminated list at end of file"),
        (b'{"a": 12', "Unterminated object at end of file"),
        (b"[nul", "the input ended"),
        (b"1.", "the input ended"),
    ],
)
def test_input_that_ends_inside_a_token(data: bytes, message: str) -> None:
    with pytest.raises(tw.TruncatedJSON, match=message) as cut:
        list(tokenizer(io.BytesIO(data)))
    assert cut.value.offset == len(data)


def test_input_that_ends_between_two_tokens_ends_the_tokens() -> None:
    for end, shown in [(1, 1), (4, 2), (5, 2), (7, 4), (9, 5), (10, 5)]:
        assert run([DOCUMENT[:end].encode()]) == (TOKENS[:shown], None)
    assert run([b""]) == run([b" \n"]) == ([], None)
    assert run([b" 12"]) == ([(2, 12)], None)


def test_nothing_is_read_before_it_is_needed() -> None:
    chunks = Chunks([b'{"a": 1', b', "b"', b": 2}"])
    tokens = tokenizer(chunks)
    assert len(chunks.chunks) == 3
    assert [next(tokens) for _ in range(2)] == TOKENS[:2]
    assert len(chunks.chunks) == 2


@pytest.mark.parametrize("binary", [True, False])
def test_the_cursor_is_put_behind_the_value(binary: bool) -> None:
    text = ' {"é": [1, 2]}[3] and the rest'
    stream: Any = io.BytesIO(text.encode()) if binary else io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    tokens = tokenizer(stream, correct_cursor=True)
    for _ in range(9):
        kind_and_value = next(tokens)
    assert kind_and_value == (0, "}")
    rest = "[3] and the rest"
    assert tokens.remainder == (rest.encode() if binary else rest)
    tokens.park_cursor()
    tokens.park_cursor()
    assert not tokens.remainder
    assert stream.read(3) == (b"[3]" if binary else "[3]")
    with pytest.raises(tw.MalformedJSON):  # it goes on from where the cursor stands
        next(tokens)


def test_what_can_not_be_sought_in_is_read_byte_by_byte() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    pipe = Pipe(b'{"a": 1}binary')
    tokens = tokenizer(pipe, correct_cursor=True)
    assert [next(tokens) for _ in range(5)][-1] == (0, "}")
    tokens.park_cursor()
    assert pipe.read() == b"binary"
    with pytest.raises(ValueError, match="sought"):
        tokenizer(Pipe(b""), correct_cursor=True, buffering=100)
    assert list(tokenizer(Pipe(b"[1]"), buffering=100)) == [(0, "["), (2, 1), (0, "]")]


@given(helpers.chunked(helpers.json_texts.map(str.encode)))
def test_any_document_in_any_chunks(drawn: tuple[bytes, list[bytes]]) -> None:
    data, chunks = drawn
    found, error = run(chunks)
    assert error is None
    # Put together again, the tokens are the document.
    text = "".join(value if kind == 0 else json.dumps(value) for kind, value in found)
    assert helpers.same(json.loads(text), json.loads(data))


# -- with json-stream -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peer() -> Any:
    return pytest.importorskip("json_stream", reason="json-stream is not installed")


@given(helpers.chunked(helpers.json_texts))
def test_as_json_streams_own_tokenizer(peer: Any, drawn: tuple[str, list[str]]) -> None:
    text, chunks = drawn
    expected = list(peer.tokenizer.tokenize(io.StringIO(text)))
    assert helpers.same(run(chunks), (expected, None))
    assert helpers.same(run([chunk.encode() for chunk in chunks]), (expected, None))


@given(helpers.chunked(helpers.json_texts.map(str.encode)))
def test_json_stream_reads_through_it(peer: Any, drawn: tuple[bytes, list[bytes]]) -> None:
    data, chunks = drawn
    value = peer.to_standard_types(peer.load(Chunks(chunks), tokenizer=tokenizer))
    assert helpers.same(value, json.loads(data))


def test_json_stream_says_what_is_open(peer: Any) -> None:
    for cut, what in ((b"[", "list"), (b"[1", "list"), (b"[1,", "list"), (b'{"a"', "object"), (b'{"a": 1', "object")):
        with pytest.raises(ValueError, match=f"Unterminated {what} at end of file"):
            peer.load(io.BytesIO(cut), tokenizer=tokenizer).read_all()


def test_json_then_other_bytes(peer: Any) -> None:
    file = io.BytesIO(b'{"header": 1}\x00\x01')
    header = peer.load(file, tokenizer=tokenizer, correct_cursor=True)
    header.read_all()
    header.tokenizer.park_cursor()
    assert file.read() == b"\x00\x01"
