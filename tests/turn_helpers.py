"""Bodies in a line each, played in every way of cutting them: everything that comes out must be the same each time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import toolwire as tw

Facts = tuple[Any, ...]


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(*payloads: Any, end: str = "\n") -> bytes:
    """One ``data:`` frame for each payload; text and bytes stand as they are."""
    out = b""
    for payload in payloads:
        data = payload if isinstance(payload, bytes) else (payload if isinstance(payload, str) else dumps(payload)).encode()
        out += b"data: " + data + end.encode() * 2
    return out


def named(*payloads: dict[str, Any], key: str = "type") -> bytes:
    """Frames with an ``event:`` line that says what the payload says."""
    return b"".join(f"event: {p[key]}\ndata: {dumps(p)}\n\n".encode() for p in payloads)


def chunk(delta: Any = None, finish: Any = None, *, index: Any = 0, **more: Any) -> dict[str, Any]:
    """A chat chunk with one choice."""
    return {
        "id": "cc_1",
        "object": "chat.completion.chunk",
        "choices": [{"index": index, "delta": {} if delta is None else delta, "finish_reason": finish}],
        **more,
    }


ABSENT: Any = object()


def entry(index: Any = ABSENT, id: Any = ABSENT, name: Any = ABSENT, arguments: Any = ABSENT, **more: Any) -> dict[str, Any]:
    """One element of ``delta.tool_calls``; what is not given is not there."""
    out: dict[str, Any] = {}
    if index is not ABSENT:
        out["index"] = index
    if id is not ABSENT:
        out |= {"id": id, "type": "function"}
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not ABSENT}
    if function:
        out["function"] = function
    return out | more


def calls(*entries: dict[str, Any], finish: Any = None, index: Any = 0) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, finish, index=index)


def chat(*entries: dict[str, Any], finish: Any = "tool_calls", done: bool = True) -> bytes:
    """A chat body with one chunk for each entry, and its end."""
    frames: list[Any] = [calls(e) for e in entries]
    if finish is not None:
        frames.append(chunk(finish=finish))
    if done:
        frames.append("[DONE]")
    return sse(*frames)


#: One good call, the way OpenAI sends it.
GOOD = (entry(0, "c1", "get_tide", ""), entry(0, arguments='{"port":'), entry(0, arguments='"Brest"}'))


def cut(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(body)]
    return [body[a:b] for a, b in zip(edges, edges[1:], strict=False)]


def ways(body: bytes, *, seed: int = 0, rounds: int = 4, per_byte: bool = True) -> Iterator[list[bytes]]:
    """Whole, byte by byte, and at random places; two cuts at one place give an empty chunk."""
    rng = random.Random(f"{seed} {len(body)}")
    yield [body]
    if per_byte:
        yield [body[i : i + 1] for i in range(len(body))]
    for _ in range(rounds):
        yield cut(body, (rng.randint(0, len(body)) for _ in range(rng.randint(1, 12))))


def exact(value: Any) -> str:
    """The value with its types and the order of its members, for comparing: 1, 1.0 and True are three values here."""
    try:
        return repr(value)
    except RecursionError:  # a debug CPython goes less deep than the limit of 512
        depth = 0
        while isinstance(value, list) and len(value) == 1:
            [value] = value
            depth += 1
        return f"{depth} brackets around {value!r}"


def marks_of(thing: Any) -> Facts:
    return tuple((str(m), m.offset, m.path, m.times, m.detail) for m in thing.marks)


def error_facts(error: BaseException | None) -> Facts | None:
    if error is None:
        return None
    return (type(error).__name__, str(error), *(getattr(error, name, None) for name in ("code", "offset", "call", "path", "limit", "value", "option")))


def call_facts(call: tw.ToolCall) -> Facts:
    return (
        call.key,
        call.id,
        call.id_is_synthetic,
        call.name,
        call.kind,
        call.text,
        exact(call.value),
        call.complete,
        call.runs_on,
        call.choice,
        exact(call.extra),
        marks_of(call),
        tuple(sorted(call.doubts.items())),
        call.closed,
        error_facts(call.error),
    )


def event_facts(event: tw.Event) -> Facts:
    if isinstance(event, tw.TextDelta):
        return ("text", event.channel, event.choice, event.text)
    if isinstance(event, tw.ArgumentsDelta):
        return ("arguments", event.call.key, event.text)
    if isinstance(event, tw.CallStart):
        return ("start", event.call.key, event.call.name)
    if isinstance(event, tw.CallEnd):
        return ("end", event.call.key)
    if isinstance(event, tw.UsageUpdate):
        return ("usage", exact(event.usage))
    if isinstance(event, tw.UnknownFrame):
        return ("unknown", event.frame.offset)
    return ("turn", str(event.result.outcome))


@dataclass
class Played:
    """What one way of feeding a body gave."""

    result: tw.TurnResult
    decision: tw.GateDecision
    error: tw.StreamError | None
    events: list[Facts] = field(default_factory=list)

    @property
    def calls(self) -> tuple[tw.ToolCall, ...]:
        return self.result.calls

    @property
    def ran(self) -> list[tuple[str | None, str, Any]]:
        return [(c.id, c.name, c.arguments) for c in self.decision.runnable]

    @property
    def refused(self) -> dict[str, tuple[str, ...]]:
        return {r.call.key: tuple(r.reasons) for r in self.decision.refused}

    @property
    def action(self) -> str:
        return self.decision.action

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self.decision.reasons)

    def facts(self) -> Facts:
        r, d = self.result, self.decision
        return (
            tuple(self.events),
            error_facts(self.error),
            (
                r.provider,
                str(r.outcome),
                r.reason,
                r.ended,
                r.truncated,
                r.cause,
                error_facts(r.error),
                exact(r.usage),
                marks_of(r),
                r.text,
                exact(dict(r.texts)),
            ),
            (exact(r.resume_point), r.response_id, r.has_end_marker),
            tuple(call_facts(c) for c in r.calls),
            (d.action, d.reason, tuple(d.reasons), d.detail),
            tuple((c.id, c.name, exact(c.arguments), c.call.key) for c in d.runnable),
            tuple((x.call.key, tuple(x.reasons), x.detail) for x in d.refused),
        )


def play(
    chunks: Iterable[bytes],
    provider: str = "openai-chat",
    *,
    tools: Any = None,
    policy: tw.GatePolicy | None = None,
    abort: BaseException | str | None = None,
    **options: Any,
) -> Played:
    """Feed, end, decide. A ``StreamError`` is kept and handed to ``abort``, as callers are told to do."""
    turn = tw.Turn(provider, **({"on_cut": "return"} | options))
    events: list[tw.Event] = []
    error: tw.StreamError | None = None
    try:
        for data in chunks:
            events += turn.feed(data)
        result = turn.finish() if abort is None else turn.abort(abort)
    except tw.StreamError as e:
        error = e
        result = turn.abort(e)
    events += turn.take_events()
    # The gate first: what it says may not depend on anybody having looked at the values.
    decision = tw.TurnGate(tools, policy=policy or tw.GatePolicy()).decide(result)
    return Played(result, decision, error, [event_facts(e) for e in events])


def every_way(body: bytes, provider: str = "openai-chat", *, rounds: int = 4, per_byte: bool = True, **options: Any) -> Played:
    """Play a body in several ways, demand that all agree in everything, and return the first."""
    first: Played | None = None
    for chunks in ways(body, rounds=rounds, per_byte=per_byte):
        played = play(chunks, provider, **options)
        if first is None:
            first = played
        elif played.facts() != first.facts():
            for a, b in zip(first.facts(), played.facts(), strict=True):
                assert a == b, chunks
    assert first is not None
    check(first)
    return first


def check(played: Played) -> None:
    """What holds for every turn, good or bad."""
    result, decision = played.result, played.decision
    keys = [c.key for c in result.calls]
    assert len(set(keys)) == len(keys)
    assert all(c.id for c in result.calls), "every call has an id at the end, a synthetic one if need be"
    assert set(result.marks) <= set(tw.marks.MARKS)
    assert all(set(c.marks) <= set(tw.marks.MARKS) for c in result.calls)
    if played.error is not None:
        assert played.error.code in tw.errors.CODES
        assert decision.action == "refuse" or result.ended, "wrong bytes count until the provider has ended the turn"
    assert result.truncated == (not result.ended)
    if decision.action == "run":
        assert decision.runnable
        assert decision.reason == "ended"
    else:
        assert not decision.runnable
    if not result.ended:
        assert decision.action == "refuse"
    # The deltas are the text: nothing comes out that is not kept, nothing is kept that did not come out.
    names = {c.key: c.name for c in result.calls}
    shown: dict[str, str] = {}
    started: set[str] = set()
    ended: set[str] = set()
    texts: dict[tuple[int, str], str] = {}
    for at, (kind, *rest) in enumerate(played.events):
        if kind == "start":
            assert rest[0] not in started, "announced once"
            assert rest[1] == names[rest[0]], "announced with its name, or at the end if it never got one"
            started.add(rest[0])
        elif kind == "arguments":
            assert rest[0] in started and rest[1], "no delta before its start, none without text"
            shown[rest[0]] = shown.get(rest[0], "") + rest[1]
        elif kind == "end":
            assert rest[0] in started and rest[0] not in ended
            ended.add(rest[0])
        elif kind == "text":
            assert rest[2]
            texts[rest[1], rest[0]] = texts.get((rest[1], rest[0]), "") + rest[2]
        elif kind == "turn":
            assert at == len(played.events) - 1, "the turn's end is the last event"
    assert played.events[-1] == ("turn", str(result.outcome))
    for call in result.calls:
        if call.key in started and "args_out_of_order" not in call.marks:
            assert shown.get(call.key, "") == call.text
    assert {k: v for k, v in result.texts.items() if v} == texts


def texts_and_values(calls: Sequence[tw.ToolCall]) -> list[tuple[str | None, str, Any]]:
    return [(c.name, c.text, c.value) for c in calls]
