"""Shapes of a node's results, from the category of its row and the shapes of its operands.

The graph records every shape; this rule is a second opinion the verifier compares it with. A shape that does not
follow from the operands in a simple way is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tessiq_core.decline import Decline
from tessiq_core.ir.extent import UNKNOWN, Extent, Unknown, call, product, provably_equal, sub
from tessiq_core.ir.graph import Value
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.arguments import BoundCall
from tessiq_core.ops.sizes import as_extent, as_extents, axes, axis, keeps_axes, reduced_axes, source_type

Shape: TypeAlias = tuple[Extent, ...]


def broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """The shape all broadcast to; None where two integers cannot.

    An integer other than 1 decides an axis whatever symbols meet it there, for a valid program has 1 or that integer
    in their place. Unequal symbols, and `?` with anything but such an integer, give `?`.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Extent] = []
    for position in range(-rank, 0):
        extent: Extent = 1
        for shape in shapes:
            if len(shape) >= -position:
                met = _broadcast_extent(extent, shape[position])
                if met is None:
                    return None
                extent = met
        result.append(extent)
    return tuple(result)


def _broadcast_extent(a: Extent, b: Extent) -> Extent | None:
    if provably_equal(a, b) or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        return None if isinstance(b, int) else a
    return b if isinstance(b, int) else UNKNOWN


def result_shapes(bound: BoundCall) -> tuple[Shape | None, ...] | Decline:
    """One shape for each result of the bound node; None where the rule of its category does not give it.

    Declines with code `shape` where the operands' shapes cannot belong together.
    """
    results = len(bound.node.results)
    category = bound.row.category
    if category == "movement":
        return _movement(bound, results)
    shape: Shape | None
    if category == "elementwise":
        operands = [_shape(operand) for operand in bound.operands]
        tensors = [operand for operand in operands if operand is not None]
        shape = broadcast(tensors)
        if shape is None:
            texts = ", ".join(_text(tensor) for tensor in tensors)
            return Decline("shape", f"operands of {bound.row.name} do not broadcast: {texts}", bound.node.name)
        return tuple(shape for _ in range(results))
    if category == "reduction":
        shape = _reduction(bound)
    elif category == "matmul":
        found = _matmul(bound)
        if isinstance(found, Decline):
            return found
        shape = found
    elif category == "copy":
        source = source_type(bound)
        shape = source.shape if source is not None else None
    elif category == "fill":
        shape = as_extents(bound.arguments.get("size"))
    else:
        shape = None
    return tuple(shape if index == 0 else None for index in range(results))


def _shape(bound: object) -> Shape | None:
    return bound.type.shape if isinstance(bound, Value) and isinstance(bound.type, TensorType) else None


def _text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _reduction(bound: BoundCall) -> Shape | None:
    source, reduced = source_type(bound), reduced_axes(bound)
    if source is None or reduced is None:
        return None
    if keeps_axes(bound):
        return tuple(1 if number in reduced else extent for number, extent in enumerate(source.shape))
    return tuple(extent for number, extent in enumerate(source.shape) if number not in reduced)


def _matmul(bound: BoundCall) -> Shape | Decline | None:
    """The last two consumed operands are the matrices (or batches of them)."""
    left, right = (_shape(operand) for operand in bound.operands[-2:])
    if left is None or right is None or len(left) != len(right) or len(left) < 2:
        return Decline("shape", f"operands of {bound.row.name} are no two tensors of one rank", bound.node.name)
    pairs = [(left[-1], right[-2]), *zip(left[:-2], right[:-2], strict=True)]
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        return Decline("shape", f"{bound.row.name} cannot multiply {_text(left)} and {_text(right)}", bound.node.name)
    batch = tuple(b if isinstance(a, Unknown) else a for a, b in pairs[1:])
    return (*batch, left[-2], right[-1])


def _movement(bound: BoundCall, results: int) -> tuple[Shape | None, ...]:
    source = source_type(bound)
    if source is None:
        return tuple(None for _ in range(results))
    if bound.row.name in ("split", "split_with_sizes", "unbind"):
        return _pieces(bound, source.shape, results)
    return tuple(_moved(bound, source.shape) if index == 0 else None for index in range(results))


