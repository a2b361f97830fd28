"""The release ledger: one contract for its three parts, what the gate says from it, and processes that are killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ledger_helpers as helpers
import toolwire as tw
from ledger_helpers import RedisServer, play, result, why_no_redis
from toolwire.ledger import Fate, Ledger, MemoryLedger
from toolwire.ledger.sqlite import SQLiteLedger

needs_redis = pytest.mark.skipif(bool(why_no_redis()), reason=why_no_redis() or "it is here")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
PLACES = ["sqlite", pytest.param("redis", marks=needs_redis)]


@pytest.fixture(scope="module")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may kill and start again: what it has confirmed is on disk."""
    server = RedisServer(tmp_path, durable=True)
    yield server
    server.kill()


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger's place, empty."""
    if request.param == "sqlite":
        return str(tmp_path / "released.db")
    import redis

    server: RedisServer = request.getfixturevalue("shared_redis")
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture(params=["memory", *PLACES])
def reopen(request: pytest.FixtureRequest) -> Iterator[Callable[[], Ledger]]:
    """Opens the same ledger, each time anew where there is something to open."""
    opened: list[Any] = []
    memory = MemoryLedger()
    place = None
    if request.param != "memory":
        tmp_path: Path = request.getfixturevalue("tmp_path")
        place = str(tmp_path / "released.db")
        if request.param == "redis":
            import redis

            place = request.getfixturevalue("shared_redis").url
            with redis.Redis.from_url(place) as client:
                client.flushall()

    def open_it() -> Ledger:
        if place is None:
            return memory
        opened.append(helpers.open_ledger(place))
        return opened[-1]

    yield open_it
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Ledger:
    return reopen()


def facts(decision: tw.GateDecision) -> list[tuple[tuple[str, ...], str, Fate | None]]:
    return [(r.reasons, r.detail, r.fate) for r in decision.refused]


# -- the contract -----------------------------------------------------------------------------------------------------------


def test_a_key_is_claimed_once(reopen):
    assert reopen().claim(["a", "b"]) == {}
    assert reopen().claim(["b", "c"]) == {"b": "released"}
    assert reopen().claim(["a", "b", "c", "d"]) == {"a": "released", "b": "released", "c": "released"}
    assert reopen().fates(["a", "b", "c", "d", "e"]) == dict.fromkeys("abcd", "released")


def test_all_or_nothing_claims_none_if_one_was_claimed(ledger):
    assert ledger.claim(["a"], all_or_nothing=True) == {}
    assert ledger.claim(["b", "a", "c"], all_or_nothing=True) == {"a": "released"}
    assert ledger.fates(["a", "b", "c"]) == {"a": "released"}
    assert ledger.claim(["b", "c"], all_or_nothing=True) == {}


def test_settled_keys_say_what_became_of_them(reopen):
    ledger = reopen()
    ledger.claim(["a", "b", "c"])
    ledger.settle("a", "done")
    ledger.settle("b", "failed")
    want = {"a": "done", "b": "failed", "c": "released"}
    assert reopen().fates(["a", "b", "c"]) == want
    assert reopen().claim(["a", "b", "c"]) == want
    ledger.settle("b", "done")
    assert ledger.fates(["b"]) == {"b": "done"}


def test_a_key_that_was_forgotten_is_settled_all_the_same(ledger):
    ledger.settle("a", "done")
    assert ledger.claim(["a"]) == {"a": "done"}


@pytest.mark.parametrize("fate", ["released", "", None, "Done"])
def test_a_fate_that_is_none_is_a_usage_error(ledger, fate):
    ledger.claim(["a"])
    with pytest.raises(tw.UsageError, match="'done' or 'failed'"):
        ledger.settle("a", fate)
    assert ledger.fates(["a"]) == {"a": "released"}


def test_nothing_and_the_same_key_twice(ledger):
    assert ledger.claim([]) == {}
    assert ledger.fates([]) == {}
    assert ledger.claim(["a", "a"]) == {}
    assert ledger.claim(["a", "a"]) == {"a": "released"}


