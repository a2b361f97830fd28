"""Whatever the bytes are: a clear error with its place, no crash, the text so far stays readable, and nothing runs.

Every body is fed whole, byte by byte and in random pieces, and everything has to be the same each time.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire as tw
from turn_helpers import GOOD, Played, calls, chat, chunk, cut, dumps, entry, error_facts, every_way, named, play, sse, ways

PROVIDERS = ["openai-chat", "openai-responses", "anthropic", "google-interactions"]
END = (chunk(finish="tool_calls"), "[DONE]")
DEEP = 200_000
DIGITS = 5_000
LONG_NUMBER = "7" * DIGITS
assert 0 < sys.get_int_max_str_digits() < DIGITS


def refused(played: Played) -> tw.StreamError:
    """The error, raised or in the result; the gate has released nothing."""
    assert (played.action, played.ran) == ("refuse", [])
    error = played.error or played.result.error
    assert isinstance(error, tw.StreamError)
    assert error.code in tw.errors.CODES or isinstance(error, tw.ProviderError)
    assert str(error)
    assert len(str(error)) < 2_000, "an error quotes no whole body"
    return error


# A start of each protocol with one open call and the argument text {"a":" in it, and what a delta looks like.

ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f"}


def start(provider: str) -> bytes:
    return {
        "openai-chat": lambda: sse(calls(entry(0, "c1", "f", ""))),
        "openai-responses": lambda: named(
            {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {**ITEM, "arguments": "", "status": "in_progress"}},
        ),
        "anthropic": lambda: named(
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "f", "input": {}}},
        ),
        "google-interactions": lambda: named(
            {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}},
            {"event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}},
            key="event_type",
        ),
    }[provider]()


def delta(provider: str, text: Any, number: int = 2) -> bytes:
    return {
        "openai-chat": lambda: sse(calls(entry(0, arguments=text))),
        "openai-responses": lambda: named(
            {"type": "response.function_call_arguments.delta", "sequence_number": number, "output_index": 0, "item_id": "fc_1", "delta": text}
        ),
        "anthropic": lambda: named({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}),
        "google-interactions": lambda: named(
            {"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": text}}, key="event_type"
        ),
    }[provider]()


def end(provider: str, text: str, number: int = 3) -> bytes:
    item = {**ITEM, "arguments": text, "status": "completed"}
    return {
        "openai-chat": lambda: sse(*END),
        "openai-responses": lambda: named(
            {"type": "response.output_item.done", "sequence_number": number, "output_index": 0, "item": item},
            {"type": "response.completed", "sequence_number": number + 1, "response": {"id": "r", "status": "completed", "output": [item]}},
        ),
        "anthropic": lambda: named(
            {"type": "content_block_stop", "index": 0}, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}
        ),
        "google-interactions": lambda: named(
            {"event_type": "step.stop", "index": 0},
            {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "requires_action"}},
            key="event_type",
        ),
    }[provider]()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_parts_make_a_good_turn(provider: str) -> None:
    body = start(provider) + delta(provider, '{"a":1}') + end(provider, '{"a":1}')
    assert every_way(body, provider).ran == [("c1", "f", {"a": 1})]


# Bodies that are no stream.


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_binary_garbage(provider: str, seed: int) -> None:
    body = random.Random(seed).randbytes(700)
    error = refused(every_way(body, provider))
    assert error.code in ("frame.not_event_stream", "turn.cut", "json.bad_utf8", "json.unexpected_byte")
    good = start("openai-chat") if provider in ("openai-chat", "mistral", "auto") else b""
    if good:
        played = every_way(good + body, provider)
        refused(played)
        assert [c.name for c in played.calls] == ["f"]


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
def test_an_html_page(provider: str) -> None:
    page = b"<!DOCTYPE html>\r\n<html lang=en>\r\n<title>502 Bad Gateway</title>\r\n<p>data: none</p>\r\n\r\n</html>"
    error = refused(every_way(page, provider))
    assert (error.code, type(error)) == ("frame.not_event_stream", tw.MalformedFrame)
    assert error.offset is not None and 0 <= error.offset <= len(page)


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
def test_an_error_body(provider: str) -> None:
    for body in ({"error": {"message": "no key", "code": 401}}, {"error": {"message": "no key", "type": "invalid_request_error"}, "type": "error"}):
        played = every_way(json.dumps(body, indent=1).encode(), provider)
        error = refused(played)
        assert isinstance(error, tw.ProviderError) and error.message == "no key"
        assert (played.result.outcome, played.decision.reason) == ("ERROR", "turn_error")


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
def test_an_empty_body(provider: str) -> None:
    played = every_way(b"", provider)
    assert refused(played).code == "turn.empty"
    assert (played.decision.reason, played.result.outcome, played.result.truncated) == ("turn_not_ended", "CUT", True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_compressed_body(provider: str) -> None:
    error = refused(every_way(gzip.compress(start(provider) * 3, mtime=0), provider))
    assert error.code == "frame.not_event_stream"


# Depth.


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_200_000_brackets_in_a_parser(opening: str) -> None:
    data = (opening * DEEP).encode()
    facts = set()
    for chunks in ways(data, rounds=2, per_byte=opening == "["):
        parser = tw.JSONParser()
        with pytest.raises(tw.LimitExceeded) as info:
            for piece in chunks:
                parser.feed(piece)
        assert (info.value.code, info.value.limit, info.value.value, info.value.offset) == ("json.too_deep", "max_depth", 512, 512 * len(opening))
        facts.add(error_facts(info.value))
        with pytest.raises(tw.LimitExceeded) as again:
            parser.finish()
        assert again.value is info.value
    assert len(facts) == 1
    with pytest.raises(tw.LimitExceeded):
        tw.loads(data)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_200_000_brackets_as_a_payload(provider: str) -> None:
    head = start(provider) + delta(provider, '{"a":"so far')
    body = head + sse("[" * DEEP) + end(provider, "")
    played = every_way(body, provider, per_byte=False)
    error = refused(played)
    assert isinstance(error, tw.LimitExceeded)
    assert (error.code, error.limit) == ("json.too_deep", "max_depth")
    assert error.offset is not None and len(head) <= error.offset <= len(head) + DEEP + 6
    assert [(c.text, c.value) for c in played.calls] == [('{"a":"so far', {"a": "so far"})]


def test_200_000_brackets_as_a_payload_byte_by_byte() -> None:
    body = sse(chunk({"content": "so"}), "[" * DEEP)
    facts = {play(chunks).facts() for chunks in ([body], [body[i : i + 1] for i in range(len(body))])}
    assert len(facts) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_200_000_brackets_as_arguments(provider: str) -> None:
    text = "[" * DEEP
    body = start(provider) + delta(provider, text) + end(provider, text)
    played = every_way(body, provider, per_byte=False)
    assert (played.action, played.ran) == ("refuse", [])
    (call,) = played.calls
    assert call.text == text
    if played.error is None:
        assert "args_invalid_json" in played.reasons
        assert "max_depth" in played.decision.refused[0].detail
    assert isinstance(call.error, tw.LimitExceeded)
    assert (call.error.code, call.error.limit, call.error.offset) == ("json.too_deep", "max_depth", 512)


def test_200_000_brackets_in_the_envelope() -> None:
    for deep in ("[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP):
        body = sse(chunk({"content": "so"})) + b'data: {"choices":[{"index":0,"delta":{"content":"x"},"deep":' + deep.encode() + b"}]}\n\n"
        played = every_way(body, per_byte=False, rounds=2)
        error = refused(played)
        assert isinstance(error, tw.LimitExceeded) and error.limit == "max_depth"
        assert played.result.text == "so"


def test_200_000_brackets_as_an_arguments_object() -> None:
    body = (
        sse(chunk({"content": "so"}))
        + b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":'
        + b'{"a":' * DEEP
        + b"1"
        + b"}" * DEEP
        + b"}}]}}]}\n\n"
        + sse(*END)
    )
    played = every_way(body, per_byte=False, rounds=2)
    refused(played)
    assert played.result.text == "so"


def test_200_000_brackets_as_the_body() -> None:
    for provider in ("openai-chat", "google-generate", "auto"):
        error = refused(every_way(b"[" * DEEP, provider, per_byte=False, rounds=2))
        assert error.code.split(".")[0] in ("json", "frame", "turn")


# Digits.


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_5_000_digit_integer_in_arguments(provider: str) -> None:
    text = '{"b":1,"a":' + LONG_NUMBER + "}"
    pieces = [text[:8], text[8:3000], text[3000:]]
    body = start(provider) + b"".join(delta(provider, p, n) for n, p in enumerate(pieces, 2)) + end(provider, text, 5)
    played = every_way(body, provider, rounds=2)
    assert (played.action, played.ran) == ("refuse", [])
    assert "args_number_too_long" in played.reasons
    assert "args_invalid_json" not in played.reasons
    (call,) = played.calls
    assert call.text == text
    assert isinstance(call.error, tw.LimitExceeded)
    assert (call.error.code, call.error.offset) == ("json.number_too_long", text.index("7"))
    assert call.value == {"b": 1}


def test_a_5_000_digit_integer_refuses_its_call_alone() -> None:
    played = every_way(chat(entry(0, "c1", "f", '{"a":' + LONG_NUMBER + "}"), entry(1, "c2", "g", "{}")), rounds=2)
    assert list(played.refused.values()) == [("args_number_too_long",)]
    assert played.ran == [("c2", "g", {})]


def test_a_5_000_digit_integer_in_the_envelope() -> None:
    """In a field that nobody reads it does no harm; in one that is read it is an error or left out. Nothing crashes."""
    for field in (
        '"created":@',
        '"usage":{"total_tokens":@}',
        '"choices":[{"index":@,"delta":{"content":"x"}}]',
        '"choices":[{"index":0,"delta":{"tool_calls":[{"index":@,"function":{"arguments":"x"}}]}}]',
        '"id":@',
        '"error":@',
        '"error":{"message":"m","code":@}',
    ):
        body = sse(calls(*GOOD)) + b"data: {" + field.replace("@", LONG_NUMBER).encode() + b"}\n\n" + sse(*END)
        played = every_way(body, rounds=2, per_byte=False)
        assert played.calls[0].text == '{"port":"Brest"}'
        if field.startswith('"created"'):
            assert (played.error, played.action) == (None, "run")
        elif "error" in field:
            refused(played)
        elif played.error is not None:
            assert (played.error.code, type(played.error)) == ("json.number_too_long", tw.LimitExceeded)


def test_a_5_000_digit_integer_in_an_arguments_object() -> None:
    body = chat(entry(0, "c1", "f", {"a": 1})).replace(b'{"a":1}', b'{"a":' + LONG_NUMBER.encode() + b"}")
    played = every_way(body, rounds=2, per_byte=False)
    assert (played.action, played.ran) == ("refuse", [])


def test_a_5_000_digit_integer_in_a_parser() -> None:
    data = b'{"a": ' + LONG_NUMBER.encode() + b"}"
    for chunks in ways(data, rounds=2):
        parser = tw.JSONParser()
        with pytest.raises(tw.LimitExceeded) as info:
            for piece in chunks:
                parser.feed(piece)
        assert (info.value.code, info.value.offset) == ("json.number_too_long", 6)
        assert "set_int_max_str_digits" in info.value.option or "set_int_max_str_digits" in str(info.value)
    assert tw.loads(data.replace(LONG_NUMBER.encode(), LONG_NUMBER.encode() + b".0")) == {"a": float("inf")}


# Sizes.


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_frame_beyond_its_limit(provider: str) -> None:
    head = start(provider) + delta(provider, '{"a":"so far')
    body = head + delta(provider, "x" * 3_000, 3) + end(provider, "")
    played = every_way(body, provider, limits=tw.Limits(max_frame_bytes=2_000))
    error = refused(played)
    assert isinstance(error, tw.LimitExceeded)
    assert (error.code, error.limit, error.value) == ("frame.too_large", "max_frame_bytes", 2_000)
    assert error.offset is not None and len(head) <= error.offset <= len(head) + 3_000
    assert [c.text for c in played.calls] == ['{"a":"so far']


def test_a_frame_that_never_ends() -> None:
    body = sse(chunk({"content": "so"})) + b"data: " + b"x" * 5_000
    played = every_way(body, limits=tw.Limits(max_frame_bytes=2_000))
    assert refused(played).code == "frame.too_large"
    assert played.result.text == "so"
    body = sse(chunk({"content": "so"})) + b"data: x\n" * 1_000
    assert refused(every_way(body, limits=tw.Limits(max_frame_bytes=2_000), rounds=2)).code == "frame.too_large"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_arguments_beyond_their_limit(provider: str) -> None:
    pieces = ['{"a":"', "x" * 50, "x" * 50, '"}']
    body = start(provider) + b"".join(delta(provider, p, n) for n, p in enumerate(pieces, 2)) + end(provider, "".join(pieces), 6)
    played = every_way(body, provider, limits=tw.Limits(max_argument_chars=80))
    assert (played.action, played.ran) == ("refuse", [])
    error = played.error or played.calls[0].error
    assert isinstance(error, tw.LimitExceeded)
    assert (error.limit, error.value) == ("max_argument_chars", 80)
    assert played.calls[0].text.startswith('{"a":"' + "x" * 50)
    assert len(played.calls[0].text) <= 80


# Bytes that are no UTF-8.

CHARACTER = "🛶".encode()


@pytest.mark.parametrize("half", [CHARACTER[:1], CHARACTER[:2], CHARACTER[:3], b"\xc3"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_half_a_character_at_the_end_of_the_body(provider: str, half: bytes) -> None:
    head = start(provider)
    body = head + delta(provider, '{"a":"@')[:-2].partition(b"@")[0] + half
    played = every_way(body, provider)
    refused(played)
    assert played.decision.reason == "turn_not_ended"
    assert [(c.name, c.text) for c in played.calls] == [("f", "")]


@pytest.mark.parametrize("half", [CHARACTER[:1], CHARACTER[:3], b"\xc3", b"\xed\xa0\xbd", b"\xff", b"\x80"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_half_a_character_in_a_frame(provider: str, half: bytes) -> None:
    body = (start(provider) + delta(provider, '{"a":"x@y"}') + end(provider, '{"a":"x@y"}')).replace(b"@", half)
    played = every_way(body, provider)
    assert (played.action, played.ran) == ("refuse", [])
    assert "args_invalid_unicode" in played.reasons
    (call,) = played.calls
    assert call.text == '{"a":"x' + half.decode("utf-8", "replace") + 'y"}'


def test_half_a_character_at_the_end_of_the_last_payload() -> None:
    body = chat(*GOOD, done=False)[:-2] + b"\xf0\x9f"
    assert every_way(body).action == "refuse"


# Frames in a wrong order.


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_delta_before_its_start(provider: str) -> None:
    frames = [f + b"\n\n" for f in start(provider).split(b"\n\n")[:-1]]
    body = b"".join(frames[:-1]) + delta(provider, '{"a":1}', 1) + end(provider, '{"a":1}', 2)
    played = every_way(body, provider)
    assert (played.action, played.ran) == ("refuse", []) or provider == "openai-responses"
    if provider == "openai-responses":
        # The item's own end carries id, name and the whole text; without a start a delta may still be taken for an error.
        assert played.ran in ([], [("c1", "f", {"a": 1})])
    if played.error is None and provider == "openai-chat":
        assert [(c.name, c.text) for c in played.calls] == [(None, '{"a":1}')]
        assert "orphan_arguments" in played.reasons


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_delta_for_a_place_that_never_started(provider: str) -> None:
    stray = (
        delta(provider, '{"b":2}', 3)
        .replace(b'"index":0,"delta":{"type"', b'"index":4,"delta":{"type"')
        .replace(b'"output_index":0', b'"output_index":4')
        .replace(b"fc_1", b"fc_9")
    )
    stray = stray.replace(b'"tool_calls":[{"index":0', b'"tool_calls":[{"index":4')
    assert stray != delta(provider, '{"b":2}', 3)
    body = start(provider) + delta(provider, '{"a":1}') + stray + end(provider, '{"a":1}', 4)
    played = every_way(body, provider)
    assert all(arguments == {"a": 1} for _, _, arguments in played.ran)
    assert played.calls[0].text == '{"a":1}'
    if played.action == "run":
        assert played.result.marks, "at least it is said"


NO_TEXT: list[Any] = [["x"], [], 0, 7, 1.5, False, True]


@pytest.mark.parametrize("value", NO_TEXT, ids=repr)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_argument_text_that_is_no_text_is_not_skipped(provider: str, value: Any) -> None:
    """Skipped, it would leave a call without arguments, or with some of them."""
    for pieces in ([value], ['{"a":', value, "1}"], [value, '{"a":1}'], ['{"a":1}', value]):
        body = start(provider) + b"".join(delta(provider, piece, 2 + number) for number, piece in enumerate(pieces))
        played = every_way(body + end(provider, "", 2 + len(pieces)).replace(b'"arguments":"",', b""), provider)
        assert (played.action, played.ran) == ("refuse", [])


def unreadable(provider: str, value: Any) -> list[bytes]:
    """What stands around the argument text, each time another level of it replaced."""
    if provider == "openai-chat":
        return [sse(chunk({"tool_calls": calls})) for calls in (value, [value], [entry(0) | {"function": value}], [entry(0) | {"custom": value}])]
    if provider == "anthropic":
        return [named({"type": "content_block_delta", "index": 0, "delta": each}) for each in (value, {"type": value, "partial_json": '{"a":1}'})]
    delta = ({"event_type": "step.delta", "index": 0, "delta": each} for each in (value, {"type": value, "arguments": '{"a":1}'}))
    return [named(each, key="event_type") for each in delta]


@pytest.mark.parametrize("value", [["x"], 7, 1.5, True], ids=repr)
@pytest.mark.parametrize("provider", ["openai-chat", "anthropic", "google-interactions"])
def test_what_stands_around_argument_text_and_can_not_be_read_is_not_skipped(provider: str, value: Any) -> None:
    for odd in unreadable(provider, value):
        played = every_way(start(provider) + odd + end(provider, ""), provider)
        assert (played.action, played.ran) == ("refuse", [])


def test_the_same_in_bedrock_and_cohere() -> None:
    for value in (["x"], 7, True):
        events: list[Any] = [
            {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c1", "name": "f"}}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "tool_use"}},
        ]
        for delta in (value, {"toolUse": value}):
            lines = [events[0], {"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}}, *events[1:]]
            assert every_way(b"".join(dumps(each).encode() + b"\n" for each in lines), "bedrock").ran == []
        opening = {"tool_calls": {"id": "c1", "function": {"name": "f", "arguments": ""}}}
        for message in ({"tool_calls": value}, {"tool_calls": {"function": value}}):
            events = [
                {"type": "tool-call-start", "index": 0, "delta": {"message": opening}},
                {"type": "tool-call-delta", "index": 0, "delta": {"message": message}},
                {"type": "tool-call-end", "index": 0},
                {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
            ]
            assert every_way(named(*events), "cohere").ran == []


GOOD_END = {
    "openai-chat": b'"finish_reason":"tool_calls"',
    "openai-responses": b'"status":"completed"',
    "anthropic": b'"stop_reason":"tool_use"',
    "google-interactions": b'"status":"requires_action"',
}


@pytest.mark.parametrize("value", [["x"], 7, True, {"a": 1}], ids=repr)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reason_that_is_no_word_is_an_unknown_word(provider: str, value: Any) -> None:
    good = end(provider, '{"a":1}')
    key = GOOD_END[provider].partition(b":")[0]
    odd = good.replace(GOOD_END[provider], key + b":" + dumps(value).encode())
    beside = {"openai-chat": sse(chunk(finish=value)), "anthropic": named({"type": "message_delta", "delta": {"stop_reason": value}})}.get(provider)
    for tail in (odd, odd if beside is None else beside + good):
        assert every_way(start(provider) + delta(provider, '{"a":1}') + tail, provider).ran == []


@pytest.mark.parametrize("value", [["x"], 7, True, {"a": 1}, "pending"], ids=repr)
def test_a_call_whose_confirmation_can_not_be_read_waits_for_a_person(value: Any) -> None:
    call = {"type": "function.call.delta", "id": "i", "tool_call_id": "c1", "name": "f", "output_index": 0, "arguments": "{}"}
    end = {"type": "conversation.response.done"}
    assert every_way(named(call, end), "mistral").ran == [("c1", "f", {})]
    assert every_way(named(call | {"confirmation_status": value}, end), "mistral").ran == []


@pytest.mark.parametrize("value", NO_TEXT, ids=repr)
def test_free_text_that_is_no_text_is_refused(value: Any) -> None:
    item = {"type": "custom_tool_call", "id": "fc_1", "call_id": "c1", "name": "f"}
    events = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "fc_1", "delta": value},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ]
    played = every_way(named(*events), "openai-responses")
    assert (played.action, played.reasons) == ("refuse", ("args_conflict",))


@pytest.mark.parametrize("pieces", [["x"], "x", 7, {"a": 1}, {"jsonPath": 5}], ids=repr)
def test_streamed_arguments_that_are_no_pieces_are_refused(pieces: Any) -> None:
    parts = [{"functionCall": {"name": "f", "partialArgs": pieces}}]
    played = every_way(sse({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}), "google-generate")
    assert (played.action, played.reasons) == ("refuse", ("args_conflict",))


@pytest.mark.parametrize("again", [{"b": 2}, ["x"], 7], ids=repr)
def test_a_second_start_with_other_arguments(again: Any) -> None:
    first = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}}
    second = {**first, "content_block": {**first["content_block"], "input": again}}  # type: ignore[dict-item]
    message = {"type": "message_start", "message": {"id": "m", "content": []}}
    assert every_way(named(message, first, first) + end("anthropic", ""), "anthropic").ran == [("c1", "f", {"a": 1})]
    assert "args_conflict" in every_way(named(message, first, second) + end("anthropic", ""), "anthropic").reasons


def test_a_second_start_with_another_id() -> None:
    second = named({"type": "message_start", "message": {"id": "other", "content": []}})
    played = every_way(start("anthropic") + second + end("anthropic", ""), "anthropic")
    assert isinstance(played.error, tw.MalformedFrame)
    assert (played.error.code, played.error.offset is not None, played.action) == ("frame.protocol", True, "refuse")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("text", ['{"a":1', '{"a":"x', "{", '{"a":tru', '{"a":1}'])
def test_a_call_that_never_ends(provider: str, text: str) -> None:
    body = start(provider) + delta(provider, text)
    played = every_way(body, provider)
    error = refused(played)
    assert isinstance(error, tw.TurnTruncated) and error.code == "turn.cut"
    assert (played.decision.reason, played.calls[0].text) == ("turn_not_ended", text)
    # The turn ends well, the call does not.
    if text != '{"a":1}':
        played = every_way(body + end(provider, text), provider)
        assert (played.action, played.ran) == ("refuse", [])
        assert "args_incomplete" in played.reasons
        assert played.calls[0].text == text


# Payloads of a wrong shape.


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
@pytest.mark.parametrize("payload", ["{", "}", "{]", '{"a":}', "nul", "\x00", "{'a':1}", '{"a":1,}', "[DONE", "<p>", "data: {}", '{"a":"\x01"}', "﻿{}", "NaN"])
def test_payloads_that_are_no_json(provider: str, payload: str) -> None:
    head = start(provider) if provider in PROVIDERS else b""
    played = every_way(head + sse(payload) + (end(provider, "") if head else b""), provider)
    error = refused(played)
    assert isinstance(error, (tw.MalformedJSON, tw.TruncatedJSON, tw.MalformedFrame))
    assert error.offset is not None and len(head) <= error.offset <= len(head) + len(sse(payload))
    if head:
        assert [c.name for c in played.calls] == ["f"]


SHAPES: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", "x", [], [None], [[]], {}, {"index": 0}, [{}], [{"index": "x"}], {"message": None}]
KEYS: dict[str, list[str]] = {
    "openai-chat": [
        "id",
        "choices",
        "index",
        "delta",
        "finish_reason",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "type",
        "usage",
        "refusal",
        "error",
        "role",
    ],
    "openai-responses": [
        "type",
        "sequence_number",
        "response",
        "output",
        "output_index",
        "item",
        "item_id",
        "delta",
        "arguments",
        "status",
        "call_id",
        "name",
        "id",
        "error",
        "usage",
    ],
    "anthropic": ["type", "message", "index", "content_block", "delta", "partial_json", "stop_reason", "usage", "id", "name", "input", "error", "content"],
    "google-interactions": ["event_type", "interaction", "index", "step", "delta", "arguments", "status", "id", "name", "type", "error", "usage", "event_id"],
}


SMALLEST = [
    ("auto", b'data:{"object":[null]}'),
    ("anthropic", b'data:{"type":"content_block_start","index":0,"content_block":{"type":"thinking","signature":{}}}\n\n'
     b'data:{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}'),
    ("anthropic", b'data:{"type":"content_block_start","index":0,"content_block":{"type":"text","citations":1}}\n\n'
     b'data:{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "body"), SMALLEST)
def test_the_smallest_bodies_that_once_broke_it(provider: str, body: bytes) -> None:
    refused(play([body], provider))


@pytest.mark.parametrize("provider", PROVIDERS)
@given(st.data())
def test_any_value_in_any_field(provider: str, data: st.DataObject) -> None:
    """A field of a wrong type is skipped or said to be wrong. Never a crash, and never other arguments."""
    text = '{"a":1}'
    frames = (start(provider) + delta(provider, text[:3]) + delta(provider, text[3:], 3) + end(provider, text, 4)).split(b"\n\n")[:-1]
    place = data.draw(st.integers(0, len(frames) - 1))
    head, mark, payload = frames[place].partition(b"data: ")
    try:
        envelope = json.loads(payload)
    except ValueError:
        return
    spots: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            spots.append((value, key))
            walk(inner)

    walk(envelope)
    holder, key = data.draw(st.sampled_from(spots))
    shape = data.draw(st.sampled_from([*SHAPES, "drop"]))
    if shape == "drop":
        del holder[key]
    else:
        holder[key] = shape
    if isinstance(holder, dict) and data.draw(st.booleans()):
        holder[data.draw(st.sampled_from(KEYS[provider]))] = data.draw(st.sampled_from(SHAPES))
    frames[place] = head + mark + dumps(envelope).encode()
    body = b"\n\n".join(frames) + b"\n\n"
    first = play([body], provider)
    second = play(cut(body, data.draw(st.lists(st.integers(0, len(body)), max_size=6))), provider)
    assert first.facts() == second.facts()
    assert len(first.ran) <= 1
    if first.error is not None:
        assert first.action == "refuse"


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "mistral", "auto"])
@given(
    st.lists(
        st.binary(max_size=30)
        | st.sampled_from(
            [
                b"data: ",
                b"\n\n",
                b"\r",
                b"event: error\n",
                b"[DONE]",
                b"{}",
                b'{"error":',
                b'"x"}',
                b"\xef\xbb\xbf",
                b"[",
                b"]",
                b'{"choices":[{"delta":{"tool_calls":[{"index":0,',
                b'"function":{"arguments":"',
                b'{"type":"message_start"}',
                b'{"candidates":[{}]}',
            ]
        ),
        max_size=8,
    ).map(b"".join),
    st.data(),
)
def test_any_bytes_at_all(provider: str, body: bytes, data: st.DataObject) -> None:
    first = play([body], provider)
    second = play(cut(body, data.draw(st.lists(st.integers(0, len(body)), max_size=6))), provider)
    assert first.facts() == second.facts()
    assert first.ran == []


@pytest.mark.parametrize("provider", PROVIDERS)
@given(st.data())
def test_a_changed_byte_is_never_a_crash(provider: str, data: st.DataObject) -> None:
    body = bytearray(start(provider) + delta(provider, '{"a":') + delta(provider, "1}", 3) + end(provider, '{"a":1}', 4))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    first = play([bytes(body)], provider)
    second = play(cut(bytes(body), data.draw(st.lists(st.integers(0, len(body)), max_size=6))), provider)
    assert first.facts() == second.facts()


# Wrong use.


@pytest.mark.parametrize("provider", [*PROVIDERS, "google-generate", "auto"])
def test_feed_after_finish(provider: str) -> None:
    turn = tw.Turn(provider, on_cut="return")
    turn.feed(b": hello\n\n")
    result = turn.finish()
    for _ in range(2):
        with pytest.raises(tw.UsageError):
            turn.feed(b"data: x\n\n")
    assert turn.finish() is result


@pytest.mark.parametrize("name", ["", "gpt", "openai", "AUTO", "anthropic ", None, 5, b"anthropic", ["anthropic"]])
def test_an_unknown_provider(name: Any) -> None:
    with pytest.raises(tw.UsageError) as info:
        tw.Turn(name)
    assert "anthropic" in str(info.value), "it says which there are"


@pytest.mark.parametrize("schema", [5, "object", [], {"type": "objekt"}, {"type": 7}, {"properties": []}, {"required": "a"}, object()])
def test_a_schema_that_is_none(schema: Any) -> None:
    if isinstance(schema, dict):
        pytest.importorskip("jsonschema_rs")
    with pytest.raises(tw.UsageError) as info:
        tw.TurnGate({"hoist": schema})
    assert "hoist" in str(info.value), "it says which tool"


@pytest.mark.parametrize("tools", [5, "hoist", ["hoist"], {5: None}])
def test_tools_that_are_none(tools: Any) -> None:
    with pytest.raises(tw.UsageError):
        tw.TurnGate(tools)


@pytest.mark.parametrize("wrong", [None, 5, {}, (), "run"])
def test_a_gate_asked_about_no_result(wrong: Any) -> None:
    with pytest.raises(tw.UsageError):
        tw.TurnGate().decide(wrong)


@pytest.mark.parametrize("wrong", [None, 5, [1], object()])
def test_a_parser_fed_with_no_bytes(wrong: Any) -> None:
    parser = tw.JSONParser()
    parser.feed(b'{"a":')
    with pytest.raises((tw.UsageError, TypeError)):
        parser.feed(wrong)
    parser.feed(b"1}")
    assert parser.finish() == {"a": 1}
