"""The command line: lines, verdicts and exit statuses, and that nothing from a stream reaches a terminal as it came."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolwire import cli
from toolwire.cli import replay
from toolwire.cli.shown import shown
from toolwire.cli.view import View

CHAT = Path(__file__).resolve().parents[1] / "fixtures" / "openai-chat"
DEMO = str(CHAT / "demo.sse")
CUT = str(CHAT / "cut_mid_frame.sse")


def chat(delta: dict[str, Any], finish: str | None = None) -> str:
    body = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def call(name: str, *pieces: str, index: int = 0) -> str:
    start = chat({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}]})
    return start + "".join(chat({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces)


END = chat({}, "tool_calls") + "data: [DONE]\n\n"


@pytest.fixture
def body(tmp_path: Path) -> Any:
    def write(text: str | bytes, name: str = "body.sse") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return write


class Run:
    """One run of the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *argv: str) -> None:
        self.status = cli.main(["replay", *argv])
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda *argv: Run(capsys, *argv)


def one_line(run: Run) -> str:
    """Wrong input is said in one line on standard error, without a traceback, with status 2."""
    assert run.status == 2
    assert run.err.endswith("\n")
    assert run.err.count("\n") == 1
    assert run.err.startswith("toolwire")
    return run.err


# -- JSON lines ------------------------------------------------------------------------------------------------------------


def test_json_lines_of_a_call_that_may_run(run: Any, body: Any):
    r = run("--json", body(chat({"content": "On it. é\u202e"}) + call("hoist", '{"mast":', '"fore"}') + END))
    assert (r.status, r.err) == (0, "")
    assert r.out.isascii()
    assert r.lines == [
        {"event": "text_delta", "text": "On it. é\u202e", "channel": "text", "choice": 0},
        {"event": "call_start", "call": "0.0", "id": "call_0", "name": "hoist", "kind": "json", "runs_on": "client"},
        {"event": "arguments_delta", "call": "0.0", "text": '{"mast":'},
        {"event": "arguments_delta", "call": "0.0", "text": '"fore"}'},
        {
            "result": {
                "provider": "openai-chat",
                "outcome": "TOOL_CALLS",
                "reason": "tool_calls",
                "truncated": False,
                "text": "On it. é\u202e",
                "error": None,
                "marks": [],
                "calls": [{"id": "call_0", "name": "hoist", "text": '{"mast":"fore"}', "arguments": {"mast": "fore"}, "complete": True, "marks": []}],
            },
            "gate": {"action": "run", "reason": "ended", "runnable": [{"id": "call_0", "name": "hoist", "arguments": {"mast": "fore"}}], "refused": []},
        },
    ]


def test_json_lines_of_a_cut(run: Any, body: Any):
    r = run("--json", "--provider", "openai-chat", body(call("hoist", '{"mast":"fo') + call("lower", index=1)))
    assert r.status == 3
    last = r.lines[-1]
    size = len(call("hoist", '{"mast":"fo') + call("lower", index=1))
    assert last["result"]["error"] == {"type": "TurnTruncated", "code": "turn.cut", "message": "the body ended before the provider ended the turn"}
    assert (last["result"]["outcome"], last["result"]["reason"], last["result"]["truncated"]) == ("CUT", None, True)
    assert [(c["arguments"], c["complete"]) for c in last["result"]["calls"]] == [({"mast": "fo"}, False), (None, False)]
    assert (last["gate"]["action"], last["gate"]["reason"], last["gate"]["runnable"]) == ("refuse", "turn_not_ended", [])
    refused = last["gate"]["refused"]
    assert [(c["id"], c["name"], c["reasons"]) for c in refused] == [
        ("call_0", "hoist", ["turn_not_ended", "args_incomplete"]),
        ("call_1", "lower", ["turn_not_ended", "args_incomplete"]),
    ]
    assert f"turn.cut at byte {size}" in refused[0]["detail"]


def test_json_lines_of_the_other_events(run: Any):
    lines = run("--json", DEMO).lines
    assert [line["event"] for line in lines[:-1]] == ["call_start", "arguments_delta", "arguments_delta", "usage"]
    assert lines[3]["usage"]["total_tokens"] == 79
    lines = run("--json", str(CHAT.parent / "anthropic" / "demo.sse")).lines
    assert {"event": "call_end", "call": lines[[x.get("event") for x in lines].index("call_start")]["call"]} in lines


