"""The hot path of a turn never changes a result: whatever comes in, a turn that uses lanes and one that never does are equal."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire as tw
from turn_helpers import Played, cut, dumps, event_facts, sse

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
CASES = sorted(FOLDER.glob("*/*.expect.json"))
PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "mistral")


class Slow(tw.Turn):
    """A turn that asks its adapter about every payload."""

    def _learn(self, frame: tw.Frame, plain: Any) -> None:
        pass


class Counting(tw.Turn):
    """An ordinary turn that knows how many payloads went through lanes."""

    @property
    def taken(self) -> int:
        return self._lanes.taken


def state(turn: tw.Turn) -> tuple[Any, ...]:
    """What may be looked at between two feeds, and what later frames go by."""
    record = turn._record
    return turn.provider, turn.progress, turn.resume_point, turn.ended, record.text_chars, record.offset, [(c.key, c.text) for c in turn.calls]


def run(kind: type[tw.Turn], chunks: Iterable[bytes], provider: str, **options: Any) -> tuple[Any, ...]:
    """Feed, end, decide: everything that comes out, feed by feed."""
    turn = kind(provider, **({"on_cut": "return"} | options))
    return go_on(turn, chunks)


def go_on(turn: tw.Turn, chunks: Iterable[bytes]) -> tuple[Any, ...]:
    steps: list[Any] = []
    error: tw.StreamError | None = None
    try:
        for data in chunks:
            steps.append([event_facts(e) for e in turn.feed(data)])
            steps.append(state(turn))
        result = turn.finish()
    except tw.StreamError as e:
        error = e
        result = turn.abort(e)
    late = [event_facts(e) for e in turn.take_events()]
    decision = tw.TurnGate().decide(result)
    return steps, Played(result, decision, error, late).facts()


def same(chunks: list[bytes], provider: str, **options: Any) -> None:
    fast, slow = run(tw.Turn, chunks, provider, **options), run(Slow, chunks, provider, **options)
    if fast != slow:
        for a, b in zip(fast[0], slow[0], strict=False):
            assert a == b, (provider, options, chunks)
        assert fast == slow, (provider, options, chunks)


# -- plain streams ------------------------------------------------------------------------------------------------------

PIECES = ['{"text": "', "plain ", "words ", "\u00e9\u4e2d", "\U0001f600", '\\"', "\\\\", "\\n", "[1]", "{", "tail", '"}']


def named(*payloads: dict[str, Any]) -> list[bytes]:
    return [f"event: {p['type']}\ndata: {dumps(p)}\n\n".encode() for p in payloads]


def chat_chunk(delta: Any, finish: Any = None, index: int = 0) -> dict[str, Any]:
    return {
        "id": "cc",
        "object": "chat.completion.chunk",
        "created": 17,
        "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }


def plain(provider: str, pieces: list[str] = PIECES) -> list[bytes]:
    """The frames of an ordinary turn: text in pieces, then one call in pieces."""
    if provider in ("openai-chat", "mistral"):
        entry = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
        deltas: list[Any] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": p} for p in pieces]
        deltas += [{"tool_calls": [entry]}]
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": p}}]} for p in pieces]
        return [sse(chat_chunk(d)) for d in deltas] + [sse(chat_chunk({}, "tool_calls")), sse("[DONE]")]
    if provider == "anthropic":
        block = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
        return named(
            {"type": "message_start", "message": {"id": "m1", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}} for p in pieces),
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": block},
            *({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": p}} for p in pieces),
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        )
    call = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "", "status": "in_progress"}
    whole = "".join(pieces)
    message = {"type": "message", "id": "ms", "status": "in_progress", "content": []}
    payloads = [
        {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        *({"type": "response.output_text.delta", "output_index": 0, "item_id": "ms", "content_index": 0, "delta": p, "obfuscation": p[::-1]} for p in pieces),
        {"type": "response.output_text.done", "output_index": 0, "item_id": "ms", "content_index": 0, "text": whole},
        {"type": "response.output_item.done", "output_index": 0, "item": message | {"status": "completed"}},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        *({"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc", "delta": p, "obfuscation": p[::-1]} for p in pieces),
        {"type": "response.function_call_arguments.done", "output_index": 1, "item_id": "fc", "arguments": whole},
        {"type": "response.output_item.done", "output_index": 1, "item": call | {"status": "completed", "arguments": whole}},
        {"type": "response.completed", "response": {"id": "r1", "status": "completed"}},
    ]
    return named(*({**p, "sequence_number": n} for n, p in enumerate(payloads)))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_lanes_take_nearly_all_of_a_plain_stream(provider: str, size: int) -> None:
    pieces = ["{", '"k": "', *(f"piece {n} " for n in range(200)), '"}']
    body = b"".join(plain(provider, pieces))
    turn = Counting(provider)
    events: list[tw.Event] = []
    for at in range(0, len(body), size):
        events += turn.feed(body[at : at + size])
    result = turn.finish()
    assert turn.taken > 0.9 * 2 * len(pieces)
    assert result.text == "".join(pieces) == result.calls[0].text
    assert [e.text for e in events if isinstance(e, tw.TextDelta)] == pieces
    assert [e.text for e in events if isinstance(e, tw.ArgumentsDelta)] == pieces
    assert tw.TurnGate().decide(result).runnable[0].arguments == json.loads("".join(pieces))


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.name.removesuffix('.expect.json')}")
def test_fixtures_are_the_same_with_and_without(path: Path, exhaustive: bool) -> None:
    expect = json.loads(path.read_text(encoding="utf-8"))
    body = (path.parent / expect["body"]).read_bytes()
    rng = random.Random(str(path.name))
    for provider in (expect["provider"], "auto"):
        same([body], provider)
        for _ in range(20 if exhaustive else 2):
            same(cut(body, (rng.randint(0, len(body)) for _ in range(rng.randint(1, 30)))), provider)


# -- made-up streams ----------------------------------------------------------------------------------------------------


def rarely(draw: st.DrawFn, one_in: int) -> bool:
    return draw(st.integers(1, one_in)) == one_in


WORDS = [
    "",
    "a",
    "word ",
    "1",
    "}",
    "\\u0020",
    "\u00e9",
    "\u2028",
    "\x7f",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\ude00",
    "\\uD83D\\uDE00",
    "\U0001f600",
    "\\/",
    '\\"',
    "\\\\",
]
STARTS = [
    "{",
    "[",
    " {",
    "\\n{",
    "\\u007b",
    "\\t\\r [",
    '{\\"a\\":1',
    '{\\"a\\":1}',
    "\\ud800x",
    "\\udc00",
    "\\u0000",
    "x" * 40,
    "{" * 20,
    "\u00e9" * 20,
    "\ufffd",
]
BROKEN = ["\x1f", "\\x", "\\u12", "\\", '"']


def fragment(draw: st.DrawFn) -> str:
    """What stands between the quotes of a JSON string."""
    if rarely(draw, 60):
        return draw(st.sampled_from(BROKEN))
    some = draw(st.lists(st.sampled_from(WORDS + WORDS + STARTS), max_size=3))
    if rarely(draw, 3):
        some.append(draw(st.text(st.characters(min_codepoint=0x20, exclude_characters='"\\', exclude_categories=["Cs"]), max_size=6)))
    return "".join(some)


VALUES = ["0", "17", "-1.5e3", "null", "true", '""', '"x"', '"\\u00e9"', "{}", "[]", '{"a":[1,{"b":null}]}', "[[[[]]]]", '"\\ud800"', "1" * 20, " 1", "1 "]


def noise(draw: st.DrawFn) -> str:
    """A value of a member that nobody reads, or that somebody does."""
    if rarely(draw, 50):
        return draw(st.sampled_from(["01", "nul", '"\\x"', "[1", '"\x01"', '"open', "", "[" * 100 + "]" * 100]))
    return draw(st.sampled_from(VALUES))


UNREAD = ["created", "model", "obfuscation", "system_fingerprint", "x", "logprobs", "", "nonce"]
READ = ["id", "usage", "error", "code", "message", "object", "sequence_number", "output_index", "item_id", "content_index", "x_groq", "item", "refusal"]
READ += ["type", "index", "delta", "choices", "content", "text", "n\\u006f", "d\\u0065lta"]


def members(draw: st.DrawFn, own: list[str], *, extra: int = 2) -> str:
    """An object of these members, in any order, with some more; ``%`` in a value stands for one that changes."""
    out = list(own)
    for _ in range(draw(st.integers(0, extra))):
        key = draw(st.sampled_from(READ if rarely(draw, 12) else UNREAD))
        out.append(f'"{key}":{"%" if draw(st.booleans()) else noise(draw)}')
    if rarely(draw, 4):
        out = draw(st.permutations(out))
    if out and rarely(draw, 20):
        out.append(draw(st.sampled_from(out)))
    return "{" + draw(st.sampled_from([",", ",", ", "])).join(out) + "}"


def framed(draw: st.DrawFn, text: str, name: str | None, odd: list[str]) -> str:
    if rarely(draw, 6):
        name = draw(st.sampled_from([None, *odd]))
    end = "\r\n" if rarely(draw, 6) else "\n"
    return ("" if name is None else f"event: {name}{end}") + f"data: {text}{end}{end}"


def chat_entry(draw: st.DrawFn) -> str:
    index = draw(st.sampled_from(["null", '"0"', "2"])) if rarely(draw, 12) else draw(st.sampled_from(["0", "0", "1"]))
    function = '{"arguments":"@"}'
    if rarely(draw, 8):
        function = draw(st.sampled_from(['{"name":"f","arguments":"@"}', '{"name":null,"arguments":"@"}', '{"arguments":""}', '{"arguments":null}', "null"]))
    own = [f'"index":{index}', f'"function":{function}']
    if rarely(draw, 8):
        own.append(draw(st.sampled_from(['"id":null', '"id":"c0"', '"id":"c1"', '"id":"c9"', '"id":""'])))
    return members(draw, own, extra=draw(st.sampled_from([0, 0, 0, 1])))


def chat_delta(draw: st.DrawFn) -> str:
    own: list[str] = []
    if draw(st.booleans()):
        own.append('"content":"@"')
    else:
        own.append(f'"tool_calls":[{",".join(chat_entry(draw) for _ in range(2 if rarely(draw, 8) else 1))}]')
    if rarely(draw, 5):
        some = ['"role":"assistant"', '"content":""', '"content":"c"', '"content":null', '"tool_calls":[]', '"refusal":null', '"refusal":"no"']
        own.append(draw(st.sampled_from(some)))
    if rarely(draw, 10):
        own.append(draw(st.sampled_from(['"reasoning_content":"@"', '"function_call":{"arguments":"@"}', '"refusal":"@"', '"reasoning":""'])))
    return members(draw, own, extra=draw(st.sampled_from([0, 0, 1])))


def chat_envelope(draw: st.DrawFn) -> str:
    choices = []
    for _ in range(2 if rarely(draw, 8) else 1):
        own = [f'"index":{draw(st.sampled_from(["0", "0", "0", "1", "null"]))}', f'"delta":{chat_delta(draw)}', '"finish_reason":null']
        choices.append(members(draw, own, extra=draw(st.sampled_from([0, 1]))))
    return framed(draw, members(draw, ['"id":"cc"', f'"choices":[{",".join(choices)}]']), None, ["message", "x", "error"])


def anthropic_envelope(draw: st.DrawFn) -> str:
    index, kind, member = draw(
        st.sampled_from(
            [
                ("0", "text_delta", "text"),
                ("1", "input_json_delta", "partial_json"),
                ("2", "input_json_delta", "partial_json"),
                ("3", "thinking_delta", "thinking"),
            ]
        )
    )
    if rarely(draw, 12):
        index = draw(st.sampled_from(["0", "1", "5", "null"]))
    delta = members(draw, [f'"type":"{kind}"', f'"{member}":"@"'], extra=draw(st.sampled_from([0, 0, 1])))
    own = ['"type":"content_block_delta"', f'"index":{index}', f'"delta":{delta}']
    if rarely(draw, 12):
        del own[draw(st.integers(0, 1))]
    return framed(draw, members(draw, own), "content_block_delta", ["content_block_delta", "error", "ping"])


def responses_envelope(draw: st.DrawFn) -> str:
    kind, index, id, part = draw(
        st.sampled_from(
            [
                ("output_text.delta", "0", "ms", "content_index"),
                ("function_call_arguments.delta", "1", "fc", ""),
                ("function_call_arguments.delta", "2", "fc2", ""),
                ("refusal.delta", "0", "ms", "content_index"),
                ("reasoning_text.delta", "3", "rs", "content_index"),
                ("reasoning_summary_text.delta", "3", "rs", "summary_index"),
                ("custom_tool_call_input.delta", "1", "fc", ""),
            ]
        )
    )
    own = [f'"type":"response.{kind}"', '"delta":"@"']
    if rarely(draw, 8):
        index = draw(st.sampled_from(["0", "1", "7", '"0"', "null"]))
    if rarely(draw, 8):
        id = draw(st.sampled_from(["ms", "fc", "zz", ""]))
    if not rarely(draw, 6):
        own.append(f'"output_index":{index}')
    if not rarely(draw, 3):
        own.append(f'"item_id":"{id}"')
    if not rarely(draw, 4):
        own.append('"sequence_number":#')
    if part and draw(st.booleans()):
        own.append(f'"{part}":{draw(st.sampled_from(["0", "0", "1"]))}')
    return framed(draw, members(draw, own), f"response.{kind}", [f"response.{kind}", "error", "x"])


START: dict[str, list[bytes]] = {
    "openai-chat": [
        sse(chat_chunk({"role": "assistant", "content": ""})),
        sse(chat_chunk({"tool_calls": [{"index": i, "id": f"c{i}", "function": {"name": "f", "arguments": ""}} for i in (0, 1)]})),
    ],
    "anthropic": named(
        {"type": "message_start", "message": {"id": "m1", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_start", "index": i, "content_block": {"type": "tool_use", "id": f"t{i}", "name": "f", "input": {}}} for i in (1, 2)),
        {"type": "content_block_start", "index": 3, "content_block": {"type": "thinking", "thinking": ""}},
    ),
    "openai-responses": named(
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r1", "status": "in_progress"}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "message", "id": "ms"}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 1,
            "item": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f"},
        },
        {
            "type": "response.output_item.added",
            "sequence_number": 3,
            "output_index": 2,
            "item": {"type": "function_call", "id": "fc2", "call_id": "c2", "name": "f"},
        },
        {"type": "response.output_item.added", "sequence_number": 4, "output_index": 3, "item": {"type": "reasoning", "id": "rs"}},
    ),
}
START["mistral"] = START["openai-chat"]

ODD: dict[str, list[bytes]] = {
    "openai-chat": [
        sse("[DONE]"),
        sse(chat_chunk({}, "tool_calls")),
        sse(chat_chunk({}, "stop", 1)),
        sse(chat_chunk({"content": "x"}, "length")),
        sse({"error": {"message": "no"}}),
        sse(chat_chunk({"tool_calls": [{"index": 0, "id": "c0", "function": {"name": "f", "arguments": "{}"}}]})),
        sse(chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]})),
        sse(chat_chunk({"content": [{"type": "text", "text": "part"}]})),
        sse(chat_chunk({"content": "a", "tool_calls": [{"index": 0, "id": "c0", "function": {"name": "f", "arguments": "{}"}}]})),
        sse({"choices": [], "usage": {"total_tokens": 3}}),
        b"data: x\n\n",
    ],
    "anthropic": [
        *named({"type": "ping"}, {"type": "content_block_stop", "index": 0}, {"type": "content_block_stop", "index": 1}),
        *named({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}, {"type": "new_event"}),
        *named({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
        *named({"type": "content_block_start", "index": 5, "content_block": {"type": "thinking"}}),
        *named({"type": "content_block_delta", "index": 1, "delta": {"type": "signature_delta", "signature": "x"}}),
    ],
    "openai-responses": [
        *named({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "a"}),
        *named({"type": "response.output_text.done", "output_index": 7, "text": "a"}),
        *named({"type": "response.output_text.delta", "output_index": 7, "delta": "b", "sequence_number": 30}),
        *named(
            {
                "type": "response.output_item.done",
                "output_index": 1,
                "item": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "a"},
            }
        ),
        *named(
            {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "ms", "content": [{"type": "output_text", "text": "a"}]}}
        ),
        *named({"type": "response.output_item.added", "output_index": 3, "item": {"type": "message", "id": "ms3"}}),
        *named({"type": "response.completed", "response": {"id": "r1", "status": "completed"}}, {"type": "response.incomplete", "response": {"id": "r1"}}),
        *named({"type": "error", "message": "no"}, {"type": "keepalive", "sequence_number": 9}, {"type": "response.new_event"}),
    ],
}
ODD["mistral"] = ODD["openai-chat"]
COMMON = [
    b": ping\n\n",
    b"data:\n\n",
    b"data: :\n\n",
    b"nonsense\n\n",
    b'{"error": {"message": "stray"}}\n',
    b"data: 7\n\n",
    b"id: 9\n\n",
    b"event: error\ndata: oh\n\n",
    b"\n",
]
COMMON += [b'data: {"a":1}\ndata: {"b":2}\n\n', b"data: \xff\n\n", b"retry: 5\n"]
ENVELOPES: dict[str, Callable[[st.DrawFn], str]] = {
    "openai-chat": chat_envelope,
    "mistral": chat_envelope,
    "anthropic": anthropic_envelope,
    "openai-responses": responses_envelope,
}


NUMBERS = ["-1", "1" + "0" * 30, "1.0", "null", '"4"', "00", "99"]


@st.composite
def streams(draw: st.DrawFn, provider: str) -> list[bytes]:
    """Frames: the start of a turn, then runs of payloads made by a few envelopes, and other things between them."""
    kinds = [ENVELOPES[provider](draw) for _ in range(draw(st.integers(1, 3)))]
    out = list(START[provider])
    number = len(out)
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(kinds))
        for _ in range(draw(st.integers(1, 6))):
            said = str(number)
            if rarely(draw, 30):
                said = draw(st.sampled_from([str(number + 1), str(number - 1), str(number - 2), *NUMBERS]))
            number += 1
            frame = kind.replace("@", fragment(draw)).replace("#", said)
            if "%" in frame:
                frame = frame.replace("%", noise(draw))
            out.append(frame.encode("utf-8", "surrogatepass"))
        if rarely(draw, 3):
            out.append(draw(st.sampled_from(ODD[provider])))
        elif rarely(draw, 5):
            out.append(draw(st.sampled_from(COMMON)))
    return out


def options(draw: st.DrawFn) -> dict[str, Any]:
    out: dict[str, Any] = {"profile": draw(st.sampled_from(["default", "default", "strict", "tolerant"]))}
    if draw(st.integers(0, 3)) == 0:
        small = st.sampled_from([3, 10, 30, 80])
        out["limits"] = tw.Limits(max_argument_chars=draw(small), max_text_chars=draw(small), max_depth=draw(st.sampled_from([5, 7, 8, 9, 40])))
    return out


@pytest.mark.parametrize("provider", PROVIDERS)
def test_made_up_streams_are_the_same_with_and_without(provider: str) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        frames = data.draw(streams(provider))
        how = data.draw(st.composite(options)())
        body = b"".join(frames)
        cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=4))
        same(cut(body, cuts), provider, **how)

    check()


def variants(rng: random.Random, bodies: list[tuple[str, list[bytes]]]) -> Iterator[tuple[str, bytes]]:
    tokens = [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b",",
        b":",
        b"\n",
        b"\n\n",
        b"0",
        b"1",
        b"\\u",
        b"\\ud83d",
        b"\xc3",
        b" ",
        b"null",
        b'""',
        b"\x00",
        b"data: ",
    ]
    while True:
        provider, frames = rng.choice(bodies)
        data = bytearray(b"".join(frames))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at = rng.randrange(len(data))
            what = rng.randrange(5)
            if what == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif what == 1:
                data[at:at] = rng.choice(tokens)
            elif what == 2:
                del data[at : at + rng.choice((1, 1, 2, 30))]
            elif what == 3:
                data[at] = rng.choice(b'0123456789{}[]",:\\ ')
            else:  # a frame twice, or gone
                edges = [i for i in range(len(data)) if data[i : i + 2] == b"\n\n"]
                if len(edges) > 3:
                    a, b = sorted(rng.sample(edges, 2))
                    data[a:b] = b"" if rng.random() < 0.3 else data[a:b] * 2
        yield provider, bytes(data)


def test_damaged_bodies_are_the_same_with_and_without(exhaustive: bool) -> None:
    rng = random.Random(20)
    pieces = ["{", '"k": ', '"', "", "a", "\u00e9", "b\\n", "c", '\\"', "d", "}", '"', "}"]
    bodies = [(p, plain(p, pieces)) for p in PROVIDERS]
    for _, (provider, body) in zip(range(24_000 if exhaustive else 600), variants(rng, bodies), strict=False):
        same(cut(body, (rng.randint(0, len(body)) for _ in range(rng.randint(0, 3)))), provider)


# -- found once, and to be remembered -----------------------------------------------------------------------------------


def responses(*payloads: dict[str, Any]) -> list[bytes]:
    return [*START["openai-responses"], *named(*payloads)]


def text_delta(delta: str, **more: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "delta": delta, **more}


def arguments(text: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": text}, **more}


def entries(*some: dict[str, Any], **more: Any) -> bytes:
    return sse(chat_chunk({**more, "tool_calls": list(some)}))


def two_choices(first: str, second: str) -> bytes:
    return sse({"id": "cc", "choices": [{"index": 0, "delta": {"content": first}}, {"index": 1, "delta": {"content": second}}]})


RESEND = {"index": 0, "id": "c0", "function": {"name": "f", "arguments": "{}"}}
REMEMBERED: dict[str, tuple[str, list[bytes], dict[str, Any]]] = {
    "an empty text in the first choice is not the text of the second": ("openai-chat", [two_choices("", "a")] * 4 + [two_choices("b", "a")], {}),
    "the last frame's offset stands in marks that the end makes": (
        "openai-chat",
        [*START["openai-chat"], *[entries(arguments(t)) for t in ("{", "}")], entries(RESEND), *[sse(chat_chunk({"content": t})) for t in "abcde"]],
        {},
    ),
    "empty pieces are not counted": (
        "openai-chat",
        [*START["openai-chat"], *[entries(arguments(t)) for t in ("{", "", "", "", '"a":1', '{"a":1}')]],
        {},
    ),
    "a re-send that comes beside other text ends lanes": (
        "openai-chat",
        [
            *START["openai-chat"],
            *[entries(arguments(t)) for t in ("{", "}", " ", " ", " ")],
            *[entries(RESEND, content="x")] * 3,
            *[entries(arguments(t)) for t in (" ", " ", " ")],
        ],
        {},
    ),
    "a re-send that comes beside another call's text ends lanes": (
        "openai-chat",
        [
            *START["openai-chat"],
            *[entries(arguments(t)) for t in ("{", "}", " ", " ", " ")],
            *[entries(RESEND, arguments(t, 1)) for t in "abc"],
            *[entries(arguments(t)) for t in (" ", " ", " ")],
        ],
        {},
    ),
    "text of an item that was never added changes what text without an item means": (
        "openai-responses",
        responses(
            *(text_delta(t) for t in "abc"),
            {"type": "response.refusal.delta", "delta": "x", "output_index": 9, "item_id": "new", "content_index": 1},
            *(text_delta(t) for t in "def"),
            {"type": "response.output_text.done", "output_index": 9, "content_index": 0, "text": "def"},
        ),
        {},
    ),
    "numbers beyond 64 bits": ("openai-responses", responses(*(text_delta(t, output_index=0, sequence_number=10**30 + n) for n, t in enumerate("abcdef"))), {}),
    "numbers after what is none": (
        "openai-responses",
        responses(*(text_delta(t, output_index=0, sequence_number=n, own_to_this=1) for t, n in zip("abcdefg", (-1, None, -1, 5, 5, 6, 6), strict=True))),
        {},
    ),
    "a value that nobody reads is too deep": (
        "openai-chat",
        [sse(chat_chunk({"content": "a"}) | {"x": x}) for x in (1, [2], [[3]], [[[[4]]]], [[[[[5]]]]], [[[[[[6]]]]]])],
        {"limits": tw.Limits(max_depth=6)},
    ),
    "the same inside a choice": (
        "openai-chat",
        [sse({"id": "a", "choices": [{"index": 0, "x": x, "delta": {"content": "a"}}]}) for x in (1, [2], [[3]], [[[4]]], [[[[5]]]])],
        {"limits": tw.Limits(max_depth=6)},
    ),
    "the counter twice in one payload": (
        "openai-responses",
        responses()
        + [
            f'data: {{"type":"response.output_text.delta","output_index":0,"delta":"a","sequence_number":{a},"sequence_number":{b}}}\n\n'.encode()
            for a, b in ((3, 4), (4, 5), (5, 6), (7, 7), (8, 9))
        ],
        {},
    ),
}


@pytest.mark.parametrize("name", REMEMBERED)
def test_remembered(name: str) -> None:
    provider, frames, how = REMEMBERED[name]
    same([b"".join(frames)], provider, **how)
    same(frames, provider, **how)


# -- limits, copies, the events themselves ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("limit", ["max_argument_chars", "max_text_chars"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_limit_inside_a_lane_gives_the_same_error(provider: str, limit: str, wide: bool) -> None:
    pieces = ["{", '"k": "', *(f"\u4e2d{n}" if wide else f"piece {n}" for n in range(60))]
    frames = plain(provider, pieces)
    for room in (1, 7, 50, 120, sum(map(len, pieces)) - 1, sum(map(len, pieces))):
        how = {"limits": tw.Limits(**{limit: room})}
        same([b"".join(frames)], provider, **how)
        same(frames, provider, **how)
    turn = Counting(provider, limits=tw.Limits(**{limit: 120}))
    body = b"".join(frames)
    turn.feed(body)
    with pytest.raises(tw.LimitExceeded) as caught:
        turn.feed(b"")
    assert turn.taken > 5
    assert caught.value.limit == limit
    starts = [sum(map(len, frames[:n])) for n in range(len(frames))]
    assert caught.value.offset in starts, "where the frame starts that was too much"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda turn: pickle.loads(pickle.dumps(turn))], ids=["deepcopy", "pickle"])
def test_a_copy_from_the_middle_of_a_lane_goes_on_equally(provider: str, copied: Callable[[tw.Turn], tw.Turn]) -> None:
    pieces = ["{", '"k": "', *(f"\u00e9 {n}" for n in range(30)), '"}']
    body = b"".join(plain(provider, pieces))
    rng = random.Random(provider)
    for at in rng.sample(range(len(body)), 25):
        turn, slow = tw.Turn(provider), Slow(provider)
        turn.feed(body[:at])
        slow.feed(body[:at])
        rest = cut(body[at:], [(len(body) - at) // 2])
        twin = copied(turn)
        want = go_on(slow, rest)
        assert go_on(twin, rest) == want
        assert go_on(turn, rest) == want


def test_the_delta_events() -> None:
    call = tw.Turn("openai-chat")._record.start(id="c", name="f")
    text, refusal, arguments = tw.TextDelta("a\n"), tw.TextDelta("no", "refusal", 2), tw.ArgumentsDelta(call, '{"k"')
    assert (text.text, text.channel, text.choice) == ("a\n", "text", 0)
    assert (refusal.text, refusal.channel, refusal.choice) == ("no", "refusal", 2)
    assert (arguments.call, arguments.text) == (call, '{"k"')
    assert repr(text) == "TextDelta('a\\n', 'text')"
    assert repr(refusal) == "TextDelta('no', 'refusal')"
    assert repr(arguments) == "ArgumentsDelta(0.0, '{\"k\"')"
    for event in (text, refusal):
        for twin in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event)):
            assert type(twin) is tw.TextDelta
            assert (twin.text, twin.channel, twin.choice) == (event.text, event.channel, event.choice)
    assert copy.copy(arguments).call is call
    twin = pickle.loads(pickle.dumps(arguments))
    assert (twin.text, twin.call.key, twin.call.name, twin.call.id) == (arguments.text, "0.0", "f", "c")
    with pytest.raises(TypeError):
        tw.TextDelta(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tw.ArgumentsDelta(call, b"x")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        text.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_events_of_lanes_and_of_adapters_are_the_same_objects(provider: str) -> None:
    frames = plain(provider, ["{", '"k":"', *"abcdefgh", '"}'])
    turn = tw.Turn(provider)
    events = turn.feed(b"".join(frames))
    calls = {id(e.call) for e in events if isinstance(e, (tw.CallStart, tw.ArgumentsDelta))}
    assert calls == {id(turn.calls[0])}
    assert {(e.channel, e.choice) for e in events if isinstance(e, tw.TextDelta)} == {("text", 0)}


def test_what_callers_keep_is_never_changed_by_a_lane() -> None:
    turn = tw.Turn("openai-chat")
    kept: list[tuple[str, str, str]] = []
    for frame in plain("openai-chat", ["{", '"k":"', *"abcdefgh", "\u00e9", "\U0001f600", '"}']):
        turn.feed(frame)
        if turn.calls:
            text = turn.calls[0].text
            kept.append((text, str(text.encode(), "utf-8"), text))
    for text, twin, _ in kept:
        assert text == twin
