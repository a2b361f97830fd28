"""All shapes by name, in the order of the table in docs/performance.md."""

from . import shapes_emit, shapes_json, shapes_partial, shapes_sdk, shapes_sse_clients, shapes_system, shapes_wire
from .suite import Shape

SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        *shapes_json.SHAPES,
        *shapes_wire.SHAPES,
        *shapes_sdk.SHAPES,
        *shapes_emit.SHAPES,
        *shapes_sse_clients.SHAPES,
        *shapes_partial.SHAPES,
        *shapes_system.SHAPES,
    )
}
