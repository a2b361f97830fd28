"""What a faulty turn may give, from the recording alone.

The reference of a recording is what its whole body gives to one ``Turn``, frame by frame: what had been shown at the end of each
frame, and what the gate then released. ``good_end_offset`` of the expectations, which the generator of the fixtures noted, says
before which byte nothing may ever be released.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import toolwire as tw
from toolwire.serve.frames import Frames
from toolwire.serve.recordings import SUFFIXES

from .clients import Turned

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

#: Faults after which the reader has the same bytes, fewer bytes, or other frames.
SAME = ("none", "chunk", "trickle", "delay", "type", "resume", "gzip", "deflate")
SHORT = ("cut", "close", "reset", "stall", "gzip cut", "gzip close", "gzip reset", "gzip stall", "deflate cut")
FRAMES = ("drop", "repeat", "swap")
FAILED = ("status", "error", "error, more")

WRONG, LOST, ESCAPED, HANG = "wrong", "lost", "escaped", "hang"

Shown = dict[tuple[Any, ...], str]


@dataclass
class Reference:
    name: str
    provider: str
    framing: str
    body: bytes
    frames: Frames
    good_end: int | None
    released: Counter[str]
    action: str
    reason: str
    outcome: str
    refused: Any
    shown: Shown
    tools: Any
    disputed: frozenset[tuple[Any, ...]]  # calls with two texts, of which a body that stops may have the one or the other
    timeline: list[tuple[int, dict[tuple[Any, ...], int]]] = field(default_factory=list)

    def shown_at(self, offset: int) -> dict[tuple[Any, ...], int]:
        """How much of each text had been shown by the last frame that ends at or before ``offset``."""
        return max((entry for entry in self.timeline if entry[0] <= offset), key=lambda entry: entry[0])[1]


def names() -> list[str]:
    """Every recording of the fixtures."""
    return [p.relative_to(FIXTURES).as_posix() for p in sorted(FIXTURES.rglob("*")) if p.suffix in SUFFIXES and not p.name.endswith(".expect.json")]


@cache
def reference(name: str) -> Reference:
    path = FIXTURES / name
    expect = json.loads(path.with_name(path.stem + ".expect.json").read_text("utf-8"))
    body = path.read_bytes()
    frames = Frames.split(body, expect["framing"])
    turn = tw.Turn(expect["provider"], framing=expect["framing"], on_cut="return")
    events: list[tw.Event] = []
    timeline: list[tuple[int, dict[tuple[Any, ...], int]]] = [(0, {})]
    offset = 0
    shown: Shown = {}

    def note(new: Iterable[tw.Event]) -> None:
        events.extend(new)
        for key, text in texts_of(new).items():
            shown[key] = shown.get(key, "") + text

    try:
        for edge in _edges(body, frames):
            note(turn.feed(body[offset:edge]))
            offset = edge
            timeline.append((offset, {key: len(text) for key, text in shown.items()}))
        result = turn.finish()
    except tw.StreamError as error:
        result = turn.abort(error)
    note(turn.take_events())
    tools = dict.fromkeys(expect["tools"]) if "tools" in expect else None
    decision = tw.TurnGate(tools).decide(result)
    return Reference(
        name,
        expect["provider"],
        expect["framing"],
        body,
        frames,
        expect["good_end_offset"],
        released(decision),
        decision.action,
        decision.reason,
        str(result.outcome),
        refusals(decision),
        shown,
        tools,
        frozenset(("call", call.key) for call in result.calls if "args_conflict" in call.doubts),
        timeline,
    )


def _edges(body: bytes, frames: Frames) -> Iterable[int]:
    at = 0
    for item in frames.items:
        at = body.index(item, at) + len(item)
        yield at
    if at < len(body):
        yield len(body)


def texts_of(events: Iterable[tw.Event]) -> Shown:
    shown: Shown = {}
    for event in events:
        if isinstance(event, tw.TextDelta):
            key: tuple[Any, ...] = ("text", event.choice, event.channel)
        elif isinstance(event, tw.ArgumentsDelta):
            key = ("call", event.call.key)
        else:
            continue
        shown[key] = shown.get(key, "") + event.text
    return shown


def released(decision: tw.GateDecision) -> Counter[str]:
    """The released calls, each as a text. A made-up id says nothing."""
    return Counter(repr((None if call.call.id_is_synthetic else call.id, call.name, call.arguments)) for call in decision.runnable)


def refusals(decision: tw.GateDecision) -> Any:
    return [(r.call.key, r.reasons) for r in decision.refused]


def kept(result: tw.TurnResult) -> Shown:
    """The texts that the result has."""
    shown: Shown = {("text", choice, channel): text for (choice, channel), text in result.texts.items() if text}
    shown |= {("call", call.key): call.text for call in result.calls if call.text and "args_out_of_order" not in call.marks}
    return shown


@dataclass
class Verdict:
    """Violations by kind, and what is worth counting."""

    bad: list[tuple[str, str]] = field(default_factory=list)
    released: int = 0
    note: str = ""  # a kind of release that is right, or that nobody could know to be wrong
    marks: frozenset[str] = frozenset()


def judge(ref: Reference, kind: str, turned: Turned, *, frame: int | None = None) -> Verdict:
    """Judge one turn. ``frame`` is the place of an error that was put in."""
    verdict = Verdict()
    bad = verdict.bad
    if turned.hung:
        bad.append((HANG, f"{len(turned.received)} bytes, result {turned.result}"))
        return verdict
    if turned.escaped is not None:
        bad.append((ESCAPED, repr(turned.escaped)))
    if turned.no_response is not None:
        if kind not in SHORT:
            bad.append((ESCAPED, f"no response: {turned.no_response!r}"))
        return verdict
    result, events = turned.result, turned.events
    if result is None or not events or not isinstance(events[-1], tw.TurnEnd) or events[-1].result is not result:
        bad.append((ESCAPED, "no TurnEnd"))
        return verdict
    if not turned.closed:
        bad.append((ESCAPED, "the source was not closed"))
    decision = tw.TurnGate(ref.tools).decide(result)
    got = released(decision)
    verdict.released = sum(got.values())
    have = kept(result)
    if any(have.get(key, "") != text for key, text in texts_of(events).items() if key[0] == "text" or key in have):
        bad.append((LOST, "the result lacks text that was shown"))

    if kind in SAME:
        _judge_same(ref, turned, decision, got, have, bad)
    elif kind in SHORT:
        _judge_short(ref, kind, turned, got, have, verdict)
    elif kind in FRAMES:
        if got - ref.released:
            verdict.note = "other"  # the caller looks at the frame
            verdict.marks = frozenset(map(str, result.marks))
        elif got:
            verdict.note = "same"
    else:
        if got or decision.action == "run":
            bad.append((WRONG, f"released {got} beside an error"))
        if kind == "status":
            # Amazon and Cohere say it in the status and in headers, which the drivers do not see: the body is a JSON object without an error in it.
            if not isinstance(result.error, tw.ProviderError if ref.provider not in ("bedrock", "cohere") else tw.ToolwireError):
                bad.append((LOST, f"the provider's error is not in the result: {result.error!r}"))
        elif frame is not None:
            at = ref.timeline[frame][0]
            _compare(ref, have, ref.shown_at(at), bad)
    return verdict


def _judge_same(ref: Reference, turned: Turned, decision: tw.GateDecision, got: Counter[str], have: Shown, bad: list[tuple[str, str]]) -> None:
    result = turned.result
    assert result is not None
    if turned.received != ref.body:
        bad.append((LOST, f"{len(turned.received)} of {len(ref.body)} bytes came through"))
    if got != ref.released:
        bad.append((WRONG, f"released {got}, not {ref.released}"))
    facts = (decision.action, decision.reason, str(result.outcome), refusals(decision))
    if facts != (ref.action, ref.reason, ref.outcome, ref.refused):
        bad.append((WRONG, f"decided {facts}"))
    _compare(ref, have, {key: len(text) for key, text in ref.shown.items()}, bad)


def _judge_short(ref: Reference, kind: str, turned: Turned, got: Counter[str], have: Shown, verdict: Verdict) -> None:
    size = len(turned.received)
    if turned.received != ref.body[:size]:
        verdict.bad.append((LOST, "what came through is no beginning of the body"))
    if got:
        clean = kind.endswith("cut")
        if ref.good_end is None or size < ref.good_end:
            verdict.bad.append((WRONG, f"released {got} after {size} bytes; good end {ref.good_end}"))
        elif not got - ref.released:
            verdict.note = "same"
        elif clean or (turned.result is not None and turned.result.has_end_marker):
            verdict.note = "whole"  # what came through is a whole turn that ends well; what would have refused it came later
        else:
            verdict.bad.append((WRONG, f"released {got}, which the whole recording does not"))
    _compare(ref, have, ref.shown_at(size), verdict.bad)


def _compare(ref: Reference, have: Shown, least: dict[tuple[Any, ...], int], bad: list[tuple[str, str]]) -> None:
    for key, size in least.items():
        if key[0] == "call" and key not in have:
            continue  # out of order: has no one text
        if len(have.get(key, "")) < size:
            bad.append((LOST, f"{key}: {len(have.get(key, ''))} of {size} characters"))
    for key, text in have.items():
        text = text.removesuffix("\N{REPLACEMENT CHARACTER}")  # a body that stops within a surrogate pair; marked
        if key in ref.shown and key not in ref.disputed and not ref.shown[key].startswith(text):
            bad.append((LOST, f"{key}: {text[:40]!r} is no beginning of what the whole recording gives"))
