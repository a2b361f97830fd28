"""Every frame of every recording, lost, sent twice, swapped with the next: refused, right, or beyond what any reader can know."""

from __future__ import annotations

from collections import Counter

import pytest

import toolwire as tw
from faults.honest import why_honest
from faults.judge import FRAMES, names, reference, released
from toolwire.serve.faults import Faults

NAMES = [name for name in names() if "file_body" not in name]  # hundreds of like frames each; tests/faults/run.py draws from them


def play(name: str, kind: str, at: int) -> tuple[tw.TurnResult, Counter[str]]:
    ref = reference(name)
    body = Faults.parse({kind: str(at)}).damage(ref.body, ref.provider, ref.framing)
    turn = tw.Turn(ref.provider, framing=ref.framing, on_cut="return")  # type: ignore[arg-type]
    try:
        turn.feed(body)
        result = turn.finish()
    except tw.StreamError as error:
        result = turn.abort(error)
    return result, released(tw.TurnGate(ref.tools).decide(result))


@pytest.mark.parametrize("folder", sorted({name.split("/")[0] for name in NAMES}))
def test_damaged_frames_are_refused_or_right_or_honest(folder: str) -> None:
    wrong, notes = [], Counter[str]()
    for name in NAMES:
        if name.split("/")[0] != folder:
            continue
        ref = reference(name)
        count = len(ref.frames.items)
        for kind in FRAMES:
            for at in range(count - (kind == "swap")):
                result, got = play(name, kind, at)
                if got - ref.released:
                    why = why_honest(ref, kind, at, frozenset(map(str, result.marks)))
                    notes[why[0] if why else "wrong"] += 1
                    if why is None:
                        wrong.append((name, kind, at))
                else:
                    notes["right" if got else "refused"] += 1
    assert wrong == []
    assert notes["refused"] > notes["undetectable"] + notes["marked"]
    assert notes["right"] > 0


def test_numbers_and_final_texts_leave_nothing_undetectable() -> None:
    for name in NAMES:
        if name.startswith("openai-responses/"):
            for kind in FRAMES:
                for at in range(len(reference(name).frames.items) - (kind == "swap")):
                    result, got = play(name, kind, at)
                    assert not got - reference(name).released or "sequence_gap" in result.marks, (name, kind, at)
