"""Loop order and loop merging: pure functions from a description to one that computes the same values.

An emitter's inner loop is as long, and as contiguous, as the description's last axis. `reorder` puts the axis that
moves least through memory last; `collapse` merges neighbours that are one stretch of memory in every operand and
drops axes of one point. `arrange` does both. Each is idempotent. Maps are exact under all of them; a floating sum
over several axes may be added up in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tessiq_core.codegen.dependence import access_axes, accesses, index_axes
from tessiq_core.codegen.description import Access, Axis, KernelDescription, Map, Reduce, Stage
from tessiq_core.ir.extent import Extent, Unknown, evaluate, mul, provably_equal, symbols

# What a symbol counts as where two strides are compared. It decides speed only, never a result.
_NOMINAL_SIZE = 1021


def arrange(description: KernelDescription) -> KernelDescription:
    """The description with its axes in the fastest order, merged as far as every operand allows."""
    return collapse(reorder(_drop_unit_axes(description)))


def reorder(description: KernelDescription) -> KernelDescription:
    """The description with its axes ordered so that the last moves least: in the writes first, then in the reads.

    The innermost axis is chosen first: of the axes that move in the biggest write those with the smallest stride stay
    (and those that do not move in it), then the same by the next write, and by each read, the biggest first; of what
    is left the one that was innermost before. Then the next, among the rest. So channels-last and transposed outputs
    become contiguous. Where extents are symbolic, one nominal size stands for every symbol.
    """
    sizes = [_nominal(extent) for extent in description.domain]
    strides = [
        [_nominal(stride) if size != 1 else 0 for size, stride in zip(sizes, access.strides, strict=True)]
        for part in (description.writes, description.reads)
        for access in sorted((entry.access for entry in part), key=lambda access: _points(access, sizes), reverse=True)
    ]
    remaining = list(range(len(description.domain)))
    order: list[int] = []
    while remaining:
        candidates = remaining
        for row in strides:
            moving = [row[axis] for axis in candidates if row[axis]]
            if moving:
                least = min(moving)
                candidates = [axis for axis in candidates if row[axis] in (0, least)]
        order.insert(0, candidates[-1])
        remaining.remove(candidates[-1])
    return permute_axes(description, order)


def collapse(description: KernelDescription) -> KernelDescription:
    """The description with axes of extent 1 dropped and neighbours merged where they are one stretch everywhere.

    Axes i and i+1 merge when in every index the stride of i is the extent of i+1 times its stride, every reduce and
    every write covers both or neither, and the index along neither is an operand. A unit axis stays where it is all a
    reduce runs over, or an operand.
    """
    description = _drop_unit_axes(description)
    axis = 0
    while axis + 1 < len(description.domain):
        if _mergeable(description, axis):
            description = _merge(description, axis)
        else:
            axis += 1
    return description


def permute_axes(description: KernelDescription, order: Sequence[int]) -> KernelDescription:
    """The description whose axis i is what axis `order[i]` was."""
    place = {old: new for new, old in enumerate(order)}
    if all(old == new for old, new in place.items()):
        return description
    return _renumber(
        description,
        tuple(description.domain[axis] for axis in order),
        lambda access: Access(access.offset, tuple(access.strides[axis] for axis in order)),
        place,
    )


def _points(access: Access, sizes: Sequence[int]) -> int:
    return math.prod(sizes[axis] for axis in access_axes(access))


def _nominal(stride: Extent) -> int:
    if isinstance(stride, Unknown):
        return 0
    return abs(evaluate(stride, dict.fromkeys(symbols(stride), _NOMINAL_SIZE)))


def _drop_unit_axes(description: KernelDescription) -> KernelDescription:
    kept = set(index_axes(description))
    for stage in description.stages:
        if isinstance(stage, Reduce) and all(description.domain[axis] == 1 for axis in stage.axes):
            kept.add(stage.axes[0])
    order = [axis for axis, extent in enumerate(description.domain) if extent != 1 or axis in kept]
    return description if len(order) == len(description.domain) else permute_axes(description, order)


def _mergeable(description: KernelDescription, axis: int) -> bool:
    inner = axis + 1
    if index_axes(description) & {axis, inner}:
        return False
    spans = [stage.axes for stage in description.stages if isinstance(stage, Reduce)]
    spans.extend(write.axes for write in description.writes)
    if any((axis in span) != (inner in span) for span in spans):
        return False
    extent = description.domain[inner]
    return all(
        provably_equal(access.strides[axis], mul(access.strides[inner], extent)) for access in accesses(description)
    )


def _merge(description: KernelDescription, axis: int) -> KernelDescription:
    domain, inner = description.domain, axis + 1
    place = {old: old if old < axis else old - 1 for old in range(len(domain)) if old != axis}
    return _renumber(
        description,
        (*domain[:axis], mul(domain[axis], domain[inner]), *domain[inner + 1 :]),
        lambda access: Access(access.offset, access.strides[:axis] + access.strides[inner:]),
        place,
    )


def _renumber(
    description: KernelDescription,
    domain: tuple[Extent, ...],
    move: Callable[[Access], Access],
    place: Mapping[int, int],
) -> KernelDescription:
    """Give every index the strides `move` makes and every axis its new number; an axis without one is gone."""

    def axes(old: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(place[axis] for axis in old if axis in place))

    def stage(old: Stage) -> Stage:
        if isinstance(old, Map):
            operands = (Axis(place[o.number]) if isinstance(o, Axis) else o for o in old.operands)
            return replace(old, operands=tuple(operands))
        return replace(old, axes=axes(old.axes))

    return replace(
        description,
        domain=domain,
        reads=tuple(replace(read, access=move(read.access)) for read in description.reads),
        stages=tuple(stage(old) for old in description.stages),
        writes=tuple(replace(write, access=move(write.access), axes=axes(write.axes)) for write in description.writes),
    )