def test_threads_that_claim_at_once_get_each_key_once(ledger):
    keys = [f"k{i}" for i in range(60)]
    start, got = threading.Barrier(4), []

    def claim(turn: int) -> None:
        start.wait()
        for i in range(turn, turn + len(keys), 2):
            pair = [keys[i % len(keys)], keys[(i + 1) % len(keys)]]
            known = ledger.claim(pair)
            got.extend(key for key in pair if key not in known)

    threads = [threading.Thread(target=claim, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(keys)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_past_its_limit_the_oldest_is_forgotten(kind, tmp_path):
    ledger: Any = MemoryLedger(max_keys=3) if kind == "memory" else SQLiteLedger(tmp_path / "db", max_keys=3)
    ledger.claim(["a", "b"])
    ledger.claim(["c"])
    ledger.settle("a", "done")  # no younger for it
    ledger.claim(["d"])
    assert ledger.fates(list("abcd")) == dict.fromkeys("bcd", "released")
    ledger.settle("e", "done")
    assert list(ledger.fates(list("abcde"))) == ["c", "d", "e"]
    if kind == "sqlite":
        ledger.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_none_is_a_usage_error(kind, limit, tmp_path):
    with pytest.raises(tw.UsageError, match="max_keys"):
        MemoryLedger(max_keys=limit) if kind == "memory" else SQLiteLedger(tmp_path / "db", max_keys=limit)


# -- the gate ---------------------------------------------------------------------------------------------------------------


def test_after_a_restart_the_gate_says_what_became_of_each_call(reopen):
    gate = tw.TurnGate(ledger=reopen())
    first = gate.decide(result(1, calls=3))
    assert [c.id for c in first.runnable] == ["call_1_0", "call_1_1", "call_1_2"]
    gate.settle(first.runnable[0])
    gate.settle(first.runnable[1], "failed")

    again = tw.TurnGate(ledger=reopen()).decide(result(1, calls=3))
    assert (again.action, again.runnable) == ("refuse", ())
    assert facts(again) == [
        (("already_released",), "ran before", "done"),
        (("already_released",), "ran before, and failed", "failed"),
        (("already_released",), "released before, fate unknown", "released"),
    ]
    assert [r.release_key for r in again.refused] == [c.release_key for c in first.runnable]
    assert tw.TurnGate(ledger=reopen()).decide(result(2)).action == "run"


def test_a_call_that_is_found_to_have_run_is_settled_by_its_refusal(reopen):
    tw.TurnGate(ledger=reopen()).decide(result(1, calls=1))
    ledger = reopen()
    (refusal,) = tw.TurnGate(ledger=ledger).decide(result(1, calls=1)).refused
    assert refusal.release_key is not None
    ledger.settle(refusal.release_key, "done")
    assert facts(tw.TurnGate(ledger=reopen()).decide(result(1, calls=1))) == [(("already_released",), "ran before", "done")]


def test_scopes_do_not_share_what_they_released(ledger):
    gates = [tw.TurnGate(ledger=ledger, scope=scope) for scope in ("", "a", "b")]
    first = [gate.decide(result(1, calls=1)) for gate in gates]
    assert [d.action for d in first] == ["run"] * 3
    assert len({d.runnable[0].release_key for d in first}) == 3
    assert [tw.TurnGate(ledger=ledger, scope=scope).decide(result(1)).reasons[0] for scope in ("", "a")] == ["ended", "ended"]  # its second call is new
    assert [gate.decide(result(1, calls=1)).action for gate in gates] == ["refuse"] * 3


def test_a_cut_turn_claims_nothing_and_tells_what_was_released(ledger):
    def cut() -> tw.TurnResult:
        turn = tw.Turn("openai-chat")
        turn.feed(helpers.body(1, calls=1)[:-60])
        return turn.finish()

    gate = tw.TurnGate(ledger=ledger)
    assert gate.decide(cut()).reasons == ("turn_not_ended",)
    assert gate.decide(result(1, calls=1)).action == "run"
    (refusal,) = gate.decide(cut()).refused
    assert refusal.reasons == ("turn_not_ended", "already_released")
    assert (refusal.fate, refusal.details["already_released"]) == ("released", "released before, fate unknown")


@pytest.mark.parametrize("all_or_nothing", [False, True])
def test_a_call_that_another_gate_claims_while_this_one_validates_runs_there_only(ledger, all_or_nothing):
    other = tw.TurnGate(ledger=ledger)
    theirs: list[tw.GateDecision] = []

    def slow(arguments: dict[str, Any]) -> None:
        if not theirs:
            theirs.append(other.decide(result(1, calls=1)))

    gate = tw.TurnGate({"ring": slow}, ledger=ledger, policy=tw.GatePolicy(all_or_nothing=all_or_nothing))
    mine = gate.decide(result(1, calls=2))
    assert [c.id for c in theirs[0].runnable] == ["call_1_0"]
    assert [c.id for c in mine.runnable] == ([] if all_or_nothing else ["call_1_1"])
    assert [(r.call.id, r.reasons, r.fate) for r in mine.refused][:1] == [("call_1_0", ("already_released",), "released")]
    if all_or_nothing:
        assert mine.refused[1].details == {"already_released": "with call " + mine.refused[0].call.key}
        assert mine.refused[1].fate is None
        assert [c.id for c in tw.TurnGate(ledger=ledger).decide(result(1, calls=2)).runnable] == ["call_1_1"]  # it was not claimed


def without_ids() -> tw.TurnResult:
    turn = tw.Turn("openai-chat")
    turn.feed(
        b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"function",'
        b'"function":{"name":"ring","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    )
    return turn.finish()


def test_a_call_without_any_id_has_no_key_and_is_known_as_an_object_only(ledger):
    gate, ended = tw.TurnGate(ledger=ledger), without_ids()
    (call,) = gate.decide(ended).runnable
    assert call.release_key is None
    gate.settle(call)
    assert facts(gate.decide(ended)) == [(("already_released",), "released before, fate unknown", "released")]
    assert gate.decide(without_ids()).action == "run"


def test_keys_are_made_the_same_way_for_ever():
    """They lie in ledgers that are older than the code: a change here is a call that runs twice."""
    (call,) = tw.TurnGate(scope="s").decide(result(1, calls=1)).runnable
    assert call.release_key == "5de15204a1bbdef12705196d4839261c"
    weak = result(1, calls=1)
    weak.response_id = None
    (call,) = tw.TurnGate().decide(weak).runnable
    assert call.release_key == "a33511119618763a540c5348c577e934"
    weak.response_id, weak.calls[0].id_is_synthetic = "r\N{SNOWMAN}\ud800", True
    (call,) = tw.TurnGate().decide(weak).runnable
    assert call.release_key == "bcd0b842ad3891fdd14dfa67f0aa929c"


class Flaky(MemoryLedger):
    """Does not answer while ``broken`` names the question."""

    broken = ""

    def claim(self, *args: Any, **how: Any) -> dict[str, Fate]:
        return super().claim(*args, **how) if self.broken != "claim" else self.fail()

    def fates(self, *args: Any) -> dict[str, Fate]:
        return super().fates(*args) if self.broken != "fates" else self.fail()

    def fail(self) -> Any:
        raise tw.LedgerError("no answer")


@pytest.mark.parametrize("question", ["claim", "fates"])
def test_without_an_answer_nothing_is_released_and_turns_without_calls_need_none(question):
    ledger = Flaky()
    gate = tw.TurnGate(ledger=ledger)
    ledger.broken = question
    for _ in range(2):
        with pytest.raises(tw.LedgerError):
            gate.decide(result(1))
    assert gate.decide(result(2, calls=0)).action == "nothing_to_run"
    ledger.broken = ""
    assert len(gate.decide(result(1)).runnable) == 2


def test_what_is_no_ledger_and_what_is_no_scope_are_usage_errors():
    for wrong in ({"ledger": "released.db"}, {"ledger": {}}, {"scope": None}, {"scope": 3}):
        with pytest.raises(tw.UsageError, match=next(iter(wrong))):
            tw.TurnGate(**wrong)  # type: ignore[arg-type]


def test_importing_toolwire_brings_no_ledger_of_a_library():
    code = "import sys, toolwire.ledger; print(*sorted({'sqlite3', 'redis'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


# -- SQLite -----------------------------------------------------------------------------------------------------------------


def test_the_file_holds_no_id_no_name_and_no_argument(tmp_path):
    with SQLiteLedger(tmp_path / "db") as ledger:
        gate = tw.TurnGate(ledger=ledger, scope="conversation")
        for call in gate.decide(result(1, arguments='{"secret":"hunter2"}')).runnable:
            gate.settle(call)
        data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"toolwire_released" in data
    assert [word for word in (b"secret", b"hunter2", b"call_1", b"cc_1", b"ring", b"conversation") if word in data] == []


def test_each_commit_is_synced_and_readers_do_not_stop_writers(tmp_path):
    with SQLiteLedger(tmp_path / "db") as ledger:
        assert ledger._connection is not None
        assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_another_process_writes_for_too_long_refuses(tmp_path):
    with SQLiteLedger(tmp_path / "db", timeout=0.05) as ledger:
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        gate = tw.TurnGate(ledger=ledger)
        with pytest.raises(tw.LedgerError, match="database is locked"):
            gate.decide(result(1))
        other.execute("ROLLBACK")
        other.close()
        assert len(gate.decide(result(1)).runnable) == 2


def test_a_failure_within_a_claim_claims_nothing_of_it(tmp_path):
    with SQLiteLedger(tmp_path / "db") as ledger:
        ledger.claim(["a"])
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("CREATE TRIGGER full BEFORE INSERT ON toolwire_released WHEN NEW.key = 'c' BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        with pytest.raises(tw.LedgerError, match="disk full"):
            ledger.claim(["b", "c"])
        other.execute("DROP TRIGGER full")
        other.close()
        assert ledger.fates(["a", "b", "c"]) == {"a": "released"}
        assert ledger.claim(["b", "c"]) == {}


@pytest.mark.parametrize("what", ["directory", "no_database", "missing_directory"])
def test_a_path_that_holds_no_ledger_is_an_error_at_once(what, tmp_path):
    path = tmp_path / "ledger"
    if what == "directory":
        path.mkdir()
    elif what == "no_database":
        path.write_text("this is a text, and longer than the header of a database is, which has a hundred bytes" * 20)
    else:
        path /= "below"
    with pytest.raises(tw.LedgerError, match=r"the release ledger .*ledger"):
        SQLiteLedger(path)


def test_a_place_without_a_write_ahead_log_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(SQLiteLedger, "_write_ahead", lambda self, connection: "delete")
    with pytest.raises(tw.LedgerError, match="local disk"):
        SQLiteLedger(tmp_path / "db")


def test_a_closed_ledger_is_a_usage_error(tmp_path):
    ledger = SQLiteLedger(tmp_path / "db")
    ledger.close()
    ledger.close()
    for use in (lambda: ledger.claim(["a"]), lambda: ledger.fates(["a"]), lambda: ledger.settle("a", "done")):
        with pytest.raises(tw.UsageError, match="closed"):
            use()


@needs_fork
def test_processes_that_make_the_file_at_once_do_not_disturb_each_other(tmp_path):
    assert play(helpers.opened_at_once, str(tmp_path / "db"), tmp_path) == {"codes": {"0": 200}, "winners": {"1": 25}}


# -- Redis ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(shared_redis: RedisServer) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(shared_redis.url) as client:
        client.flushall()
        yield client


@needs_redis
@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_of_ones_own_may_decode_or_not(shared_redis, client, decode_responses, protocol):
    import redis

    from toolwire.ledger.redis import RedisLedger

    with redis.Redis.from_url(shared_redis.url, decode_responses=decode_responses, protocol=protocol) as own:
        ledger = RedisLedger(own)
        assert ledger.claim(["a", "b"]) == {}
        ledger.settle("a", "done")
        assert ledger.claim(["a", "b", "c"]) == ledger.fates(["a", "b", "d"]) == {"a": "done", "b": "released"}


@needs_redis
def test_keys_expire_and_can_then_be_claimed(client):
    from toolwire.ledger.redis import RedisLedger

    ledger = RedisLedger(client, expiry=100, prefix="p")
    ledger.claim(["a", "b"])
    ledger.settle("b", "done")
    assert sorted(client.keys()) == [b"{p}:a", b"{p}:b"]
    assert all(99_000 < client.pttl(key) <= 100_000 for key in (b"{p}:a", b"{p}:b"))
    client.pexpire("{p}:a", 0)
    assert ledger.claim(["a", "b"]) == {"b": "done"}


@needs_redis
def test_a_claim_whose_answer_was_lost_is_still_ones_own_when_asked_again(shared_redis, client):
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    from toolwire.ledger.redis import RedisLedger

    class LosesAnswers(redis.Connection):
        lose = 0

        def read_response(self, *args: Any, **how: Any) -> Any:
            answer = super().read_response(*args, **how)
            if LosesAnswers.lose:
                LosesAnswers.lose -= 1
                self.disconnect()
                raise redis.ConnectionError("the answer was lost")
            return answer

    pool = redis.ConnectionPool(connection_class=LosesAnswers, host="127.0.0.1", port=shared_redis.port, retry=Retry(NoBackoff(), 1))
    ledger = RedisLedger(redis.Redis(connection_pool=pool))
    ledger.fates(["x"])  # connected from here on
    gate = tw.TurnGate(ledger=ledger)
    LosesAnswers.lose = 1
    assert ledger.claim(["a", "b"]) == {}
    assert LosesAnswers.lose == 0
    assert ledger.claim(["a", "b"]) == {"a": "released", "b": "released"}

    # Lost for good: it was claimed, nobody may run it, and that is what the next to ask is told.
    LosesAnswers.lose = 2
    with pytest.raises(tw.LedgerError, match="ConnectionError: the answer was lost"):
        ledger.claim(["c"])
    assert ledger.claim(["c"]) == {"c": "released"}
    assert len(gate.decide(result(1)).runnable) == 2
    pool.disconnect()


@needs_redis
def test_values_that_are_none_of_ours_release_nothing(client):
    from toolwire.ledger.redis import RedisLedger

    ledger = RedisLedger(client)
    client.set("{toolwire}:a", "something else")
    for use in (ledger.claim, ledger.fates):
        with pytest.raises(tw.LedgerError, match="'something'"):
            use(["a"])
    client.rpush("{toolwire}:b", "1")
    with pytest.raises(tw.LedgerError, match="WRONGTYPE"):
        ledger.claim(["c", "b"])
    assert ledger.claim(["c"]) == {}


@needs_redis
def test_redis_holds_no_id_no_name_and_no_argument(client):
    from toolwire.ledger.redis import RedisLedger

    gate = tw.TurnGate(ledger=RedisLedger(client), scope="conversation")
    (done, open_) = gate.decide(result(1, arguments='{"secret":"hunter2"}')).runnable
    gate.settle(done)
    assert sorted(client.keys()) == sorted(b"{toolwire}:%b" % str(c.release_key).encode() for c in (done, open_))
    assert client.get(f"{{toolwire}}:{done.release_key}") == b"done"
    assert client.get(f"{{toolwire}}:{open_.release_key}").startswith(b"released ")


@needs_redis
@pytest.mark.parametrize("wrong", ["http://example.org", "", None, 3, {}])
def test_what_is_no_server_is_a_usage_error(wrong):
    from toolwire.ledger.redis import RedisLedger

    with pytest.raises(tw.UsageError, match="RedisLedger"):
        RedisLedger(wrong)


@needs_redis
def test_an_asyncio_client_and_a_wrong_expiry_are_usage_errors():
    import redis.asyncio

    from toolwire.ledger.redis import RedisLedger

    with pytest.raises(tw.UsageError, match="asyncio"):
        RedisLedger(redis.asyncio.Redis())  # type: ignore[arg-type]
    with pytest.raises(tw.UsageError, match="expiry"):
        RedisLedger("redis://127.0.0.1", expiry=0)


@needs_redis
def test_redis_gone_in_the_middle_refuses_and_releases_nothing(redis_server):
    from toolwire.ledger.redis import RedisLedger

    kills: list[bool] = []

    def check(arguments: dict[str, Any]) -> None:
        if kills and kills.pop():
            redis_server.kill()  # after the gate has asked what was released, before it claims

    ledger = RedisLedger(redis_server.url)
    gate = tw.TurnGate({"ring": check}, ledger=ledger)
    (before,) = gate.decide(result(1, calls=1)).runnable
    gate.settle(before)
    kills.append(True)
    with pytest.raises(tw.LedgerError, match="did not answer") as caught:
        gate.decide(result(2, calls=1))
    assert caught.value.__cause__ is not None
    for ask in (lambda: gate.decide(result(2, calls=1)), lambda: gate.settle(before)):
        with pytest.raises(tw.LedgerError):
            ask()
    assert gate.decide(result(3, calls=0)).action == "nothing_to_run"

    redis_server.start()
    assert facts(gate.decide(result(1, calls=1))) == [(("already_released",), "ran before", "done")]
    assert [c.id for c in gate.decide(result(2, calls=1)).runnable] == ["call_2_0"]
    ledger.close()


@needs_redis
def test_a_server_that_syncs_each_write_remembers_after_kill_9(redis_server):
    from toolwire.ledger.redis import RedisLedger

    ledger = RedisLedger(redis_server.url)
    for n in range(5):
        assert ledger.claim([f"k{n}"]) == {}
        redis_server.kill()
        redis_server.start()
    assert ledger.claim([f"k{n}" for n in range(6)]) == {f"k{n}": "released" for n in range(5)}
    ledger.close()


# -- processes --------------------------------------------------------------------------------------------------------------


@needs_fork
@pytest.mark.parametrize("where", PLACES, indirect=True)
def test_processes_that_race_release_each_call_once(where, tmp_path):
    assert play(helpers.race, where, tmp_path) == {"codes": [0] * 4, "ids": 300, "most": 1}


@needs_fork
@pytest.mark.parametrize("where", PLACES, indirect=True)
def test_a_ledger_is_used_on_both_sides_of_a_fork(where, tmp_path):
    assert play(helpers.forked, where, tmp_path) == {
        "code": 0,
        "carried": False,
        "child": {"before": "released"},
        "parent": {"before": "released", "child": "released", "both": "released"},
    }


@needs_fork
@pytest.mark.parametrize("where", PLACES, indirect=True)
def test_killed_at_random_no_call_runs_twice_and_lost_ones_are_told(where, tmp_path):
    got = play(helpers.killed_at_random, where, tmp_path)
    assert (got["code"], got["calls"], got["most"]) == (0, 600, 1)
    assert got["kills"] >= 300 // (12 + 17)
    fates = got["fates"]
    assert set(fates) <= {"done, ran 1", "released, ran 1", "released, ran 0"}
    assert sum(fates.values()) == 600
    # A turn has two calls, and one turn is lost in a kill.
    assert 0 < sum(n for fate, n in fates.items() if fate != "done, ran 1") <= 2 * got["kills"]


@needs_fork
@pytest.mark.parametrize("where", PLACES, indirect=True)
def test_killed_at_every_line_the_call_is_new_lost_or_done_in_this_order(where, tmp_path):
    got = play(helpers.killed_at_every_line, where, tmp_path)
    assert got["code"] == 0
    outcomes = [tuple(outcome) for outcome in got["outcomes"]]
    stages = [("run", 1), ("released", 0), ("released", 1), ("done", 1)]
    assert set(outcomes) == set(stages)
    assert outcomes == sorted(outcomes, key=stages.index)
    assert len(outcomes) > 100
