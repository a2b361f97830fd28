"""A small stream of binary messages under every flipped bit, every early end and every cut."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolwire as tw

BODY = (Path(__file__).resolve().parents[1] / "fixtures/bedrock/demo.bin").read_bytes()


def ended(body: bytes) -> tw.TurnResult:
    turn = tw.Turn("bedrock", framing="aws-eventstream")
    try:
        turn.feed(body)
        return turn.finish()
    except tw.StreamError as error:
        return turn.abort(error)


def frames(chunks: list[bytes]) -> list[tuple[str, bytes, int]]:
    framer = tw.AWSEventStreamFramer()
    return [(f.event, f.raw, f.offset) for chunk in chunks for f in framer.feed(chunk)] + [(f.event, f.raw, f.offset) for f in framer.finish()]


def test_every_flipped_bit_is_reported() -> None:
    for bit in range(8 * len(BODY)):
        broken = bytearray(BODY)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(tw.StreamError):
            frames([bytes(broken)])


def test_no_flipped_bit_before_the_end_of_the_message_runs_anything() -> None:
    borders = {offset for _, _, offset in frames([BODY])}
    metadata = max(borders)
    for bit in range(0, 8 * metadata, 5):
        broken = bytearray(BODY)
        broken[bit // 8] ^= 1 << bit % 8
        result = ended(bytes(broken))
        assert isinstance(result.error, tw.StreamError)
        assert tw.TurnGate().decide(result).action == "refuse"


def test_a_frame_cut_at_each_byte_is_reported() -> None:
    borders = [offset for _, _, offset in frames([BODY])]
    metadata = borders[-1]  # comes after messageStop, and is not waited for
    for end in range(len(BODY)):
        framer = tw.AWSEventStreamFramer()
        framer.feed(BODY[:end])
        framer.finish()
        assert framer.in_frame is (end not in borders)
        result = ended(BODY[:end])
        assert result.truncated is (end != metadata)  # half of what follows could be an exception
        assert (tw.TurnGate().decide(result).action == "run") is (end == metadata)


def test_frames_cut_at_every_byte_are_the_same() -> None:
    whole = frames([BODY])
    assert len(whole) == 7
    assert frames([BODY[i : i + 1] for i in range(len(BODY))]) == whole
    for cut in range(len(BODY) + 1):
        assert frames([BODY[:cut], BODY[cut:]]) == whole
