"""Every way in which a provider can end a turn, row by row, with the fixtures that show it and what the gate says to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

#: provider -> (condition, the gate's action, fixtures)
ROWS: dict[str, list[tuple[str, str, str]]] = {
    "openai-chat": [
        ("tool_calls and [DONE]", "run", "end_tool_calls"),
        ("function_call and [DONE]", "run", "end_function_call"),
        ("stop, complete calls and [DONE]", "run", "end_stop_with_calls"),
        ("stop and refusal", "refuse", "end_stop_refusal end_stop_refusal_with_calls"),
        ("length", "refuse", "end_length end_length_complete_json"),
        ("content_filter", "refuse", "end_content_filter"),
        ("a finish reason, then a clean end without [DONE]", "run", "end_finish_without_done end_finish_unterminated"),
        ("no finish reason", "refuse", "end_done_without_finish end_empty_finish_reason cut_complete_call"),
        ("an error object at any time", "refuse", "error_first error_object error_object_done error_after_finish error_in_chunk"),
        ("one of several choices unfinished", "refuse", "end_two_choices_one_unfinished"),
        ("an unknown reason", "refuse", "end_unknown_reason"),
    ],
    "openai-responses": [
        ("completed", "run", "end_completed end_completed_output_null"),
        ("completed, but an item is incomplete or in progress", "refuse", "end_completed_item_incomplete end_completed_item_in_progress"),
        ("completed after a length cut", "refuse", "end_completed_cut_json"),
        ("incomplete: max_output_tokens, max_messages", "refuse", "end_incomplete_max_output_tokens end_incomplete_max_messages end_incomplete_complete_json"),
        ("incomplete: content_filter", "refuse", "end_incomplete_content_filter"),
        ("incomplete: steered", "refuse", "end_incomplete_steered"),
        ("failed, error", "refuse", "end_failed error_flat error_nested"),
        ("no terminal event", "refuse", "end_done_without_terminal cut_complete_call"),
        ("cancelled", "refuse", "end_cancelled"),
        ("only items that the provider runs", "nothing_to_run", "end_only_provider_run"),
        ("a request for approval", "nothing_to_run", "end_mcp_approval_request"),
    ],
    "anthropic": [
        ("tool_use and message_stop", "run", "end_tool_use parallel invoke_demo vertex_demo"),
        ("tool_use, one call invalid", "run", "parallel_one_invalid"),
        ("tool_use and a fallback block", "run", "end_tool_use_fallback"),
        ("end_turn, stop_sequence beside calls", "refuse", "end_end_turn_with_tool_use end_stop_sequence_with_tool_use"),
        ("max_tokens, model_context_window_exceeded", "refuse", "end_max_tokens end_max_tokens_complete_json end_model_context_window_exceeded"),
        ("pause_turn", "refuse", "end_pause_turn end_pause_turn_server_tool"),
        ("compaction", "refuse", "end_compaction"),
        ("refusal", "refuse", "end_refusal"),
        ("no reason, or an unknown one", "refuse", "end_null_reason end_no_message_delta end_unknown_reason"),
        ("error", "refuse", "error_event error_first"),
        ("no message_stop", "refuse", "end_no_message_stop cut_complete_call invoke_cut"),
        ("only calls that the provider runs", "nothing_to_run", "end_only_provider_run"),
    ],
    "google-generate": [
        ("STOP with complete calls, then the end of the body", "run", "end_stop end_array"),
        ("STOP, and a streamed call without its closer", "refuse", "end_stop_unclosed_call"),
        ("MAX_TOKENS", "refuse", "end_max_tokens end_max_tokens_streamed end_array_max_tokens"),
        ("MALFORMED_FUNCTION_CALL", "refuse", "end_malformed_function_call end_malformed_function_call_without_part"),
        (
            "a turn that is not valid",
            "refuse",
            "end_unexpected_tool_call end_too_many_tool_calls end_missing_thought_signature end_malformed_response",
        ),
        (
            "filtered",
            "refuse",
            "end_safety end_prohibited_content end_blocklist end_spii end_recitation end_language end_model_armor end_image_safety",
        ),
        ("CONTINUATION", "refuse", "end_continuation"),
        ("OTHER, ESCALATION, unspecified, unknown", "refuse", "end_other end_escalation end_finish_reason_unspecified end_insufficient_moonlight"),
        ("a blocked prompt", "refuse", "end_prompt_blocked_safety end_prompt_blocked_prohibited_content"),
        ("an error object", "refuse", "error_data error_unprefixed error_array error_after_stop"),
        ("no finishReason, or no ]", "refuse", "cut_frame_border end_array_no_finish end_array_no_bracket"),
        ("only parts that the provider runs", "nothing_to_run", "end_only_provider_run"),
    ],
    "google-interactions": [
        ("requires_action", "run", "end_requires_action"),
        ("completed with calls", "run", "end_completed_with_calls"),
        (
            "any other status",
            "refuse",
            "end_in_progress end_queued end_incomplete end_budget_exceeded end_failed end_cancelled end_requires_continuation end_idle end_unknown_status",
        ),
        ("requires_action in a status_update only", "refuse", "end_status_update_only"),
        ("error", "refuse", "error_event error_first error_then_completed"),
        ("no terminal event", "refuse", "end_done_only cut_complete_call"),
        ("a call without step.stop", "refuse", "end_unclosed_call"),
    ],
    "mistral": [
        ("tool_calls and [DONE]", "run", "demo parallel"),
        ("tool_calls without [DONE]", "run", "end_no_done"),
        ("stop beside calls", "refuse", "end_stop_with_calls"),
        ("stop", "nothing_to_run", "end_text"),
        ("length, model_length", "refuse", "end_length_with_calls end_model_length_with_calls end_length_inside_call"),
        ("error", "refuse", "end_error_with_calls error_object error_first"),
        ("an unknown reason", "refuse", "end_moonlight_with_calls"),
        ("no reason", "refuse", "end_no_reason_with_calls end_done_only cut_complete_call"),
        ("conversation.response.done", "run", "conversation_demo conversation_handoff conversation_end_needs_approval_beside_a_call"),
        ("conversation.response.done, no call for the client", "nothing_to_run", "conversation_end_text conversation_end_only_provider_run"),
        ("conversation.response.done after a cut call", "refuse", "conversation_end_half_call"),
        ("a request for approval", "nothing_to_run", "conversation_end_needs_approval"),
        ("conversation.response.error", "refuse", "conversation_error_object conversation_error_first"),
        ("no conversation.response.done", "refuse", "conversation_cut_complete_call conversation_end_done_only"),
    ],
    "cohere": [
        ("TOOL_CALL", "run", "demo parallel end_done"),
        ("COMPLETE, STOP_SEQUENCE beside calls", "refuse", "end_complete_with_calls end_stop_sequence_with_calls"),
        ("COMPLETE", "nothing_to_run", "end_text"),
        ("MAX_TOKENS", "refuse", "end_max_tokens_with_calls"),
        ("ERROR, TIMEOUT, an error beside the reason", "refuse", "end_error_with_calls end_timeout_with_calls error_in_end"),
        ("an unknown reason", "refuse", "end_moonlight_with_calls"),
        ("no reason, no message-end", "refuse", "end_no_reason_with_calls cut_complete_call"),
        ("a call without tool-call-end", "refuse", "end_unclosed_call"),
    ],
    "ollama": [
        ("done, stop", "run", "demo parallel end_unterminated"),
        ("done, stop, no call", "nothing_to_run", "end_text"),
        ("length", "refuse", "end_length_with_calls"),
        ("load, unload", "refuse", "end_load_with_calls end_unload_with_calls"),
        ("done without a reason", "refuse", "end_no_reason_with_calls end_blank_reason_with_calls"),
        ("an error line", "refuse", "error_object error_first"),
        ("no done line", "refuse", "cut_complete_call cut_mid_frame"),
    ],
    "bedrock": [
        ("tool_use", "run", "demo decoded_demo end_without_metadata"),
        ("end_turn, stop_sequence beside calls", "refuse", "end_end_turn_with_calls end_stop_sequence_with_calls"),
        ("end_turn", "nothing_to_run", "end_text decoded_end_text"),
        ("max_tokens, model_context_window_exceeded", "refuse", "end_max_tokens_with_calls end_model_context_window_exceeded_with_calls"),
        ("guardrail_intervened, content_filtered", "refuse", "end_guardrail_intervened_with_calls end_content_filtered_with_calls"),
        ("malformed_tool_use, malformed_model_output", "refuse", "end_malformed_tool_use_with_calls end_malformed_model_output_with_calls"),
        ("an unknown reason", "refuse", "end_moonlight_with_calls decoded_end_moonlight_with_calls"),
        ("an exception", "refuse", "error_object error_first error_after_stop decoded_error_after_stop"),
        ("no messageStop, or none with a reason", "refuse", "cut_complete_call end_no_reason_with_calls"),
        ("only calls that the provider runs", "nothing_to_run", "end_only_provider_run"),
    ],
}


def load(provider: str, name: str) -> tuple[dict[str, Any], bytes]:
    expectation = json.loads((FIXTURES / provider / f"{name}.expect.json").read_text("utf-8"))
    return expectation, (FIXTURES / provider / expectation["body"]).read_bytes()


@pytest.mark.parametrize("provider", ROWS)
def test_every_row_has_fixtures_that_say_what_it_says(provider: str) -> None:
    """What the fixtures say holds: ``test_fixtures`` plays each of them in every profile."""
    for condition, action, names in ROWS[provider]:
        for name in names.split():
            assert load(provider, name)[0]["gate"]["action"] == action, (condition, name)


@pytest.mark.parametrize("provider", ROWS)
def test_every_end_of_a_fixture_stands_in_a_row(provider: str) -> None:
    shown = {name for _, _, names in ROWS[provider] for name in names.split()}
    reasons = {load(provider, name)[0]["reason"] for name in shown}
    for path in (FIXTURES / provider).glob("*.expect.json"):
        expectation = json.loads(path.read_text("utf-8"))
        if expectation["gate"]["action"] == "run":
            assert expectation["reason"] in reasons, path.name


@pytest.mark.parametrize("provider", ROWS)
@pytest.mark.parametrize("cause", ["aborted", "idle_timeout"])
def test_a_turn_that_the_caller_ends_runs_nothing(provider: str, cause: str) -> None:
    expect, body = load(provider, "demo")
    turn = tw.Turn(provider)
    end = expect["good_end_offset"]
    assert end is not None
    turn.feed(body[: end - 1])
    decision = tw.TurnGate().decide(turn.abort(cause))
    assert decision.action == "refuse"
    assert {"turn_not_ended", cause} <= set(decision.reasons)
