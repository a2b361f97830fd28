"""What goes back to the provider: the same calls, texts and signatures, in the provider's own shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, load, name

GOOD = [path for path in FIXTURES if load(path)[0]["gate"]["action"] != "refuse"]


def finished(path: Path, size: int | None = None) -> tw.TurnResult:
    expect, body = load(path)
    turn = tw.Turn(expect["provider"], framing=expect["framing"])
    for start in range(0, len(body), size or len(body)):
        turn.feed(body[start : start + (size or len(body))])
    return turn.finish()


def told(result: tw.TurnResult) -> tuple[Any, ...]:
    """What two readings of the same message have in common."""
    calls = [
        (None if made_up(call) else call.id, call.name, call.kind, call.runs_on, value(call.text) if call.kind == "json" else call.text)
        for call in result.calls
        if "superseded" not in call.doubts
    ]
    return calls, {channel: text for (_, channel), text in result.texts.items() if text}


def made_up(call: tw.ToolCall) -> bool:
    """Where the protocol needs an id, the one that was made up goes back and is read as one of the provider's."""
    return call.id_is_synthetic or str(call.id).startswith("tw_")


def value(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def whole(provider: str, messages: list[dict[str, Any]], reason: str) -> bytes:
    """The message as a reply that is not streamed."""
    if provider == "openai-responses":
        return json.dumps({"object": "response", "id": "r", "status": "completed", "output": messages}).encode()
    if provider == "google-interactions":
        return json.dumps({"object": "interaction", "id": "i", "status": reason, "steps": messages}).encode()
    (message,) = messages
    body: Any
    if provider in ("openai-chat", "mistral"):
        body = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    elif provider == "anthropic":
        body = {"type": "message", "id": "m", **message, "stop_reason": reason}
    elif provider == "google-generate":
        body = {"candidates": [{"content": message, "finishReason": reason}]}
    elif provider == "ollama":
        body = {"message": message, "done": True, "done_reason": reason}
    return json.dumps(body).encode()


def is_read_back(path: Path) -> bool:
    """Protocols whose whole replies this library reads."""
    expect = load(path)[0]
    return expect["provider"] not in ("cohere", "bedrock") and not path.name.startswith("conversation_")


@pytest.mark.parametrize("path", [path for path in GOOD if is_read_back(path)], ids=name)
def test_what_goes_back_is_what_came(path: Path) -> None:
    result = finished(path).choice(0)
    if path.stem.startswith("parallel_one_invalid") and result.provider in ("anthropic", "google-interactions"):
        with pytest.raises(tw.UsageError, match="can not be sent back as an object"):
            result.replay()
        return
    messages = result.replay()
    if not messages:
        assert told(result) == ([], {})
        return
    turn = tw.Turn(result.provider)
    turn.feed(whole(result.provider, messages, str(result.reason)))
    assert told(turn.finish()) == told(result)


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_the_cuts_change_nothing_of_it(path: Path) -> None:
    expected = replayed(finished(path))
    for size in (1, 7, 1000):
        assert replayed(finished(path, size)) == expected


def replayed(result: tw.TurnResult) -> Any:
    try:
        return result.replay()
    except tw.UsageError as error:
        return str(error)


@pytest.mark.parametrize("path", [path for path in FIXTURES if path not in GOOD], ids=name)
def test_nothing_goes_back_of_a_turn_that_was_cut_or_failed(path: Path) -> None:
    expect, body = load(path)
    turn = tw.Turn(expect["provider"], framing=expect["framing"], on_cut="return")
    turn.feed(body)
    try:
        result = turn.finish()
    except tw.StreamError as error:
        result = turn.abort(error)
    if result.outcome in (tw.Outcome.CUT, tw.Outcome.ERROR, tw.Outcome.FILTERED, tw.Outcome.CANCELLED, tw.Outcome.UNKNOWN):
        with pytest.raises(tw.UsageError, match="is nothing to send back"):
            result.replay()
        if result.outcome is not tw.Outcome.CUT:
            assert result.next_request() is None


# -- exact shapes ---------------------------------------------------------------------------------------------------------


def sse(*payloads: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) for payload in payloads)


