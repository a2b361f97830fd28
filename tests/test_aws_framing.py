"""The framer of binary messages: values of every rule, and the property that no damage goes unnoticed."""

from __future__ import annotations

import copy
import pickle
import struct
import zlib
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aws_messages as aws
from toolwire._aws import AWSEventStreamFramer
from toolwire._framing import Frame
from toolwire.errors import LimitExceeded, MalformedFrame, StreamError, UsageError

SMALL = aws.event("messageStart", {"role": "assistant"}) + aws.message(b"two", {"k": True}) + aws.event("messageStop", {"stopReason": "tool_use"})
SIZES = (len(aws.event("messageStart", {"role": "assistant"})), len(aws.message(b"two", {"k": True})))
BORDERS = (0, SIZES[0], SIZES[0] + SIZES[1], len(SMALL))


def run(chunks: list[bytes], *, pickled_at: int | None = None, **options: Any) -> tuple[list[Frame], StreamError | None, bool, int]:
    """Frames, error, in_frame and offset."""
    framer = AWSEventStreamFramer(**options)
    frames: list[Frame] = []
    error = None
    for i, chunk in enumerate(chunks):
        if i == pickled_at:
            framer = pickle.loads(pickle.dumps(framer))
        try:
            frames += framer.feed(chunk)
        except StreamError as e:
            error = e
            break
    inside = framer.in_frame
    try:
        frames += framer.finish(flush=True)
    except StreamError as e:
        error = e
    return frames, error, inside, framer.offset


def facts(seen: tuple[list[Frame], StreamError | None, bool, int]) -> Any:
    frames, error, inside, offset = seen
    return [(f, f.data_offset) for f in frames], error and (type(error), error.code, error.offset, str(error)), inside, offset


def failure(body: bytes, **options: Any) -> tuple[str, int | None]:
    _, error, inside, offset = run([body], **options)
    assert error is not None
    assert inside
    assert offset == error.offset
    for i in range(1, len(body)):
        assert facts(run([body[:i], body[i:]], **options)) == facts(run([body], **options))
    return error.code, error.offset


def test_messages_come_out_with_their_headers() -> None:
    frames, error, inside, offset = run([SMALL])
    assert error is None
    assert not inside
    assert offset == len(SMALL)
    assert [(f.event, f.raw, f.offset, f.terminated) for f in frames] == [
        ("messageStart", b'{"role":"assistant"}', 0, True),
        ("", b"two", BORDERS[1], True),
        ("messageStop", b'{"stopReason":"tool_use"}', BORDERS[2], True),
    ]
    assert frames[0].headers == {":event-type": "messageStart", ":content-type": "application/json", ":message-type": "event"}
    assert frames[1].headers == {"k": True}
    for f in frames:
        assert SMALL[f.data_offset : f.data_offset + len(f.raw)] == f.raw


def test_headers_of_every_type() -> None:
    headers = {
        "true": True,
        "false": False,
        "i8": (2, b"\x80"),
        "i16": (3, b"\xff\xfe"),
        "i32": 2**31 - 1,
        "i64": (5, struct.pack(">q", -(2**63))),
        "bytes": b"\x00\xff",
        "text": "\u20ac",
        "time": (8, struct.pack(">q", 1_790_000_000_123)),
        "uuid": (9, bytes(range(16))),
    }
    [frame], error, _, _ = run([aws.message(b"", headers)])
    assert error is None
    assert frame.headers == {
        "true": True,
        "false": False,
        "i8": -128,
        "i16": -2,
        "i32": 2**31 - 1,
        "i64": -(2**63),
        "bytes": b"\x00\xff",
        "text": "\u20ac",
        "time": 1_790_000_000_123,
        "uuid": bytes(range(16)),
    }


def test_the_event_follows_the_message_type() -> None:
    names = [f.event for f in run([aws.event("x", {}) + aws.exception("yException", "no") + aws.error("z", "no")])[0]]
    assert names == ["x", "yException", "z"]
    assert run([aws.message(b"", {":message-type": "other", ":event-type": "x"})])[0][0].event == ""
    assert run([aws.message(b"", {":message-type": b"event", ":event-type": "x"})])[0][0].event == ""


def test_headers_are_read_only_and_go_through_pickle_and_copy() -> None:
    frame = run([SMALL])[0][0]
    assert isinstance(frame.headers, MappingProxyType)
    for other in (pickle.loads(pickle.dumps(frame)), copy.deepcopy(frame)):
        assert other == frame
        assert other.headers == frame.headers
    assert Frame(frame.raw, event=frame.event) != frame
    assert Frame(b"x").headers is None
    assert Frame(b"x", headers={"a": 1}).headers == {"a": 1}


