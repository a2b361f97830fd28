"""What a tool's arguments may be: every kind of validator, and what is said when one of them refuses."""

from __future__ import annotations

import dataclasses
import datetime
import json
import socket
import sys
from typing import Any, TypedDict

import pytest

from toolwire.errors import UsageError
from toolwire.validate import ShapeError, compile_validator


def run(spec: Any, arguments: Any) -> Any:
    return compile_validator("hoist", spec)(arguments, json.dumps(arguments))


def refusal(spec: Any, arguments: Any) -> str:
    with pytest.raises(ShapeError) as caught:
        run(spec, arguments)
    return caught.value.detail


# -- None and callables ---------------------------------------------------------------------------------------------------


def test_none_hands_out_the_arguments_as_they_are():
    arguments = {"a": [1]}
    assert run(None, arguments) is arguments


def test_callable_gets_the_plain_arguments_and_its_result_comes_out():
    assert run(lambda arguments: {**arguments, "more": 1}, {"a": 2}) == {"a": 2, "more": 1}


def test_class_that_is_no_model_is_a_callable_like_any_other():
    class Box:
        def __init__(self, arguments: dict[str, Any]) -> None:
            self.inner = arguments

    assert run(Box, {"a": 1}).inner == {"a": 1}


def test_callable_that_returns_none_accepts_the_arguments_as_they_are_now():
    def trim(arguments: dict[str, Any]) -> None:
        arguments["a"] = arguments["a"].strip()

    assert run(trim, {"a": " x "}) == {"a": "x"}


@pytest.mark.parametrize("error", [ValueError("port is\n  unknown"), TypeError("port is unknown"), KeyError("port"), RecursionError("deep"), Exception()])
def test_any_exception_of_a_callable_refuses_with_its_message_in_one_line(error):
    def check(arguments: dict[str, Any]) -> Any:
        raise error

    said = " ".join(str(error).split())
    assert refusal(check, {}) == (f"{type(error).__name__}: {said}" if said else "Exception")


def test_what_is_no_exception_of_the_validator_passes_through():
    def stop(arguments: dict[str, Any]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stop, {})


@pytest.mark.parametrize("answer", [True, False])
def test_callable_that_only_answers_refuses_instead_of_handing_its_answer_to_the_tool(answer):
    assert f"returned {answer}" in refusal(lambda arguments: answer, {})


def test_coroutine_function_is_a_usage_error():
    async def check(arguments: dict[str, Any]) -> Any:
        return arguments

    class Check:
        async def __call__(self, arguments: dict[str, Any]) -> Any:
            return arguments

    for spec in (check, Check()):
        with pytest.raises(UsageError, match="coroutine"):
            compile_validator("hoist", spec)


def test_callable_that_returns_a_coroutine_refuses_and_leaves_none_unawaited():
    async def check(arguments: dict[str, Any]) -> Any:
        return arguments

    assert "coroutine" in refusal(lambda arguments: check(arguments), {})


@pytest.mark.parametrize("spec", [3, "object", ["a"], object(), b"{}", 1.5])
def test_spec_that_is_none_is_a_usage_error_in_one_line_with_the_tool_and_what_to_give(spec):
    with pytest.raises(UsageError) as caught:
        compile_validator("hoist", spec)
    text = str(caught.value)
    assert "tools['hoist']" in text
    assert "JSON Schema" in text
    assert "\n" not in text


# -- JSON Schema ----------------------------------------------------------------------------------------------------------

MAST = {"type": "object", "required": ["mast"], "properties": {"mast": {"type": "string"}, "n": {"maximum": 10}}}


@pytest.fixture
def jsonschema_rs():
    return pytest.importorskip("jsonschema_rs")


