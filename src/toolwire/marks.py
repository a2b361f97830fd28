"""What was tolerated: one list of names and meanings, for parsers, frames, calls and turns.

A mark never permits or forbids anything by itself; it tells a person what the stream did. What forbids is a *doubt* on a
call (see ``toolwire.events.ToolCall.doubts``) or the turn's outcome.
"""

from __future__ import annotations

from typing import Any

#: Every mark, with what it means.
MARKS: dict[str, str] = {
    # JSON
    "duplicate_key": "an object holds the same key twice; the last one counts",
    "lone_surrogate": "half a surrogate pair; replaced by U+FFFD, or kept where that was asked for",
    "nan": "NaN or an infinity was read (allow_nan=True)",
    "control_character": "a raw control character stands in a string (allow_control_characters=True)",
    "more_marks": "further marks were met and not kept",
    # frames
    "invalid_utf8": "ill-formed UTF-8; shown as U+FFFD (WHATWG decode)",
    # turns
    "ignored_frames": "frames without meaning: empty payload, comment in disguise, JSON that is no object",
    "ignored_lines": "lines outside any field that are no JSON",
    "two_documents_in_event": "one frame held several JSON documents, one a line",
    "unterminated_frame": "the last frame lacked its blank line; its payload was complete",
    "stray_json": "JSON stood in the body without a data field",
    "no_done_marker": "every choice has a finish reason, but [DONE] never came",
    "no_finish_reason": "the end marker came without a finish reason; only profile='tolerant' takes a chat turn for ended",
    "finish_stop_with_calls": "the provider ended with a plain stop beside complete calls",
    "tool_reason_without_calls": "the provider's reason speaks of tool calls, but there is none",
    "refusal_with_calls": "refusal text stands beside calls and an explicit tool reason",
    "several_finish_reasons": "more than one finish reason came; the most restrictive counts",
    "delta_after_finish": "a delta came after the finish reason",
    "data_after_end": "frames came after the provider's own end; they were not read",
    "unknown_reason": "a finish reason that toolwire does not know; nothing runs on it",
    "unknown_events": "events or delta types that toolwire does not know; skipped",
    "whole_completion": "a whole, not streamed, completion stood in the stream",
    "message_repeated": "the same message was started again",
    "repeated_events": "events were repeated, by their number or id; dropped",
    "sequence_gap": "event numbers are missing",
    "late_event": "an event came later than its number",
    "item_id_changed": "an item's id changed between its start and its end",
    "text_conflict": "a final text differs from its deltas; the deltas stand",
    "response_id_changed": "events of one response carry different response ids; the first counts",
    "misplaced_delta": "a delta of a kind that its block or item does not have; dropped",
    "delta_after_stop": "text came after the end of its block",
    "orphan_end": "the end of a block that never started",
    # calls
    "index_missing": "a call came without an index",
    "index_reused": "a second call came under an index already taken",
    "id_repeated": "a second call came with an id already taken; it has a synthetic one",
    "id_changed": "fragments of one call carry different ids; the first counts",
    "name_late": "the name came after the first argument text",
    "args_as_object": "arguments came as a JSON object, not as text",
    "args_cumulative": "argument text came as growing snapshots; only what was new counts",
    "args_repeated": "the complete argument text was sent once more; dropped",
    "call_repeated": "the same call was sent again; dropped",
    "args_final_only": "argument text, or its end, stood only in the provider's final text",
    "args_out_of_order": "a piece of streamed arguments went back to what was already shown; the text was put together anew at the end",
    "status_in_progress": "the item was closed with status in_progress by a program caller",
    "needs_approval": "the item asks a person for approval; it is not runnable",
}


class Mark(str):
    """One mark: a ``str`` (its name) that also says where and how often.

    As a string it compares and sorts by name, so that ``"args_repeated" in call.marks`` reads as it should.

    Attributes:
        offset: byte offset where that is known, else None.
        path: keys and indices down to the place in the JSON value, or None.
        times: how often it was met.
        detail: a few words for a person, or "".
    """

    __slots__ = ("detail", "offset", "path", "times")

    offset: int | None
    path: tuple[str | int, ...] | None
    times: int
    detail: str

    def __new__(
        cls,
        name: str,
        offset: int | None = None,
        path: tuple[str | int, ...] | None = None,
        times: int = 1,
        detail: str = "",
    ) -> Mark:
        mark = super().__new__(cls, name)
        mark.offset = offset
        mark.path = path
        mark.times = times
        mark.detail = detail
        return mark

    def __repr__(self) -> str:
        parts = [repr(str(self))]
        parts += [f"{k}={v!r}" for k, v in (("offset", self.offset), ("path", self.path)) if v is not None]
        parts += [f"times={self.times}"] if self.times != 1 else []
        parts += [f"detail={self.detail!r}"] if self.detail else []
        return f"Mark({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Mark, (str(self), self.offset, self.path, self.times, self.detail)
