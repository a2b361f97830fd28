"""A turn as the message that goes back: judged by the SDKs' own types, and by reading it back."""

from __future__ import annotations

import functools
import json
import pickle
import re
import sys
from collections.abc import Iterable
from typing import Any

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, FOLDER, GOOD, emitted, load, name, read
from toolwire.compat import messages
from toolwire.compat.messages import (
    to_anthropic_message,
    to_gemini_content,
    to_langchain_chunk,
    to_langchain_message,
    to_langchain_tool_call_chunks,
    to_langchain_tool_calls,
    to_openai_items,
    to_openai_message,
    to_pydantic_ai_parts,
    to_pydantic_ai_tool_calls,
)
from turn_helpers import GOOD as GOOD_CALL
from turn_helpers import chat, chunk, dumps, entry, named, sse

#: Those that give plain data.
PLAIN = (to_openai_message, to_openai_items, to_anthropic_message, to_gemini_content, to_langchain_tool_calls, to_pydantic_ai_tool_calls)


#: Each provider's own shape, where there is one here: what ``replay()`` writes, which tests of its own judge.
OWN = {"openai-chat": to_openai_message, "openai-responses": to_openai_items, "anthropic": to_anthropic_message, "google-generate": to_gemini_content}


def result_of(provider: str, body: bytes) -> tw.TurnResult:
    turn = tw.Turn(provider, on_cut="return")
    try:
        turn.feed(body)
        return turn.finish()
    except tw.StreamError as error:
        return turn.abort(error)


def of(folder: str, case: str) -> tw.TurnResult:
    expect, body = load(FOLDER / folder / f"{case}.expect.json")
    return result_of(expect["provider"], body)


def outcome(result: Any, to: Any = to_openai_message, **options: Any) -> Any:
    """What comes out, or the reasons why nothing does."""
    try:
        return to(result, **options)
    except tw.UsageError as error:
        found = re.match(r"nothing to send back \((.*?)\): ", str(error))
        assert found is not None, error
        return tuple(found[1].split(", "))


def client_calls(result: tw.TurnResult, choice: int = 0) -> list[tw.ToolCall]:
    return [call for call in result.calls if call.choice == choice and call.runs_on == "client" and "needs_approval" not in call.marks]


BODIES: dict[str, bytes] = {}
RESULTS: dict[str, tw.TurnResult] = {}
for _path in FIXTURES:
    _expect, BODIES[name(_path)] = load(_path)
    RESULTS[name(_path)] = result_of(_expect["provider"], BODIES[name(_path)])
#: Turns of which every choice may be sent back as it is.
WHOLE = sorted(key for key, result in RESULTS.items() if (d := tw.TurnGate().preview(result)).action != "refuse" and not d.refused)


#: One test a folder: there are hundreds of turns, and each has little to say.
FOLDERS = sorted({path.parent.name for path in FIXTURES})


def inside(folder: str, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key.startswith(folder + "/")]


def foreign(to: Any) -> list[str]:
    """The whole turns that are another provider's in this shape."""
    return [key for key in WHOLE if OWN.get(RESULTS[key].provider) is not to]


def test_there_are_whole_turns_of_every_provider():
    assert {RESULTS[key].provider for key in WHOLE} == set(tw.PROVIDERS) - {"auto"}


# -- which turns ------------------------------------------------------------------------------------------------------------


def judged(result: tw.TurnResult) -> tw.TurnResult:
    """Choice 0 without calls that another model took over from: everybody leaves them out."""
    alone = result.choice(0)
    alone.calls = tuple(call for call in alone.calls if "superseded" not in call.doubts)
    return alone


@pytest.mark.parametrize("folder", FOLDERS)
def test_message_comes_out_of_exactly_those_turns_whose_calls_the_gate_would_run(folder: str):
    for key in inside(folder, RESULTS):
        result = judged(RESULTS[key])
        decision = tw.TurnGate().preview(result)
        for to in PLAIN:
            got = outcome(RESULTS[key], to)
            if decision.action != "refuse" and not decision.refused:
                assert isinstance(got, (dict, list)), (key, to)
            elif not result.calls and decision.reasons in (("turn_refused",), ("turn_truncated",)):
                assert isinstance(got, (dict, list)), (key, to)
                assert to is not to_openai_message or got.get("refusal", "") == result.texts.get((0, "refusal"), ""), key
            else:
                assert got == tuple(reason for reason in decision.reasons if reason != "ended"), (key, to)