@pytest.mark.usefixtures("jsonschema_rs")
class TestJSONSchema:
    def test_arguments_that_fit_come_out_as_they_are(self):
        arguments = {"mast": "fore", "n": 3}
        assert run(MAST, arguments) is arguments

    def test_missing_required_member_is_named(self):
        assert refusal(MAST, {}) == '/mast: required ("mast" is a required property)'

    def test_missing_member_deep_down_has_its_whole_pointer(self):
        schema = {"properties": {"rig": {"items": {"required": ["mast"]}}}}
        assert refusal(schema, {"rig": [{"mast": 1}, {}]}).startswith("/rig/1/mast: required ")

    def test_pointer_escapes_tilde_and_slash(self):
        assert refusal({"properties": {"a/b~c": {"type": "string"}}}, {"a/b~c": 1}).startswith("/a~1b~0c: type ")

    def test_unexpected_member_is_named(self):
        assert refusal({"properties": {}, "additionalProperties": False}, {"x": 1}).startswith("/x: additionalProperties ")

    def test_every_failing_place_is_told_up_to_a_few(self):
        detail = refusal({"additionalProperties": {"type": "string"}}, {str(i): i for i in range(20)})
        assert detail.count(": type (") == 5
        assert refusal(MAST, {"n": 11}).count("; ") == 1

    def test_detail_does_not_quote_the_arguments(self):
        assert "hush" not in refusal({"properties": {"key": {"type": "integer"}}}, {"key": "hush"})

    def test_integers_beyond_64_bits_are_compared_exactly(self):
        assert run({"properties": {"n": {"type": "integer"}}}, {"n": 10**40}) == {"n": 10**40}
        assert refusal(MAST, {"mast": "", "n": 10**40}).startswith("/n: maximum ")

    @pytest.mark.parametrize("arguments", [{}, {"a": 1}])
    def test_boolean_schemas(self, arguments):
        assert run(True, arguments) is arguments
        assert "False schema" in refusal(False, arguments)

    def test_false_schema_says_the_root(self):
        assert refusal(False, {}).startswith("(root): ")

    def test_changing_the_schema_later_changes_nothing(self):
        schema: dict[str, Any] = {"required": ["mast"]}
        validate = compile_validator("hoist", schema)
        schema["required"].clear()
        with pytest.raises(ShapeError):
            validate({}, "{}")

    @pytest.mark.parametrize(
        "schema", [{"type": "objekt"}, {"required": "mast"}, {"pattern": "("}, {"$ref": "#/$defs/none"}, {"default": object()}, {"$schema": "urn:x"}]
    )
    def test_schema_that_is_none_is_a_usage_error_in_one_line(self, schema):
        with pytest.raises(UsageError) as caught:
            compile_validator("hoist", schema)
        assert str(caught.value).startswith("tools['hoist'] is no JSON Schema that can be used: ")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("ref", ["http://127.0.0.1:{port}/mast.json", "http://127.0.0.1:{port}/a#/b", "file:///etc/hostname", "mast.json"])
    def test_references_out_of_the_schema_are_never_fetched(self, ref):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            with pytest.raises(UsageError, match=r"tools\['hoist'\]"):
                compile_validator("hoist", {"properties": {"a": {"$ref": ref.format(port=server.getsockname()[1])}}})
            with pytest.raises(BlockingIOError):  # nobody connected
                server.accept()

    def test_refused_reference_says_what_to_do(self):
        with pytest.raises(UsageError, match=r"never fetched; put the referenced schema under \$defs"):
            compile_validator("hoist", {"$ref": "https://example.invalid/mast.json"})

    def test_references_within_the_schema_hold(self):
        schema = {"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"type": "string"}}}
        assert run(schema, {"a": "x"}) == {"a": "x"}
        assert refusal(schema, {"a": 1}).startswith("/a: type ")

    @pytest.mark.parametrize(
        "definition",
        [
            {"name": "hoist", "input_schema": MAST},
            {"name": "hoist", "parameters": MAST},
            {"type": "function", "function": {"name": "hoist", "parameters": MAST}},
        ],
    )
    def test_whole_tool_definition_is_a_usage_error_because_it_would_allow_anything(self, definition):
        with pytest.raises(UsageError, match="whole tool definition"):
            compile_validator("hoist", definition)

    def test_nesting_as_deep_as_the_parser_allows_is_no_crash(self):
        arguments: dict[str, Any] = {}
        for _ in range(511):
            arguments = {"a": arguments}
        try:
            assert run({"properties": {"a": {"$ref": "#"}}}, arguments) is arguments
        except ShapeError as error:  # a version with a limit of its own
            assert "ecursion" in error.detail

    def test_pattern_that_backtracks_without_end_refuses(self):
        try:
            run({"properties": {"a": {"pattern": r"^(a+)+\1(?=b)$"}}}, {"a": "a" * 60})
        except ShapeError as error:
            assert "/a" in error.detail


def test_missing_library_is_a_usage_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(UsageError, match=r'tools\[\'hoist\'\] needs jsonschema_rs.*pip install "toolwire\[schema\]"'):
        compile_validator("hoist", MAST)


# -- pydantic -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def pydantic():
    return pytest.importorskip("pydantic")


class TestPydantic:
    def test_model_comes_out_as_an_instance(self, pydantic):
        model = pydantic.create_model("Hoist", mast=(str, ...), n=(int, 1))
        assert run(model, {"mast": "fore"}) == model(mast="fore", n=1)

    def test_missing_field_is_named(self, pydantic):
        model = pydantic.create_model("Hoist", mast=(str, ...))
        assert refusal(model, {}) == "/mast: required (Field required)"

    def test_pointer_holds_only_what_is_in_the_value(self, pydantic):
        model = pydantic.create_model("Hoist", k=(int | list[int], ...))
        first, second = refusal(model, {"k": [1, "x"]}).split("; ")
        assert first.startswith("/k: int_type ")
        assert second.startswith("/k/1: int_parsing ")

    def test_arguments_are_read_by_the_rules_for_json(self, pydantic):
        model = pydantic.create_model("Hoist", __config__=pydantic.ConfigDict(strict=True), day=(datetime.date, ...))
        assert run(model, {"day": "2024-02-29"}).day == datetime.date(2024, 2, 29)

    def test_strict_model_stays_strict(self, pydantic):
        model = pydantic.create_model("Hoist", __config__=pydantic.ConfigDict(strict=True), n=(int, ...))
        assert refusal(model, {"n": "1"}).startswith("/n: int_type ")

    def test_type_adapter(self, pydantic):
        adapter = pydantic.TypeAdapter(dict[str, int])
        assert run(adapter, {"a": 1}) == {"a": 1}
        assert refusal(adapter, {"a/b": "x"}).startswith("/a~1b: int_parsing ")

    def test_pydantic_dataclass(self, pydantic):
        @pydantic.dataclasses.dataclass
        class Hoist:
            mast: str

        assert run(Hoist, {"mast": "fore"}) == Hoist(mast="fore")
        assert refusal(Hoist, {}) == "/mast: required (Field required)"

    def test_detail_does_not_quote_the_arguments(self, pydantic):
        assert "hush" not in refusal(pydantic.create_model("Hoist", n=(int, ...)), {"n": "hush"})

    def test_exception_that_a_model_lets_out_refuses(self, pydantic):
        def check(value: Any) -> Any:
            raise KeyError("no such mast")

        from typing import Annotated

        model = pydantic.create_model("Hoist", mast=(Annotated[str, pydantic.AfterValidator(check)], ...))
        assert refusal(model, {"mast": "x"}) == "KeyError: 'no such mast'"


# -- msgspec --------------------------------------------------------------------------------------------------------------


class HoistDict(TypedDict):
    mast: str


@dataclasses.dataclass
class HoistData:
    mast: str
    n: int = 1


@pytest.fixture
def msgspec():
    return pytest.importorskip("msgspec")


class TestMsgspec:
    def test_struct_comes_out_as_an_instance(self, msgspec):
        struct = msgspec.defstruct("Hoist", [("mast", str), ("n", int, 1)])
        assert run(struct, {"mast": "fore"}) == struct("fore", 1)

    def test_missing_field_is_named(self, msgspec):
        assert refusal(msgspec.defstruct("Hoist", ["mast"]), {}) == "/mast: required (Object missing required field `mast`)"

    def test_place_becomes_a_pointer(self, msgspec):
        inner = msgspec.defstruct("Inner", [("b", int)])
        struct = msgspec.defstruct("Hoist", [("a", list[inner], []), ("d", dict[str, int], {})])
        assert refusal(struct, {"a": [{"b": 1}, {"b": "x"}]}).startswith("/a/1/b: type (Expected `int`")
        assert refusal(struct, {"a": [{}]}).startswith("/a/0/b: required ")
        assert refusal(struct, {"d": {"k": "x"}}).startswith("/d/*: type ")

    def test_unknown_field_and_constraint_are_told_apart(self, msgspec):
        from typing import Annotated

        struct = msgspec.defstruct("Hoist", [("n", Annotated[int, msgspec.Meta(le=3)], 0)], forbid_unknown_fields=True)
        assert refusal(struct, {"x": 1}).startswith("/x: unknown_field ")
        assert refusal(struct, {"n": 4}).startswith("/n: ")

    @pytest.mark.parametrize(("spec", "value"), [(HoistDict, {"mast": "fore"}), (HoistData, HoistData("fore")), (dict[str, str], {"mast": "fore"})])
    def test_other_types_that_msgspec_takes(self, msgspec, spec, value):
        assert run(spec, {"mast": "fore"}) == value
        assert refusal(spec, {"mast": 1}).startswith("/")

    def test_type_that_msgspec_can_not_decode_is_a_usage_error(self, msgspec):
        with pytest.raises(UsageError, match=r"tools\['hoist'\]"):
            compile_validator("hoist", dict[str, int] | dict[str, str])

    def test_missing_library_is_a_usage_error(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "msgspec", None)
        with pytest.raises(UsageError, match="pip install"):
            compile_validator("hoist", HoistData)
