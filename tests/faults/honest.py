"""Damage that no reader can see.

A body whose frames were lost, repeated or swapped is *honest* if the provider could have sent just those bytes, for another reply.
Then every reader that runs the calls of honest bodies runs those of this one. The reasons, each with what makes it exact:

``free text``
    The frames concerned hold nothing but pieces of argument text (or of ``partialArgs``, or of text), and the protocol lets any
    number of such pieces come in any order between the start of a call and its end. It numbers none of them, gives no length or
    digest of the whole, and does not say the whole again. (openai-responses does all of that; no release of its is honest.)
``calls in another order``
    Both frames hold a call of their own; which of them comes first is the model's choice.
``whole call without an id``
    The frame that came twice holds it. A model may make one call twice.
``a statement or a call``
    The frame that was lost held an error, a refusal, another finish reason, half a frame or a call of its own, and the rest is a
    turn that ends well without it.

Releases that are not honest but had a mark which says what is wrong are counted apart (``marked``). Everything else is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any

import toolwire as tw

from .judge import Reference

_NUMBERED = frozenset({"openai-responses"})
_FRAMERS: dict[str, Any] = {"sse": tw.SSEFramer, "ndjson": tw.NDJSONFramer, "aws-eventstream": tw.AWSEventStreamFramer}

#: Marks that say that a frame is missing or came too late.
TELLING = frozenset({"sequence_gap", "data_after_end", "delta_after_finish", "orphan_end"})


def why_honest(ref: Reference, kind: str, at: int, marks: frozenset[str]) -> tuple[str, str] | None:
    """``(kind of note, reason)`` for a release that the recording does not give; None if it is plainly wrong."""
    if marks & TELLING:
        return "marked", f"marked {', '.join(sorted(marks & TELLING))}"
    if ref.provider in _NUMBERED:
        return None
    numbers = [at, at + 1] if kind == "swap" else [at]
    items = [_payload(ref, ref.frames.items[number]) for number in numbers]
    if all(item is not None and is_free(item) for item in items):
        return "undetectable", f"{kind}: free text"
    if kind == "swap" and all(map(is_call, items)):
        return "undetectable", "swap: calls in another order"
    if kind == "repeat" and is_call(items[0], with_id=False):
        return "undetectable", "repeat: whole call without an id"
    if kind == "drop" and (items[0] is None or is_statement(items[0]) or is_call(items[0])):
        return "undetectable", "drop: a statement or a call without which the turn ends well"
    return None


def _payload(ref: Reference, item: bytes) -> Any:
    """The JSON of a frame, or None where it has none."""
    if ref.framing == "json-array":
        data: str = item.decode("utf-8", "replace")
    else:
        framer = _FRAMERS[ref.framing]()
        frames = [*framer.feed(item), *framer.finish(flush=True)]
        if not frames:
            return None
        data = frames[0].data
    try:
        payload = json.loads(data)
    except ValueError:
        return None
    if ref.framing == "aws-eventstream" and frames[0].headers:
        headers = frames[0].headers
        return {str(headers.get(":event-type") or headers.get(":exception-type")): payload}
    return payload


def _strip(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {k: _strip(v, names) for k, v in value.items() if k not in names}
    return [_strip(v, names) for v in value] if isinstance(value, list) else value


def is_free(payload: Any) -> bool:
    """Does this frame hold nothing but a piece of text for something that is open already?"""
    if not isinstance(payload, dict):
        return False
    if payload.get("type") in ("content_block_delta", "tool-call-delta", "content-delta", "tool-plan-delta", "function.call.delta", "message.output.delta"):
        return True
    if payload.get("event_type") in ("step.delta", "content.delta"):
        return True
    if "contentBlockDelta" in payload:
        return True
    if "candidates" in payload:
        pieces = [part for c in payload["candidates"] for part in c.get("content", {}).get("parts", [])]
        ends = any(c.get("finishReason") for c in payload["candidates"])
        calls = [part["functionCall"] for part in pieces if "functionCall" in part]
        return bool(pieces) and not ends and all("partialArgs" in call and not call.get("name") for call in calls)
    if "choices" in payload:
        deltas = [c.get("delta") or {} for c in payload["choices"]]
        calls = [call for delta in deltas for call in delta.get("tool_calls") or []]
        ids = [call.get("id") for call in calls if call.get("id") != "null"]
        return bool(deltas) and not any(ids) and not any(c.get("finish_reason") or (c.get("delta") or {}).get("refusal") for c in payload["choices"])
    return False


def is_call(payload: Any, *, with_id: bool = True) -> bool:
    """Does this frame hold a call, or its start, in one piece? ``with_id`` takes those too that have an id."""
    if not isinstance(payload, dict):
        return False
    if "candidates" in payload:
        calls = [part["functionCall"] for c in payload["candidates"] for part in c.get("content", {}).get("parts", []) if "functionCall" in part]
    elif isinstance(payload.get("message"), dict):
        calls = payload["message"].get("tool_calls") or []
    elif "choices" in payload:  # the start of a call; the index or the id that it brings makes a second one another call
        calls = [call for c in payload["choices"] for call in (c.get("delta") or {}).get("tool_calls") or []]
        return with_id and any((call.get("function") or {}).get("name") for call in calls)
    else:
        return False
    return any("partialArgs" not in call and (with_id or not call.get("id")) for call in calls)


def is_statement(payload: Any) -> bool:
    """Does this frame hold an error, a refusal, a finish reason or the like?"""
    if isinstance(payload, dict) and isinstance(payload.get("message"), str):
        return True  # an error without the word
    text = json.dumps(payload)
    return bool(re.search(r'"error"|Exception"|\.error"|"refusal": "|"finish_?[rR]eason": "|"promptFeedback"', text))
