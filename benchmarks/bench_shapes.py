"""The shapes as pytest-benchmark sees them: ``pytest benchmarks``. Ratios with their musts: ``python -m benchmarks``."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from .shapes import SHAPES

pytestmark = pytest.mark.filterwarnings("ignore")


@functools.lru_cache(maxsize=1)
def data(name: str) -> Any:
    return SHAPES[name].data(False)


@pytest.mark.parametrize(("name", "contender"), [(name, who) for name, shape in SHAPES.items() for who in shape.contenders])
def test_shape(benchmark: Any, name: str, contender: str) -> None:
    try:
        plan = SHAPES[name].contenders[contender](data(name))
    except ImportError as error:
        pytest.skip(str(error))
    benchmark.group = f"{name}: {SHAPES[name].measure}"
    benchmark.extra_info["units"] = plan.units
    benchmark.pedantic(lambda run: run(), setup=lambda: ((plan.prepare(),), {}), rounds=7, warmup_rounds=1)