@pytest.mark.parametrize("folder", FOLDERS)
def test_partial_message_has_the_calls_that_the_gate_would_run_and_no_other(folder: str):
    for key in inside(folder, RESULTS):
        result = judged(RESULTS[key])
        would_run = [call.name for call in tw.TurnGate().decide(result).runnable]
        for to in PLAIN:
            got = to(RESULTS[key], partial=True)
            assert json.loads(dumps(got)) == got, (key, to)
            whole = outcome(RESULTS[key], to)
            if OWN.get(result.provider) is to and not isinstance(whole, tuple):
                assert got == whole, (key, to)
            else:
                assert names_in(to, got) == would_run, (key, to)


def names_in(to: Any, got: Any) -> list[Any]:
    if to is to_openai_message:
        return [(c.get("function") or c["custom"])["name"] for c in got.get("tool_calls", [])]
    if to is to_openai_items:
        return [item["name"] for item in got if "name" in item]
    if to is to_anthropic_message:
        return [block["name"] for block in got["content"] if block["type"] == "tool_use"]
    if to is to_gemini_content:
        return [part["functionCall"]["name"] for part in got["parts"] if "functionCall" in part]
    return [call.get("name", call.get("tool_name")) for call in got]


def test_refused_call_refuses_the_message_and_is_left_out_of_a_partial_one():
    result = of("openai-chat", "parallel_one_invalid")
    with pytest.raises(tw.UsageError, match=r"nothing to send back \(args_invalid_json\): lookup_demo_value: json\."):
        to_openai_message(result)
    message = to_openai_message(result, partial=True)
    assert len(message["tool_calls"]) == len(result.calls) - 1
    for call in message["tool_calls"]:
        json.loads(call["function"]["arguments"])


@pytest.mark.parametrize("to", PLAIN)
def test_cut_turn_raises_whether_it_comes_as_result_or_as_error(to):
    result = result_of("openai-chat", chat(*GOOD_CALL, finish=None, done=False))
    for given in (result, tw.TurnTruncated("cut", result=result)):
        with pytest.raises(tw.UsageError, match=r"nothing to send back \(turn_not_ended\): TurnTruncated: turn\.cut"):
            to(given)
    assert result.calls[0].complete


def test_turn_cut_by_length_has_its_text_and_with_a_call_only_where_partial():
    text, call, end = chunk({"content": "so far"}), chunk({"tool_calls": [entry(0, "c1", "get", "{}")]}), chunk(finish="length")
    for body, options in ((sse(text, end, "[DONE]"), {}), (sse(text, call, end, "[DONE]"), {"partial": True})):
        result = result_of("openai-chat", body)
        assert to_openai_message(result, **options) == {"role": "assistant", "content": "so far"}
        assert to_openai_items(result, **options) == [{"role": "assistant", "content": "so far"}]
        assert to_anthropic_message(result, **options) == {"role": "assistant", "content": [{"type": "text", "text": "so far"}]}
        assert to_gemini_content(result, **options) == {"role": "model", "parts": [{"text": "so far"}]}
    assert outcome(result) == ("turn_truncated",)


def test_arguments_are_never_repaired():
    result = result_of("openai-chat", chat(entry(0, "c1", "get", '{"port":"Bre')))
    for to in PLAIN:
        assert outcome(result, to) == ("args_incomplete",)
    assert to_openai_message(result, partial=True) == {"role": "assistant", "content": ""}


def test_what_was_done_to_the_live_value_does_not_matter():
    result = result_of("openai-chat", chat(*GOOD_CALL))
    result.calls[0].value["port"] = "Nantes"
    assert to_anthropic_message(result)["content"][0]["input"] == {"port": "Brest"}
    assert to_gemini_content(result)["parts"][0]["functionCall"]["args"] == {"port": "Brest"}


def test_message_shares_nothing_with_the_turn():
    result = of("openai-chat", "thought_signature")
    before = pickle.dumps(result)
    message = to_openai_message(result)
    message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] = "other"
    assert to_openai_message(pickle.loads(before)) == to_openai_message(result) != message


