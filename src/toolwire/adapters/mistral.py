"""Mistral chat: OpenAI's chat shape with its own habits. And the door to Mistral's other protocol, Conversations.

Source: mistralai's ``CompletionChunk``. ``index`` defaults to 0 and ``id`` to the string "null", ``arguments`` is text or an
object; only ``tool_calls`` lets tools run.

A body that begins with an event of Conversations is handed over to ``mistral_conversations``, from its first payload to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ._base import TurnRecord
from ._message import Texts
from .mistral_conversations import EVENTS, MistralConversationsAdapter
from .openai_chat import OpenAIChatAdapter

if TYPE_CHECKING:
    from .._framing import Frame


class MistralAdapter(OpenAIChatAdapter):
    PROVIDER: ClassVar[str] = "mistral"
    RUNS_ON_STOP: ClassVar[bool] = False
    PROJECTION: ClassVar[Mapping[str, Any]] = {**OpenAIChatAdapter.PROJECTION, **MistralConversationsAdapter.PROJECTION}

    __slots__ = ("_conversation", "_first")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._conversation: MistralConversationsAdapter | None = None
        self._first = True

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        if self._first:
            self._first = False
            kind = payload.get("type")
            if "choices" not in payload and (kind if type(kind) is str else frame.event) in EVENTS:
                self._conversation = MistralConversationsAdapter(self.record)
        if self._conversation is None:
            super().handle(payload, frame)
        else:
            self._conversation.handle(payload, frame)

    def done_marker(self) -> None:
        if self._conversation is None:
            super().done_marker()

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        return super().replay(texts, choice) if self._conversation is None else self._conversation.replay(texts, choice)

    def at_end(self, clean: bool) -> bool:
        return super().at_end(clean) if self._conversation is None else self._conversation.at_end(clean)
