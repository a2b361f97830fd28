"""The replaying server: what is sent, how it stops, and that real clients meet it. tests/faults/run.py does much more of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra [serve]")
pytest.importorskip("uvicorn", reason="needs the extra [serve]")
httpx = pytest.importorskip("httpx")

import toolwire as tw  # noqa: E402  # after the skips
from faults.clients import SYNC, Asked, Turned, get, installed  # noqa: E402
from faults.judge import FIXTURES, judge, reference  # noqa: E402
from toolwire.errors import UsageError  # noqa: E402
from toolwire.serve.faults import Faults  # noqa: E402
from toolwire.serve.frames import Frames  # noqa: E402
from toolwire.serve.provider_errors import error_body, error_frame  # noqa: E402
from toolwire.serve.recordings import find  # noqa: E402
from toolwire.serve.server import Running, running  # noqa: E402
from toolwire.turn import PROVIDERS  # noqa: E402

DEMO = "openai-chat/demo.sse"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(FIXTURES) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Any]:
    with httpx.Client(base_url=server.url) as client:
        yield client


def body_of(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def wait_for(server: Running, path: str) -> Any:
    """The log's entry of a request, which is written once the server has noticed that it is over."""
    for _ in range(500):
        for served in reversed(server.log):
            if served.path == path:
                return served
        time.sleep(0.01)
    raise AssertionError(f"no entry for {path} in {server.log}")


