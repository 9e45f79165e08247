"""Where the results of a movement node begin inside their source: they are views, resolved at compile time."""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Extent, Unknown, add, call, mul
from tessiq_core.ir.graph import Node
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.arguments import BoundCall, bind
from tessiq_core.ops.sizes import as_extent, as_extents, axis, source_type
from tessiq_core.ops.table import OperationTable


def view_offsets(node: Node, table: OperationTable) -> tuple[Extent, ...] | Decline:
    """For every result the offset of its first element from its source's first element, in elements.

    0 for view, permute, expand, …; start * stride for slice and select, sums of them for split and unbind. Strides
    and shapes of the results are those their types record. A slice that starts past the end of a symbolic axis is
    empty, and its offset is not clamped then: it has no first element.

    Declines with `no-row` or `argument` as `bind` does, with `category` for a row that moves no data, and with
    `offset` where a start, an index or a stride is not known well enough.
    """
    bound = bind(node, table)
    if isinstance(bound, Decline):
        return bound
    if bound.row.category != "movement":
        return Decline("category", f"{bound.row.name} is {bound.row.category}, its result is no view", node.name)
    source = source_type(bound)
    if source is None:
        return Decline("offset", f"the source of {bound.row.name} is no tensor", node.name)
    indices = _indices(bound, source, len(node.results))
    if indices is None:
        return tuple(0 for _ in node.results)
    if isinstance(indices, str):
        return Decline("offset", indices, node.name)
    dim = axis(bound.arguments["dim"], source.rank)
    if dim is None or not source.rank:
        return Decline("offset", f"`dim` is no axis of a tensor of rank {source.rank}", node.name)
    offsets = tuple(mul(index, source.layout[dim]) for index in indices)
    if any(isinstance(offset, Unknown) for offset in offsets):
        return Decline("offset", f"a start or the stride of axis {dim} is unknown before the call", node.name)
    return offsets


def _indices(bound: BoundCall, source: TensorType, results: int) -> Sequence[Extent] | str | None:
    """First index along `dim` of each result; None for rows without `dim` starts; a string says why not."""
    name = bound.row.name
    if name not in ("slice", "select", "split", "split_with_sizes", "unbind"):
        return None
    dim = axis(bound.arguments["dim"], source.rank)
    extent: Extent = source.shape[dim] if dim is not None and source.rank else 0
    if name == "slice":
        start = _slice_start(bound, extent)
        return start if isinstance(start, str) else (start,)
    if name == "select":
        index = bound.arguments["index"]
        if isinstance(index, bool) or not isinstance(index, int):
            return "the index of select is computed in the call, and its sign is unknown"
        return (add(extent, index) if index < 0 else index,)
    if name == "unbind":
        return range(results)
    if name == "split":
        size = as_extent(bound.arguments["split_size"])
        return [mul(number, size) for number in range(results)]
    sizes = as_extents(bound.arguments["split_sizes"])
    if sizes is None or len(sizes) != results:
        return f"split_with_sizes has {results} results for other sizes"
    starts: list[Extent] = [0]
    for size in sizes[:-1]:
        starts.append(add(starts[-1], size))
    return starts[:results]


def _slice_start(bound: BoundCall, extent: Extent) -> Extent | str:
    start = bound.arguments["start"]
    if start is None:
        return 0
    if isinstance(start, bool) or not isinstance(start, int):
        return "the start of slice is computed in the call, and its sign is unknown"
    if start < 0:
        return call("max", 0, add(extent, start))
    return min(start, extent) if isinstance(extent, int) else start
