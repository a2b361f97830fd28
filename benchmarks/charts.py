"""SVG charts of a run's figures, written by hand so that they need no library and read the same everywhere."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH = 720
OURS, PEERS = "#0b6e99", ["#8a8f98", "#b08968", "#7d7abc", "#a3b18a", "#c9ada7"]
STYLE = "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.small{font-size:12px;fill:#666}"


def _svg(height: float, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
    background = f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", background, _text(16, 26, title, "title"), *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(words)}</text>'


def _time(microseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1.0)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds * 1000:.3g} ns"


def _colours(names: list[str]) -> dict[str, str]:
    peers = [name for name in names if not name.startswith("toolwire")]
    return {name: OURS if name not in peers else PEERS[peers.index(name) % len(PEERS)] for name in names}


def lines(title: str, across: str, series: dict[str, dict[int, float]]) -> str:
    """Lines over two logarithmic axes; each is named at its right end."""
    left, right, top, bottom = 76, WIDTH - 190, 56, 350
    xs = sorted({x for by in series.values() for x in by})
    values = [y for by in series.values() for y in by.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(x: float, y: float) -> tuple[float, float]:
        across_ = (math.log10(x) - math.log10(xs[0])) / (math.log10(xs[-1]) - math.log10(xs[0]))
        return left + (right - left) * across_, bottom - (bottom - top) * (math.log10(y) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        y = place(xs[0], 10.0**power)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#e3e3e3"/>')
        parts.append(_text(left - 8, y + 4, _time(10.0**power), "small", "end"))
    for x in xs:
        parts.append(_text(place(x, 1)[0], bottom + 20, f"{x:,}", "small", "middle"))
    parts.append(_text((left + right) / 2, bottom + 42, across, "small", "middle"))
    colours, taken = _colours(list(series)), -math.inf
    for name, by in sorted(series.items(), key=lambda item: -item[1][xs[-1]]):
        points = [place(x, by[x]) for x in xs]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colours[name]}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colours[name]}"/>' for x, y in points]
        taken = max(points[-1][1] + 4, taken + 17)
        parts.append(_text(right + 12, taken, name))
    return _svg(bottom + 58, title, parts)


def bars(title: str, groups: dict[str, dict[str, float]]) -> str:
    """Horizontal bars over one logarithmic axis from a tenth of the least value; every bar has its time beside it."""
    left, right, y = 210, WIDTH - 84, 44.0
    values = [value for group in groups.values() for value in group.values()]
    low, high = math.log10(min(values)) - 1, math.log10(max(values))
    parts = []
    for heading, group in groups.items():
        parts.append(_text(16, y + 16, heading, "small"))
        y += 24
        colours = _colours(list(group))
        for name, value in sorted(group.items(), key=lambda item: item[1]):
            length = (right - left) * (math.log10(value) - low) / (high - low)
            parts.append(_text(left - 10, y + 14, name, anchor="end"))
            parts.append(f'<rect x="{left}" y="{y:.1f}" width="{length:.1f}" height="19" rx="2" fill="{colours[name]}"/>')
            parts.append(_text(left + length + 8, y + 14, _time(value), "small"))
            y += 24
        y += 8
    parts.append(_text(16, y + 14, "logarithmic scale; shorter is better", "small"))
    return _svg(y + 28, title, parts)


def write(figures: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what this run has figures for."""
    drawn: dict[str, str] = {}
    growth = {name: by for name, by in figures.get("growth", {}).get("long string", {}).items() if by}
    if growth:
        drawn["growth"] = lines("Time of the next delta, by length of the arguments so far", "characters so far", growth)
    shapes = figures.get("shape", {})
    pipeline = {name.removeprefix("pipeline ") + " arguments": result["median"] for name, result in shapes.items() if name.startswith("pipeline ")}
    for name, result in shapes.items():
        if name.startswith("sdk "):
            ours = f"8 kB arguments, {'anthropic' if name == 'sdk anthropic' else 'openai-chat'}"
            pipeline.setdefault(ours, {}).update(result["median"])
    if pipeline:
        drawn["pipeline"] = bars("Bytes to delta events with live arguments, time a delta", pipeline)
    if "framing" in shapes:
        drawn["framing"] = bars("Framing an event of 340 bytes", {"chunks of 1,400 bytes": shapes["framing"]["median"]})
    paths = []
    for name, text in drawn.items():
        paths.append(folder / f"benchmark-{name}.svg")
        paths[-1].write_text(text, encoding="utf-8")
    return paths