# -- options ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chop": "3"}, "there is no fault 'chop'"),
        ({"chunk": "0"}, "chunk=0"),
        ({"cut": "1", "reset": "2"}, "a body stops once"),
        ({"cut": "1.5"}, "is no place"),
        ({"drop": "0.5"}, "drop=0.5"),
        ({"status": "200"}, "use a status"),
        ({"encoding": "br"}, "use gzip or deflate"),
        ({"more": "yes"}, "use 0 or 1"),
        ({"delay": "-1"}, "use seconds"),
        ({"type": "a\r\nb: c"}, "use a media type"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_option_that_is_none_is_said(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Faults.parse(options)


def test_options_are_the_defaults_and_what_is_given() -> None:
    faults = Faults.parse({"cut": "3"}, defaults=Faults.parse({"chunk": "2"}))
    assert faults.chunks(b"abcdef") == ([b"ab", b"c"], [b"d", b"ef"])


@pytest.mark.parametrize(("place", "sent"), [("0", b""), ("4", b"abcd"), ("-1", b"abcdefghi"), ("0.5", b"abcde"), ("10", b"abcdefghij")])
def test_place_counts_from_either_end_or_as_a_share(place: str, sent: bytes) -> None:
    before, after = Faults.parse({"cut": place}).chunks(b"abcdefghij")
    assert b"".join(before) == sent
    assert b"".join(before + after) == b"abcdefghij"


def test_seed_draws_the_same_each_time() -> None:
    body = body_of(DEMO)
    one, two = ({"chunk": f"random:{seed}", "cut": f"random:{seed}"} for seed in "ab")
    assert Faults.parse(one).chunks(body) == Faults.parse(one).chunks(body)
    assert Faults.parse(one).chunks(body) != Faults.parse(two).chunks(body)


@pytest.mark.parametrize("name", [DEMO, "ollama/parallel.jsonl", "bedrock/demo.bin", "google-generate/demo_array_streamed.json"])
def test_frames_make_the_body_again_and_can_be_lost_repeated_and_swapped(name: str) -> None:
    ref = reference(name)
    items = ref.frames.items
    assert len(items) > 2
    again = ref.frames.join(items)
    if ref.framing == "json-array":
        assert json.loads(again) == json.loads(ref.body)
    else:
        assert again == ref.body

    def damaged(**options: str) -> tuple[bytes, ...]:
        return Frames.split(Faults.parse(options).damage(ref.body, ref.provider, ref.framing), ref.framing).items

    assert damaged(drop="1") == (items[0], *items[2:])
    assert damaged(repeat="0,-1") == (items[0], *items, items[-1])
    assert damaged(swap="0") == (items[1], items[0], *items[2:])
    assert damaged(error="1")[0] == items[0]
    assert len(damaged(error="1")) == 2
    assert len(damaged(error="1", more="1")) == len(items) + 1
    with pytest.raises(ValueError, match=f"there is no place 99: the recording has {len(items)}"):
        damaged(drop="99")


def test_cr_lf_is_one_line_end() -> None:
    assert Frames.split(b"data: a\r\ndata: b\r\n\r\ndata: c\r\r: x\n\ndata: d", "sse").items == (
        b"data: a\r\ndata: b\r\n\r\n",
        b"data: c\r\r",
        b": x\n\n",
        b"data: d",
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_error_in_mid_stream_is_the_providers_own(provider: str) -> None:
    framing = {"ollama": "ndjson", "bedrock": "aws-eventstream"}.get(provider, "sse")
    turn = tw.Turn(provider, framing=framing, on_cut="return")  # type: ignore[arg-type]
    turn.feed(error_frame(provider, framing))
    result = turn.finish()
    assert result.outcome is tw.Outcome.ERROR
    assert isinstance(result.error, tw.ProviderError)
    assert "asked for" in str(result.error)
    assert "asked for" in error_body(provider, 429)[0].decode()


def test_folder_tells_the_provider_and_otherwise_the_first_frames_do(tmp_path: Path) -> None:
    (tmp_path / "mistral").mkdir()
    (tmp_path / "mistral/one.sse").write_bytes(body_of("mistral/demo.sse"))
    (tmp_path / "two.sse").write_bytes(body_of("anthropic/demo.sse"))
    (tmp_path / "three.sse").write_bytes(b"data: what?\n\n")
    (tmp_path / "notes.txt").write_text("no recording")
    assert {r.name: r.provider for r in find(tmp_path).values()} == {"mistral/one.sse": "mistral", "two.sse": "anthropic", "three.sse": None}
    with pytest.raises(UsageError, match="is no folder"):
        find(tmp_path / "notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no recordings"):
        find(tmp_path / "empty")


# -- endpoints -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name", "content_type"),
    [
        ("/v1/chat/completions", DEMO, "text/event-stream; charset=utf-8"),
        ("/openai-chat/v1/chat/completions", DEMO, "text/event-stream; charset=utf-8"),
        ("/v1/responses", "openai-responses/demo.sse", "text/event-stream; charset=utf-8"),
        ("/v1/messages?beta=true", "anthropic/demo.sse", "text/event-stream; charset=utf-8"),
        ("/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=k", "google-generate/demo_streamed.sse", "text/event-stream; charset=utf-8"),
        ("/v1beta/models/gemini-x:streamGenerateContent", "google-generate/demo_array.json", "application/json; charset=UTF-8"),
        ("/v1beta/interactions", "google-interactions/demo.sse", "text/event-stream; charset=utf-8"),
        ("/mistral/v1/chat/completions", "mistral/demo.sse", "text/event-stream; charset=utf-8"),
        ("/mistral/v1/conversations", "mistral/conversation_demo.sse", "text/event-stream; charset=utf-8"),
        ("/v2/chat", "cohere/demo.sse", "text/event-stream; charset=utf-8"),
        ("/api/chat", "ollama/demo.jsonl", "application/x-ndjson"),
        ("/model/eu.demo%3A0/converse-stream", "bedrock/demo.bin", "application/vnd.amazon.eventstream"),
        ("/model/demo/invoke-with-response-stream", "anthropic/invoke_demo.bin", "application/vnd.amazon.eventstream"),
    ],
)
def test_endpoint_gives_the_recording_that_is_named(client: Any, path: str, name: str, content_type: str) -> None:
    stem = Path(name).stem
    for wanted in (name, stem):
        response = client.post(path, json={"stream": True}, headers={"x-toolwire-recording": wanted})
        assert (response.status_code, response.headers["content-type"]) == (200, content_type)
        assert response.content == body_of(name)


def test_without_a_name_recordings_come_in_order_and_then_again(tmp_path: Path) -> None:
    folder = tmp_path / "anthropic"
    folder.mkdir()
    for name in ("b.sse", "a.sse", "c.bin"):
        (folder / name).write_text(name)
    with running(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        assert [client.post("/v1/messages").text for _ in range(3)] == ["a.sse", "b.sse", "a.sse"]
        missing = client.post("/v1/responses")
        assert missing.status_code == 404
        assert "no recording of openai-responses" in missing.json()["error"]["message"]


def test_list_names_every_recording(client: Any, server: Running) -> None:
    listed = client.get("/").json()["recordings"]
    assert [entry["name"] for entry in listed] == list(server.app.recordings)
    assert {"name": DEMO, "provider": "openai-chat", "framing": "sse"} in listed


def test_wrong_options_are_said_and_nothing_is_served(client: Any) -> None:
    for url in (f"/replay/{DEMO}?chop=1", f"/replay/{DEMO}?drop=99"):
        response = client.get(url)
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "toolwire_serve"
    assert client.get("/replay/no/such.sse").status_code == 404


def test_faults_come_by_header_too(client: Any) -> None:
    response = client.post("/v1/chat/completions?alt=x", headers={"x-toolwire-recording": DEMO, "x-toolwire-faults": "cut=100&type=text/html"})
    assert response.content == body_of(DEMO)[:100]
    assert response.headers["content-type"] == "text/html"


# -- faults ----------------------------------------------------------------------------------------------------------------


def test_status_has_the_providers_error_body(client: Any) -> None:
    response = client.post("/v1/messages", headers={"x-toolwire-recording": "demo", "x-toolwire-faults": "status=529"})
    assert response.status_code == 529
    assert response.json()["error"]["type"] == "overloaded_error"
    response = client.get("/replay/bedrock/demo.bin?status=429")
    assert (response.headers["x-amzn-errortype"], response.headers["retry-after"]) == ("ThrottlingException", "1")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_body_arrives_whole_and_can_be_cut(client: Any, encoding: str) -> None:
    url = f"/replay/{DEMO}?encoding={encoding}&chunk=50"
    assert client.get(url).content == body_of(DEMO)
    with client.stream("GET", url + "&cut=0.5") as response:
        raw = b"".join(response.iter_raw())
    assert body_of(DEMO).startswith(zlib.decompressobj(47).decompress(raw))


def test_closed_reset_and_stalled_connections_are_errors_of_the_client(client: Any) -> None:
    for fault, error in (("close", httpx.RemoteProtocolError), ("reset", httpx.ReadError), ("stall", httpx.ReadTimeout)):
        got = bytearray()
        with pytest.raises(error), client.stream("GET", f"/replay/{DEMO}?{fault}=300", timeout=0.3 if fault == "stall" else 30) as response:
            for chunk in response.iter_raw():
                got += chunk
        assert got == body_of(DEMO)[:300]


def test_stall_goes_on_if_it_was_told_to(client: Any) -> None:
    assert client.get(f"/replay/{DEMO}?stall=300&resume=0.02").content == body_of(DEMO)


def test_log_says_how_each_request_ended(server: Running, client: Any) -> None:
    with client.stream("GET", "/replay/openai-chat/parallel.sse?chunk=1&delay=0.05") as response:
        next(response.iter_raw())
    served = wait_for(server, "/replay/openai-chat/parallel.sse")
    assert (served.recording, served.end) == ("openai-chat/parallel.sse", "left")
    assert 0 < served.sent < len(body_of("openai-chat/parallel.sse"))
    client.get("/replay/openai-chat/end_tool_calls.sse")
    served = wait_for(server, "/replay/openai-chat/end_tool_calls.sse")
    assert (served.sent, served.end) == (len(body_of("openai-chat/end_tool_calls.sse")), "whole")


def test_block_ends_although_a_body_stalls() -> None:
    with running(FIXTURES) as server, httpx.Client() as client, client.stream("GET", f"{server.url}/replay/{DEMO}?stall=10") as response:
        assert next(response.iter_raw()) == body_of(DEMO)[:10]
        began = server
    assert began.log[-1].end == "stall"


# -- turns through real clients --------------------------------------------------------------------------------------------

FAULTY = {
    "chunk": {"chunk": "3"},
    "type": {"type": "text/html", "chunk": "random:1"},
    "gzip": {"encoding": "gzip", "chunk": "40"},
    "cut": {"cut": "-20"},
    "close": {"close": "-9"},
    "reset": {"reset": "0.6"},
    "stall": {"stall": "0.7"},
    "gzip close": {"encoding": "gzip", "close": "0.7"},
    "status": {"status": "500"},
    "error": {"error": "3"},
    "error, more": {"error": "3", "more": "1"},
}
PLAYED = ("openai-chat/parallel.sse", "openai-responses/demo.sse", "anthropic/parallel.sse", "google-generate/demo_streamed.sse", "bedrock/demo.bin")


def ask(server: Running, name: str, kind: str) -> Asked:
    ref = reference(name)
    query = "&".join(f"{k}={v}" for k, v in FAULTY[kind].items())
    return Asked(f"{server.url}/replay/{name}?{query}", ref.provider, ref.framing, timeout=0.5 if kind == "stall" else 30.0, driver_timeout=True)


# Closing httpx's outermost generator leaves the inner ones to the collector, and trio says so; the response is closed by itself.
@pytest.mark.filterwarnings("ignore:Async generator .http(x|core):ResourceWarning")
@pytest.mark.parametrize("client_name", installed())
def test_faulty_turn_releases_only_what_the_whole_recording_does(server: Running, client_name: str) -> None:
    cases = [(name, kind) for name in PLAYED for kind in FAULTY if kind != "stall" or client_name not in SYNC or name == PLAYED[0]]
    turns = get(client_name, [ask(server, name, kind) for name, kind in cases])
    whole = 0
    for (name, kind), turned in zip(cases, turns, strict=True):
        verdict = judge(reference(name), kind, turned, frame=3)
        assert verdict.bad == [], (name, kind)
        whole += verdict.released
        if kind in ("close", "reset", "stall", "gzip close"):
            assert isinstance(turned, Turned)
            assert turned.result is not None
            assert turned.result.truncated, (name, kind)
            assert isinstance(turned.result.error, Exception)
    assert whole >= len(PLAYED) * 3  # chunk, type, gzip


# -- the command -----------------------------------------------------------------------------------------------------------


def test_command_prints_its_address_and_serves() -> None:
    command = [sys.executable, "-u", "-m", "toolwire", "serve", str(FIXTURES), "--faults", "chunk=100&cut=250"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("serving ")
            url = line.split()[-1]
            assert httpx.get(f"{url}/replay/{DEMO}").content == body_of(DEMO)[:250]
            assert httpx.get(f"{url}/replay/{DEMO}?cut=7").content == body_of(DEMO)[:7]
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=30)
    assert errors.splitlines()[0] == f"/replay/{DEMO} {DEMO} no faults: 250 bytes, cut"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere is no folder"),
        ([str(FIXTURES), "--faults", "x=1"], "--faults: there is no fault 'x'"),
        ([str(FIXTURES), "--port", "70000"], "is no port"),
    ],
)
def test_command_says_what_is_wrong_in_one_line(arguments: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "toolwire", "serve", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
