"""Have the arguments the allowed shape? One face over every kind of validator.

What ``TurnGate(tools={name: spec})`` takes as ``spec``, told apart in this order, by what the object has and without importing
any library:

====================================================  ==================================================================
``None``                                              any JSON object; the arguments come out as they were parsed
``dict`` or ``bool``                                  a JSON Schema (extra ``[schema]``); the arguments come out as parsed
has ``validate_json`` and ``validate_python``         a pydantic ``TypeAdapter``; its result comes out
a class with ``model_validate_json``                  a pydantic model; an instance of it comes out
a class with ``__pydantic_validator__``               a pydantic dataclass; an instance of it comes out
a class with ``__struct_fields__``, a dataclass, a    a msgspec type; an instance of it comes out
``TypedDict``, an attrs class, ``dict[...]`` and such
any other callable, other classes included            called with the plain arguments (a dict of its own); its result comes
                                                      out. An exception refuses with its message. ``None`` stands for the
                                                      arguments as they are now. A plain ``True`` or ``False`` refuses: a
                                                      test that only answers would hand ``False`` to the tool
====================================================  ==================================================================

Everything is compiled once, by ``compile_validator``; a spec that can not be is a ``UsageError`` then, not a surprise at the
first call. Nothing is ever fetched: a ``$ref`` that points out of its schema is refused at compile time.

Validators see only text that the strict parser has taken whole (no NaN, no duplicate keys, no half characters, no number that
Python can not hold). pydantic and msgspec get that exact text and so read it by their JSON rules: a ``date`` may be a string
there even in a strict model, while a Python value would have to be a ``date`` already. How lax they are with ``"1"`` for an
integer is the model's own configuration.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, get_origin

from .errors import UsageError

#: Takes the arguments as parsed (its own copy) and their exact text, returns what the tool gets; raises ``ShapeError``.
Validator: TypeAlias = Callable[[dict[str, Any], str], Any]

#: A refusal names at most this many failing places: it is read by people and sent back to models.
_MAX_FAULTS = 5
#: Characters of one library message that are kept; some quote the whole value.
_MAX_MESSAGE = 300

_WANTED = "give a JSON Schema (dict or bool), a pydantic model or TypeAdapter, a msgspec type, a callable, or None"


class ShapeError(Exception):
    """The arguments have not the allowed shape. Internal: the gate turns it into ``args_schema``; nobody else sees it.

    Attributes:
        detail: for each failing place its JSON pointer (RFC 6901), the rule that failed, and a few words.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def compile_validator(tool: str, spec: Any) -> Validator:
    """The validator for one tool.

    Args:
        tool: the tool's name, for errors.
        spec: see the module's table.
    Returns:
        a function of the parsed arguments and their exact text.
    Raises:
        UsageError: ``spec`` is none, or the library it needs is not there; in one line, with the tool's name.
    """
    if spec is None:
        return _as_it_is
    if isinstance(spec, (bool, Mapping)):
        return _json_schema(tool, spec if isinstance(spec, bool) else dict(spec))
    if not isinstance(spec, type) and _has_method(spec, "validate_json") and _has_method(spec, "validate_python"):
        return _pydantic(spec.validate_json)
    if isinstance(spec, type) and get_origin(spec) is None:
        if _has_method(spec, "model_validate_json"):
            return _pydantic(spec.model_validate_json)  # type: ignore[attr-defined]
        if hasattr(spec, "__pydantic_validator__"):
            return _pydantic(_need("pydantic", "pydantic", tool).TypeAdapter(spec).validate_json)
    if _is_msgspec_type(spec):
        return _msgspec(tool, spec)
    if inspect.iscoroutinefunction(spec) or inspect.iscoroutinefunction(vars(type(spec)).get("__call__")):
        raise UsageError(f"tools[{tool!r}] is a coroutine function; the gate does not wait: give a plain callable")
    if callable(spec):
        return _callable(spec)
    raise UsageError(f"tools[{tool!r}] is of type {type(spec).__name__}, which is no validator: {_WANTED}")


def _as_it_is(arguments: dict[str, Any], text: str) -> Any:
    return arguments


# -- JSON Schema ----------------------------------------------------------------------------------------------------------


def _json_schema(tool: str, schema: dict[str, Any] | bool) -> Validator:
    if isinstance(schema, dict) and _is_tool_definition(schema):
        # As a schema it would hold no rule at all and so let everything through.
        raise UsageError(f"tools[{tool!r}] looks like a whole tool definition: give its JSON Schema alone (its 'parameters' or 'input_schema')")
    library = _need("jsonschema_rs", "toolwire[schema]", tool)
    try:
        # mask: messages must not quote arguments, which may be secret or megabytes long.
        compiled = library.validator_for(schema, retriever=_never_fetch, mask="the value")
    except Exception as error:
        path = _pointer(getattr(error, "instance_path", ()))
        message = _one_line(getattr(error, "message", None) or str(error))
        raise UsageError(f"tools[{tool!r}] is no JSON Schema that can be used: {f'at {path}: ' if path else ''}{message}") from error

    def validate(arguments: dict[str, Any], text: str) -> Any:
        try:
            faults = [_schema_fault(error) for error, _ in zip(compiled.iter_errors(arguments), range(_MAX_FAULTS), strict=False)]
        except Exception as error:  # a limit of the library, such as its depth: not valid as far as anyone can tell
            raise ShapeError(_said(error)) from error
        if faults:
            raise ShapeError("; ".join(faults))
        return arguments

    return validate