def test_nothing_is_released():
    result = result_of("openai-chat", chat(*GOOD_CALL))
    gate = tw.TurnGate()
    for to in PLAIN:
        to(result)
    assert gate.decide(result).action == "run"
    for to in PLAIN:
        to(result)


def test_refusal_is_text_in_shapes_that_have_no_refusals():
    result = of("openai-chat", "end_stop_refusal")
    refusal = result.texts[0, "refusal"]
    assert to_openai_message(result) == {"role": "assistant", "content": None, "refusal": refusal}
    assert to_openai_message(of("openai-responses", "end_refusal"))["refusal"]
    assert to_openai_items(result) == [{"role": "assistant", "content": refusal}]
    assert to_anthropic_message(result) == {"role": "assistant", "content": [{"type": "text", "text": refusal}]}
    assert to_gemini_content(result) == {"role": "model", "parts": [{"text": refusal}]}
    assert "turn_refused" in outcome(of("openai-chat", "end_stop_refusal_with_calls"))


def test_call_that_another_model_took_over_from_is_left_out():
    result = of("anthropic", "end_tool_use_fallback")
    assert any("superseded" in call.doubts for call in result.calls)
    kept = [call.name for call in result.calls if "superseded" not in call.doubts and call.runs_on == "client"]
    for to in PLAIN:
        assert names_in(to, to(result)) == kept
    alone = anthropic({"type": "tool_use", "id": "t1", "name": "get", "input": {}}, {"type": "fallback"}, {"type": "text", "text": "a"}, reason="end_turn")
    assert "superseded" in alone.calls[0].doubts
    assert to_openai_message(alone) == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("to", PLAIN)
@pytest.mark.parametrize("wrong", [None, {}, "result", tw.TurnTruncated("cut")])
def test_what_is_no_result_is_a_mistake_of_the_caller(to, wrong):
    with pytest.raises(tw.UsageError, match=r"a message is made of a TurnResult or a TurnTruncated, not of a"):
        to(wrong)


def test_turn_without_anything_is_an_empty_message():
    result = result_of("openai-chat", sse(chunk(finish="stop"), "[DONE]"))
    assert to_openai_message(result) == {"role": "assistant", "content": ""}
    assert to_openai_items(result) == []
    assert to_anthropic_message(result) == {"role": "assistant", "content": []}
    assert to_gemini_content(result) == {"role": "model", "parts": []}


# -- choices ----------------------------------------------------------------------------------------------------------------


def two_choices(second: str = "tool_calls") -> tw.TurnResult:
    frames = [
        chunk({"content": "a", "tool_calls": [entry(0, "c1", "get", "{}")]}, "tool_calls"),
        chunk({"content": "b", "tool_calls": [entry(0, "c1", "put", '{"x":1}')]}, second, index=1),
    ]
    return result_of("openai-chat", sse(*frames, "[DONE]"))


def test_each_choice_is_a_message_of_its_own():
    result = two_choices()
    assert to_openai_message(result)["tool_calls"][0]["function"]["name"] == "get"
    assert to_openai_message(result, choice=1) == {
        "role": "assistant",
        "content": "b",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "put", "arguments": '{"x":1}'}}],
    }
    for to in PLAIN:
        assert names_in(to, to(result, choice=1)) == ["put"]


def test_choice_that_ended_badly_does_not_speak_for_another():
    result = two_choices("length")
    assert outcome(result, choice=1) == ("turn_truncated",)
    assert to_openai_message(result)["content"] == "a"


@pytest.mark.parametrize("choice", [2, -1])
@pytest.mark.parametrize("to", PLAIN)
def test_choice_that_never_came_is_a_mistake_of_the_caller(to, choice):
    with pytest.raises(tw.UsageError, match=f"the turn has no choice {choice}"):
        to(two_choices(), choice=choice)


# -- the provider's own shape -----------------------------------------------------------------------------------------------


def test_turn_goes_back_to_its_own_provider_as_replay_has_it():
    for result in (RESULTS[key].choice(0) for key in WHOLE if RESULTS[key].provider in OWN):
        got = OWN[result.provider](result)
        assert (got if isinstance(got, list) else [got]) == result.replay() or result.replay() == []


