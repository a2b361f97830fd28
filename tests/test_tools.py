"""Tool definitions as they go into a request: which names the gate knows, and what their arguments have to be."""

from __future__ import annotations

import enum
import json
import typing
from typing import Any

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, FOLDER, load
from toolwire.tools import anthropic_tools, bedrock_tools, gemini_schema, gemini_tools, openai_tools
from toolwire.validate import ShapeError, compile_validator

KEY: dict[str, Any] = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"], "additionalProperties": False}
READERS = (openai_tools, anthropic_tools, gemini_tools, bedrock_tools)


def said(reader: Any, tools: Any) -> str:
    with pytest.raises(tw.UsageError) as caught:
        reader(tools)
    return str(caught.value)


def sdk(module: str) -> Any:
    return pytest.importorskip(module, reason=f"{module} is not installed; its types judge the shapes")


class Dumps:
    """An object of some SDK, as far as a reader looks."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def to_dict(self) -> dict[str, Any]:
        return self.value


# -- what all shapes share --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_no_definitions_are_no_tools(reader):
    assert reader([]) == reader(()) == reader(iter(())) == {}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("tools", "kind"), [(None, "NoneType"), ("get", "str"), (b"get", "bytes"), ({"name": "get"}, "dict"), (3, "int")])
def test_what_is_no_list_is_said_to_be_none(reader, tools, kind):
    assert said(reader, tools) == f"tools is of type {kind}; give a list"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("entry", [3, None, "get", ["get"], Dumps, object()])
def test_entry_that_is_no_definition_is_named_by_its_place(reader, entry):
    good = {
        openai_tools: {"type": "function", "name": "a"},
        anthropic_tools: {"name": "a", "input_schema": {}},
        gemini_tools: {"functionDeclarations": [{"name": "a"}]},
        bedrock_tools: {"toolSpec": {"name": "a", "inputSchema": {"json": {}}}},
    }[reader]
    assert said(reader, [good, entry]).startswith(f"tools[1] is of type {type(entry).__name__}; give a dict")


def test_python_function_is_told_what_it_lacks():
    assert "has no definition" in said(gemini_tools, [lambda port: port])


@pytest.mark.parametrize(
    ("make", "definition", "other"),
    [
        (tw.TurnGate.from_openai_tools, {"type": "function", "function": {"name": "get", "parameters": KEY}}, {"type": "custom", "name": "get"}),
        (tw.TurnGate.from_anthropic_tools, {"name": "get", "input_schema": KEY}, {"name": "get", "input_schema": {}}),
        (tw.TurnGate.from_gemini_tools, {"functionDeclarations": [{"name": "get", "parameters": KEY}]}, {"function_declarations": [{"name": "get"}]}),
        (
            tw.TurnGate.from_bedrock_tools,
            {"toolSpec": {"name": "get", "inputSchema": {"json": KEY}}},
            {"toolSpec": {"name": "get", "inputSchema": {"json": {}}}},
        ),
    ],
)
def test_two_tools_of_one_name_are_refused_when_the_gate_is_made(make, definition, other):
    with pytest.raises(tw.UsageError, match=r"tools\[1\].* is a second tool with the name 'get'"):
        make([definition, other])


def test_gate_takes_policy_ledger_and_scope_like_any_gate():
    policy = tw.GatePolicy(all_or_nothing=True)
    ledger = tw.TurnGate().ledger
    for make in (tw.TurnGate.from_openai_tools, tw.TurnGate.from_anthropic_tools, tw.TurnGate.from_gemini_tools, tw.TurnGate.from_bedrock_tools):
        gate = make([], policy=policy, ledger=ledger, scope="a")
        assert gate.policy is policy
        assert gate.ledger is ledger
        assert gate._scope == "a"


def test_gate_of_a_subclass_is_of_the_subclass():
    class Mine(tw.TurnGate):
        pass

    assert type(Mine.from_openai_tools([])) is Mine


def test_schema_that_is_none_is_found_when_the_gate_is_made():
    pytest.importorskip("jsonschema_rs")
    with pytest.raises(tw.UsageError, match="tools\\['get'\\] is no JSON Schema"):
        tw.TurnGate.from_openai_tools([{"type": "function", "name": "get", "parameters": {"type": "objekt"}}])


def test_definitions_are_not_changed():
    tools: list[Any] = [
        {"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT", "nullable": True, "anyOf": [{"type": "STRING"}], "enum": ["x"]}}]}
    ]
    before = json.dumps(tools)
    gemini_tools(tools)
    assert json.dumps(tools) == before


def test_object_that_can_not_say_what_it_is_is_a_mistake_of_the_caller():
    class Mute:
        def model_dump(self) -> dict[str, Any]:  # takes none of pydantic's options
            return {}

    assert said(openai_tools, [Mute()]).startswith("tools[0]: Mute.model_dump() failed: TypeError: ")


# -- OpenAI -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "found"),
    [
        ({"type": "function", "function": {"name": "get", "parameters": KEY, "strict": True}}, {"get": KEY}),
        ({"type": "function", "name": "get", "parameters": KEY, "strict": None}, {"get": KEY}),
        ({"name": "get", "description": "older: functions=[...]", "parameters": KEY}, {"get": KEY}),
        ({"function": {"name": "get", "parameters": KEY}}, {"get": KEY}),
        ({"type": "function", "function": {"name": "get"}}, {"get": None}),
        ({"type": "function", "name": "get", "parameters": None}, {"get": None}),
        ({"type": "function", "name": "get", "parameters": {}}, {"get": {}}),
        ({"type": "builtin_function", "function": {"name": "$web_search"}}, {"$web_search": None}),
        ({"type": "custom", "name": "sql", "format": {"type": "text"}}, {"sql": None}),
        ({"type": "custom", "custom": {"name": "sql"}}, {"sql": None}),
        ({"type": "shell"}, {"shell_call": None}),
        ({"type": "shell", "environment": {"type": "local"}}, {"shell_call": None}),
        ({"type": "shell", "environment": {"type": "container_auto"}}, {}),
        ({"type": "local_shell"}, {"local_shell_call": None}),
        ({"type": "apply_patch"}, {"apply_patch_call": None}),
        ({"type": "computer"}, {"computer_call": None}),
        ({"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"}, {"computer_call": None}),
        ({"type": "tool_search"}, {}),
        ({"type": "tool_search", "execution": "server"}, {}),
        ({"type": "tool_search", "execution": "client", "parameters": KEY}, {"tool_search_call": KEY}),
        ({"type": "web_search", "filters": None}, {}),
        ({"type": "file_search", "vector_store_ids": []}, {}),
        ({"type": "code_interpreter", "container": "c"}, {}),
        ({"type": "image_generation"}, {}),
        ({"type": "mcp", "server_label": "x"}, {}),
        ({"type": "programmatic_tool_calling"}, {}),
        ({"type": "openrouter:web_search", "parameters": {"max_results": 3}}, {}),
    ],
)
def test_openai_definition_gives_the_name_that_its_calls_have(tool, found):
    assert openai_tools([tool]) == found
    assert openai_tools([Dumps(tool)]) == found


def test_openai_namespace_gives_the_names_of_its_tools():
    tools = [{"type": "namespace", "name": "crm", "tools": ({"type": "function", "name": "get", "parameters": KEY}, {"type": "custom", "name": "sql"})}]
    assert openai_tools(tools) == {"get": KEY, "sql": None}
    clash = [*tools, {"type": "namespace", "name": "erp", "tools": [{"type": "function", "name": "get"}]}]
    assert said(openai_tools, clash) == "tools[1].tools[0] is a second tool with the name 'get'; the gate tells calls apart by their tool's name alone"


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ({}, "tools[0] has neither a 'function' nor a 'name', nor a type"),
        ({"type": "function"}, "tools[0] has neither a 'function' nor a 'name', nor a type"),
        ({"type": "function", "function": {}}, "tools[0].function has no 'name'"),
        ({"type": "function", "function": "get"}, "tools[0].function is of type str; give a dict, or an object with model_dump() or to_dict()"),
        ({"type": "function", "name": ""}, "tools[0] has a name that is ''"),
        ({"type": "function", "name": 3}, "tools[0] has a name that is 3"),
        ({"type": "custom"}, "tools[0] has no 'name'"),
        ({"type": "custom", "custom": {}}, "tools[0] has no 'name'"),
        ({"type": "funtion", "function": {"name": "get"}}, "tools[0] has the type 'funtion', which no function has"),
        ({"type": "funtion", "name": "get", "parameters": KEY}, "tools[0] has the type 'funtion', which no function has"),
        ({"type": ["function"], "name": "get"}, "tools[0] has a type that is ['function']"),
        ({"type": 1}, "tools[0] has a type that is 1"),
        ({"name": "get", "input_schema": KEY}, "tools[0] has an 'input_schema', which is Anthropic's shape"),
        ({"type": "namespace", "name": "crm"}, "tools[0].tools is of type NoneType; give a list"),
        ({"type": "namespace", "tools": [{}]}, "tools[0].tools[0] has neither a 'function' nor a 'name', nor a type"),
        (
            {"type": "function", "name": "get", "parameters": [1]},
            "tools[0].parameters is of type list; give a dict, or an object with model_dump() or to_dict()",
        ),
    ],
)
def test_openai_entry_that_is_no_definition_is_refused_with_what_is_wrong(tool, what):
    assert said(openai_tools, [tool]) == what


def literal(annotations: dict[str, Any], member: str) -> Any:
    """The one word that a member of a TypedDict may have; None where it is free, or not there."""
    found = annotations.get(member)
    while found is not None and typing.get_origin(found) is not typing.Literal:
        found = next(iter(typing.get_args(found)), None)
    return None if found is None else typing.get_args(found)[0]


def test_openai_sdk_has_no_type_of_tool_that_is_not_known():
    sdk("openai")
    from openai.types.responses import ToolParam

    read: dict[str, Any] = {}
    for each in typing.get_args(ToolParam):
        kind = literal(typing.get_type_hints(each, include_extras=True), "type")
        read[kind] = openai_tools([{"type": kind, "name": "get", "tools": [], "container": "c"}])
    assert {kind for kind, found in read.items() if found} == {"function", "custom", "computer", "computer_use_preview", "local_shell", "shell", "apply_patch"}
    assert {kind for kind, found in read.items() if not found} == {
        *("file_search", "web_search", "web_search_preview", "mcp", "code_interpreter", "programmatic_tool_calling", "image_generation"),
        *("namespace", "tool_search"),
    }


def test_openai_sdk_objects_are_read_like_the_data_they_stand_for():
    openai, pydantic = sdk("openai"), sdk("pydantic")
    from openai.types.chat import ChatCompletionFunctionTool
    from openai.types.responses import ApplyPatchTool, FunctionTool, NamespaceTool, Tool
    from openai.types.shared import FunctionDefinition

    class Query(pydantic.BaseModel):
        key: str
        limit: int | None = None

    made = openai.pydantic_function_tool(Query)
    found = openai_tools(
        [
            made,
            ChatCompletionFunctionTool(type="function", function=FunctionDefinition(name="nested", parameters=KEY)),
            FunctionTool(type="function", name="flat", parameters=KEY, strict=True),
            ApplyPatchTool(type="apply_patch"),
            pydantic.TypeAdapter(Tool).validate_python({"type": "custom", "name": "sql"}),
            NamespaceTool(type="namespace", name="crm", description="", tools=[{"type": "function", "name": "inner", "parameters": {"enum": [None]}}]),
        ]
    )
    assert found == {"Query": made["function"]["parameters"], "nested": KEY, "flat": KEY, "apply_patch_call": None, "sql": None, "inner": {"enum": [None]}}
    assert found["Query"]["required"] == ["key", "limit"]


def test_sdks_that_take_the_same_shape_are_read_as_well():
    mistral, cohere, ollama = sdk("mistralai"), sdk("cohere"), sdk("ollama")
    assert mistral is not None
    from mistralai.client import models

    found = openai_tools(
        [
            models.Tool(function=models.Function(name="mistral", parameters=KEY)),
            cohere.ToolV2(function=cohere.ToolV2Function(name="cohere", parameters=KEY)),
        ]
    )
    assert found == {"mistral": KEY, "cohere": KEY}
    tool = ollama.Tool(
        function=ollama.Tool.Function(name="ollama", parameters={"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}})
    )
    assert openai_tools([tool]) == {"ollama": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}}}


# -- Anthropic --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "found"),
    [
        ({"name": "get", "input_schema": KEY}, {"get": KEY}),
        ({"name": "get", "input_schema": KEY, "type": "custom", "strict": True}, {"get": KEY}),
        ({"name": "get", "input_schema": KEY, "type": None}, {"get": KEY}),
        ({"type": "bash_20250124", "name": "bash"}, {"bash": None}),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, {"str_replace_based_edit_tool": None}),
        ({"type": "computer_20251124", "name": "computer", "display_width_px": 1, "display_height_px": 1}, {"computer": None}),
        ({"type": "memory_20250818", "name": "memory"}, {"memory": None}),
        ({"type": "telescope_20300101", "name": "telescope"}, {"telescope": None}),
        ({"type": "web_search_20250305", "name": "web_search"}, {}),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, {}),
        ({"type": "code_execution_20250825", "name": "code_execution"}, {}),
        ({"type": "tool_search_tool_regex", "name": "tool_search_tool_regex"}, {}),
        ({"type": "advisor_20260301", "name": "advisor"}, {}),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, {}),
    ],
)
def test_anthropic_definition_gives_the_name_that_its_calls_have(tool, found):
    assert anthropic_tools([tool]) == found
    assert anthropic_tools([Dumps(tool)]) == found


def test_anthropic_toolset_gives_the_names_of_its_members_that_are_not_turned_off():
    plain = anthropic_tools([{"type": "computer_toolset_20260801"}])
    assert plain.keys() >= {"zoom", "cursor_position"}
    assert set(plain.values()) == {None}
    configs = {"zoom": {"enabled": False}, "key": {"enabled": True}, "wait": None, "teleport": {}}
    assert anthropic_tools([{"type": "computer_toolset_20260801", "configs": configs}]).keys() == (plain.keys() - {"zoom"}) | {"teleport"}


def test_anthropic_toolsets_may_share_members_but_no_tool_may():
    both = [{"type": "computer_toolset_20260801"}, {"type": "browser_toolset_20260801"}]
    assert anthropic_tools(both).keys() >= {"screenshot", "navigate", "cursor_position"}
    clash = [*both, {"name": "navigate", "input_schema": KEY}]
    assert said(anthropic_tools, clash).startswith("tools[1] is a second tool with the name 'navigate'")


def test_anthropic_sdk_has_the_same_members():
    sdk("anthropic")
    from anthropic.types.browser_member_name import BROWSER_MEMBER_NAME_VALUES
    from anthropic.types.computer_member_name import COMPUTER_MEMBER_NAME_VALUES

    assert anthropic_tools([{"type": "browser_toolset_20260801"}]).keys() == set(BROWSER_MEMBER_NAME_VALUES)
    assert anthropic_tools([{"type": "computer_toolset_20260801"}]).keys() == set(COMPUTER_MEMBER_NAME_VALUES)


def test_anthropic_sdk_has_no_type_of_tool_that_is_not_known():
    sdk("anthropic")
    from anthropic.types.beta import BetaToolUnionParam

    client, provider = set(), set()
    for each in typing.get_args(BetaToolUnionParam):
        hints = typing.get_type_hints(each, include_extras=True)
        kind, called = literal(hints, "type"), literal(hints, "name")
        if kind == "custom" or kind.endswith("toolset_20260801"):
            continue
        found = anthropic_tools([{"type": kind, "name": called}])
        assert found in ({}, {called: None})
        (client if found else provider).add(called)
    assert client == {"bash", "memory", "str_replace_editor", "str_replace_based_edit_tool", "computer"}
    assert provider == {"web_search", "web_fetch", "code_execution", "advisor", "tool_search_tool_bm25", "tool_search_tool_regex", None}


def test_anthropic_sdk_objects_are_read_like_the_data_they_stand_for():
    anthropic = sdk("anthropic")
    from anthropic.types import ToolBash20250124Param, ToolParam

    @anthropic.beta_tool
    def get(key: str) -> str:
        """Get a value."""
        return key

    found = anthropic_tools([get, ToolParam(name="plain", input_schema=KEY), ToolBash20250124Param(type="bash_20250124", name="bash")])
    assert found == {"get": get.to_dict()["input_schema"], "plain": KEY, "bash": None}
    assert found["get"]["required"] == ["key"]


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ({}, "tools[0] has no 'input_schema'"),
        ({"name": "get"}, "tools[0] has no 'input_schema'"),
        ({"name": "get", "parameters": KEY}, "tools[0] has no 'input_schema': 'parameters' is the shape of OpenAI"),
        ({"input_schema": KEY}, "tools[0] has no 'name'"),
        ({"type": "function", "function": {"name": "get"}}, "tools[0] has no 'name'"),
        ({"type": 3, "name": "get"}, "tools[0] has a type that is 3"),
        ({"type": "mobile_toolset_20300101"}, "tools[0] has no 'name'"),
        ({"name": "get", "input_schema": "{}"}, "tools[0].input_schema is of type str; give a dict, or an object with model_dump() or to_dict()"),
        ({"type": "browser_toolset_20260801", "configs": []}, "tools[0].configs is of type list; give a dict, or an object with model_dump() or to_dict()"),
    ],
)
def test_anthropic_entry_that_is_no_definition_is_refused_with_what_is_wrong(tool, what):
    assert said(anthropic_tools, [tool]) == what


# -- Gemini -----------------------------------------------------------------------------------------------------------------

GEMINI_KEY = {"type": "OBJECT", "properties": {"key": {"type": "STRING"}}, "required": ["key"], "propertyOrdering": ["key"]}


@pytest.mark.parametrize("declarations", ["functionDeclarations", "function_declarations"])
@pytest.mark.parametrize("plain", ["parametersJsonSchema", "parameters_json_schema"])
def test_gemini_declarations_are_read_in_both_spellings(declarations, plain):
    tools = [{declarations: [{"name": "get", "parameters": GEMINI_KEY}, {"name": "put", plain: KEY}, {"name": "now"}]}, {declarations: ({"name": "also"},)}]
    wanted = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    assert gemini_tools(tools) == {"get": wanted, "put": KEY, "now": None, "also": None}


def test_gemini_tools_of_the_provider_and_the_flat_form_of_interactions():
    tools = [
        {"googleSearch": {}},
        {"code_execution": {}, "functionDeclarations": [{"name": "get"}]},
        {"type": "function", "name": "flat", "parameters": KEY},
        {"type": "google_search"},
        {"type": "mcp_server", "name": "x", "url": "https://x"},
    ]
    assert gemini_tools(tools) == {"get": None, "flat": KEY}


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ({}, "tools[0] has nothing in it"),
        ({"name": "get", "parameters": KEY}, "tools[0] has a 'name' of its own: a function stands in a list under 'functionDeclarations'"),
        ({"functionDeclarations": {"name": "get"}}, "tools[0].functionDeclarations is of type dict; give a list"),
        ({"functionDeclarations": [{"parameters": {}}]}, "tools[0].functionDeclarations[0] has no 'name'"),
        (
            {"functionDeclarations": [{"name": "a"}, {"name": "get", "parameters": {}, "parametersJsonSchema": {}}]},
            "tools[0].functionDeclarations[1] has both 'parameters' and 'parametersJsonSchema'",
        ),
        ({"type": "function"}, "tools[0] has no 'name'"),
    ],
)
def test_gemini_entry_that_is_no_definition_is_refused_with_what_is_wrong(tool, what):
    assert said(gemini_tools, [tool]) == what


@pytest.mark.parametrize("tool", [{"computerUse": {}}, {"computer_use": {"environment": "ENVIRONMENT_BROWSER"}}, {"type": "computer_use"}])
def test_gemini_computer_use_needs_the_names_from_the_caller(tool):
    assert "computer use, whose functions it does not name" in said(gemini_tools, [tool])


class Kind(enum.StrEnum):
    TEXT = "STRING"


#: Gemini's schema, JSON Schema, arguments that fit, and that do not.
SCHEMAS: list[tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "STRING"}, {"type": "string"}, ["a"], [1, None]),
    ({"type": Kind.TEXT}, {"type": "string"}, ["a"], [1]),
    ({"type_": "STRING"}, {"type": "string"}, ["a"], [1]),
    ({"type": "string"}, {"type": "string"}, ["a"], [1]),
    ({"type": ["string", "NULL"]}, {"type": ["string", "null"]}, ["a", None], [1]),
    ({"type": "TYPE_UNSPECIFIED"}, {}, ["a", None], []),
    ({"type": "NULL"}, {"type": "null"}, [None], [0]),
    (
        {"type": "INTEGER", "format": "int64", "minimum": "-3", "maximum": 4},
        {"type": "integer", "format": "int64", "minimum": -3.0, "maximum": 4},
        [4, -3],
        [5, -4, 0.5],
    ),
    ({"type": "STRING", "format": "enum", "enum": ["N", "S"]}, {"type": "string", "enum": ["N", "S"]}, ["N"], ["E"]),
    ({"type": "INTEGER", "format": "enum", "enum": ["101", "201"]}, {"type": "integer", "enum": [101, 201]}, [101], ["101", 102]),
    ({"type": "NUMBER", "enum": ["0.5", "1"]}, {"type": "number", "enum": [0.5, 1.0]}, [0.5, 1], [2]),
    ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}, ["a", None], [1]),
    ({"type": "STRING", "nullable": False}, {"type": "string"}, ["a"], [None]),
    ({"nullable": True, "type": "STRING", "enum": ["N"]}, {"type": ["string", "null"], "enum": ["N", None]}, ["N", None], ["S"]),
    (
        {"nullable": True, "anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ["a", 1, None],
        [True],
    ),
    (
        {"type": "ARRAY", "minItems": "1", "max_items": 2, "items": {"type": "STRING", "min_length": "2", "maxLength": "3", "pattern": "^a"}},
        {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"}},
        [["ab"], ["ab", "abc"]],
        [[], ["ab"] * 3, ["a"], ["abcd"], ["bc"]],
    ),
    (
        {"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "any_of": {"type": "BOOLEAN"}}, "required": ["any_of"], "additional_properties": False},
        {"type": "object", "properties": {"type": {"type": "string"}, "any_of": {"type": "boolean"}}, "required": ["any_of"], "additionalProperties": False},
        [{"any_of": True, "type": "x"}],
        [{}, {"any_of": True, "x": 1}],
    ),
    (
        {"type": "OBJECT", "additionalProperties": {"type": "INTEGER"}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [{"a": 1}],
        [{"a": "1"}],
    ),
    ({"type": "OBJECT", "minProperties": "1"}, {"type": "object", "minProperties": 1}, [{"a": 1}], [{}]),
    (
        {"type": "OBJECT", "properties": {"pet": {"ref": "#/defs/Pet", "nullable": True}}, "defs": {"Pet": {"type": "STRING"}}},
        {"type": "object", "properties": {"pet": {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}]}}, "$defs": {"Pet": {"type": "string"}}},
        [{"pet": "cat"}, {"pet": None}, {}],
        [{"pet": 1}],
    ),
    (
        {"type": "STRING", "title": "T", "description": "D", "example": "x", "default": "y"},
        {"type": "string", "title": "T", "description": "D", "default": "y"},
        ["a"],
        [1],
    ),
    ({"type": "STRING", "minLength": None, "items": None}, {"type": "string"}, ["a"], [1]),
    ({"oneOf": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]}, ["a", None], [1]),
]


@pytest.mark.parametrize(("schema", "converted", "good", "bad"), SCHEMAS, ids=[json.dumps(row[0])[:60] for row in SCHEMAS])
def test_gemini_schema_means_the_same_as_json_schema(schema, converted, good, bad):
    pytest.importorskip("jsonschema_rs")
    assert gemini_schema(schema) == converted
    validate = compile_validator("get", {"type": "object", "properties": {"x": gemini_schema(schema)}} if "$defs" not in converted else gemini_schema(schema))
    for value in good:
        arguments = {"x": value} if "$defs" not in converted else value
        assert validate(arguments, json.dumps(arguments)) == arguments
    for value in bad:
        arguments = {"x": value} if "$defs" not in converted else value
        with pytest.raises(ShapeError):
            validate(arguments, json.dumps(arguments))


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": 3}, "parameters has a type that is 3"),
        ({"type": []}, "parameters has a type that is []"),
        ({"type": "ARRAY", "minItems": "two"}, "parameters.minItems has 'two', which is no number"),
        ({"type": "INTEGER", "enum": ["1.5"]}, "parameters.enum has '1.5', which is no number"),
        ({"enum": "N"}, "parameters.enum is of type str; give a list"),
        ({"properties": {"a": {"items": 3}}}, "parameters.properties.a.items is of type int; give a dict, or an object with model_dump() or to_dict()"),
        ({"anyOf": [{}, 3]}, "parameters.anyOf[1] is of type int; give a dict, or an object with model_dump() or to_dict()"),
        ({"properties": []}, "parameters.properties is of type list; give a dict, or an object with model_dump() or to_dict()"),
    ],
)
def test_gemini_schema_that_is_none_is_refused_with_its_place(schema, what):
    assert said(gemini_schema, schema) == what


def test_google_sdk_objects_are_read_like_the_data_they_stand_for():
    sdk("google.genai")
    from google.genai import types

    def get(key: str, limit: int | None = None) -> str:
        """Get a value."""
        return key

    tools = [
        types.Tool(
            google_search=types.GoogleSearch(),
            function_declarations=[
                types.FunctionDeclaration.from_callable_with_api_option(callable=get),
                types.FunctionDeclaration(name="put", parameters_json_schema={**KEY, "default": None}),
                types.FunctionDeclaration(name="now"),
                types.FunctionDeclaration(name="list", parameters=types.Schema(type="ARRAY", min_items=1, items=types.Schema(type="STRING", nullable=True))),
            ],
        )
    ]
    found = gemini_tools(tools)
    assert found.keys() == {"get", "put", "now", "list"}
    assert found["get"]["type"] == "object"
    assert found["get"]["properties"]["key"] == {"type": "string"}
    assert found["get"]["properties"]["limit"]["type"] == ["integer", "null"]
    assert found["put"] == {**KEY, "default": None}
    assert found["now"] is None
    assert found["list"] == {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}}


def test_google_sdk_schema_has_no_member_that_is_not_known():
    sdk("google.genai")
    from google.genai import types

    values: dict[str, Any] = {
        **dict.fromkeys(("min_items", "max_items", "min_length", "max_length", "min_properties", "max_properties"), 1),
        **dict.fromkeys(("minimum", "maximum"), 1.0),
        **dict.fromkeys(("any_of",), [{"type": "STRING"}]),
        **dict.fromkeys(("defs", "properties"), {"a": {"type": "STRING"}}),
        **{"enum": ["a"], "required": ["a"], "property_ordering": ["a"], "nullable": False, "type": "STRING", "items": {"type": "STRING"}, "ref": "#/defs/a"},
        **{"additional_properties": False, "pattern": "a"},
    }
    full = types.Schema(**{member: values.get(member, "x") for member in types.Schema.model_fields})
    assert gemini_tools([{"functionDeclarations": [{"name": "get", "parameters": full}]}])["get"].keys() == {
        *("type", "format", "title", "description", "default", "enum", "items", "minItems", "maxItems", "minLength", "maxLength", "minProperties"),
        *("maxProperties", "minimum", "maximum", "pattern", "properties", "required", "anyOf", "$defs", "$ref", "additionalProperties"),
    }


# -- Bedrock ----------------------------------------------------------------------------------------------------------------


def test_bedrock_specs_are_read_and_the_rest_is_passed_over():
    tools = [
        {"toolSpec": {"name": "get", "inputSchema": {"json": KEY}, "strict": True}},
        {"cachePoint": {"type": "default"}},
        {"systemTool": {"name": "nova_grounding"}},
    ]
    assert bedrock_tools(tools) == {"get": KEY}


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ({}, "tools[0] has no 'toolSpec'"),
        ({"name": "get"}, "tools[0] has no 'toolSpec'"),
        ({"toolSpec": {"name": "get"}}, "tools[0].toolSpec.inputSchema is of type NoneType; give a dict, or an object with model_dump() or to_dict()"),
        ({"toolSpec": {"inputSchema": {"json": {}}}}, "tools[0].toolSpec has no 'name'"),
    ],
)
def test_bedrock_entry_that_is_no_definition_is_refused_with_what_is_wrong(tool, what):
    assert said(bedrock_tools, [tool]) == what


# -- whole turns ------------------------------------------------------------------------------------------------------------


def definition(make: str, called: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    if make == "from_anthropic_tools":
        return {"name": called, "input_schema": schema or {"type": "object"}}
    if make == "from_gemini_tools":
        return {"functionDeclarations": [{"name": called} if schema is None else {"name": called, "parametersJsonSchema": schema}]}
    if make == "from_bedrock_tools":
        return {"toolSpec": {"name": called, "inputSchema": {"json": schema or {"type": "object"}}}}
    return {"type": "function", "function": {"name": called} if schema is None else {"name": called, "parameters": schema}}


MAKERS = {
    "anthropic": "from_anthropic_tools",
    "google-generate": "from_gemini_tools",
    "google-interactions": "from_gemini_tools",
    "bedrock": "from_bedrock_tools",
}


def result_of(expect: dict[str, Any], body: bytes) -> tw.TurnResult:
    turn = tw.Turn(expect["provider"], on_cut="return")
    try:
        turn.feed(body)
        return turn.finish()
    except tw.StreamError as error:
        return turn.abort(error)


@pytest.mark.parametrize("folder", sorted({path.parent.name for path in FIXTURES}))
def test_gate_from_the_definitions_of_all_called_tools_decides_like_one_for_any_tool(folder: str):
    pytest.importorskip("jsonschema_rs")
    for path in (FOLDER / folder).glob("*.expect.json"):
        expect, body = load(path)
        make = getattr(tw.TurnGate, MAKERS.get(expect["provider"], "from_openai_tools"))
        result = result_of(expect, body)
        builtin = {"shell_call": {"type": "shell"}, "apply_patch_call": {"type": "apply_patch"}}
        called = {call.name: call.kind for call in result.calls if call.name and call.runs_on == "client"}
        tools = [
            builtin.get(each) or ({"type": "custom", "name": each} if kind == "text" else definition(make.__name__, each, None))
            for each, kind in called.items()
        ]
        decision, plain = make(tools).decide(result), tw.TurnGate().decide(result)
        assert (decision.action, decision.reasons) == (plain.action, plain.reasons), path
        assert [(c.name, c.arguments) for c in decision.runnable] == [(c.name, c.arguments) for c in plain.runnable], path
        if any(call.runs_on == "client" and "needs_approval" not in call.marks for call in result.calls):
            none = make([]).decide(result)
            assert none.action == "refuse", path
            assert all("unknown_tool" in refusal.reasons or not refusal.call.name for refusal in none.refused), path


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in FOLDER.glob("*/demo.expect.json")))
def test_demo_of_each_provider_runs_where_the_schema_fits_and_only_there(folder: str):
    pytest.importorskip("jsonschema_rs")
    expect, body = load(FOLDER / folder / "demo.expect.json")
    make = MAKERS.get(expect["provider"], "from_openai_tools")
    result = result_of(expect, body)
    (wanted,) = [call["arguments"] for call in expect["calls"]]
    decision = getattr(tw.TurnGate, make)([definition(make, "lookup_demo_value", KEY)]).decide(result)
    assert [(c.name, c.arguments) for c in decision.runnable] == [("lookup_demo_value", wanted)]
    narrow = {**KEY, "properties": {"key": {"type": "string", "enum": ["omega"]}}}
    refused = getattr(tw.TurnGate, make)([definition(make, "lookup_demo_value", narrow)]).decide(result)
    assert [(r.reasons, r.detail.split(" ")[0]) for r in refused.refused] == [(("args_schema",), "/key:")]


def test_gemini_schema_decides_about_a_whole_turn():
    pytest.importorskip("jsonschema_rs")
    expect, body = load(FOLDER / "google-generate" / "demo.expect.json")
    tools = [{"functionDeclarations": [{"name": "lookup_demo_value", "parameters": GEMINI_KEY}]}]
    assert tw.TurnGate.from_gemini_tools(tools).decide(result_of(expect, body)).action == "run"
    tools[0]["functionDeclarations"][0]["parameters"] = {"type": "OBJECT", "properties": {"key": {"type": "INTEGER"}}}
    assert tw.TurnGate.from_gemini_tools(tools).decide(result_of(expect, body)).reasons == ("args_schema",)
