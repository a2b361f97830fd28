"""Memory stays flat over many rounds of work, and what holds itself is collected."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the resident size is read from /proc")
@pytest.mark.parametrize("work", [["--rounds", "20000"], ["--stream", "16"]], ids=["rounds", "streams"])
def test_memory_stays_as_it_was(work: list[str]) -> None:
    command = [sys.executable, str(Path(__file__).with_name("endurance.py")), *work, "--most", "8"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


class Witness:
    """Dies when what holds it does."""


def hold_in_a_value(witness: Witness) -> None:
    p = tw.JSONParser()
    p.feed(b'{"a":[[1,2],{"b":"open')
    p.value["a"][1]["p"] = p
    p.value["a"][0].append(witness)


def hold_in_a_finished_value(witness: Witness) -> None:
    p = tw.JSONParser()
    p.feed(b'[1,{"a":2}]')
    p.finish().extend([p, witness])


def hold_in_a_snapshot(witness: Witness) -> None:
    p = tw.JSONParser()
    p.feed(b"[" + b"1," * 100)
    p.snapshot().extend([p, witness])  # a wide one is lent, not copied


def hold_in_a_call(witness: Witness) -> None:
    t = tw.Turn("anthropic")
    t.feed(b'data: {"type":"message_start","message":{"id":"m","content":[]}}\n\n')
    t.feed(b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}\n\n')
    t.feed(b'data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":["}}\n\n')
    t.calls[0].extra["turn"] = t
    t.calls[0].value["a"].extend([t, witness])


def hold_in_an_error(witness: Witness) -> None:
    t = tw.Turn("openai-chat")
    t.feed(b"data: {broken\n\n")
    try:
        t.feed(b"")
    except tw.StreamError as error:
        error.held = [t, witness, error]  # type: ignore[attr-defined]


@pytest.mark.parametrize("hold", [hold_in_a_value, hold_in_a_finished_value, hold_in_a_snapshot, hold_in_a_call, hold_in_an_error])
def test_what_holds_itself_is_collected(hold: Callable[[Any], None]) -> None:
    witness = Witness()
    gone = weakref.ref(witness)
    hold(witness)
    del witness
    assert gone() is not None, "it is held"
    gc.collect()
    assert gone() is None
