"""The official SDKs as judges: on good streams they report the calls that ``Turn`` reports; what else they say is written down.

``DIFFERENCES`` lists every good stream on which an SDK says something else. ``sdk_bad_streams.json`` has what each SDK made of every
stream that a gate refuses. docs/judges.md says who is right. ``python tests/test_sdk_judges.py`` writes the record anew.
"""

from __future__ import annotations

import json
import tomllib
import warnings
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, load, name
from sdk_readers import JUDGE_OF, JUDGES, Call, bedrock_events

RECORD = Path(__file__).with_name("sdk_bad_streams.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "judges.md"


class Difference(NamedTuple):
    judge: str
    says: str  # "raises ...", "no calls" or "other calls"
    right: str
    why: str
    fixtures: tuple[str, ...]


DIFFERENCES = (
    Difference(
        "openai, chat",
        "raises AttributeError",
        "Turn",
        "`.stream()` knows function calls only; a custom tool's input is documented",
        ("openai-chat/custom_tool",),
    ),
    Difference(
        "openai, chat",
        "other calls",
        "Turn",
        "a surrogate pair cut in two by a delta: the halves never meet again in joined strings, the text can not be encoded",
        ("openai-chat/file_body",),
    ),
    Difference(
        "openai, chat",
        "raises TypeError",
        "Turn",
        "calls are a list by `index`; where it is missing or null, the ids still say whose text it is",
        ("quirks/01_index_missing", "quirks/01_index_missing_one_open", "quirks/01_index_null_by_id"),
    ),
    Difference(
        "openai, chat",
        "other calls",
        "Turn",
        "one index for all: the SDK joins two calls into one, ids, names and arguments alike; another id is another call",
        ("quirks/02_index_zero_for_all",),
    ),
    Difference(
        "openai, chat",
        "raises IndexError",
        "Turn",
        "a list that must begin at index 0 and have no gaps; an index is a key",
        ("quirks/03_index_from_three", "quirks/22_entry_without_function"),
    ),
    Difference("openai, chat", "other calls", "Turn", 'the id `"null"` is taken for an id', ("quirks/04_ids_blank",)),
    Difference(
        "openai, chat",
        "other calls",
        "Turn",
        "ids and names are joined like text: `call_qacall_qa`; a result sent back under that id has no call",
        ("quirks/05_id_repeated", "quirks/06_new_id_per_fragment", "quirks/07_sent_again", "quirks/08_name_repeated", "quirks/10_name_blank"),
    ),
    Difference(
        "openai, chat",
        "other calls",
        "Turn",
        "two calls under one id: their results could not be told apart, so `Turn` makes up an id for the second",
        ("quirks/07_same_id_other_index",),
    ),
    Difference(
        "openai, chat",
        "other calls",
        "Turn",
        "pieces that repeat the text before them are joined to text that is no JSON",
        ("quirks/15_arguments_cumulative", "quirks/16_arguments_repeated"),
    ),
    Difference("openai, chat", "raises AttributeError", "Turn", "`delta` null beside a finish reason says nothing else", ("quirks/26_delta_null",)),
    Difference("openai, chat", "raises KeyError", "Turn", "`choices` null, and payloads that are no object, say nothing", ("quirks/27_choices_null",)),
    Difference(
        "openai, chat",
        "raises AssertionError",
        "Turn",
        "no streamed chunk came, but a whole completion, which holds the same call",
        ("quirks/41_completion_body", "quirks/42_whole_completion"),
    ),
    Difference(
        "openai, chat",
        "raises JSONDecodeError",
        "Turn",
        "blocks without data (a lone `retry:`), and a keep-alive that a proxy sent as `data:`, are no chunks",
        ("quirks/48_noise",),
    ),
    Difference(
        "openai, chat",
        "raises JSONDecodeError",
        "both",
        "no blank lines: by the event-stream standard this is one event, as the SDK reads it; `Turn` knows that each line is whole JSON, and marks it",
        ("quirks/49_no_blank_lines",),
    ),
    Difference(
        "openai, responses",
        "raises RuntimeError",
        "both",
        "the standard drops a last event without blank line, as the SDK does; `Turn` counts it where the payload is whole, and marks it",
        ("openai-responses/end_completed_unterminated",),
    ),
    Difference(
        "openai, responses",
        "raises RuntimeError",
        "Turn",
        "gateways change an item's id on the way; `output_index` joins its events, and `call_id` is the same",
        ("openai-responses/ids_change",),
    ),
    Difference(
        "anthropic",
        "no calls",
        "Turn",
        "the SDK goes by the `event:` line; proxies lose it, and the payload's `type` says the same",
        ("anthropic/event_names_missing",),
    ),
    Difference(
        "anthropic",
        "raises UnicodeEncodeError",
        "Turn",
        "a surrogate pair cut in two by a delta: the halves are encoded one by one, which can not be done",
        ("anthropic/file_body",),
    ),
    Difference(
        "anthropic",
        "raises ValueError",
        "both",
        "one of two calls has invalid JSON: the SDK gives up the message, `Turn` reports both and the gate refuses that one",
        ("anthropic/parallel_one_invalid",),
    ),
    Difference(
        "google-genai, generate",
        "other calls",
        "Turn",
        "streamed arguments come out as they came, a piece a chunk (`partial_args`), the first with the name: nothing joins them",
        (
            "google-generate/demo_streamed",
            "google-generate/file_body_streamed",
            "google-generate/no_arguments_streamed",
            "google-generate/parallel_streamed",
            "google-generate/partial_args_nested",
        ),
    ),
    Difference(
        "google-genai, generate",
        "other calls",
        "Turn",
        "the same call with the same id, sent again with its signature, is handed out twice",
        ("google-generate/repeated_call",),
    ),
    Difference(
        "google-genai, interactions",
        "other calls",
        "Turn",
        "a surrogate pair cut in two by a delta, as with openai",
        ("google-interactions/file_body",),
    ),
    Difference(
        "google-genai, interactions",
        "no calls",
        "both",
        "the events' names before the API's revision: the SDK speaks the new ones only",
        ("google-interactions/old_names",),
    ),
    Difference(
        "google-genai, interactions",
        "other calls",
        "Turn",
        "`partial_arguments` in place of `arguments`: the SDK does not know it, and the call seems to have none",
        ("google-interactions/partial_arguments",),
    ),
    Difference(
        "google-genai, interactions",
        "other calls",
        "Turn",
        "events that are sent again, with the same `event_id`, are counted again",
        ("google-interactions/repeated_events",),
    ),
    Difference(
        "mistralai",
        "other calls",
        "Turn",
        "two whole calls, both with index 0, which is the SDK's default: joined by index they are one; another id is another call",
        ("mistral/index_zero_for_all",),
    ),
    Difference("ollama", "other calls", "Turn", "the SDK's type has no `id`, although newer servers send one", ("ollama/ids",)),
)
LISTED = {fixture: row for row in DIFFERENCES for fixture in row.fixtures}

KINDS = {
    "stops early": ("turn_not_ended",),
    "length": ("turn_truncated",),
    "other ends": ("turn_filtered", "turn_refused", "turn_paused", "turn_continues", "turn_unknown", "turn_not_for_tools", "aborted"),
    "error": ("turn_error",),
    "doubtful calls": ("args_", "orphan_arguments", "no_name", "unknown_tool"),
}


def judge_of(path: Path) -> str | None:
    expect = load(path)[0]
    if path.name.startswith("conversation_"):
        return "mistralai, conversations"
    return JUDGE_OF.get((expect["provider"], expect["framing"]))


def is_good(path: Path) -> bool:
    return bool(load(path)[0]["gate"]["action"] != "refuse")


JUDGED = [path for path in FIXTURES if judge_of(path)]
GOOD = [path for path in JUDGED if is_good(path)]
BAD = [path for path in JUDGED if not is_good(path)]


def parsed(arguments: Any) -> Any:
    """What a program gets of the arguments: no text and none at all are {}, text that is no JSON stays text."""
    try:
        return json.loads(arguments or "{}") if arguments is None or isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def reported(path: Path) -> list[Call]:
    """The client's calls by ``Turn``, without the ids that it makes up."""
    expect, body = load(path)
    turn = tw.Turn(expect["provider"], framing=expect["framing"])
    turn.feed(body)
    calls = [call for call in turn.finish().calls if call.runs_on == "client"]
    return [Call(None if call.id_is_synthetic else call.id, call.name, call.text if call.kind == "text" else parsed(call.text)) for call in calls]


def judged(path: Path) -> list[Call] | str:
    """The calls by the SDK, or the exception that it raised."""
    judge = judge_of(path)
    assert judge is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an SDK grumbles about and reads all the same
            calls = JUDGES[judge].read(load(path)[1])
    except Exception as error:  # each SDK has its own, and some fail in their own code
        return f"raises {type(error).__name__}"
    return [Call(call.id or None, call.name, parsed(call.arguments)) for call in calls]


def verdict(path: Path) -> str:
    """Of a bad stream: does a program that trusts this SDK hold a call that it could run?"""
    calls = judged(path)
    if isinstance(calls, str):
        return calls
    if any(isinstance(call.arguments, dict) and call.name for call in calls):
        return "hands out"
    return "not whole" if calls else "nothing"


def installed(judge: str) -> dict[str, str]:
    try:
        return {package: version(package) for package in JUDGES[judge].packages.split()}
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


def needs_recorded_version(judge: str) -> None:
    """Another version may say something else, and be right."""
    known = json.loads(RECORD.read_text("utf-8"))["versions"]
    for package, found in installed(judge).items():
        if found != known[package]:
            pytest.skip(f"the record is of {package} {known[package]}, here is {found}")


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_an_sdk_reports_the_same_calls_of_a_good_stream(path: Path) -> None:
    judge = str(judge_of(path))
    installed(judge)
    if (row := LISTED.get(name(path))) is None:
        assert judged(path) == reported(path)
        return
    needs_recorded_version(judge)
    theirs = judged(path)
    assert theirs != reported(path)
    assert (theirs if isinstance(theirs, str) else "other calls" if theirs else "no calls") == row.says
    assert judge == row.judge


@pytest.mark.parametrize("path", BAD, ids=name)
def test_the_record_of_bad_streams_holds(path: Path) -> None:
    needs_recorded_version(str(judge_of(path)))
    assert verdict(path) == json.loads(RECORD.read_text("utf-8"))["verdicts"][name(path)]


@pytest.mark.parametrize("path", [path for path in FIXTURES if path.name.startswith("decoded_") and is_good(path)], ids=name)
def test_events_that_botocore_has_decoded_give_the_same_calls(path: Path) -> None:
    """Of the same stream in binary messages, whose ids are others."""
    installed("botocore")
    binary = path.with_name(path.name.removeprefix("decoded_"))
    turn = tw.Turn("bedrock", framing="message")
    for event in bedrock_events(load(binary)[1]):
        turn.feed(json.dumps(event).encode())
    calls = [Call(None if call.id_is_synthetic else call.id, call.name, parsed(call.text)) for call in turn.finish().calls if call.runs_on == "client"]
    assert calls == reported(binary)
    assert [call.arguments for call in calls] == [call.arguments for call in reported(path)]


def kind_of(path: Path) -> str:
    reason = load(path)[0]["gate"]["reason"]
    return next(kind for kind, reasons in KINDS.items() if reason.startswith(reasons))


def page_rows() -> list[str]:
    """The rows of the page's tables, from the record and from ``DIFFERENCES``."""
    record = json.loads(RECORD.read_text("utf-8"))
    rows = []
    for judge in JUDGES:
        versions = ", ".join(record["versions"][package] for package in JUDGES[judge].packages.split())
        good = [name(path) for path in GOOD if judge_of(path) == judge]
        differing = sum(fixture in LISTED for fixture in good)
        rows.append(f"| {judge} | {versions} | {len(good)} | {len(good) - differing} | {differing} |")
    for row in DIFFERENCES:
        rows.append(f"| {row.judge} | {', '.join(f'`{fixture}`' for fixture in row.fixtures)} | {row.says} | {row.right} | {row.why} |")
    for judge in JUDGES:
        cells = []
        for kind in KINDS:
            found = Counter(record["verdicts"][name(path)].partition(" ")[0] for path in BAD if judge_of(path) == judge and kind_of(path) == kind)
            words = {"hands": "hands out", "not": "not whole", "nothing": "nothing", "raises": "raises"}
            cells.append(", ".join(f"{words[word]} {found[word]}" for word in words if found[word]) or "-")
        rows.append(f"| {judge} | {' | '.join(cells)} |")
    return rows


def test_the_page_says_what_was_found() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    tables = [line for before, line in zip(lines, lines[1:], strict=False) if line.startswith("| ") and before.startswith("|")]
    assert tables == page_rows()


def test_the_extra_installs_what_was_recorded() -> None:
    pins = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["judges"]
    assert dict(pin.split("==") for pin in pins) == json.loads(RECORD.read_text("utf-8"))["versions"]


def test_the_tables_name_fixtures_that_exist() -> None:
    assert set(LISTED) <= {name(path) for path in GOOD}
    assert set(json.loads(RECORD.read_text("utf-8"))["verdicts"]) == {name(path) for path in BAD}


if __name__ == "__main__":
    versions = {package: version(package) for judge in JUDGES.values() for package in judge.packages.split()}
    RECORD.write_text(json.dumps({"versions": versions, "verdicts": {name(path): verdict(path) for path in BAD}}, indent=1) + "\n", "utf-8")
    print("\n".join(page_rows()))
    for path in GOOD:
        if (theirs := judged(path)) != (ours := reported(path)) and name(path) not in LISTED:
            print(judge_of(path), name(path), theirs if isinstance(theirs, str) else f"\n   T {str(ours)[:200]}\n   S {str(theirs)[:200]}")