def _is_tool_definition(schema: dict[str, Any]) -> bool:
    return "input_schema" in schema or isinstance(schema.get("function"), Mapping) or ("name" in schema and "parameters" in schema)


def _never_fetch(uri: str) -> Any:
    raise ValueError("references out of a schema are never fetched; put the referenced schema under $defs")


def _schema_fault(error: Any) -> str:
    path, rule = list(error.instance_path), error.kind.name
    # These two blame the object; what helps is the name of the member that is missing, or that should not be there.
    if rule == "required":
        path.append(error.kind.property)
    elif rule in ("additionalProperties", "unevaluatedProperties") and len(error.kind.unexpected) == 1:
        path += error.kind.unexpected
    return _fault(path, rule, error.message)


# -- pydantic -------------------------------------------------------------------------------------------------------------


def _pydantic(validate_json: Callable[[str], Any]) -> Validator:
    def validate(arguments: dict[str, Any], text: str) -> Any:
        try:
            return validate_json(text)
        except Exception as error:
            if not (_has_method(error, "errors") and _has_method(error, "error_count")):  # none of pydantic's: a validator let it out
                raise ShapeError(_said(error)) from error
            errors = error.errors(include_url=False, include_context=False, include_input=False)  # type: ignore[attr-defined]
            faults = [_pydantic_fault(arguments, e) for e in errors[:_MAX_FAULTS]]
            raise ShapeError("; ".join(faults)) from error

    return validate


def _pydantic_fault(arguments: dict[str, Any], error: Mapping[str, Any]) -> str:
    """``loc`` mixes keys with the names of union members and validators; a JSON pointer holds only what is in the value."""
    path: list[str | int] = []
    here: Any = arguments
    missing = error["type"] == "missing"
    loc = error["loc"]
    for i, part in enumerate(loc):
        if (isinstance(here, dict) and part in here) or (isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)):
            path.append(part)
            here = here[part]
        elif missing and i == len(loc) - 1:
            path.append(part)
    return _fault(path, "required" if missing else error["type"], error["msg"])


# -- msgspec --------------------------------------------------------------------------------------------------------------


def _is_msgspec_type(spec: Any) -> bool:
    if get_origin(spec) is not None:  # dict[str, int], Annotated[...], a generic Struct with its parameters
        return True
    return isinstance(spec, type) and (
        hasattr(spec, "__struct_fields__")
        or dataclasses.is_dataclass(spec)
        or hasattr(spec, "__attrs_attrs__")
        or (issubclass(spec, dict) and hasattr(spec, "__required_keys__"))
    )


def _msgspec(tool: str, spec: Any) -> Validator:
    library = _need("msgspec", "msgspec", tool)
    try:
        decode = library.json.Decoder(spec).decode
    except Exception as error:
        raise UsageError(f"tools[{tool!r}] is no type that msgspec can decode: {_one_line(str(error))}") from error

    def validate(arguments: dict[str, Any], text: str) -> Any:
        try:
            return decode(text)
        except library.ValidationError as error:
            raise ShapeError(_msgspec_fault(str(error))) from error
        except Exception as error:
            raise ShapeError(_said(error)) from error

    return validate


def _msgspec_fault(message: str) -> str:
    """msgspec gives the place at the end of its sentence (`` - at `$.a[0].b` ``), with ``[...]`` for a key it does not name."""
    said, _, place = message.partition(" - at `")
    path: list[str | int] = []
    for index, name in re.findall(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)", place.rstrip("`")):
        path.append(name or ("*" if index == "..." else int(index)))
    missing = re.fullmatch(r"Object missing required field `(.*)`", said)
    if missing:
        return _fault([*path, missing[1]], "required", said)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", said)
    if unknown:
        return _fault([*path, unknown[1]], "unknown_field", said)
    return _fault(path, "type" if said.startswith("Expected `") and "of length" not in said else "constraint", said)


# -- callables ------------------------------------------------------------------------------------------------------------


def _callable(spec: Callable[[dict[str, Any]], Any]) -> Validator:
    def validate(arguments: dict[str, Any], text: str) -> Any:
        try:
            result = spec(arguments)
        except Exception as error:
            raise ShapeError(_said(error)) from error
        if result is None:
            return arguments
        if isinstance(result, bool):
            raise ShapeError(f"the validator returned {result}; it has to return the arguments, or to raise")
        if inspect.iscoroutine(result):
            result.close()
            raise ShapeError("the validator returned a coroutine; the gate does not wait")
        return result

    return validate


# -- what they share ------------------------------------------------------------------------------------------------------


def _need(module: str, install: str, tool: str) -> Any:
    # Only here, never at import of toolwire: who validates otherwise does not need the library.
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f'tools[{tool!r}] needs {module}, which is not installed: pip install "{install}"') from error


def _has_method(spec: Any, name: str) -> bool:
    return callable(getattr(spec, name, None))


def _pointer(path: Iterable[str | int]) -> str:
    """RFC 6901 section 3: ``~`` is ``~0``, ``/`` is ``~1``; the whole value is the empty pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _fault(path: Iterable[str | int], rule: str, message: str) -> str:
    return f"{_pointer(path) or '(root)'}: {rule} ({_one_line(message)})"


def _said(error: Exception) -> str:
    text = _one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 3] + "..."
