"""What ``toolwire replay`` shows to a person.

Two kinds of output. *Lines* stay: text and drafts once they no longer grow, and the verdict. On a terminal there is also a *sketch*
below them, redrawn while things grow and gone at the end; without a terminal a line says that a call is being prepared instead.

The wording keeps drafts and facts apart: a call is "preparing" or a "draft" until the gate has decided, and "may run" is printed for
the calls in ``decision.runnable`` and nowhere else. Everything that came out of the stream passes through ``shown``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any, Final, TextIO, TypeAlias

from ..errors import StreamError, UsageError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, ToolCall, TurnEnd, TurnResult
from ..gate import REASONS, GateDecision, Refusal
from ..marks import MARKS
from .shown import shown

#: (style, text) pairs that make one line.
Line: TypeAlias = list[tuple[str, str]]

_DRAFT: Final = "dim italic"
_GOOD: Final = "bold green"
_BAD: Final = "bold red"
_NOTE: Final = "yellow"

_REDRAW: Final = 0.05  # seconds between two sketches: what the eye follows
_TAIL: Final = 2000  # characters of growing text that the sketch looks at
_SKETCH_LINES: Final = 3  # lines of each growing thing in the sketch
_LONGEST: Final = 1000  # characters of one call's arguments in a line; --json has all

# DECAWM. Terminals do not agree on the width of every character; a line of the sketch that wraps would be counted as one and not
# be taken away whole.
_WRAP_OFF: Final = "\x1b[?7l"
_WRAP_ON: Final = "\x1b[?7h"

_MORE: Final = "  | "  # what a line of the stream's text starts with, from its second line on


class _Growing:
    """Text that is still arriving: its beginning for the line, its end for the sketch."""

    def __init__(self) -> None:
        self.head = ""
        self.tail = ""
        self.length = 0

    def add(self, text: str) -> None:
        self.length += len(text)
        if len(self.head) < _LONGEST:
            self.head += text[: _LONGEST - len(self.head)]
        self.tail = (self.tail + text)[-_TAIL:]


class View:
    """Shows turns, one after the other, on ``out``.

    Raises:
        UsageError: rich is not installed.
    """

    def __init__(self, out: TextIO) -> None:
        try:
            import rich.console
        except ImportError as error:
            raise UsageError('the view needs rich, which is not installed: pip install "toolwire[cli]", or use --json') from error
        self._out = out
        self._encoding = getattr(out, "encoding", None) or "utf-8"
        self._console: Any = None
        if out.isatty() and os.environ.get("TERM") != "dumb":
            self._console = rich.console.Console(file=out, markup=False, highlight=False, emoji=False)
        self._live: Any = None
        self._drawn = 0.0
        self._run: list[str] = []  # text of one channel that is still growing
        self._run_tail = ""
        self._run_of = ("text", 0)
        self._drafts: dict[str, tuple[ToolCall, _Growing]] = {}  # calls that are still growing

    # -- what stays ---------------------------------------------------------------------------------------------------

    def _clean(self, text: str, *, lines: bool = False) -> str:
        return shown(text, lines=lines, encoding=self._encoding)

    def _line(self, *parts: tuple[str, str]) -> None:
        self.stop()
        if self._console is None:
            self._out.write("".join(text for _, text in parts).rstrip() + "\n")
        else:
            for line in self._wrapped(parts):
                self._console.print(line)

    def _wrapped(self, parts: Iterable[tuple[str, str]]) -> list[Any]:
        """Lines that fit. Only a first line starts at the left edge: no text that is wrapped there can pose as one of ours."""
        first, *rest = _text(parts).wrap(self._console, max(8, self._console.width - len(_MORE)), overflow="fold")
        return [first, *(_text([("dim", _MORE)]).append_text(line) for line in rest)]

    # -- one turn -----------------------------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """A file begins."""
        self._run.clear()
        self._drafts.clear()
        self._run_tail = ""
        self._line(("bold", f"== {self._clean(name)}"))

    def show(self, event: Event) -> None:
        """One event."""
        if isinstance(event, TextDelta):
            if (event.channel, event.choice) != self._run_of:
                self._end_run()
                self._run_of = (event.channel, event.choice)
            self._run.append(event.text)
            self._run_tail = (self._run_tail + event.text)[-_TAIL:]
        elif isinstance(event, CallStart):
            self._end_run()
            self._drafts[event.call.key] = (event.call, _Growing())
            if self._console is None:
                self._line(("", f"{self._preparing(event.call)} ..."))
        elif isinstance(event, ArgumentsDelta):
            self._drafts.setdefault(event.call.key, (event.call, _Growing()))[1].add(event.text)
        elif isinstance(event, CallEnd):
            self._end_draft(event.call.key)
        elif isinstance(event, TurnEnd):
            self._end_run()
            for key in list(self._drafts):
                self._end_draft(key)
        self._sketch()

    def stop(self) -> None:
        """Take the sketch away. Called for every line that stays, and when nothing more comes, however it ends."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
            self._out.write(_WRAP_ON)
            self._out.flush()

    def _end_run(self) -> None:
        text = "".join(self._run)
        self._run.clear()
        self._run_tail = ""
        if text:
            text = self._clean(text, lines=True)
            self._line((_DRAFT, f"{self._heading()}: "), ("", text if self._console is not None else text.replace("\n", "\n" + _MORE)))

    def _heading(self) -> str:
        channel, choice = self._run_of
        return f"{channel}{f' of choice {choice}' if choice else ''}"

    def _end_draft(self, key: str) -> None:
        found = self._drafts.pop(key, None)
        if found is not None:
            call, growing = found
            self._line((_DRAFT, f"draft of {self._label(call)}: {self._clipped(growing.head, growing.length) or '(no argument text)'}"))

    def _label(self, call: ToolCall) -> str:
        return self._clean(f"{call.name or '(no name)'} [{call.key}]")

    def _preparing(self, call: ToolCall) -> str:
        return f"preparing {self._label(call)}{' (the provider runs it)' if call.runs_on == 'provider' else ''}"

    def _clipped(self, text: str, length: int | None = None) -> str:
        length = len(text) if length is None else length
        more = f" ... ({length} characters in all)" if length > _LONGEST else ""
        return self._clean(text[:_LONGEST]) + more

    # -- the sketch ---------------------------------------------------------------------------------------------------

    def _sketch(self) -> None:
        growing_now = self._run or self._drafts
        if self._console is None or not growing_now or time.monotonic() - self._drawn < _REDRAW:
            return
        from rich.console import Group
        from rich.live import Live

        width, height = self._console.width, self._console.height
        lines: list[Any] = []
        if self._run:
            lines += self._last_lines(f"{self._heading()}: ", "", self._clean(self._run_tail, lines=True))
        # The newest calls are at the bottom, and stay when there is no room for all.
        for call, growing in self._drafts.values():
            lines.append(_text([("cyan", f"{self._preparing(call)} ... "), ("dim", f"{growing.length} characters")]))
            lines[-1].truncate(width, overflow="crop")
            if growing.length:
                lines += self._last_lines("  draft: ", _DRAFT, self._clean(growing.tail))
        room = max(1, height - 2)
        if self._live is None:
            # No refresh of its own: that would be a thread, which draws while we print.
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._out.write(_WRAP_OFF)
            self._live.start()
        self._live.update(Group(*lines[-room:]), refresh=True)
        self._drawn = time.monotonic()

    def _last_lines(self, heading: str, style: str, text: str) -> list[Any]:
        return self._wrapped([(_DRAFT, heading), (style, text)])[-_SKETCH_LINES:]

    # -- the verdict --------------------------------------------------------------------------------------------------

    def verdict(self, result: TurnResult, decision: GateDecision) -> None:
        """What the provider said, then what the gate says."""
        word = "gave no reason" if result.reason is None else f'gave the reason "{self._clean(result.reason)}"'
        ended = "" if result.ended else "; the body stopped before the provider ended the turn"
        self._line(("", f"{self._clean(result.provider)} {word}: outcome {result.outcome}{ended}"))
        if result.error is not None:
            code = f" {result.error.code}" if isinstance(result.error, StreamError) else ""
            message = result.error.message if isinstance(result.error, StreamError) else str(result.error)
            self._line((_BAD, "error"), ("", self._clean(f" {type(result.error).__name__}{code}: {message}")))
        self._marks("marks", result.marks)
        for call in result.calls:
            self._marks(f"marks of {self._label(call)}", call.marks)
            if call.runs_on == "provider":
                self._line(("", f"{self._label(call)}: the provider runs this one itself"))
            elif "needs_approval" in call.marks:
                self._line(("", f"{self._label(call)}: asks a person for approval"))

        if decision.action == "refuse":
            self._line((_BAD, "gate: refuse"))
        elif decision.action == "run":
            self._line((_GOOD, "gate: run"))
        else:
            self._line(("bold", "gate: nothing to run"))
        for runnable in decision.runnable:
            arguments = runnable.arguments if runnable.kind == "text" else json.dumps(runnable.arguments, ensure_ascii=False)
            self._line((_GOOD, f"  may run {self._label(runnable.call)}"), ("", f" {self._clipped(arguments)}"))
        for refusal in decision.refused:
            self._refusal(refusal)
        if decision.action == "refuse" and not decision.refused:
            for reason in decision.reasons:
                self._line(("", f"  {REASONS[reason]} ({reason})"))
            if decision.detail:
                self._line(("dim", f"    {self._clean(decision.detail)}"))
        self._out.flush()

    def _refusal(self, refusal: Refusal) -> None:
        self._line((_BAD, f"  refused {self._label(refusal.call)}"))
        for reason in refusal.reasons:
            detail = refusal.details[reason]
            self._line(("", f"    {REASONS[reason]} ({reason})"), ("dim", f": {self._clean(detail)}" if detail else ""))

    def _marks(self, heading: str, marks: Iterable[Any]) -> None:
        for mark in marks:
            detail = f" ({mark.detail})" if mark.detail else ""
            self._line((_NOTE, f"{heading}: "), ("", self._clean(f"{mark}: {MARKS.get(mark, '')}{detail}")))


def _text(parts: Iterable[tuple[str, str]]) -> Any:
    from rich.text import Text

    text = Text()
    for style, part in parts:
        text.append(part, style or None)
    return text
