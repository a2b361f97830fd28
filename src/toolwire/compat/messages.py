"""Any provider's turn as the message of another, so that a conversation goes on elsewhere: what ``toolwire.emit`` does for bytes.

Plain data wherever plain data serves; LangChain and Pydantic AI are imported only by the functions that make their objects. In the shape of the
provider that the turn came from, each function gives what ``TurnResult.replay()`` writes, with everything that this provider wants back.

What goes into a message is what the gate would let through, had it no tools to compare with. Half a call, or arguments that somebody repaired, mislead the
model, so a turn that did not end well, or of which a call is refused, raises ``UsageError``; one that was cut by its length, or refused, only if it has calls.
With ``partial=True`` nothing of that raises: what the gate refuses is left out, and the text stays as far as it came. Nothing is released here, so a
``TurnGate`` may decide about the same turn before or after.

What is the same in all shapes, where the turn came from another provider:

* Arguments that are JSON text in a shape are the exact text of the call, ``{}`` for none; where the shape wants an object, that text parsed. What was
  done to ``call.value`` does not matter.
* A call without an id of the provider's has its synthetic one (``RunnableCall.id``, so that results find it), except in Gemini's shape, which needs none.
* A call with free text, in a shape that has objects only, becomes one with the object ``{"input": text}``; refusal text is text in a shape that has none.
* Text stands before the calls. Reasoning, signatures and callers mean something to their own provider only and are left out, as are calls that the
  provider ran itself.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._json import loads
from ..errors import TurnTruncated, UsageError
from ..events import ArgumentsDelta, CallStart, Event, Outcome, TextDelta, ToolCall, TurnEnd, TurnResult
from ..gate import TurnGate, is_client_call

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.messages import TextPart, ToolCallPart  # type: ignore[import-not-found, unused-ignore]

__all__ = [
    "to_anthropic_message",
    "to_gemini_content",
    "to_langchain_chunk",
    "to_langchain_message",
    "to_langchain_tool_call_chunks",
    "to_langchain_tool_calls",
    "to_openai_items",
    "to_openai_message",
    "to_pydantic_ai_parts",
    "to_pydantic_ai_tool_calls",
]


# -- OpenAI -------------------------------------------------------------------------------------------------------------------


def to_openai_message(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> dict[str, Any]:
    """The assistant message of Chat Completions.

    Args:
        result: the turn.
        choice: which of its choices.
        partial: leave out what the gate refuses, instead of raising.
    Returns:
        a new dict with ``role`` and ``content``, and where there are any ``refusal`` and ``tool_calls``.
    Raises:
        UsageError: the turn, or one of its calls, is none that may be sent back; or ``result`` is no result, or has no such choice.
    """
    reply = _reply(result, choice, partial)
    for message in reply.own("openai-chat"):
        return message
    message = {"role": "assistant", "content": reply.text if reply.text or not (reply.calls or reply.refusal) else None}
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls:
        message["tool_calls"] = [_openai_call(reply, call) for call in reply.calls]
    return message


def _openai_call(reply: _Reply, call: ToolCall) -> dict[str, Any]:
    kind, member = ("function", "arguments") if call.kind == "json" else ("custom", "input")
    extra = reply.extra(call, "openai-chat")
    return {"id": _id(call), "type": kind, kind: {"name": call.name, member: _text(call)}, **({"extra_content": extra} if extra else {})}


def to_openai_items(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> list[dict[str, Any]]:
    """The turn as ``input`` items of a Responses request.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Returns:
        new dicts: a message, if there is text, and the calls.
    Raises:
        UsageError: as ``to_openai_message``.
    """
    reply = _reply(result, choice, partial)
    return reply.own("openai-responses") or [
        *({"role": "assistant", "content": text} for text in reply.texts),
        *(_openai_item(reply, call) for call in reply.calls),
    ]


def _openai_item(reply: _Reply, call: ToolCall) -> dict[str, Any]:
    kind, member = ("function_call", "arguments") if call.kind == "json" else ("custom_tool_call", "input")
    # Not the item's own id: with it, the API asks for the reasoning item that came before.
    extra = {key: value for key, value in reply.extra(call, "openai-responses").items() if key != "id"}
    return {"type": kind, "call_id": _id(call), "name": call.name, member: _text(call), **extra}


# -- Anthropic ----------------------------------------------------------------------------------------------------------------


def to_anthropic_message(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> dict[str, Any]:
    """The assistant message of Anthropic's Messages.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Returns:
        a new dict with ``role`` and ``content``, a list of blocks; empty if the turn had neither text nor calls.
    Raises:
        UsageError: as ``to_openai_message``.
    """
    reply = _reply(result, choice, partial)
    for message in reply.own("anthropic"):
        return message
    text = [{"type": "text", "text": text} for text in reply.texts]
    calls = [{"type": "tool_use", "id": _id(call), "name": call.name, "input": _object(call), **reply.extra(call, "anthropic")} for call in reply.calls]
    return {"role": "assistant", "content": text + calls}


# -- Gemini -------------------------------------------------------------------------------------------------------------------


def to_gemini_content(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> dict[str, Any]:
    """The model's content of generateContent.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Returns:
        a new dict with ``role`` and ``parts``; no parts if the turn had neither text nor calls.
    Raises:
        UsageError: as ``to_openai_message``.
    """
    reply = _reply(result, choice, partial)
    for content in reply.own("google-generate"):
        return content
    parts: list[dict[str, Any]] = [{"text": text} for text in reply.texts]
    for call in reply.calls:
        id = {} if call.id_is_synthetic else {"id": _id(call)}
        parts.append({"functionCall": {**id, "name": call.name, "args": _object(call)}, **reply.extra(call, "google-generate")})
    return {"role": "model", "parts": parts}


# -- LangChain ----------------------------------------------------------------------------------------------------------------


def to_langchain_tool_call_chunks(events: Iterable[Event], *, choice: int = 0) -> list[dict[str, Any]]:
    """The calls among ``events`` as LangChain's ``ToolCallChunk``s, for showing a turn while it arrives.

    Chunks promise nothing: LangChain closes half-finished JSON by itself, so the ``tool_calls`` of added-up chunks look whole after every cut. What may run
    says the gate, and what goes into the history ``to_langchain_message``.

    Args:
        events: what ``feed`` or a driver gave.
        choice: calls of which choice.
    Returns:
        a dict for each call that started or grew: ``name`` and ``id`` with its start only, ``args`` what was added, ``index`` its number in the turn. A
        synthetic id comes with ``TurnEnd``, because no call has one before.
    """
    chunks: dict[str, dict[str, Any]] = {}
    added: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, TurnEnd):
            for call in event.result.calls:
                if call.id_is_synthetic and call.name and _shown(call, choice):
                    _chunk(chunks, call)["id"] = call.id
        elif isinstance(event, (CallStart, ArgumentsDelta)) and _shown(event.call, choice):
            chunk = _chunk(chunks, event.call)
            if isinstance(event, ArgumentsDelta):
                added.setdefault(event.call.key, []).append(event.text)
            else:
                chunk["name"] = event.call.name
                chunk["id"] = None if event.call.id_is_synthetic else event.call.id
    for key, texts in added.items():
        chunks[key]["args"] = "".join(texts)
    return list(chunks.values())


def _chunk(chunks: dict[str, dict[str, Any]], call: ToolCall) -> dict[str, Any]:
    # One for each call: LangChain adds up chunks of two messages, not those within one.
    empty = {"name": None, "args": "", "id": None, "index": int(call.key.partition(".")[2]), "type": "tool_call_chunk"}
    return chunks.setdefault(call.key, empty)


def _shown(call: ToolCall, choice: int) -> bool:
    return call.choice == choice and is_client_call(call)


def to_langchain_chunk(events: Iterable[Event], *, choice: int = 0) -> AIMessageChunk:
    """The text and calls among ``events`` as one ``AIMessageChunk``; chunks add up with ``+``.

    Args:
        events, choice: as for ``to_langchain_tool_call_chunks``.
    Raises:
        UsageError: langchain-core is not installed.
    """
    events = list(events)
    text = "".join(event.text for event in events if isinstance(event, TextDelta) and event.channel == "text" and event.choice == choice)
    chunks: Any = to_langchain_tool_call_chunks(events, choice=choice)
    made: AIMessageChunk = _peer("langchain_core.messages", "langchain-core").AIMessageChunk(content=text, tool_call_chunks=chunks)
    return made


def to_langchain_tool_calls(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> list[dict[str, Any]]:
    """The calls as LangChain's ``ToolCall``s: ``name``, ``args``, ``id``, ``type``.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Raises:
        UsageError: as ``to_openai_message``.
    """
    return _langchain_calls(_reply(result, choice, partial).calls)


def _langchain_calls(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "args": _object(call), "id": _id(call), "type": "tool_call"} for call in calls]


def to_langchain_message(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> AIMessage:
    """The turn as an ``AIMessage``.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Raises:
        UsageError: as ``to_openai_message``, or langchain-core is not installed.
    """
    reply = _reply(result, choice, partial)
    refusal = {"refusal": reply.refusal} if reply.refusal else {}
    made: AIMessage = _peer("langchain_core.messages", "langchain-core").AIMessage(
        content=reply.text, tool_calls=_langchain_calls(reply.calls), id=reply.turn.response_id, additional_kwargs=refusal
    )
    return made


# -- Pydantic AI --------------------------------------------------------------------------------------------------------------


def to_pydantic_ai_tool_calls(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> list[dict[str, Any]]:
    """The calls as what Pydantic AI's ``ToolCallPart`` is made of: ``tool_name``, ``args`` (JSON text), ``tool_call_id``.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Raises:
        UsageError: as ``to_openai_message``.
    """
    return _pydantic_ai_calls(_reply(result, choice, partial).calls)


def _pydantic_ai_calls(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [{"tool_name": c.name, "args": _text(c) if c.kind == "json" else _object(c), "tool_call_id": _id(c)} for c in calls]


def to_pydantic_ai_parts(result: TurnResult | TurnTruncated, *, choice: int = 0, partial: bool = False) -> list[TextPart | ToolCallPart]:
    """The text and calls as parts of a Pydantic AI ``ModelResponse``.

    Args:
        result, choice, partial: as for ``to_openai_message``.
    Raises:
        UsageError: as ``to_openai_message``, or pydantic-ai is not installed.
    """
    reply = _reply(result, choice, partial)
    peer = _peer("pydantic_ai.messages", "pydantic-ai-slim")
    return [*map(peer.TextPart, reply.texts), *(peer.ToolCallPart(**call) for call in _pydantic_ai_calls(reply.calls))]


# -- what they share ----------------------------------------------------------------------------------------------------------


class _Reply(NamedTuple):
    """What of one choice may be sent back."""

    turn: TurnResult
    text: str
    refusal: str
    calls: list[ToolCall]  # for the client
    is_whole: bool  # nothing is left out
    partial: bool

    @property
    def texts(self) -> list[str]:
        return [text for text in (self.text, self.refusal) if text]

    def own(self, provider: str) -> list[dict[str, Any]]:
        """The reply as its own provider takes it, if that is the one."""
        if not self.is_whole or self.turn.provider != provider:
            return []
        try:
            return copy.deepcopy(self.turn.replay())
        except UsageError:  # for a call that the provider ran: the gate does not look at those
            if self.partial:
                return []
            raise

    def extra(self, call: ToolCall, provider: str) -> dict[str, Any]:
        """What has to be sent back with a call, if it goes to its own provider."""
        return copy.deepcopy(call.extra) if self.turn.provider == provider else {}


def _reply(result: TurnResult | TurnTruncated, choice: int, partial: bool) -> _Reply:
    whole = result.result if isinstance(result, TurnTruncated) else result
    if not isinstance(whole, TurnResult):
        raise UsageError(f"a message is made of a TurnResult or a TurnTruncated, not of a {type(whole).__name__}")
    if choice != 0 and choice not in {*whole.choices, *(call.choice for call in whole.calls), *(number for number, _ in whole.texts)}:
        raise UsageError(f"the turn has no choice {choice!r}")
    turn = whole.choice(choice)
    turn.calls = tuple(call for call in turn.calls if "superseded" not in call.doubts)  # another model took over; nobody sends them back
    decision = TurnGate().preview(turn)
    is_whole = (decision.action != "refuse" and not decision.refused) or _is_text_only(turn, decision.reasons)
    if not is_whole and not partial:
        reasons = ", ".join(reason for reason in decision.reasons if reason != "ended")
        details = [decision.detail, *(f"{each.call.name or each.call.key}: {each.detail}" for each in decision.refused if not decision.detail)]
        raise UsageError(f"nothing to send back ({reasons}): {'; '.join(filter(None, details))}")
    left_out = {id(each.call) for each in decision.refused}
    calls = [call for call in turn.calls if is_client_call(call) and id(call) not in left_out]
    return _Reply(turn, turn.text, turn.texts.get((choice, "refusal"), ""), calls, is_whole, partial)


def _is_text_only(turn: TurnResult, reasons: tuple[str, ...]) -> bool:
    """Ended by its length or refused, and nothing else: without calls, what was said is a message."""
    return not turn.calls and (
        (turn.outcome is Outcome.LENGTH and reasons == ("turn_truncated",)) or (turn.outcome is Outcome.REFUSED and reasons == ("turn_refused",))
    )


def _id(call: ToolCall) -> str:
    return call.id or call.key  # as RunnableCall.id


def _text(call: ToolCall) -> str:
    return call.text if call.text or call.kind == "text" else "{}"


def _object(call: ToolCall) -> Any:
    return loads(_text(call)) if call.kind == "json" else {"input": call.text}


def _peer(module: str, install: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f'this needs {module.partition(".")[0]}, which is not installed: pip install "{install}"') from error