def test_json_line_of_an_unknown_frame(run: Any, body: Any):
    start = 'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{}}}\n\n'
    r = run("--json", body(start + 'event: sail\ndata: {"type":"sail"}\n\n'))
    assert {"event": "unknown_frame", "frame": "sail", "offset": len(start)} in r.lines


def test_json_error_of_the_provider_has_its_own_type_and_code(run: Any):
    r = run("--json", str(CHAT / "error_event.sse"))
    assert r.status == 3
    assert r.lines[-1]["result"]["error"] == {
        "type": "server_error",
        "code": "internal_error",
        "message": "The server had an error while processing your request.",
    }
    assert r.lines[-1]["result"]["outcome"] == "ERROR"


def test_json_error_of_wrong_bytes_within_a_stream(run: Any, body: Any):
    r = run("--json", body(call("hoist", "{}") + "data: {nul}\n\n" + END))
    assert r.status == 3
    error = r.lines[-1]["result"]["error"]
    assert (error["type"], error["code"]) == ("MalformedJSON", "json.unexpected_byte")
    assert r.lines[-1]["gate"]["runnable"] == []


def test_json_marks_are_their_names(run: Any, body: Any):
    result = run("--json", body(call("hoist", '{"a":1,"a":2}') + chat({}, "stop"))).lines[-1]["result"]
    assert result["marks"] == ["no_done_marker", "finish_stop_with_calls"]
    assert result["calls"][0]["marks"] == ["duplicate_key"]


def test_number_beyond_a_double_stays_json(run: Any, body: Any):
    r = run("--json", body(call("hoist", '{"n":[1e999,-1e999,"a"],"m":null}') + END))

    def constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    last = json.loads(r.out.splitlines()[-1], parse_constant=constant)
    assert last["gate"]["runnable"][0]["arguments"] == {"n": [float("inf"), float("-inf"), "a"], "m": None}
    assert '"n": [1e999, -1e999, "a"]' in r.out


@pytest.mark.parametrize("cut", ["1", "7", "whole", "random:1", "random:storm"])
@pytest.mark.parametrize("name", ["parallel", "text_and_reasoning", "error_event", "cut_mid_utf8"])
def test_lines_do_not_depend_on_the_cut(run: Any, name: str, cut: str):
    path = str(CHAT / f"{name}.sse")
    assert run("--json", "--chunk", cut, path).out == run("--json", path).out


def test_framing_message_takes_each_line_as_a_message(run: Any, body: Any):
    messages = re.sub(r"^data: ", "", (call("hoist", "{}") + END).replace("\n\n", "\n"), flags=re.M)
    r = run("--json", "--framing", "message", "--chunk", "3", "--provider", "openai-chat", body(messages))
    assert (r.status, r.lines[-1]["gate"]["action"]) == (0, "run")


def test_whole_files_are_turns_of_their_own(run: Any):
    r = run("--json", DEMO, DEMO, CUT)
    # The second is no repetition of the first, as it would be in one conversation.
    assert [line["gate"]["action"] for line in r.lines if "gate" in line] == ["run", "run", "refuse"]
    assert r.status == 3


# -- exit status and wrong input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "verdict"),
    [
        ("demo", 0, "gate: run"),
        ("end_stop_text", 0, "gate: nothing to run"),
        ("parallel_one_invalid", 0, "gate: run"),
        ("end_length", 3, "gate: refuse"),
        ("cut_complete_call", 3, "gate: refuse"),
        ("error_first", 3, "gate: refuse"),
        ("error_body", 3, "gate: refuse"),
    ],
)
def test_status_and_verdict(run: Any, name: str, status: int, verdict: str):
    r = run(str(CHAT / f"{name}.sse"))
    assert (r.status, r.err) == (status, "")
    assert [line for line in r.out.splitlines() if line.startswith("gate: ")] == [verdict]
    assert run("--json", str(CHAT / f"{name}.sse")).status == status


