"""All shapes by name, in the order of the table in docs/performance.md."""

from . import shapes_accelerate, shapes_emit, shapes_ijson, shapes_json, shapes_partial, shapes_sdk, shapes_sse_clients, shapes_system, shapes_wire
from .suite import Shape

_MODULES = (shapes_json, shapes_wire, shapes_sdk, shapes_emit, shapes_sse_clients, shapes_partial, shapes_accelerate, shapes_ijson, shapes_system)
SHAPES: dict[str, Shape] = {shape.name: shape for module in _MODULES for shape in module.SHAPES}
