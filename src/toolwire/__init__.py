"""Streamed LLM tool calls, from raw bytes to calls that may run.

``Turn`` takes a provider's streaming body in any pieces and gives events; ``TurnGate`` decides, once the provider itself has
ended the turn, which calls may run. ``JSONParser`` and the framers are the same machines on their own.
"""

from ._aws import AWSEventStreamFramer
from ._framing import Frame, JSONArrayFramer, MessageFramer, NDJSONFramer, SSEFramer
from ._json import MISSING, ItemTap, JSONParser, Key, StringTap, TextPiece, loads
from .drivers import AsyncEventStream, Clock, EventStream, aiter_events, iter_events
from .errors import (
    GateRefused,
    LedgerError,
    LimitExceeded,
    MalformedFrame,
    MalformedJSON,
    ProviderError,
    StreamError,
    ToolwireError,
    TruncatedJSON,
    TurnTruncated,
    UsageError,
)
from .events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    NextRequest,
    Outcome,
    TextDelta,
    ToolCall,
    TurnEnd,
    TurnResult,
    UnknownFrame,
    UsageUpdate,
)
from .gate import GateDecision, GatePolicy, Refusal, RunnableCall, TurnGate
from .limits import Limits
from .marks import Mark
from .sources import aiter_response, iter_response
from .taps import aiter_items, aiter_text, iter_items, iter_text
from .turn import PROVIDERS, Turn
from .ws import ResponsesSocket

__version__ = "0.1.0"

__all__ = [
    "MISSING",
    "PROVIDERS",
    "AWSEventStreamFramer",
    "ArgumentsDelta",
    "AsyncEventStream",
    "CallEnd",
    "CallStart",
    "Clock",
    "Event",
    "EventStream",
    "Frame",
    "GateDecision",
    "GatePolicy",
    "GateRefused",
    "ItemTap",
    "JSONArrayFramer",
    "JSONParser",
    "Key",
    "LedgerError",
    "LimitExceeded",
    "Limits",
    "MalformedFrame",
    "MalformedJSON",
    "Mark",
    "MessageFramer",
    "NDJSONFramer",
    "NextRequest",
    "Outcome",
    "ProviderError",
    "Refusal",
    "ResponsesSocket",
    "RunnableCall",
    "SSEFramer",
    "StreamError",
    "StringTap",
    "TextDelta",
    "TextPiece",
    "ToolCall",
    "ToolwireError",
    "TruncatedJSON",
    "Turn",
    "TurnEnd",
    "TurnGate",
    "TurnResult",
    "TurnTruncated",
    "UnknownFrame",
    "UsageError",
    "UsageUpdate",
    "__version__",
    "aiter_events",
    "aiter_items",
    "aiter_response",
    "aiter_text",
    "iter_events",
    "iter_items",
    "iter_response",
    "iter_text",
    "loads",
]
