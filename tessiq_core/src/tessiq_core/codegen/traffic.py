"""How many bytes a kernel moves: what `fuse` minimises and `explain` shows."""

from __future__ import annotations

from tessiq_core.codegen.dependence import access_axes
from tessiq_core.codegen.description import Access, KernelDescription
from tessiq_core.ir.extent import Extent, add, mul, product


def bytes_moved(description: KernelDescription) -> Extent:
    """Bytes between memory and the processor in one launch, if every element read is loaded once.

    Each distinct element of a read value counts once, however often the loops come back to it (a broadcast row, a
    second pass after a reduce), and every written element once. Different indices into one value are added up, so a
    value read through overlapping windows counts too high. Extents may be symbolic; the result then is.
    """
    total: Extent = 0
    counted: set[tuple[str, Access]] = set()
    for read in description.reads:
        if (read.value, read.access) not in counted:
            counted.add((read.value, read.access))
            elements = _distinct(description.domain, read.access, sorted(access_axes(read.access)))
            total = add(total, mul(elements, read.element.size))
    for write in description.writes:
        elements = product([description.domain[axis] for axis in write.axes])
        total = add(total, mul(elements, write.element.size))
    return total


def _distinct(domain: tuple[Extent, ...], access: Access, axes: list[int]) -> Extent:
    points = product([domain[axis] for axis in axes])
    span = 1
    for axis in axes:
        extent, stride = domain[axis], access.strides[axis]
        if not isinstance(extent, int) or not isinstance(stride, int):
            return points
        span += (extent - 1) * abs(stride)
    # A window that slides by less than its length meets the same element more than once.
    return min(points, span) if isinstance(points, int) else points
