"""Tool definitions as the providers' APIs take them, read for the gate: which names may a call have, and what are its arguments.

Each reader takes the list that goes into a request, as plain data or as objects of the provider's SDK (anything with ``model_dump`` or
``to_dict``; no SDK is imported), and gives tool name -> JSON Schema, or None for a JSON object of any shape. ``TurnGate.from_openai_tools``
and its like are these readers and a gate; on their own they serve who has more tools to add.

What ends up in the table, in all shapes:

* a function with a schema: the schema as it stands. One without has no arguments, as far as its definition says: None.
* a built-in tool that the client runs (a shell, an editor): the name that its calls have in a ``Turn``, with None, because the
  definition does not say what its arguments are. The same for free-text tools: the gate does not look into text.
* a tool that the provider runs (web search): nothing. Its calls never run on the client, and a call that only uses its name is refused.

A gate knows calls by their name alone, so a name stands once; two definitions of one name are an error, in two namespaces as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from .errors import UsageError

__all__ = ["anthropic_tools", "bedrock_tools", "gemini_schema", "gemini_tools", "openai_tools"]

#: Tool name -> JSON Schema, or None for a JSON object of any shape.
Tools: TypeAlias = dict[str, Any]


# -- OpenAI -------------------------------------------------------------------------------------------------------------------

#: Built-in tools that the client runs: type in the definition -> name of the calls (the type of their item).
_OPENAI_CLIENT: Final[Mapping[str, str]] = {
    "apply_patch": "apply_patch_call",
    "computer": "computer_call",
    "computer_use_preview": "computer_call",
    "local_shell": "local_shell_call",
    "shell": "shell_call",
}
#: Types whose definition has a ``name`` or a ``function`` and that are functions for the client. The second is Kimi's: the client gets the
#: call, and sends its arguments back as they are.
_OPENAI_FUNCTIONS: Final = (None, "function", "builtin_function")


def openai_tools(tools: Iterable[Any]) -> Tools:
    """Read ``tools`` (or the older ``functions``) of a Chat Completions, Responses or Realtime request.

    Mistral, Cohere (v2), Ollama and most servers that speak Chat Completions take the same shape.

    Args:
        tools: functions, nested in ``function`` or flat; custom tools; namespaces; built-in tools. A type that is not known, without a name, is
            taken for a built-in tool that the provider runs.
    Returns:
        tool name to JSON Schema, or None.
    Raises:
        UsageError: an entry is no tool definition, or a name is there twice; with the place.
    """
    found: Tools = {}
    for where, tool in _entries(tools, "tools"):
        _openai_tool(found, where, tool)
    return found


def _openai_tool(found: Tools, where: str, tool: Mapping[str, Any]) -> None:
    kind = tool.get("type")
    if kind == "namespace":
        for inner, each in _entries(tool.get("tools"), f"{where}.tools"):
            _openai_tool(found, inner, each)
    elif kind == "custom":
        nested = tool.get("custom")
        _add(found, where, _member(nested, f"{where}.custom") if nested is not None else tool, None)
    elif isinstance(kind, str) and kind in _OPENAI_CLIENT:
        if kind != "shell" or _runs_here(tool.get("environment")):
            _add_name(found, where, _OPENAI_CLIENT[kind], None)
    elif kind == "tool_search":
        if tool.get("execution") == "client":
            _add_name(found, where, "tool_search_call", _schema(tool.get("parameters"), f"{where}.parameters"))
    elif kind in _OPENAI_FUNCTIONS:
        function = tool.get("function")
        if function is not None:
            where, tool = f"{where}.function", _member(function, f"{where}.function")
        elif "name" not in tool:
            _no_tool(where, "neither a 'function' nor a 'name', nor a type")
        if "input_schema" in tool:
            _no_tool(where, "an 'input_schema', which is Anthropic's shape")
        _add(found, where, tool, _schema(tool.get("parameters"), f"{where}.parameters"))
    elif not isinstance(kind, str):
        _no_tool(where, f"a type that is {kind!r}")
    elif "function" in tool or ("name" in tool and "parameters" in tool):
        _no_tool(where, f"the type {kind!r}, which no function has")


def _runs_here(environment: Any) -> bool:
    """Does a shell run on the client's side, or in a container of the provider's?"""
    return environment is None or (isinstance(environment, Mapping) and environment.get("type") == "local")


# -- Anthropic ----------------------------------------------------------------------------------------------------------------

#: How the types of tools that the provider runs begin; a date follows. All others with a name are for the client: bash, text_editor, computer,
#: memory and what may come.
_ANTHROPIC_PROVIDER: Final = ("web_search", "web_fetch", "code_execution", "tool_search_tool", "advisor", "mcp_toolset")
_SCREEN: Final = frozenset(
    {"screenshot", "zoom", "left_click", "right_click", "middle_click", "double_click", "triple_click", "left_click_drag", "left_mouse_down", "left_mouse_up"}
    | {"mouse_move", "scroll", "type", "key", "hold_key", "wait"}
)
_BROWSER: Final = frozenset(
    {"navigate", "list_tabs", "new_tab", "switch_tab", "close_tab", "read_page", "get_page_text", "read_console", "read_network", "find", "form_input"}
    | {"file_upload", "scroll_to", "hover", "javascript_exec"}
)
#: Entries that stand for a family of tools, each called by its member's name.
_ANTHROPIC_TOOLSETS: Final[Mapping[str, frozenset[str]]] = {
    "computer_toolset": _SCREEN | {"cursor_position"},
    "browser_toolset": _SCREEN | _BROWSER,
}


def anthropic_tools(tools: Iterable[Any]) -> Tools:
    """Read ``tools`` of a Messages request.

    Args:
        tools: tools with an ``input_schema``; typed tools (``bash_20250124`` and such), which go by their ``name``; toolsets, whose enabled members
            go by theirs; server tools. A typed tool whose type is not known goes by its name.
    Returns:
        tool name to JSON Schema, or None.
    Raises:
        UsageError: an entry is no tool definition, or a name is there twice; with the place.
    """
    found: Tools = {}
    members: dict[str, str] = {}  # two toolsets may share a member
    for where, tool in _entries(tools, "tools"):
        kind = tool.get("type")
        if kind in (None, "custom") or "input_schema" in tool:
            if "input_schema" not in tool:
                hint = ": 'parameters' is the shape of OpenAI" if "function" in tool or "parameters" in tool else ""
                _no_tool(where, f"no 'input_schema'{hint}")
            _add(found, where, tool, _schema(tool["input_schema"], f"{where}.input_schema"))
        elif not isinstance(kind, str):
            _no_tool(where, f"a type that is {kind!r}")
        elif kind.startswith(tuple(_ANTHROPIC_TOOLSETS)):
            members |= dict.fromkeys(_enabled(tool, where), where)
        elif not kind.startswith(_ANTHROPIC_PROVIDER):
            _add(found, where, tool, None)
    for name, where in members.items():
        _add_name(found, where, name, None)
    return found


def _enabled(tool: Mapping[str, Any], where: str) -> set[str]:
    """The members of a toolset that its definition does not turn off."""
    configs = tool.get("configs")
    configs = {} if configs is None else _member(configs, f"{where}.configs")
    off = {name for name, config in configs.items() if isinstance(config, Mapping) and config.get("enabled") is False}
    family = next(members for prefix, members in _ANTHROPIC_TOOLSETS.items() if tool["type"].startswith(prefix))
    return ({*family, *configs}) - off  # a later version may have more members than this list


# -- Gemini -------------------------------------------------------------------------------------------------------------------


def gemini_tools(tools: Iterable[Any]) -> Tools:
    """Read ``tools`` of a generateContent request, or of an Interactions request.

    Args:
        tools: entries with ``functionDeclarations`` (``function_declarations``), whose ``parameters`` are converted by ``gemini_schema`` and whose
            ``parametersJsonSchema`` stands as it is; Interactions' flat functions; tools that the provider runs.
    Returns:
        tool name to JSON Schema, or None.
    Raises:
        UsageError: an entry is no tool definition, or a name is there twice; with the place. Also for computer use: the client runs
            its functions, but the definition does not name them, so only the caller can.
    """
    found: Tools = {}
    for where, tool in _entries(tools, "tools"):
        if tool.get("type") == "function":
            _add(found, where, tool, _schema(tool.get("parameters"), f"{where}.parameters"))
            continue
        if tool.get("type") == "computer_use" or _either(tool, "computerUse", "computer_use") is not None:
            _no_tool(where, "computer use, whose functions it does not name: leave it out here, and give the gate the names of those that you run")
        declarations = _either(tool, "functionDeclarations", "function_declarations")
        if declarations is None:
            if "name" in tool and "type" not in tool:
                _no_tool(where, "a 'name' of its own: a function stands in a list under 'functionDeclarations'")
            if not tool:
                _no_tool(where, "nothing in it")
            continue
        for inner, function in _entries(declarations, f"{where}.functionDeclarations"):
            plain = _either(function, "parametersJsonSchema", "parameters_json_schema")
            converted = function.get("parameters")
            if plain is not None and converted is not None:
                _no_tool(inner, "both 'parameters' and 'parametersJsonSchema'")
            if converted is not None:
                _add(found, inner, function, gemini_schema(_member(converted, f"{inner}.parameters"), f"{inner}.parameters"))
            else:
                _add(found, inner, function, _schema(plain, f"{inner}.parametersJsonSchema"))
    return found


#: Members of Gemini's Schema whose JSON Schema name is another one, or that may be written in snake case.
_GEMINI_NAMES: Final[Mapping[str, str]] = {
    "type_": "type",
    "format_": "format",
    "any_of": "anyOf",
    "one_of": "oneOf",
    "all_of": "allOf",
    "prefix_items": "prefixItems",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "property_ordering": "propertyOrdering",
}
#: Members that say nothing about what is valid, and that JSON Schema does not know.
_GEMINI_ONLY: Final = frozenset({"nullable", "propertyOrdering", "example"})
#: int64 and double in the protocol, so that they may come as strings (the JSON form of protocol buffers).
_GEMINI_NUMBERS: Final[Mapping[str, Callable[[str], int | float]]] = {
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"), int),
    **dict.fromkeys(("minimum", "maximum"), float),
}
_ONE_SCHEMA: Final = frozenset({"items", "additionalProperties", "not"})
_SCHEMA_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"properties", "$defs"})


def gemini_schema(schema: Mapping[str, Any], where: str = "parameters") -> dict[str, Any]:
    """Gemini's ``Schema`` (a subset of OpenAPI 3.0's) as JSON Schema.

    Types become lower-case, ``nullable`` a type and value of its own, ``ref`` and ``defs`` get their dollar, numbers that are strings become numbers,
    and the values of a numeric enum, which Gemini has as strings, as well. Members that JSON Schema shares stay as they are.

    Args:
        schema: the schema, in camel or snake case.
        where: its place, for errors.
    Returns:
        the JSON Schema, a new object.
    Raises:
        UsageError: something in it has not the shape that it has to have; with its place.
    """
    given = {_GEMINI_NAMES.get(key, key): value for key, value in schema.items() if value is not None}
    kind = given.get("type")
    if kind is not None and not isinstance(kind, str):
        kinds = [each.lower() for each in kind if isinstance(each, str)] if isinstance(kind, list) else []
        if not kinds:
            _no_tool(where, f"a type that is {kind!r}")
        kind = None
        given["type"] = kinds
    elif kind is not None:
        kind = kind.lower()
        given["type"] = kind
        if kind == "type_unspecified":
            kind = None
            del given["type"]
    out: dict[str, Any] = {}
    for key, value in given.items():
        here = f"{where}.{key}"
        if key in _GEMINI_ONLY or (key == "format" and value == "enum"):
            continue
        if key in _ONE_SCHEMA:
            out[key] = value if isinstance(value, bool) else gemini_schema(_member(value, here), here)
        elif key in _SCHEMA_LISTS:
            out[key] = [gemini_schema(each, inner) for inner, each in _entries(value, here)]
        elif key in _SCHEMA_MAPS:
            out[key] = {name: gemini_schema(_member(each, f"{here}.{name}"), f"{here}.{name}") for name, each in _member(value, here).items()}
        elif key == "enum":
            out[key] = [_enum_value(each, kind, here) for each in _listed(value, here)]
        elif key == "$ref" and isinstance(value, str):
            out[key] = value.replace("#/defs/", "#/$defs/", 1)
        elif key in _GEMINI_NUMBERS and isinstance(value, str):
            out[key] = _number(value, _GEMINI_NUMBERS[key], here)
        else:
            out[key] = value
    return _nullable(out) if given.get("nullable") is True else out


def _enum_value(value: Any, kind: str | None, where: str) -> Any:
    if not isinstance(value, str) or kind not in ("integer", "number"):
        return value
    return _number(value, int if kind == "integer" else float, where)


def _number(value: str, convert: Callable[[str], int | float], where: str) -> int | float:
    try:
        return convert(value)
    except ValueError:
        _no_tool(where, f"{value!r}, which is no number")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, or null. Members that look at one type only (``minLength``, ``properties``) let null through as they are."""
    if schema.keys() & {"$ref", "const", "not", "oneOf", "allOf"}:
        return {"anyOf": [schema, {"type": "null"}]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema


# -- Bedrock ------------------------------------------------------------------------------------------------------------------


def bedrock_tools(tools: Iterable[Any]) -> Tools:
    """Read ``toolConfig["tools"]`` of a Converse request.

    Args:
        tools: entries with ``toolSpec``; cache points and system tools, which the provider runs, are passed over.
    Returns:
        tool name to JSON Schema, or None.
    Raises:
        UsageError: an entry is no tool definition, or a name is there twice; with the place.
    """
    found: Tools = {}
    for where, tool in _entries(tools, "tools"):
        if not tool.keys() & {"toolSpec", "cachePoint", "systemTool"}:
            _no_tool(where, "no 'toolSpec'")
        if "toolSpec" in tool:
            where = f"{where}.toolSpec"
            spec = _member(tool["toolSpec"], where)
            _add(found, where, spec, _schema(_member(spec.get("inputSchema"), f"{where}.inputSchema").get("json"), f"{where}.inputSchema.json"))
    return found


# -- what they share ----------------------------------------------------------------------------------------------------------


def _entries(tools: Any, where: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Each definition as a mapping, with its place."""
    return [(f"{where}[{i}]", _member(tool, f"{where}[{i}]")) for i, tool in enumerate(_listed(tools, where))]


def _listed(value: Any, where: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(f"{where} is of type {type(value).__name__}; give a list")
    return list(value)


def _member(value: Any, where: str) -> Mapping[str, Any]:
    """A mapping, or an SDK's object as one, under the names that the API uses."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, type):
        for name, options in (("model_dump", {"mode": "json", "by_alias": True, "exclude_none": True}), ("to_dict", {})):
            dump = getattr(value, name, None)
            try:
                dumped = dump(**options) if callable(dump) else None
            except Exception as error:  # anyone's code
                raise UsageError(f"{where}: {type(value).__name__}.{name}() failed: {type(error).__name__}: {error}") from error
            if isinstance(dumped, Mapping):
                return dumped
    hint = "; a Python function has no definition before its SDK has made one" if callable(value) else ""
    raise UsageError(f"{where} is of type {type(value).__name__}; give a dict, or an object with model_dump() or to_dict(){hint}")


def _either(tool: Mapping[str, Any], camel: str, snake: str) -> Any:
    value = tool.get(camel)
    return tool.get(snake) if value is None else value


def _schema(schema: Any, where: str) -> Any:
    """A JSON Schema as it stands; None where there is none."""
    return None if schema is None else dict(_member(schema, where))


def _add(found: Tools, where: str, tool: Mapping[str, Any], schema: Any) -> None:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        _no_tool(where, "no 'name'" if name is None else f"a name that is {name!r}")
    _add_name(found, where, name, schema)


def _add_name(found: Tools, where: str, name: str, schema: Any) -> None:
    if name in found:
        raise UsageError(f"{where} is a second tool with the name {name!r}; the gate tells calls apart by their tool's name alone")
    found[name] = schema


def _no_tool(where: str, what: str) -> NoReturn:
    raise UsageError(f"{where} has {what}")