def test_file_that_is_missing_is_said_and_the_others_are_shown(run: Any, tmp_path: Path):
    r = run("--json", str(tmp_path / "no\x1b[31m.sse"), DEMO)
    assert "no\\x1b[31m.sse: No such file or directory" in one_line(r)
    assert r.lines[-1]["gate"]["action"] == "run"


def test_refused_outranks_unreadable(run: Any, tmp_path: Path):
    r = run(str(tmp_path / "no.sse"), CUT)
    assert r.status == 3
    assert r.err.count("\n") == 1


def test_directory_can_not_be_read(run: Any, tmp_path: Path):
    assert f"{tmp_path}: " in one_line(run(str(tmp_path)))


@pytest.mark.parametrize("text", ["hello\n", "<html><body>502</body></html>", b"\x89PNG\r\n\x1a\n\x00\x00", '{"a":1}', "data: x\n\n"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_is_no_event_stream_is_said_in_one_line(run: Any, body: Any, text: Any, options: list[str]):
    r = run(*options, body(text))
    assert re.search(r"no event stream and no JSON|none of the known protocols", one_line(r))
    assert "gate" not in r.out


def test_empty_body_is_a_cut(run: Any, body: Any):
    r = run("--json", body(""))
    assert r.status == 3
    assert r.lines[-1]["result"]["error"]["code"] == "turn.empty"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--provider", "cohera\x1b[1m", "x"], r"argument --provider: invalid choice: 'cohera\\x1b\[1m'.* \(choose from"),
        (["--framing", "xml", "x"], "argument --framing: invalid choice: 'xml'"),
        (["--chunk", "0", "x"], "'0' is no way to cut: use whole, a number of bytes, or random:SEED"),
        (["--chunk", "²", "x"], "is no way to cut"),
        (["--chunk", "random:", "x"], "is no way to cut"),
        (["--speed", "0", "x"], "'0' is no number above 0"),
        (["--speed", "inf", "x"], "'inf' is no number above 0"),
        (["--speed", "fast", "x"], "'fast' is no number above 0"),
        ([], "the following arguments are required: FILE"),
        (["-", "-"], "standard input can be read once"),
        (["--tools", "/nowhere/tools.json", "x"], "--tools /nowhere/tools.json: No such file or directory"),
    ],
)
def test_wrong_command_line_is_said_in_one_line(run: Any, argv: list[str], message: str):
    assert re.search(message, one_line(run(*argv)))


def test_no_command_and_unknown_command(capsys: pytest.CaptureFixture[str]):
    assert cli.main([]) == 2
    assert "required: COMMAND" in capsys.readouterr().err
    assert cli.main(["play"]) == 2
    assert "invalid choice: 'play'" in capsys.readouterr().err


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["replay", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--chunk HOW" in out
    assert "10,000 bytes a second" in out


# -- tools -----------------------------------------------------------------------------------------------------------------


def test_tools_decide_about_names_and_shapes(run: Any, body: Any):
    pytest.importorskip("jsonschema_rs")
    tools = body(json.dumps({"hoist": {"type": "object", "required": ["mast"]}, "any": None, "yes": True}), "tools.json")
    path = body(call("hoist", "{}") + call("lower", "{}", index=1) + call("any", '{"x":1}', index=2) + END)
    gate = run("--json", "--tools", tools, path).lines[-1]["gate"]
    assert [c["name"] for c in gate["runnable"]] == ["any"]
    assert [(c["name"], c["reasons"]) for c in gate["refused"]] == [("hoist", ["args_schema"]), ("lower", ["unknown_tool"])]
    assert "mast" in gate["refused"][0]["detail"]
    out = run("--tools", tools, path).out
    assert "the arguments have not the shape that the tool allows (args_schema)" in out
    assert "no tool of this name was given to the gate (unknown_tool): 'lower'" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"no JSON \(.*\); give one object, such as"),
        (b"\xff", r"no JSON \(.*\); give one object"),
        ("[" * 100_000, "no JSON"),
        ("[]", "not an object of tool name to JSON Schema; give one object"),
        ('{"a":5}', "the schema of 'a' is no object; give one object"),
        ('{"a":"int"}', "the schema of 'a' is no object"),
        ('{"":{}}', "tools: '' is no tool name"),
        ('{"a":{"type":"objekt"}}', r"tools\['a'\] is no JSON Schema"),
    ],
)
def test_tools_file_that_is_none_is_said_in_one_line(run: Any, body: Any, text: Any, message: str):
    if "objekt" in str(text):
        pytest.importorskip("jsonschema_rs")
    path = body(text, "tools.json")
    line = one_line(run("--tools", path, DEMO))
    assert f"--tools {path}: " in line
    assert re.search(message, line)


