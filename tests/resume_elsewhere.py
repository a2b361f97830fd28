"""Half-fed parsers, framers and turns, and what becomes of them in another process.

As a program it reads pickled ``(thing, rest)`` pairs from standard input, goes on with each, and writes what came of them.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

import toolwire as tw
from turn_helpers import call_facts, error_facts, event_facts, marks_of


def frames(framer: Any, rest: bytes) -> Any:
    """What a framer makes of the rest of its input."""
    out = [*framer.feed(rest), *framer.finish(flush=True)]
    return [(f.event, f.raw, f.id, f.offset, f.terminated) for f in out], framer.last_event_id, framer.retry, framer.offset


def value(parser: tw.JSONParser, rest: bytes) -> Any:
    """What a parser makes of the rest of its input."""
    parser.feed(rest)
    return repr(parser.finish()), parser.offset, marks_of(parser)


def turn(half: tw.Turn, rest: bytes) -> Any:
    """What a turn makes of the rest of its body, and what its gate says."""
    events = half.feed(rest)
    result = half.finish()
    decision = tw.TurnGate().decide(result)
    return (
        [event_facts(e) for e in (*events, *half.take_events())],
        [call_facts(c) for c in result.calls],
        (result.outcome, result.reason, result.text, error_facts(result.error), marks_of(result)),
        (decision.action, decision.reasons, [(c.id, c.name, repr(c.arguments)) for c in decision.runnable]),
    )


def go_on(thing: Any, rest: bytes) -> Any:
    """The rest of the way, whatever it is."""
    for kind, way in WAYS.items():
        if isinstance(thing, kind):
            return way(thing, rest)
    raise TypeError(type(thing))


WAYS: Mapping[type, Callable[[Any, bytes], Any]] = {
    tw.JSONParser: value,
    tw.Turn: turn,
    tw.SSEFramer: frames,
    tw.NDJSONFramer: frames,
    tw.JSONArrayFramer: frames,
    tw.AWSEventStreamFramer: frames,
}

if __name__ == "__main__":
    pairs = pickle.load(sys.stdin.buffer)
    pickle.dump([go_on(thing, rest) for thing, rest in pairs], sys.stdout.buffer)