def ended(provider: str, body: bytes, **options: Any) -> tw.TurnResult:
    turn = tw.Turn(provider, **options)
    turn.feed(body)
    return turn.finish()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic_turn(reason: str, *blocks: list[dict[str, Any]]) -> tw.TurnResult:
    flat = [payload for each in blocks for payload in each]
    start = {"type": "message_start", "message": {"id": "msg_qa", "content": []}}
    return ended("anthropic", sse(start, *flat, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}))


SEARCH = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result", "encrypted_content": "AAAA"}]}
CITATION = {"type": "web_search_result_location", "url": "https://example.org", "encrypted_index": "BBBB"}


def test_an_anthropic_message_goes_back_block_by_block() -> None:
    result = anthropic_turn(
        "tool_use",
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "So"},
            {"type": "thinking_delta", "thinking": "..."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        block(1, {"type": "redacted_thinking", "data": "eHl6"}),
        block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "One"}, {"type": "citations_delta", "citation": CITATION}),
        block(3, {"type": "text", "text": ""}),
        block(4, {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}, {"type": "input_json_delta", "partial_json": '{"q":"x"}'}),
        block(5, SEARCH),
        block(6, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Two"}),
        block(
            7, {"type": "tool_use", "id": "t1", "name": "f", "input": {}, "caller": {"type": "direct"}}, {"type": "input_json_delta", "partial_json": '{"a":1}'}
        ),
        block(8, {"type": "tool_use", "id": "t2", "name": "g", "input": {}}),
    )
    assert result.replay() == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "So...", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "eHl6"},
                {"type": "text", "text": "One", "citations": [CITATION]},
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
                SEARCH,
                {"type": "text", "text": "Two"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
                {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
            ],
        }
    ]
    assert result.next_request() == tw.NextRequest("answer", result.replay(), {})


def test_what_was_handed_out_is_the_callers_own() -> None:
    result = anthropic_turn("end_turn", block(0, SEARCH), block(1, {"type": "text", "text": "x"}))
    result.replay()[0]["content"][0]["content"].clear()
    assert result.replay()[0]["content"][0] == SEARCH


def test_a_paused_message_goes_back_as_it_is_and_the_turn_goes_on() -> None:
    turn = tw.Turn("anthropic")
    start = {"type": "message_start", "message": {"id": "msg_1", "content": []}}
    pause = [{"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}, {"type": "message_stop"}]
    compaction = block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "sum", "encrypted_content": "enc"})
    turn.feed(sse(start, *compaction, *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}), *pause))
    first = turn.finish()
    message = {"role": "assistant", "content": [{"type": "compaction", "content": "sum", "encrypted_content": "enc"}, {"type": "text", "text": "a"}]}
    assert first.next_request() == tw.NextRequest("resend", [message], {})
    turn.hop()
    stop = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    turn.feed(sse(start, *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "b"}), *stop))
    last = turn.finish()
    assert last.text == "ab"
    assert last.replay() == [{"role": "assistant", "content": [{"type": "text", "text": "b"}]}]  # the first has gone back
    assert first.replay() == [message]
    assert last.next_request() is None


def test_texts_that_came_mixed_do_not_go_back() -> None:
    open_ = [{"type": "content_block_start", "index": i, "content_block": {"type": "text", "text": ""}} for i in (0, 1)]
    mixed = [{"type": "content_block_delta", "index": i, "delta": {"type": "text_delta", "text": t}} for i, t in ((0, "a"), (1, "b"), (0, "c"))]
    with pytest.raises(tw.UsageError, match="mixed"):
        anthropic_turn("end_turn", open_, mixed).replay()