def _moved(bound: BoundCall, shape: Shape) -> Shape | None:
    arguments, rank = bound.arguments, len(shape)
    match bound.row.name:
        case "alias":
            return shape
        case "t":
            return shape[::-1]
        case "transpose":
            order = axes((arguments["dim0"], arguments["dim1"]), rank) if rank else None
            if order is None:
                return shape if axis(arguments["dim0"], rank) == axis(arguments["dim1"], rank) else None
            swapped = list(shape)
            swapped[order[0]], swapped[order[1]] = shape[order[1]], shape[order[0]]
            return tuple(swapped)
        case "permute":
            order = axes(arguments["dims"], rank)
            return tuple(shape[number] for number in order) if order is not None and len(order) == rank else None
        case "unsqueeze":
            place = axis(arguments["dim"], rank + 1)
            return None if place is None else (*shape[:place], 1, *shape[place:])
        case "squeeze":
            return _squeezed(bound, shape)
        case "select":
            place = axis(arguments["dim"], rank)
            return None if place is None else (*shape[:place], *shape[place + 1 :])
        case "slice":
            return _sliced(bound, shape)
        case "expand":
            return _expanded(as_extents(arguments["size"]), shape)
        case "view":
            return _viewed(as_extents(arguments["size"]), shape)
    return None


def _squeezed(bound: BoundCall, shape: Shape) -> Shape | None:
    named = axes(bound.arguments["dim"], len(shape)) if "dim" in bound.arguments else tuple(range(len(shape)))
    if named is None:
        return None
    if any(not isinstance(shape[number], int) for number in named if shape):
        return None  # whether a symbol is 1 is known at the call
    return tuple(extent for number, extent in enumerate(shape) if number not in named or extent != 1)


def _sliced(bound: BoundCall, shape: Shape) -> Shape | None:
    arguments = bound.arguments
    place, step = axis(arguments["dim"], len(shape)), arguments["step"]
    if place is None or not shape or not isinstance(step, int):
        return None
    extent, start, end = shape[place], arguments["start"], arguments["end"]
    begin = 0 if start is None else start
    # PyTorch writes "to the end" as none or as the largest 64-bit integer.
    stop = 2**63 - 1 if end is None else end
    if not isinstance(begin, int) or not isinstance(stop, int):
        return None
    length: Extent
    if isinstance(extent, int):
        length = len(range(*slice(begin, stop, step).indices(extent)))
    elif begin == 0 and step == 1 and stop == 2**63 - 1:
        length = extent
    else:
        return None
    return (*shape[:place], length, *shape[place + 1 :])


def _expanded(size: Shape | None, shape: Shape) -> Shape | None:
    if size is None or len(size) < len(shape):
        return None
    padded = (*(1 for _ in range(len(size) - len(shape))), *shape)
    return tuple(old if new == -1 else new for new, old in zip(size, padded, strict=True))


def _viewed(size: Shape | None, shape: Shape) -> Shape | None:
    if size is None:
        return None
    if -1 not in size:
        return size
    known, total = product([extent for extent in size if extent != -1]), product(shape)
    if known == 0:
        return None
    rest = call("floordiv", total, known)
    return tuple(rest if extent == -1 else extent for extent in size)


def _pieces(bound: BoundCall, shape: Shape, results: int) -> tuple[Shape | None, ...]:
    place = axis(bound.arguments["dim"], len(shape))
    if place is None or not shape:
        return tuple(None for _ in range(results))
    before, after = shape[:place], shape[place + 1 :]
    if bound.row.name == "unbind":
        return tuple((*before, *after) for _ in range(results))
    if bound.row.name == "split_with_sizes":
        sizes = as_extents(bound.arguments["split_sizes"])
        if sizes is None or len(sizes) != results:
            return tuple(None for _ in range(results))
        return tuple((*before, size, *after) for size in sizes)
    size = as_extent(bound.arguments["split_size"])
    last = sub(shape[place], product((results - 1, size)))
    return tuple((*before, size if index < results - 1 else last, *after) for index in range(results))
