"""Every limit of a turn, with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may use. The error that a limit raises names it, its value and this class.

    Attributes:
        max_frame_bytes: one frame. An inline image or a final Responses object is a few MiB; 16 MiB leaves room.
        max_depth: nested arrays and objects in one JSON text. Real arguments stay below 20; 512 is safe for every
            recursive consumer further on.
        max_argument_chars: argument text of one call. Models stop far below it (a 200k-token answer is under 1 MiB).
        max_calls: calls in one turn. Providers refuse far fewer.
        max_text_chars: text, reasoning and refusal of one turn, together.
        max_array_index: largest array index in streamed argument paths (Google ``jsonPath``); Google's own reader
            stops at 10,000.
        max_partial_args: pieces of streamed arguments in one call.
        max_stray_bytes: JSON that stands outside any frame, such as an error body.
        max_usage_members: members of the usage object that are kept; others are left out. Providers send about ten.
        max_open_gaps: missing event numbers remembered, so that a late event can be told from a repeated one.
    """

    max_frame_bytes: int = 16 << 20
    max_depth: int = 512
    max_argument_chars: int = 16 << 20
    max_calls: int = 1024
    max_text_chars: int = 64 << 20
    max_array_index: int = 10_000
    max_partial_args: int = 1_000_000
    max_stray_bytes: int = 1 << 20
    max_usage_members: int = 64
    max_open_gaps: int = 1024
