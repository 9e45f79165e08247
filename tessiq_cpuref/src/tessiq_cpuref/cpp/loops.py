"""How a kernel's domain becomes loops, and how the loops are numbered so that any range of them can run anywhere.

A kernel is a sequence of *nests*, one for each set of axes its writes cover (nearly always one). A nest loops over
those axes and computes the stages its writes need, so a value that lacks an axis is written once, also where that axis
is empty. The innermost axis runs in blocks of BLOCK elements: an *iteration* is one block of one point of the outer
axes.
Iterations are numbered block first, then the outer axes from the last to the first, nest after nest:

    nest over d0 < 4, d1 < 5000:  iteration = d0 * 3 + block, block < 3 = ceil(5000 / BLOCK)
    nest over d0 < 1000000:       iteration = block, block < ceil(1000000 / BLOCK)
    nest over no axis:            one iteration

Distinct iterations write distinct elements, so ranges [begin, end) may run in any order and on any thread, and the
pieces of a split compute exactly what the whole does.
"""

from __future__ import annotations

from dataclasses import dataclass

from tessiq_core.codegen.dependence import stage_operands
from tessiq_core.codegen.description import KernelDescription, Map, Read, Stage, Write
from tessiq_core.ir.extent import Extent, add, call, product

BLOCK = 2048
"""Elements of the innermost axis in one iteration; a multiple of every vector length."""

NOMINAL_ROW = 128
"""What a symbolic innermost extent counts as where the grain is chosen; low, so that short rows do not get a thread."""

GRAIN_WORK = 1 << 17
"""Units of work worth a thread (about 20 us): one for each element loaded, computed or stored."""

EXPENSIVE = 8
"""Units of work of a function evaluated by a polynomial or by the C library."""


@dataclass(frozen=True)
class Nest:
    """Loops over `axes` (numbers into the domain, in order) that compute `stages` and do `writes`."""

    axes: tuple[int, ...]
    reads: tuple[Read, ...]
    stages: tuple[Stage, ...]
    writes: tuple[Write, ...]

    @property
    def inner(self) -> int | None:
        """The innermost axis; None for a nest without axes."""
        return self.axes[-1] if self.axes else None

    @property
    def outer(self) -> tuple[int, ...]:
        return self.axes[:-1]


def nests(kernel: KernelDescription) -> tuple[Nest, ...]:
    """The kernel's nests, in the order of their first writes. Unread stages and reads are left out."""
    groups: dict[tuple[int, ...], list[Write]] = {}
    for write in kernel.writes:
        groups.setdefault(write.axes, []).append(write)
    return tuple(_nest(kernel, axes, tuple(writes)) for axes, writes in groups.items())


def _nest(kernel: KernelDescription, axes: tuple[int, ...], writes: tuple[Write, ...]) -> Nest:
    needed = {write.stage for write in writes}
    stages: list[Stage] = []
    for stage in reversed(kernel.stages):
        if stage.name in needed:
            stages.insert(0, stage)
            needed.update(stage_operands(stage))
    reads = tuple(read for read in kernel.reads if read.name in needed)
    return Nest(axes, reads, tuple(stages), writes)


def blocks(extent: Extent) -> Extent:
    """How many blocks an innermost axis has: ceil(extent / BLOCK)."""
    return call("floordiv", add(extent, BLOCK - 1), BLOCK)


def iterations(kernel: KernelDescription) -> Extent:
    """How many iterations the kernel has: those of its nests together."""
    total: Extent = 0
    for nest in nests(kernel):
        total = add(total, nest_iterations(kernel, nest))
    return total


def nest_iterations(kernel: KernelDescription, nest: Nest) -> Extent:
    """How many iterations one nest has."""
    if nest.inner is None:
        return 1
    return product([*(kernel.domain[axis] for axis in nest.outer), blocks(kernel.domain[nest.inner])])


def grain(kernel: KernelDescription, expensive_calls: int) -> int:
    """The least number of iterations worth a thread; `expensive_calls` counts the costly functions of one point."""
    nest = max(nests(kernel), key=lambda nest: len(nest.axes))
    extent = 1 if nest.inner is None else kernel.domain[nest.inner]
    row = min(extent, BLOCK) if isinstance(extent, int) else NOMINAL_ROW
    maps = sum(isinstance(stage, Map) for stage in kernel.stages)
    work = len(kernel.reads) + maps + len(kernel.writes) + EXPENSIVE * expensive_calls
    return max(1, GRAIN_WORK // (max(row, 1) * work))