def test_every_flipped_bit_is_reported_and_no_frame_after_it_comes_out() -> None:
    good = run([SMALL])[0]
    for bit in range(8 * len(SMALL)):
        broken = bytearray(SMALL)
        broken[bit // 8] ^= 1 << bit % 8
        frames, error, _, _ = run([bytes(broken)])
        number = sum(border <= bit // 8 for border in BORDERS[1:])
        assert isinstance(error, MalformedFrame), bit
        assert error.code == "frame.bad_checksum"
        assert error.offset is not None
        assert BORDERS[number] <= error.offset < BORDERS[number + 1]
        assert frames == good[:number]


def test_a_stream_that_stops_inside_a_message_says_so() -> None:
    good = run([SMALL])[0]
    for end in range(len(SMALL) + 1):
        frames, error, inside, offset = run([SMALL[:end]])
        assert error is None
        assert offset == end
        assert inside is (end not in BORDERS)
        assert frames == good[: sum(border <= end for border in BORDERS[1:])]


def test_no_cut_changes_anything() -> None:
    whole = facts(run([SMALL]))
    assert facts(run([SMALL[i : i + 1] for i in range(len(SMALL))])) == whole
    for i in range(len(SMALL) + 1):
        assert facts(run([SMALL[:i], SMALL[i:]])) == whole
        assert facts(run([SMALL[:i], SMALL[i:]], pickled_at=1)) == whole


@given(
    st.lists(
        st.tuples(st.binary(max_size=40), st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers(-9, 9) | st.booleans(), max_size=4)),
        max_size=5,
    ),
    st.data(),
)
def test_any_messages_in_any_cuts(messages: list[tuple[bytes, dict[str, Any]]], data: st.DataObject) -> None:
    body = b"".join(aws.message(payload, headers) for payload, headers in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    frames, error, inside, _ = run([body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)])
    assert error is None
    assert not inside
    assert [(f.raw, dict(f.headers or {})) for f in frames] == messages


def bare(total: int, headers: int, rest: bytes = b"") -> bytes:
    """A prelude with a good checksum, whatever its lengths."""
    prelude = struct.pack(">II", total, headers)
    return prelude + struct.pack(">I", zlib.crc32(prelude)) + rest


def test_lengths_that_no_message_has() -> None:
    assert failure(bare(15, 0, b"abc")) == ("frame.bad_length", 0)
    assert failure(bare(20, 5, b"abcdefgh")) == ("frame.bad_length", 4)
    assert failure(bare(1 << 20, (128 << 10) + 1), max_frame_bytes=1 << 30) == ("frame.bad_length", 4)
    assert failure(bare((24 << 20) + 17, 0), max_frame_bytes=1 << 30) == ("frame.bad_length", 0)
    assert run([bare((24 << 20) + 16, 0)], max_frame_bytes=1 << 30)[1] is None
    assert failure(b"HTTP/1.1 502 Bad Gateway")[0] == "frame.bad_checksum"


def test_a_message_beyond_the_limit_is_refused_by_its_prelude() -> None:
    body = aws.message(b"1234") + aws.message(b"12345")
    assert failure(body, max_frame_bytes=20) == ("frame.too_large", 20)
    frames, error, _, _ = run([body[:32]], max_frame_bytes=20)
    assert isinstance(error, LimitExceeded)
    assert error.option == "AWSEventStreamFramer(max_frame_bytes=...)"
    assert [f.raw for f in frames] == [b"1234"]
    assert run([aws.message(b"x" * (16 << 20))[:12]])[1] is not None  # 16 MiB of payload and a bit


@pytest.mark.parametrize(
    ("block", "at"),
    [
        (b"\x01a", 0),
        (b"\x05a\x00", 0),
        (b"\x01\xff\x00", 0),
        (b"\x01a\x00\x01b\x0a", 5),
        (b"\x01a\x05\x00", 3),
        (b"\x01a\x07\x00\x03xy", 3),
        (b"\x01a\x07\x00\x01\xff", 5),
        (b"\x01a\x00\x01b\x00\x01a\x01", 6),
        (b"".join(bytes([1, c, 0]) for c in b"abcdefghijklmnopqrstuvwx") + b"\x01c\x00", 72),
    ],
)
def test_bad_headers(block: bytes, at: int) -> None:
    assert failure(aws.message(b"{}", block)) == ("frame.bad_header", 12 + at)


def test_the_same_error_each_time_and_nothing_after_it() -> None:
    framer = AWSEventStreamFramer()
    broken = bytearray(SMALL)
    broken[-1] ^= 1
    assert len(framer.feed(bytes(broken))) == 2
    for call in (lambda: framer.feed(SMALL), lambda: framer.finish(), lambda: framer.feed(b"")):
        with pytest.raises(MalformedFrame, match="checksum"):
            call()
    again = pickle.loads(pickle.dumps(framer))
    with pytest.raises(MalformedFrame, match="checksum"):
        again.finish()


def test_misuse() -> None:
    with pytest.raises(UsageError, match="max_frame_bytes"):
        AWSEventStreamFramer(max_frame_bytes=0)
    framer = AWSEventStreamFramer()
    with pytest.raises(UsageError, match="bytes-like"):
        framer.feed("text")  # type: ignore[arg-type]
    assert framer.feed(SMALL[:40]) == []
    assert framer.finish() == []
    assert framer.in_frame
    with pytest.raises(UsageError, match="after finish"):
        framer.feed(b"")


def test_botocore_reads_the_same() -> None:
    eventstream = pytest.importorskip("botocore.eventstream", reason="botocore is not installed")
    rest = aws.exception("throttlingException", "slow down") + aws.message(b"x", {"n": -5, "b": b"\x00", "t": (8, struct.pack(">q", 77)), "f": False})
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(SMALL + rest)
    theirs = [(dict(m.headers), m.payload) for m in buffer]
    assert [(dict(f.headers or {}), f.raw) for f in run([SMALL + rest])[0]] == theirs
    assert len(theirs) == 5