# -- the view --------------------------------------------------------------------------------------------------------------


def test_view_without_a_terminal(run: Any, body: Any):
    path = body(chat({"content": "On\nit."}) + call("hoist", '{"mast":', '"fore"}') + call("lower", '{"a":}', index=1) + END)
    r = run(path)
    assert r.status == 0
    assert (
        r.out
        == f"""== {path}
text: On
  | it.
preparing hoist [0.0] ...
preparing lower [0.1] ...
draft of hoist [0.0]: {{"mast":"fore"}}
draft of lower [0.1]: {{"a":}}
openai-chat gave the reason "tool_calls": outcome TOOL_CALLS
gate: run
  may run hoist [0.0] {{"mast": "fore"}}
  refused lower [0.1]
    the argument text is no JSON, or it hit a limit (depth, size) (args_invalid_json): json.unexpected_byte at byte 5, path $.a: '}}' can not stand here
"""
    )


def test_view_of_a_cut_says_nothing_that_sounds_like_run(run: Any):
    r = run(CUT)
    assert r.status == 3
    assert "the body stopped before the provider ended the turn" in r.out
    assert "error TurnTruncated turn.cut: the body ended before the provider ended the turn" in r.out
    assert "    the argument text, or the block that holds it, was never finished (args_incomplete)" in r.out
    assert "may run" not in r.out
    assert "gate: run" not in r.out


def test_view_of_a_refused_turn_without_calls_gives_the_turns_reason(run: Any, body: Any):
    out = run(body(chat({"content": "Lo"}) + chat({}, "length") + "data: [DONE]\n\n")).out
    assert 'gave the reason "length": outcome LENGTH' in out
    assert "gate: refuse\n  the turn ended, but short: a length limit was hit (turn_truncated)\n    the provider's reason is 'length'\n" in out


def test_view_explains_marks(run: Any, body: Any):
    out = run(body(call("hoist", '{"a":1,"a":2}') + chat({}, "stop"))).out
    assert "marks: no_done_marker: every choice has a finish reason, but [DONE] never came" in out
    assert "marks of hoist [0.0]: duplicate_key: an object holds the same key twice; the last one counts" in out


def test_view_clips_long_arguments_and_says_how_long_they_are(run: Any, body: Any):
    text = json.dumps({"body": "x" * 5000})
    out = run(body(call("write", text[:2000], text[2000:]) + END)).out
    assert out.count(f" ... ({len(text)} characters in all)") == 2
    assert max(map(len, out.splitlines())) < 1200


EVIL = "\x1b[2J\x1b]0;title\x07[bold red]x[/] \u202egate\u202c\u2066\u200b\r\x9b1m\x00\ud7ff\ue000\u2028"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ue000]")


def evil_body() -> str:
    return (
        chat({"content": f"hi{EVIL}\ngate: run\n  may run rm\n"})
        + chat({"reasoning_content": EVIL})
        + call(f"rm{EVIL}", '{"p":"[green]', f'\\u001b{EVIL}"}}')
        + chat({"refusal": EVIL})
        + chat({}, f"tool_calls{EVIL}")
        + "data: [DONE]\n\n"
    )


