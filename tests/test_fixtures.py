"""Plays every fixture: what comes out, that cuts do not matter, and that no beginning of a body lets a tool run too early."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
CASES = sorted(FOLDER.glob("*/*.expect.json"))
#: With --exhaustive, bodies up to this size are cut at every byte; longer ones, and all without it, at sampled places.
EVERY_CUT = 20_000


def load(path: Path) -> tuple[dict[str, Any], bytes]:
    expect = json.loads(path.read_text(encoding="utf-8"))
    return expect, (path.parent / expect["body"]).read_bytes()


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.removesuffix('.expect.json')}"


def play(provider: str, chunks: Iterable[bytes], **options: Any) -> tuple[list[tuple[Any, ...]], tw.TurnResult]:
    """Feed the chunks; the events as plain data, deltas that follow each other joined, and the result."""
    turn = tw.Turn(provider, on_cut="return", **options)
    events: list[tw.Event] = []
    try:
        for chunk in chunks:
            events += turn.feed(chunk)
        result = turn.finish()
    except tw.StreamError as error:
        result = turn.abort(error)
    events += turn.take_events()
    return merged(events), result


def merged(events: Iterable[tw.Event]) -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, tw.TextDelta):
            item: tuple[Any, ...] = ("text", event.channel, event.choice, event.text)
        elif isinstance(event, tw.ArgumentsDelta):
            item = ("arguments", event.call.key, event.text)
        elif isinstance(event, (tw.CallStart, tw.CallEnd)):
            item = (type(event).__name__, event.call.key, event.call.name)
        elif isinstance(event, tw.UsageUpdate):
            item = ("usage", json.dumps(event.usage, sort_keys=True))
        elif isinstance(event, tw.UnknownFrame):
            item = ("unknown", event.frame.offset)
        else:
            item = ("end", event.result.outcome)
        out.append(item)
    return out


def seen(result: tw.TurnResult, decision: tw.GateDecision) -> tuple[Any, ...]:
    """Everything that must not depend on the cuts."""
    error = None if result.error is None else (type(result.error).__name__, str(result.error))
    calls = [
        (c.key, c.id, c.name, c.kind, c.text, c.complete, repr(c.value), c.runs_on, repr(c.extra), [(m, m.times, m.offset) for m in c.marks], c.doubts)
        for c in result.calls
    ]
    turn = (result.provider, result.outcome, result.reason, result.ended, result.truncated, result.texts, result.usage, result.response_id)
    marks = [(m, m.times, m.offset) for m in result.marks]
    released = [(c.id, c.name, repr(c.arguments)) for c in decision.runnable]
    refused = [(r.call.key, r.reasons, r.detail) for r in decision.refused]
    return turn, error, calls, marks, result.resume_point, decision.action, decision.reasons, released, refused


def gate(expect: dict[str, Any]) -> tw.TurnGate:
    """A gate for the tools that the expectation declares; any, if it declares none."""
    return tw.TurnGate(dict.fromkeys(expect["tools"]) if "tools" in expect else None)


def pieces(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    at = [0, *sorted(cuts), len(body)]
    return [body[a:b] for a, b in zip(at, at[1:], strict=False)]


def is_open(expect: dict[str, Any], *path: str) -> bool:
    here = ".".join(path)
    return any(here == p or here.startswith(p + ".") for p in expect["open"])


@pytest.mark.parametrize("path", CASES, ids=name)
def test_fixture_gives_what_its_expectation_says(path: Path) -> None:
    expect, body = load(path)
    _, result = play(expect["provider"], [body])
    got = {
        "text": result.text,
        "reasoning": result.texts.get((0, "reasoning"), ""),
        "refusal": result.texts.get((0, "refusal"), ""),
        "outcome": str(result.outcome),
        "reason": result.reason,
        "truncated": result.truncated,
    }
    for key, value in got.items():
        if not is_open(expect, key):
            assert value == expect[key], (key, result.error)
    if not is_open(expect, "calls"):
        assert len(result.calls) == len(expect["calls"]), [(c.id, c.name, c.text) for c in result.calls]
        for number, (call, want) in enumerate(zip(result.calls, expect["calls"], strict=True)):
            check_call(expect, number, call, want)
    if "usage" in expect:
        assert result.usage == expect["usage"]
    decision = gate(expect).decide(result)
    if not is_open(expect, "gate"):
        if not is_open(expect, "gate", "action"):
            assert decision.action == expect["gate"]["action"], (decision.reasons, [(r.reasons, r.detail) for r in decision.refused])
        if not is_open(expect, "gate", "reason"):
            assert decision.reason == expect["gate"]["reason"]
        if not is_open(expect, "gate", "refused"):
            refused = {result.calls.index(r.call): r for r in decision.refused}
            assert sorted(refused) == sorted(int(k) for k in expect["gate"]["refused"])
            for key, reasons in expect["gate"]["refused"].items():
                assert set(reasons) <= set(refused[int(key)].reasons), refused[int(key)].detail


def check_call(expect: dict[str, Any], number: int, call: tw.ToolCall, want: dict[str, Any]) -> None:
    place = ("calls", str(number))
    if is_open(expect, *place):
        return
    got = {"name": call.name, "kind": call.kind, "runs_on": call.runs_on, "text": call.text}
    if want["id"] is None:
        assert call.id_is_synthetic
        assert call.id
    elif not is_open(expect, *place, "id"):
        assert call.id == want["id"]
        assert not call.id_is_synthetic
    if want["text"] is None and "text_sha256" in want:
        del got["text"]
        if not is_open(expect, *place, "text_sha256"):
            assert hashlib.sha256(call.text.encode()).hexdigest() == want["text_sha256"]
            assert len(call.text) == want["text_chars"]
        canonical = json.dumps(call.value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == want["arguments_sha256"]
    elif want["arguments"] is not None and not is_open(expect, *place, "arguments"):
        assert call.value == want["arguments"]
    for key, value in got.items():
        if not is_open(expect, *place, key):
            assert value == want[key], key
    for key, value in want.get("extra", {}).items():
        assert call.extra.get(key) == value


@pytest.mark.parametrize("path", CASES, ids=name)
def test_no_cut_changes_anything(path: Path, exhaustive: bool) -> None:
    expect, body = load(path)
    provider = expect["provider"]
    rng = random.Random(name(path))

    def outcome(chunks: Iterable[bytes]) -> Any:
        events, result = play(provider, chunks)
        return events, seen(result, gate(expect).decide(result))

    whole = outcome([body])
    if len(body) <= 60_000 or exhaustive:
        assert outcome([body[i : i + 1] for i in range(len(body))]) == whole
    every = exhaustive and len(body) <= EVERY_CUT
    for cut in range(len(body) + 1) if every else rng.sample(range(len(body) + 1), 12):
        assert outcome([body[:cut], body[cut:]]) == whole, cut
    for _ in range(4):
        some = rng.sample(range(len(body) + 1), min(len(body), rng.randint(1, 12)))
        assert outcome(pieces(body, some)) == whole, some


@pytest.mark.parametrize("path", CASES, ids=name)
def test_no_beginning_of_a_body_releases_a_call_before_the_good_end(path: Path, exhaustive: bool) -> None:
    """Every proper prefix, as a body that ends there: nothing may run before the provider's own good end is held."""
    expect, body = load(path)
    good = expect["good_end_offset"]
    nothing_runs_before(path, len(body) if good is None else good, exhaustive, "default")


