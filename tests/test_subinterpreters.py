"""Interpreters with a GIL of their own in one process. An ordinary build is loaded into one interpreter and refuses the others cleanly;
a build with TOOLWIRE_SUBINTERPRETERS=1 is loaded into all of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters with a GIL of their own came with 3.12")

#: Runs ``WORK`` in interpreters of their own: one, then several at once in threads, then here. What they say is printed.
#: asyncio and blake2b, which the package uses, come first: CPython 3.12 keeps things of theirs that belong to the interpreter that was the
#: first to use them, and frees them in the main one at exit. That crashes without the package, too.
HOST = """
import asyncio, hashlib, sys, threading
hashlib.blake2b(b"", digest_size=16)

def interpreter(code):
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
        made = interpreters.create("isolated")
        failed = interpreters.exec(made, code)
    else:
        import _xxsubinterpreters as interpreters
        made, failed = interpreters.create(isolated=True), None
        try:
            interpreters.run_string(made, code)
        except interpreters.RunFailedError as error:
            failed = error
    interpreters.destroy(made)
    return "done" if failed is None else getattr(failed, "formatted", str(failed))

def at_once(n):
    said = []
    threads = [threading.Thread(target=lambda: said.append(interpreter(WORK))) for _ in range(n)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return said

WORK = sys.argv[1]
if sys.argv[2] == "main first":
    exec(WORK)
print(interpreter(WORK))
for _ in range(3):
    print(*at_once(4), sep="\\n")
exec(WORK)
print("here too")
"""

WORK = """
import gc, pickle
import toolwire as tw

body = (b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"caf\\u00e9","tool_calls":[{"index":0,"id":"c1","type":"function",'
        b'"function":{"name":"f","arguments":"{\\\\"port\\\\":"}}]}}]}\\n\\n'
        b'data: {"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"[1,\\\\"Brest\\\\"]}"}}]},'
        b'"finish_reason":"tool_calls"}]}\\n\\ndata: [DONE]\\n\\n')
for n in range(20):
    for size in (1, 7, 1000):
        turn = pickle.loads(pickle.dumps(tw.Turn("openai-chat")))
        for at in range(0, len(body), size):
            turn.feed(body[at:at + size])
        decision = tw.TurnGate().decide(turn.finish())
        assert decision.action == "run" and decision.runnable[0].arguments == {"port": [1, "Brest"]}
    assert tw.loads('{"key": %d, "key two": ["x"]}' % n) == {"key": n, "key two": ["x"]}
    assert [f.event for f in tw.SSEFramer().feed(b"event: named\\ndata: 1\\n\\n" * 3)] == ["named"] * 3
    parser = tw.JSONParser()
    parser.feed('["caf\\u00e9')
    cycle = [parser, parser.value]
    parser.value.append(cycle)
    del parser, cycle
    try:
        tw.loads("[1,,2]")
    except tw.MalformedJSON as error:
        assert error.offset == 3
    else:
        raise AssertionError
    try:
        tw.JSONParser(surrogates="?")
    except tw.UsageError:
        pass
gc.collect()
"""


@pytest.mark.parametrize("first", ["main first", "main last"])
def test_interpreters_of_one_process(first: str) -> None:
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", HOST, WORK, first], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    assert last == "here too", "the main interpreter works, whatever became of the others"
    if any("ImportError" in line for line in said):
        refused = [line for line in said if "does not support loading in subinterpreters" in line]
        assert len(refused) == 13, done.stdout
        pytest.skip("loaded by one interpreter only, cleanly; TOOLWIRE_SUBINTERPRETERS=1 builds for all of them")
    assert said == ["done"] * 13
