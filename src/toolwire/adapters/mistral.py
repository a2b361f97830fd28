"""Mistral chat: OpenAI's chat shape with its own habits.

Source: mistralai's ``CompletionChunk``. ``index`` defaults to 0 and ``id`` to the string "null", ``arguments`` is text or an
object; only ``tool_calls`` lets tools run.
"""

from __future__ import annotations

from typing import ClassVar

from .openai_chat import OpenAIChatAdapter


class MistralAdapter(OpenAIChatAdapter):
    PROVIDER: ClassVar[str] = "mistral"
    RUNS_ON_STOP: ClassVar[bool] = False

    __slots__ = ()