@pytest.mark.parametrize("profile", ["strict", "tolerant"])
@pytest.mark.parametrize("path", [path for path in CASES if path.parent.name == "quirks"], ids=name)
def test_no_beginning_releases_a_call_in_other_profiles(path: Path, exhaustive: bool, profile: str) -> None:
    """The same in the other profiles; in the tolerant one ``[DONE]`` is a good end too."""
    expect, body = load(path)
    good = expect["good_end_offset"]
    done = body.find(b"[DONE]")
    ends = [len(body) if good is None else good] + ([done + 6] if done >= 0 and profile == "tolerant" else [])
    nothing_runs_before(path, min(ends), exhaustive, profile)


def nothing_runs_before(path: Path, stop: int, exhaustive: bool, profile: Any) -> None:
    expect, body = load(path)
    rng = random.Random(name(path))
    # Around the ends of frames is where mistakes live; the last of them most of all.
    borders = {i + d for i in range(stop) if body[i : i + 1] in (b"\n", b"}", b"]") for d in (0, 1) if i + d < stop}
    every = range(stop) if exhaustive and stop <= EVERY_CUT else [*rng.sample(sorted(borders), min(len(borders), 40)), *range(max(0, stop - 40), stop)]
    turn = tw.Turn(expect["provider"], on_cut="return", profile=profile)
    fed = 0
    for end in sorted(set(every)):
        try:
            turn.feed(body[fed:end])
        except tw.StreamError:
            break  # wrong bytes: nothing that follows is read
        fed = end
        for aborted in (False, True):
            one = copy.deepcopy(turn)
            try:
                result = one.abort("aborted") if aborted else one.finish()
            except tw.StreamError as error:
                result = one.abort(error)
            decision = gate(expect).decide(result)
            assert not decision.runnable, (end, aborted)
            assert decision.action != "run", (end, aborted)