def test_view_shows_controls_as_escapes(run: Any, body: Any):
    r = run("--provider", "openai-chat", body(evil_body()))
    assert r.status == 3
    assert not CONTROLS.search(r.out)
    assert "text: hi\\x1b[2J\\x1b]0;title\\x07[bold red]x[/] \\u202egate\\u202c\\u2066\\u200b\\r\\x9b1m\\x00" in r.out
    # What the model wrote can not pose as a verdict.
    assert [line for line in r.out.splitlines() if line.startswith(("gate", "  may"))] == ["gate: refuse"]
    assert "  | gate: run\n  |   may run rm\n" in r.out


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *argv: str, encoding: str = "utf-8") -> tuple[int, str]:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "12")
    monkeypatch.setattr("toolwire.cli.view._REDRAW", 0.0)
    out = Terminal()
    out.encoding = encoding  # type: ignore[misc]
    monkeypatch.setattr(sys, "stdout", out)
    try:
        status = cli.main(["replay", *argv])
    finally:
        monkeypatch.undo()
    return status, out.getvalue()


#: What rich and the view write themselves: colours, the cursor, line wrapping.
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|\?7[lh]|[0-9]*[AGK]|2K|1A)")


@pytest.mark.parametrize("columns", [20, 40, 100])
def test_terminal_gets_no_control_of_the_stream_and_no_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch, body: Any, columns: int):
    from rich.cells import cell_len

    status, out = on_terminal(monkeypatch, columns, "--chunk", "100", "--provider", "openai-chat", body(evil_body(), "b"))
    assert status == 3
    rest = OURS.sub("", out).replace("\r", "\n")  # a redraw goes back to the start of its line
    assert not CONTROLS.search(rest)
    assert max(cell_len(line) for line in rest.split("\n")) <= columns
    assert "[bold" in rest
    assert not [line for line in rest.split("\n") if line.startswith(("gate: run", "  may run"))]


def test_terminal_shows_drafts_while_they_grow_and_then_the_verdict(monkeypatch: pytest.MonkeyPatch):
    status, out = on_terminal(monkeypatch, 80, "--chunk", "1", str(CHAT / "parallel.sse"))
    assert status == 0
    sketches, _, end = out.rpartition("\x1b[?7h")
    assert "preparing lookup_demo_value [0.2] ... " in sketches
    assert "may run" not in sketches
    assert "\x1b[1;32mgate: run\x1b[0m" in end
    assert end.count("\x1b[1;32m  may run lookup_demo_value") == 3
    assert "preparing" not in end
    assert out.count("\x1b[?7l") == out.count("\x1b[?7h")
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h")


def test_terminal_is_left_as_it_was_after_an_interrupt(monkeypatch: pytest.MonkeyPatch):
    shows = View.show

    def show(self: View, event: Any) -> None:
        shows(self, event)
        if type(event).__name__ == "ArgumentsDelta":
            raise KeyboardInterrupt

    monkeypatch.setattr(View, "show", show)
    status, out = on_terminal(monkeypatch, 80, DEMO)
    assert status == 130
    assert out.endswith("\x1b[?7h")
    assert "gate" not in out


def test_many_calls_keep_within_the_height_of_the_terminal(monkeypatch: pytest.MonkeyPatch, body: Any):
    text = "".join(call(f"t{n}", '{"a":', index=n) for n in range(40))
    status, out = on_terminal(monkeypatch, 80, body(text))
    assert status == 3
    heights = [frame.count("\n") for frame in out.split("\x1b[2K") if "preparing" in frame]
    assert max(heights) <= 12
    assert "preparing t39" in out


def test_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch, run: Any):
    plain = run(DEMO).out
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["replay", DEMO]) == 0
    assert out.getvalue() == plain


@pytest.mark.parametrize("columns", [40])
def test_output_that_is_ascii_gets_escapes(monkeypatch: pytest.MonkeyPatch, columns: int):
    _, out = on_terminal(monkeypatch, columns, "--chunk", "7", str(CHAT / "text_and_reasoning.sse"), encoding="ascii")
    assert out.isascii()
    assert "\\u" in out