def test_signatures_go_back_to_their_own_provider_and_to_no_other():
    gemini_result, chat_result = of("google-generate", "parallel"), of("openai-chat", "thought_signature")
    assert "thoughtSignature" in to_gemini_content(gemini_result)["parts"][0]
    assert to_openai_message(chat_result)["tool_calls"][0]["extra_content"] == chat_result.calls[0].extra != {}
    assert "extra_content" not in to_openai_message(gemini_result)["tool_calls"][0]
    assert to_gemini_content(chat_result)["parts"][0].keys() == {"functionCall"}


def test_partial_message_keeps_what_its_calls_need():
    good = {"functionCall": {"name": "get", "args": {}}, "thoughtSignature": "c2ln"}
    result = gemini({"text": "a"}, good, {"functionCall": {"name": "", "args": {}}})
    assert outcome(result, to_gemini_content) != to_gemini_content(result, partial=True)
    body = chat(entry(0, "c1", "get", "{}", extra_content={"google": {"thought_signature": "s"}}), entry(1, "c2", "get", "{]"))
    (call,) = to_openai_message(result_of("openai-chat", body), partial=True)["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "s"}}


# -- OpenAI -----------------------------------------------------------------------------------------------------------------


def test_partial_message_leaves_out_what_the_provider_ran_if_that_is_in_doubt():
    _, body = load(FOLDER / "anthropic" / "provider_run.expect.json")
    broken = body.replace(b'"pha\\"}"', b'"pha\\"}{}"', 1)
    assert broken != body
    result = result_of("anthropic", broken)
    assert tw.TurnGate().decide(result).action == "run"
    with pytest.raises(tw.UsageError, match=r"\(web_search\) can not be sent back"):
        to_anthropic_message(result)
    message = to_anthropic_message(result, partial=True)
    assert [block["type"] for block in message["content"]] == ["tool_use"]


def test_openai_message_has_exact_argument_text_and_the_object_for_none():
    for provider in ("openai-chat", "mistral"):
        result = result_of(provider, chat(entry(0, "c1", "get", '{ "a":1e0,\n"b":"\\u00e9"}'), entry(1, "c2", "now", "")))
        assert [call["function"] for call in to_openai_message(result)["tool_calls"]] == [
            {"name": "get", "arguments": '{ "a":1e0,\n"b":"\\u00e9"}'},
            {"name": "now", "arguments": "{}"},
        ]


def test_openai_message_of_a_custom_tool_has_its_text():
    for folder in ("openai-chat", "openai-responses"):
        result = of(folder, "custom_tool")
        (call,) = to_openai_message(result)["tool_calls"]
        assert call == {"id": result.calls[0].id, "type": "custom", "custom": {"name": "apply_note", "input": result.calls[0].text}}


def test_call_without_an_id_has_the_one_that_its_runnable_call_has():
    result = of("google-generate", "parallel")
    runnable = tw.TurnGate().decide(result).runnable
    assert [call["id"] for call in to_openai_message(result)["tool_calls"]] == [call.id for call in runnable]
    assert [block["id"] for block in to_anthropic_message(result)["content"]] == [call.id for call in runnable]
    again = of("google-generate", "parallel")
    assert to_openai_message(again) == to_openai_message(result)
    assert all("id" not in part["functionCall"] for part in to_gemini_content(result)["parts"])


def test_openai_items_of_another_provider():
    result = of("anthropic", "text_and_reasoning")
    items = to_openai_items(result)
    assert items[0] == {"role": "assistant", "content": result.text}
    assert items[1:] == [{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.text} for c in client_calls(result)] != []


def responses(*items: dict[str, Any]) -> tw.TurnResult:
    """A response with these items, each whole."""
    payloads: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}]
    for index, item in enumerate(items):
        payloads.append({"type": "response.output_item.done", "output_index": index, "item": item})
    payloads.append({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": list(items)}})
    return result_of("openai-responses", named(*payloads))


# -- Anthropic --------------------------------------------------------------------------------------------------------------


def anthropic(*blocks: dict[str, Any], reason: str = "tool_use") -> tw.TurnResult:
    """A message with these blocks, each whole."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": list(blocks), "stop_reason": reason, "usage": {}}
    return result_of("anthropic", dumps(message).encode())


def test_anthropic_message_of_another_provider_has_its_text_first():
    result = of("google-generate", "text_and_reasoning")
    content = to_anthropic_message(result)["content"]
    assert content[0] == {"type": "text", "text": result.text}
    assert content[1:] == [{"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.text)} for c in client_calls(result)] != []


def test_paused_turn_is_no_message_because_its_blocks_are_not_all_here():
    assert outcome(of("anthropic", "end_pause_turn_server_tool"), to_anthropic_message) == ("turn_paused",)


def test_free_text_becomes_an_object_where_there_are_objects_only():
    result = of("openai-chat", "custom_tool")
    wanted = {"input": result.calls[0].text}
    assert to_anthropic_message(result)["content"][0]["input"] == wanted
    assert to_gemini_content(result)["parts"][0]["functionCall"]["args"] == wanted
    assert to_langchain_tool_calls(result)[0]["args"] == to_pydantic_ai_tool_calls(result)[0]["args"] == wanted


# -- Gemini -----------------------------------------------------------------------------------------------------------------


def gemini(*parts: dict[str, Any], index: int = 0) -> tw.TurnResult:
    frames = [{"candidates": [{"index": index, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    return result_of("google-generate", sse(*frames, {"candidates": [{"index": index, "finishReason": "STOP"}]}))


def test_gemini_content_of_another_provider_has_ids_where_that_gave_them():
    result = of("anthropic", "text_and_reasoning")
    calls = [{"functionCall": {"id": c.id, "name": c.name, "args": json.loads(c.text)}} for c in client_calls(result)]
    assert to_gemini_content(result) == {"role": "model", "parts": [{"text": result.text}, *calls]}


def test_gemini_signatures_belong_to_their_candidate():
    frames = [
        {
            "candidates": [
                {"index": 0, "content": {"parts": [{"text": "a", "thoughtSignature": "c2ln"}]}, "finishReason": "STOP"},
                {"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"},
            ]
        }
    ]
    result = result_of("google-generate", sse(*frames))
    assert to_gemini_content(result)["parts"] == [{"text": "a", "thoughtSignature": "c2ln"}]
    assert to_gemini_content(result, choice=1)["parts"] == [{"text": "b"}]


# -- the SDKs' own types ----------------------------------------------------------------------------------------------------


@functools.cache
def adapter(of_type: Any) -> Any:
    """A reader of an SDK's ``TypedDict``; what that does not name is not in what comes out."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed; it reads the SDKs' types")
    return pydantic.TypeAdapter(of_type)


def sdk(module: str) -> Any:
    return pytest.importorskip(module, reason=f"{module} is not installed; its types judge the shapes")


def stripped(value: Any) -> Any:
    """Validated iterables as lists."""
    if isinstance(value, dict):
        return {key: stripped(each) for key, each in value.items()}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return [stripped(each) for each in value]


def test_openai_sdk_takes_the_messages():
    sdk("openai")
    from openai.types.chat import ChatCompletionAssistantMessageParam, ChatCompletionMessage

    for key in foreign(to_openai_message):
        message = to_openai_message(RESULTS[key])
        assert stripped(adapter(ChatCompletionAssistantMessageParam).validate_python(message)) == message, key
        got = ChatCompletionMessage.model_validate(message)
        assert got.to_dict(exclude_unset=True) == message, key
        calls = [(c.id, c.function.name, c.function.arguments) for c in got.tool_calls or () if c.type == "function"]
        assert calls == [(c.id, c.name, c.text or "{}") for c in client_calls(RESULTS[key]) if c.kind == "json"], key


def test_openai_sdk_takes_the_items():
    sdk("openai")
    from openai.types.responses import ResponseInputItemParam

    for key in foreign(to_openai_items):
        items = to_openai_items(RESULTS[key])
        assert [stripped(adapter(ResponseInputItemParam).validate_python(item)) for item in items] == items, key


def test_anthropic_sdk_takes_the_messages():
    sdk("anthropic")
    from anthropic.types import MessageParam

    for key in foreign(to_anthropic_message):
        message = to_anthropic_message(RESULTS[key])
        assert stripped(adapter(MessageParam).validate_python(message)) == message, key
        assert [(b["id"], b["name"]) for b in message["content"] if b["type"] == "tool_use"] == [(c.id, c.name) for c in client_calls(RESULTS[key])], key


def test_google_sdk_takes_the_contents():
    sdk("google.genai")
    from google.genai import types

    for key in foreign(to_gemini_content):
        content = to_gemini_content(RESULTS[key])
        assert json.loads(types.Content.model_validate(content).model_dump_json(by_alias=True, exclude_none=True)) == content, key


def test_langchain_has_the_same_texts_and_calls():
    sdk("langchain_core")
    for key in WHOLE:
        result = RESULTS[key]
        message = to_langchain_message(result)
        assert (message.content, message.additional_kwargs.get("refusal", "")) == (result.text, result.texts.get((0, "refusal"), "")), key
        assert message.id == result.response_id, key
        assert message.tool_calls == to_langchain_tool_calls(result), key
        assert message.invalid_tool_calls == [], key


def test_pydantic_ai_has_the_same_texts_and_calls():
    sdk("pydantic_ai")
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart

    for key in WHOLE:
        result = RESULTS[key]
        parts = to_pydantic_ai_parts(result)
        assert [part.content for part in parts if isinstance(part, TextPart)] == [t for t in (result.text, result.texts.get((0, "refusal"))) if t], key
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        wanted = [(call["name"], call["args"], call["id"]) for call in to_langchain_tool_calls(result)]
        assert [(c.tool_name, c.args_as_dict(), c.tool_call_id) for c in calls] == wanted, key
        response = ModelResponse(parts=parts)
        assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([response])) == [response], key


# -- round trips ------------------------------------------------------------------------------------------------------------


def plain(message: dict[str, Any], source: tw.TurnResult) -> dict[str, Any]:
    """A chat message without what only its own server understands, and without ids that the source's provider never gave."""
    older = message.get("function_call")
    calls = [{"id": "tw_", "type": "function", "function": older}] if older else message.get("tool_calls", ())
    calls = [{k: v for k, v in call.items() if k != "extra_content"} for call in calls]
    for call, known in zip(calls, client_calls(source), strict=True):
        if known.id_is_synthetic:
            assert call.pop("id").startswith("tw_")
    return {"content": message["content"] or "", "refusal": message.get("refusal"), "tool_calls": calls}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic"])
def test_message_of_a_turn_is_that_of_the_same_turn_in_another_shape(folder: str, target: str):
    for key in inside(folder, WHOLE):
        result = RESULTS[key]
        back = read(target, [emitted(result.provider, [BODIES[key]], target)[0]])
        if back.outcome not in GOOD:  # what the other shape has no word for, ends as an error there: docs/emit.md
            assert result.choices or "refusal_with_calls" in result.marks, key
            continue
        # Anthropic's shape has objects only, and no word for a refusal in text.
        if target != "anthropic" or not ("refusal_with_calls" in result.marks or any(call.kind == "text" for call in result.calls)):
            assert plain(to_openai_message(back), result) == plain(to_openai_message(result), result), key
        assert [call["args"] for call in to_langchain_tool_calls(back)] == [call["args"] for call in to_langchain_tool_calls(result)], key


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_another_provider_gets_it_would_send_back_itself(folder: str):
    for key in inside(folder, foreign(to_openai_message)):
        message = to_openai_message(RESULTS[key])
        reason = "tool_calls" if "tool_calls" in message else "stop"
        whole = {"id": "cc_1", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        assert to_openai_message(result_of("openai-chat", dumps(whole).encode())) == message, key
    for key in inside(folder, foreign(to_openai_items)):
        items = to_openai_items(RESULTS[key])
        assert list(map(input_item, to_openai_items(responses(*map(output_item, items))))) == items, key
    for key in inside(folder, foreign(to_anthropic_message)):
        message = to_anthropic_message(RESULTS[key])
        back = anthropic(*message["content"], reason="tool_use" if client_calls(RESULTS[key]) else "end_turn")
        assert to_anthropic_message(back) == message, key
    for key in inside(folder, foreign(to_gemini_content)):
        content = to_gemini_content(RESULTS[key])
        assert to_gemini_content(gemini(*content["parts"])) == content, key


def input_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item as short as the API takes it."""
    return {"role": "assistant", "content": item["content"][0]["text"]} if item["type"] == "message" else item


def output_item(item: dict[str, Any]) -> dict[str, Any]:
    """An input item as the API gives it out."""
    if "role" not in item:
        return item
    return {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": item["content"]}]}


# -- LangChain's chunks -----------------------------------------------------------------------------------------------------


def events_of(provider: str, chunks: list[bytes]) -> list[list[tw.Event]]:
    turn = tw.Turn(provider, on_cut="return")
    fed = [list(turn.feed(each)) for each in chunks]
    result = turn.finish()
    return [*fed, [*turn.take_events(), tw.TurnEnd(result)]]


def test_langchain_chunks_are_plain_data_with_name_and_id_at_the_start():
    frames = chat(*GOOD_CALL).splitlines(keepends=True)
    batches = [to_langchain_tool_call_chunks(events) for events in events_of("openai-chat", frames)]
    assert [batch for batch in batches if batch] == [
        [{"name": "get_tide", "args": "", "id": "c1", "index": 0, "type": "tool_call_chunk"}],
        [{"name": None, "args": '{"port":', "id": None, "index": 0, "type": "tool_call_chunk"}],
        [{"name": None, "args": '"Brest"}', "id": None, "index": 0, "type": "tool_call_chunk"}],
    ]


def test_langchain_chunks_are_one_for_each_call_of_the_choice():
    body = sse(
        chunk({"tool_calls": [entry(0, "c1", "get", '{"a"'), entry(1, "c2", "put", "{"), entry(0, arguments=":1}")]}),
        chunk({"tool_calls": [entry(0, "c3", "now", "{}")]}, index=1),
    )
    turn = tw.Turn("openai-chat")
    events = turn.feed(body)
    assert to_langchain_tool_call_chunks(events) == [
        {"name": "get", "args": '{"a":1}', "id": "c1", "index": 0, "type": "tool_call_chunk"},
        {"name": "put", "args": "{", "id": "c2", "index": 1, "type": "tool_call_chunk"},
    ]
    assert to_langchain_tool_call_chunks(iter(events), choice=1) == [{"name": "now", "args": "{}", "id": "c3", "index": 2, "type": "tool_call_chunk"}]
    assert to_langchain_tool_call_chunks(events, choice=2) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_langchain_chunks_add_up_to_the_message(folder: str):
    sdk("langchain_core")
    for key in inside(folder, WHOLE):
        body, result = BODIES[key], RESULTS[key]
        size = max(1, len(body) // 40)
        pieces = [to_langchain_chunk(events) for events in events_of(result.provider, [body[i : i + size] for i in range(0, len(body), size)])]
        total = pieces[0]
        for piece in pieces[1:]:
            total += piece
        message = to_langchain_message(result)
        assert total.content == message.content, key
        if any(call.kind == "text" for call in client_calls(result)):  # free text is no JSON, and LangChain says so
            assert [call["args"] for call in total.invalid_tool_calls] == [call.text for call in client_calls(result)], key
        else:
            assert total.tool_calls == message.tool_calls, key
            assert total.invalid_tool_calls == [], key


def test_langchain_chunks_of_a_cut_turn_look_whole_and_its_message_is_refused():
    sdk("langchain_core")
    body = chat(entry(0, "c1", "delete", '{"path":"/tmp/a'), finish=None, done=False)
    pieces = events_of("openai-chat", [body])
    total = to_langchain_chunk(pieces[0]) + to_langchain_chunk(pieces[1])
    assert total.tool_calls[0]["args"] == {"path": "/tmp/a"}
    assert outcome(result_of("openai-chat", body), to_langchain_message) == ("turn_not_ended", "args_incomplete")


def test_langchain_chunks_leave_out_what_the_provider_runs():
    expect, body = load(FOLDER / "anthropic" / "end_only_provider_run.expect.json")
    events = [event for each in events_of(expect["provider"], [body]) for event in each]
    assert any(isinstance(event, tw.CallStart) for event in events)
    assert to_langchain_tool_call_chunks(events) == []


# -- imports ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "module", "install"),
    [(lambda r: to_langchain_message(r), "langchain_core", "langchain-core"), (lambda r: to_langchain_chunk([]), "langchain_core", "langchain-core")]
    + [(lambda r: to_pydantic_ai_parts(r), "pydantic_ai", "pydantic-ai-slim")],
)
def test_peer_that_is_missing_is_named_with_how_to_get_it(monkeypatch, make, module, install):
    for each in [each for each in sys.modules if each == module or each.startswith(module + ".")]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tw.UsageError, match=f'needs {module}, which is not installed: pip install "{install}"'):
        make(result_of("openai-chat", chat(*GOOD_CALL)))


def test_every_function_of_the_module_is_listed():
    assert {each for each in vars(messages) if each.startswith("to_")} == set(messages.__all__)