def google(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"responseId": "r1", "candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}, **more}]}


def test_google_signatures_go_back_on_the_parts_they_came_with() -> None:
    result = ended(
        "google-generate",
        sse(
            google({"text": "I ", "thought": True}),
            google({"text": "think", "thought": True}),
            google({"text": "He"}, {"text": "llo", "thoughtSignature": "c2lnMA=="}),
            google({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2lnMQ=="}, {"functionCall": {"name": "g", "id": "c-1"}}),
            google({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
            google({"text": "", "thoughtSignature": "c2lnMg=="}, finishReason="STOP"),
        ),
    )
    assert result.replay() == [
        {
            "role": "model",
            "parts": [
                {"text": "I think", "thought": True},
                {"text": "He"},
                {"text": "llo", "thoughtSignature": "c2lnMA=="},
                {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2lnMQ=="},
                {"functionCall": {"id": "c-1", "name": "g", "args": {}}},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"text": "", "thoughtSignature": "c2lnMg=="},
            ],
        }
    ]


def test_a_google_turn_that_goes_on_makes_one_content() -> None:
    turn = tw.Turn("google-generate")
    turn.feed(sse(google({"text": "Hel"}, finishReason="CONTINUATION", continuationToken="dG9r")))
    assert turn.finish().next_request() == tw.NextRequest("continue", [], {"continuationToken": "dG9r"})
    turn.hop()
    turn.feed(sse(google({"text": "lo"}, {"functionCall": {"name": "f"}}, finishReason="STOP")))
    parts = [{"text": "Hello"}, {"functionCall": {"name": "f", "args": {}}}]
    assert turn.finish().next_request() == tw.NextRequest("answer", [{"role": "model", "parts": parts}], {})


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "completed", "namespace": "n"}


@pytest.mark.parametrize("output", [[REASONING, FUNCTION], [], None])
def test_responses_items_go_back_as_their_last_event_has_them(output: Any) -> None:
    body = sse(
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r1", "status": "in_progress"}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}},
        {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": REASONING},
        {"type": "response.output_item.added", "sequence_number": 3, "output_index": 1, "item": {**FUNCTION, "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", "sequence_number": 4, "output_index": 1, "delta": "{}"},
        {"type": "response.output_item.done", "sequence_number": 5, "output_index": 1, "item": FUNCTION},
        {"type": "response.completed", "sequence_number": 6, "response": {"id": "r1", "status": "completed", "output": output}},
    )
    assert ended("openai-responses", body).replay() == [REASONING, FUNCTION]


def test_a_cut_response_says_from_where_to_resume() -> None:
    body = sse({"type": "response.created", "sequence_number": 0, "response": {"id": "r1"}}, {"type": "response.in_progress", "sequence_number": 1})
    assert ended("openai-responses", body).next_request() == tw.NextRequest("resume", [], {"starting_after": 1})
    assert ended("openai-chat", sse({"choices": []})).next_request() is None


def step(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"event_type": "step.start", "index": index, "step": start},
        *({"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", "index": index},
    ]


def interaction(status: str, *steps: list[dict[str, Any]], **more: Any) -> bytes:
    flat = [payload for each in steps for payload in each]
    created = {"event_type": "interaction.created", "interaction": {"id": "i1", "status": "in_progress"}}
    return sse(created, *flat, {"event_type": "interaction.completed", "interaction": {"id": "i1", "status": status, **more}})


IMAGE = {"type": "image", "mime_type": "image/png", "data": "AAAA"}


def test_interaction_steps_go_back_as_they_came() -> None:
    body = interaction(
        "requires_action",
        step(
            0, {"type": "thought"}, {"type": "thought_summary", "content": {"type": "text", "text": "hm"}}, {"type": "thought_signature", "signature": "c2ln"}
        ),
        step(1, {"type": "model_output"}, {"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}),
        step(2, {"type": "google_search_call", "id": "s1"}, {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["x"]}}),
        step(3, {"type": "google_search_result", "call_id": "s1"}, {"type": "google_search_result", "call_id": "s1", "result": [1]}),
        step(4, {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}, {"type": "arguments_delta", "arguments": '{"a":1}'}),
    )
    assert ended("google-interactions", body).replay() == [
        {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"},
        {"type": "model_output", "content": [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]},
        {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["x"]}},
        {"type": "google_search_result", "call_id": "s1", "result": [1]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]


def test_an_interaction_that_goes_on_names_the_owner_of_its_token() -> None:
    turn = tw.Turn("google-interactions")
    turn.feed(interaction("requires_continuation", step(0, {"type": "model_output"}, {"type": "text", "text": "a"}), continuation_token="tok"))
    assert turn.finish().next_request() == tw.NextRequest("continue", [], {"continuation_token": "tok", "previous_interaction_id": "i1"})
    turn.hop()
    turn.feed(interaction("requires_action", step(0, {"type": "function_call", "id": "c1", "name": "f", "arguments": {}})))
    assert turn.finish().replay() == [
        {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {}},
    ]


def test_a_bedrock_message_goes_back_block_by_block() -> None:
    events = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2ln"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": "eHl6"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"text": "hi"}}},
        {"contentBlockStart": {"contentBlockIndex": 3, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 3, "delta": {"toolUse": {"input": '{"a":1}'}}}},
        {"contentBlockStop": {"contentBlockIndex": 3}},
        {"contentBlockStart": {"contentBlockIndex": 4, "start": {"toolResult": {"toolUseId": "t0"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 4, "delta": {"toolResult": [{"text": "r"}]}}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    body = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    assert ended("bedrock", body).replay() == [
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "eHl6"}},
                {"text": "hi"},
                {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
                {"toolResult": {"toolUseId": "t0", "content": [{"text": "r"}]}},
            ],
        }
    ]


def test_cohere_tells_a_plan_from_thinking() -> None:
    body = sse(
        {"type": "message-start", "id": "m"},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "hm"}}}},
        {"type": "content-delta", "index": 1, "delta": {"message": {"content": {"text": "hi"}}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I "}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "plan"}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c1", "function": {"name": "f", "arguments": ""}}}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )
    assert ended("cohere", body).replay() == [
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}],
            "tool_plan": "I plan",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    ]