def test_without_rich_the_view_says_what_to_install_and_json_works(run: Any, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert 'pip install "toolwire[cli]"' in one_line(run(DEMO))
    assert run("--json", DEMO).status == 0


def test_speed_pauses_between_chunks(run: Any, body: Any, monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr(replay.time, "sleep", pauses.append)
    text = call("hoist", "{}") + END
    assert run("--speed", "2", "--chunk", "100", body(text)).status == 0
    sizes = [min(100, len(text) - start) for start in range(100, len(text), 100)]
    assert pauses == [size / 20_000 for size in sizes]


def test_interrupt_ends_quietly(run: Any, monkeypatch: pytest.MonkeyPatch):
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay.time, "sleep", sleep)
    r = run("--json", "--speed", "1", "--chunk", "100", DEMO)
    assert (r.status, r.err) == (130, "")
    assert "gate" not in r.out


def test_output_that_can_not_be_written_is_said(run: Any, monkeypatch: pytest.MonkeyPatch):
    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replay, "_write", full)
    assert one_line(run("--json", DEMO)) == "toolwire: can not write: No space left on device\n"


# -- as a process ----------------------------------------------------------------------------------------------------------


def process(*argv: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "toolwire", "replay", *argv], capture_output=True, timeout=60, **options)


def test_module_reads_standard_input():
    done = process("--json", "-", input=Path(DEMO).read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.splitlines()[-1])["gate"]["action"] == "run"
    done = process("-", input=Path(CUT).read_bytes())
    assert (done.returncode, done.stderr) == (3, b"")
    assert done.stdout.startswith(b"== standard input\n")
    assert b"\x1b" not in done.stdout
    done = process("--chunk", "3", "-", input=b"hello")
    assert (done.returncode, done.stderr) == (2, b"toolwire: standard input: the body is no event stream and no JSON; it starts with b'hello'\n")


def test_lines_come_while_standard_input_is_still_open():
    text = (call("hoist", "{}") + END).encode()
    argv = [sys.executable, "-m", "toolwire", "replay", "--json", "-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        half = text.index(b"\n\n") + 2
        running.stdin.write(text[:half])
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["event"] == "call_start"
        running.stdin.write(text[half:])
        running.stdin.close()
        assert json.loads(running.stdout.read().splitlines()[-1])["gate"]["action"] == "run"
    assert running.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
def test_reader_that_has_gone_ends_it_quietly(body: Any):
    path = body("".join(call(f"t{n}", *['"x"'] * 200, index=n) for n in range(20)))
    argv = [sys.executable, "-m", "toolwire", "replay", "--json", path]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        errors = running.stderr.read()
    assert (running.returncode, errors) == (130, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of Unix")
@pytest.mark.parametrize(
    ("argv", "out", "errors"),
    [
        ("--json - <&-", b"", b"toolwire: standard input: Bad file descriptor\n"),
        ("--json - 0>/dev/null", b"", b"toolwire: standard input: Bad file descriptor\n"),
        ("--json --chunk 5 - 0>/dev/null", b"", b"toolwire: standard input: Bad file descriptor\n"),
        (f"--json '{DEMO}' >&-", b"", b"toolwire: can not write: Bad file descriptor\n"),
        (f"'{DEMO}' >&-", b"", b"toolwire: can not write: Bad file descriptor\n"),
        ("nothing 2>&-", b"", b""),
    ],
)
def test_streams_that_are_closed_or_no_streams(argv: str, out: bytes, errors: bytes):
    done = subprocess.run(f"'{sys.executable}' -m toolwire replay {argv}", shell=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, out, errors)


def test_file_with_a_name_that_is_no_text(tmp_path: Path):
    done = process("--json", os.fsdecode(os.fsencode(tmp_path) + b"/\xff.sse"))
    assert done.returncode == 2
    assert done.stderr.decode().endswith("\\udcff.sse: No such file or directory\n")


# -- shown -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain é 少 🧭", "plain é 少 🧭"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[0m\x7f\x9b\u0085", "\\x1b[0m\\x7f\\x9b\\x85"),
        ("\u200b\u202e\u2066\ufeff\u2028", "\\u200b\\u202e\\u2066\\ufeff\\u2028"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("\u00a0\u3000", "\u00a0\u3000"),
        ("[red]", "[red]"),
    ],
)
def test_shown(text: str, result: str):
    assert shown(text) == result


def test_shown_keeps_lines_where_they_are_wanted_and_fits_the_encoding():
    assert shown("a\n\tb\r\n", lines=True) == "a\n    b\\r\n"
    assert shown("é\n", encoding="ascii") == "\\xe9\\n"
