"""Reads sizes, axes and flags out of a bound call: small helpers of the shape and offset rules."""

from __future__ import annotations

from tessiq_core.ir.extent import UNKNOWN, Extent
from tessiq_core.ir.graph import Value
from tessiq_core.ir.types import ScalarType, TensorType
from tessiq_core.ops.arguments import Bound, BoundCall


def as_extent(bound: Bound) -> Extent:
    """An integer argument as an extent; `?` for a run-time number nothing is known of and for anything else."""
    if isinstance(bound, bool):
        return UNKNOWN
    if isinstance(bound, int):
        return bound
    if isinstance(bound, Value) and isinstance(bound.type, ScalarType) and bound.type.kind == "int":
        return UNKNOWN if bound.type.value is None else bound.type.value
    return UNKNOWN


def as_extents(bound: Bound) -> tuple[Extent, ...] | None:
    """A list of integers as extents; None for what is no list."""
    return tuple(as_extent(item) for item in bound) if isinstance(bound, tuple) else None


def axis(bound: Bound, rank: int) -> int | None:
    """An axis counted from the front; None for what is no constant axis of a tensor of this rank.

    A 0-dim tensor accepts the axes 0 and -1, as PyTorch's does.
    """
    if isinstance(bound, bool) or not isinstance(bound, int):
        return None
    number = bound + max(rank, 1) if bound < 0 else bound
    return number if 0 <= number < max(rank, 1) else None


def axes(bound: Bound, rank: int) -> tuple[int, ...] | None:
    """Axes counted from the front, in the order given, from a list or one integer; None where any is no axis."""
    items = bound if isinstance(bound, tuple) else (bound,)
    numbers = tuple(axis(item, rank) for item in items)
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(items) and len(set(known)) == len(known) else None


def source_type(bound: BoundCall) -> TensorType | None:
    """The type of the first operand; None where it is no tensor."""
    name = bound.row.operands[0] if bound.row.operands else None
    operand = bound.arguments.get(name) if name is not None else None
    return operand.type if isinstance(operand, Value) and isinstance(operand.type, TensorType) else None


def reduced_axes(bound: BoundCall) -> tuple[int, ...] | None:
    """The axes a reduction combines, ascending; every axis where `dim` is absent or none.

    An empty `dim` is every axis, except to any and all, which combine nothing then. None where the axes are not
    constants.
    """
    source = source_type(bound)
    if source is None:
        return None
    dim = bound.arguments.get("dim")
    if dim == () and bound.row.reduction in ("any", "all"):
        return ()
    if dim is None or dim == ():
        return tuple(range(source.rank))
    found = axes(dim, source.rank)
    if found is None:
        return None
    return tuple(sorted(found)) if source.rank else ()


def keeps_axes(bound: BoundCall) -> bool:
    """Whether a reduction leaves its axes in place with extent 1."""
    return bound.arguments.get("keepdim", False) is True