def chat(*deltas: dict[str, Any], reason: str = "tool_calls") -> bytes:
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return sse(*chunks, {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, b"[DONE]")


def test_a_chat_message_goes_back_under_the_names_that_came() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": 1'}, "extra_content": signed},
        {"index": 1, "id": "b", "type": "custom", "custom": {"name": "g", "input": "free"}},
    ]
    more = {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}
    result = ended("openai-chat", chat({"content": "x"}, {"reasoning_content": "h"}, {"reasoning_content": "m"}, {"tool_calls": calls}, more))
    assert result.replay() == [
        {
            "role": "assistant",
            "content": "x",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}, "extra_content": signed},
                {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free"}},
            ],
        }
    ]
    legacy = ended("openai-chat", chat({"function_call": {"name": "f", "arguments": "{}"}}, reason="function_call"))
    assert legacy.replay() == [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}]
    thinking = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}
    assert ended("mistral", chat(thinking, {"content": "x"}, reason="stop")).replay() == [
        {"role": "assistant", "content": [*thinking["content"], {"type": "text", "text": "x"}]}
    ]


def test_length_and_refusal_go_back_as_text_alone() -> None:
    assert ended("openai-chat", chat({"content": "x"}, reason="length")).replay() == [{"role": "assistant", "content": "x"}]
    refused = ended("openai-chat", chat({"refusal": "no"}, reason="stop"))
    assert refused.replay() == [{"role": "assistant", "content": None, "refusal": "no"}]
    call = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]}
    with pytest.raises(tw.UsageError, match="LENGTH and calls"):
        ended("openai-chat", chat(call, reason="length")).replay()
    with pytest.raises(tw.UsageError, match="in doubt: args_incomplete"):
        ended("openai-chat", chat(call)).replay()


def test_members_of_the_wrong_type_go_back_as_they_came() -> None:
    steps = [{"type": {}, "x": 1}, {"type": "model_output", "content": 3}]
    assert ended("google-interactions", interaction("completed", steps=steps)).replay() == steps
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolResult": {"content": 1}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolResult": [{"text": "r"}]}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    body = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    assert ended("bedrock", body).replay()[0]["content"] == [{"toolResult": {"content": [{"text": "r"}]}}]
