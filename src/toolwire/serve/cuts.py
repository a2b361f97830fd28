"""How a body is cut into chunks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Cut:
    """How a body is cut into chunks."""

    how: Literal["whole", "size", "random"]
    size: int = 0
    seed: str = ""

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Read the argument of ``--chunk``.

        Raises:
            ValueError: it is none.
        """
        if text == "whole":
            return cls("whole")
        if text.startswith("random:") and text != "random:":
            return cls("random", seed=text.removeprefix("random:"))
        if text.isascii() and text.isdigit() and int(text) > 0:
            return cls("size", size=int(text))
        raise ValueError(f"{text!r} is no way to cut: use whole, a number of bytes, or random:SEED")

    def apply(self, data: bytes) -> Iterator[bytes]:
        """The chunks of ``data``: the same ones each time."""
        if self.how == "whole":
            yield data
            return
        dice = random.Random(self.seed)
        start = 0
        while start < len(data):
            # Mostly short: what goes wrong between two chunks goes wrong inside a frame.
            size = self.size if self.how == "size" else 1 + int(dice.expovariate(1 / 64))
            yield data[start : start + size]
            start += size