def runs(path: Path) -> bool:
    """Does the whole body run? One that has a good end may be refused for what comes later, or for its calls."""
    expect = load(path)[0]
    return expect["good_end_offset"] is not None and expect["gate"]["action"] == "run"


@pytest.mark.parametrize("path", [path for path in CASES if runs(path)], ids=name)
def test_a_body_that_stops_right_after_the_good_end_runs(path: Path) -> None:
    expect, body = load(path)
    _, result = play(expect["provider"], [body[: expect["good_end_offset"]]])
    decision = gate(expect).decide(result)
    assert decision.action == "run", (decision.reasons, result.error)


@pytest.mark.parametrize("profile", ["default", "strict", "tolerant"])
@pytest.mark.parametrize("path", CASES, ids=name)
def test_profiles_change_only_what_the_expectation_says(path: Path, profile: str) -> None:
    expect, body = load(path)
    reason = expect.get("profiles", {}).get(profile)
    action = expect["gate"]["action"] if reason is None else "run" if reason == "ended" else "refuse"
    reason = expect["gate"]["reason"] if reason is None else reason
    _, result = play(expect["provider"], [body], profile=profile)
    decision = gate(expect).decide(result)
    assert (decision.action, decision.reason) == (action, reason), (decision.reasons, result.error)
    size = 7 if len(body) < 60_000 else 997
    _, again = play(expect["provider"], [body[i : i + size] for i in range(0, len(body), size)], profile=profile)
    assert seen(again, gate(expect).decide(again)) == seen(result, decision)


@pytest.mark.parametrize("path", CASES, ids=name)
def test_auto_finds_the_protocol(path: Path) -> None:
    expect, body = load(path)
    named = play(expect["provider"], [body])[1]
    # a line of JSON could be anything: only the caller knows the framing
    found = play("auto", [body], framing="ndjson" if expect["framing"] == "ndjson" else None)[1]
    if found.outcome is tw.Outcome.ERROR and not found.calls and not found.texts:
        assert named.outcome is tw.Outcome.ERROR  # an error body that says nothing about its protocol
        return
    if found.provider == "auto":
        assert named.truncated  # nothing, or nothing but heartbeats, came
        return
    if expect["provider"] == "mistral" and not path.name.startswith("conversation_"):
        assert found.provider == "openai-chat"  # nothing on the wire tells the two apart
        return
    assert found.provider == expect["provider"]
    assert seen(found, tw.TurnGate().decide(found))[0] == seen(named, tw.TurnGate().decide(named))[0]
