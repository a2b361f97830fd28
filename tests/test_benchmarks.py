"""The benchmarks' inputs, and that everyone who is timed gives the same answer. Nothing here looks at a clock."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import charts, instructions, shapes_json, suite, workloads  # noqa: E402
from benchmarks import native as native_module  # noqa: E402
from benchmarks.__main__ import chosen, summary  # noqa: E402
from benchmarks.shapes import SHAPES  # noqa: E402
from benchmarks.suite import Plan, Shape, Target  # noqa: E402

DOCUMENTS = [(kind, size) for kind in workloads.ROWS for size in (1000, 20_000)]
TEXTS = [workloads.small(), workloads.long_string(500), workloads.nested(700), workloads.objects(7)]


# -- workloads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "size"), DOCUMENTS)
def test_documents_are_valid_and_about_as_long_as_asked(kind: str, size: int) -> None:
    document = workloads.document(kind, size)
    assert isinstance(json.loads(document), list)
    assert size <= len(document) < size + 1500


def test_documents_are_what_their_names_say() -> None:
    assert max(workloads.document("ascii", 5000)) < 128
    assert all(len(repr(number)) >= 12 for row in json.loads(workloads.document("floats", 3000)) for number in row if number > 1e-3)
    for kind, low, high in (("cjk", 0x4E00, 0x5200), ("cyrillic", 0x430, 0x450)):
        content = json.loads(workloads.document(kind, 3000))[0]["content"].replace(" ", "")
        assert all(low <= ord(character) < high for character in content)
    assert workloads.document("escapes", 20_000).count(b"\\") > 20_000 / 40


def test_arguments_are_whole_json() -> None:
    for text in TEXTS:
        assert json.loads(text)
    assert 250 <= len(workloads.small().encode()) <= 350
    assert 95 <= len(workloads.objects(1000)) / 1000 <= 120


def test_deltas_and_chunks_join_to_the_whole() -> None:
    assert "".join(workloads.deltas(TEXTS[1], 4)) == TEXTS[1]
    assert b"".join(workloads.chunks(TEXTS[1].encode(), 7)) == TEXTS[1].encode()


@pytest.mark.parametrize(("provider", "body"), [("openai-chat", workloads.chat_body), ("anthropic", workloads.anthropic_body)])
def test_bodies_are_good_turns_with_these_arguments(provider: str, body: Any) -> None:
    turn = tw.Turn(provider)
    turn.feed(body(TEXTS))
    result = turn.finish()
    assert [call.text for call in result.calls] == TEXTS
    assert result.outcome is tw.Outcome.TOOL_CALLS


def test_events_are_of_the_size_their_shape_says() -> None:
    events = workloads.events(50)
    assert events.count(b"\n\n") == 50
    assert 320 <= len(events) / 50 <= 360
    for event in events.split(b"\n\n")[:-1]:
        assert json.loads(event.removeprefix(b"data: "))["choices"]


def test_an_unread_member_is_long() -> None:
    event = json.loads(workloads.image_event(10_000)[6:])
    assert len(event["choices"][0]["delta"]["image"]["b64_json"]) == 10_000


def test_workloads_are_the_same_in_another_process() -> None:
    script = (
        "from benchmarks import workloads as w; import hashlib; h = hashlib.sha256()\n"
        "for k in w.ROWS: h.update(w.document(k, 3000))\n"
        "for b in (w.chat_body([w.small()]), w.anthropic_body([w.nested(500)]), w.events(9), w.image_event(999), w.chat_event('x', logprobs=w.logprobs('x')),\n"
        "          w.objects(9).encode(), w.long_string(99).encode()): h.update(b)\n"
        "print(h.hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]


# -- contenders -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.direct is None])
def test_every_contender_gives_the_same_answer(name: str) -> None:
    shape = SHAPES[name]
    ready, out = suite.plans(shape, shape.data(True))
    wrong = {who: why for who, why in out.items() if not why.startswith("not installed")}
    assert wrong == {}
    if "toolwire" in out:
        pytest.skip(out["toolwire"])  # it works inside a library that is not here
    assert next(iter(shape.contenders)) in ready
    # Prepared runs do not depend on each other.
    for plan in ready.values():
        first, second = plan.prepare(), plan.prepare()
        assert first() == second()


def test_the_sampled_reader_sees_evenly_spread_lengths_and_the_end() -> None:
    pytest.importorskip("jiter")
    deltas = workloads.deltas(workloads.long_string(9000), 4)
    plan = shapes_json.jiter(deltas)
    assert shapes_json.SAMPLES <= plan.units <= 2 * shapes_json.SAMPLES
    assert plan.prepare()() == json.loads("".join(deltas))


# -- the harness ------------------------------------------------------------------------------------------------------


def shape(**contenders: Any) -> Shape:
    return Shape("one", "a measure", "µs", bool, contenders, (Target("peer", 2, 4),))


def test_a_missing_peer_and_a_wrong_one_are_named_and_the_rest_goes_on() -> None:
    def missing(data: bool) -> Plan:
        raise ImportError("no module")

    def failing(data: bool) -> Plan:
        raise RuntimeError("broken")

    one = shape(toolwire=lambda data: Plan(lambda: lambda: 1), peer=missing, other=lambda data: Plan(lambda: lambda: 2), third=failing)
    ready, out = suite.plans(one, False)
    assert list(ready) == ["toolwire"]
    assert out == {"peer": "not installed (no module)", "other": "gives another answer", "third": "failed: RuntimeError: broken"}
    result = suite.measure(one, quick=True)
    assert result["targets"][0]["ratio"] is None and result["targets"][0]["holds"] is None
    assert "not measured" in suite.report("one", result)
    assert "not installed" in suite.report("one", result)


def test_targets_compare_round_by_round() -> None:
    samples = {"toolwire": [1.0, 2.0, 4.0], "peer": [3.0, 6.0, 4.0]}
    faster = Target("peer", 2, 4)
    assert faster.ratio(samples) == 3.0
    assert faster.holds(3.0, 2) is True and faster.holds(3.0, 4) is False and faster.holds(None, 4) is None
    slower = Target("peer", 0.5, at_most=True)
    assert slower.ratio(samples) == 1 / 3
    assert slower.holds(1 / 3, 0.5) is True and slower.holds(0.6, 0.5) is False
    assert Target(None, 1500).ratio(samples) == 2.0


def test_the_table_of_targets_says_what_was_missed() -> None:
    targets = [
        {**Target("peer", 2, 4)._asdict(), "ratio": 3.0, "holds": True, "aim_holds": False},
        {**Target(None, 1500, 500, at_most=True)._asdict(), "ratio": 1600.0, "holds": False, "aim_holds": False},
    ]
    assert summary({"shape": {"one": {"targets": targets}}})[2:] == [
        "| one | peer | 3 | 2 | 4 | holds |",
        "| one | (absolute) | 1,600 | <= 1,500 | <= 500 | **missed** |",
    ]


def test_names_select_shapes_by_their_beginning() -> None:
    assert chosen(["live", "linear"])[0] == ("shape", "live 300 B")
    assert {kind for kind, _ in chosen(["linear"])} == {"linear"}
    assert len(chosen([])) > len(SHAPES)
    with pytest.raises(SystemExit, match="no shape is called nothing"):
        chosen(["nothing"])


def test_charts_are_well_formed(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    figures = {
        "growth": {"long string": {"toolwire": {1000: 0.1, 10_000: 0.1}, "jiter & co": {1000: 1.5, 10_000: 12.0}}},
        "shape": {name: {"median": {"toolwire": 0.2, "<peer>": 30.0}} for name in ("pipeline 300 B", "sdk openai", "framing")},
    }
    paths = charts.write(figures, tmp_path)
    assert [path.name for path in paths] == ["benchmark-growth.svg", "benchmark-pipeline.svg", "benchmark-framing.svg"]
    for path in paths:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert charts.write({}, tmp_path) == []


def test_floors_do_what_they_say() -> None:
    try:
        native = native_module.load()
    except ImportError as error:
        pytest.skip(str(error))
    assert native.newlines([b"a\nb\n", b"", b"\n\n", b"c"]) == 4
    assert native.Noop().feed("x") is None


# -- instruction counts -----------------------------------------------------------------------------------------------


def test_three_per_cent_more_instructions_are_a_regression() -> None:
    lines, worse = instructions.compare({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1.029, "b": 0.9, "d": 2.0})
    assert not worse
    assert [line.split()[-1] for line in lines] == ["+2.9%", "--accept", "yet"]
    lines, worse = instructions.compare({"a": 1.0}, {"a": 1.031})
    assert worse and "REGRESSION" in lines[0]


def test_counts_are_stored_for_every_case() -> None:
    stored = json.loads(instructions.STORED.read_text(encoding="utf-8"))
    assert set(stored["counts"]) == set(instructions.CASES)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="takes gcc")
def test_the_counting_programs_read_everything(tmp_path: Path) -> None:
    for case, (name, make, chunk) in instructions.CASES.items():
        program, file = tmp_path / name, tmp_path / "data"
        if not program.exists():
            flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
            subprocess.run(["gcc", *flags, "-o", program, ROOT / "benchmarks" / "c" / f"{name}.c"], check=True)
        file.write_bytes(make())
        done = subprocess.run([program, file, str(chunk), "2"], capture_output=True, text=True)
        assert done.returncode == 0, case
        assert int(done.stdout.split()[0]) > 0, case
