"""How a kernel's domain becomes loops, and how the loops are numbered so that any range of them can run anywhere.

A kernel is a sequence of *nests*, one for each set of axes its writes cover (nearly always one). A nest loops over
those axes and computes the stages its writes need, so a value that lacks an axis is written once, also where that axis
is empty. The innermost axis runs in blocks of BLOCK elements: an *iteration* is one block of one point of the outer
axes.
Iterations are numbered block first, then the outer axes from the last to the first, nest after nest:

    nest over d0 < 4, d1 < 5000:  iteration = d0 * 3 + block, block < 3 = ceil(5000 / BLOCK)
    nest over d0 < 1000000:       iteration = block, block < ceil(1000000 / BLOCK)
    nest over no axis:            one iteration

Where a kernel reduces, all its reduces run over the same axes. One nest then loops over the other, *kept* axes, and
runs through the reduced ones inside an iteration, once for each *level*: a softmax takes the greatest element, then the
sum, then writes. Writes that cover the kept axes, or all axes, belong to it.

    reduced axis innermost ("rows"):     iteration = a point of the kept axes
    kept axis innermost ("columns"):     iteration = a tile of TILE neighbours on it, at a point of the other kept axes

A kernel that keeps no axis is one iteration: nothing of it runs in parallel.

Distinct iterations write distinct elements, so ranges [begin, end) may run in any order and on any thread, and the
pieces of a split compute exactly what the whole does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tessiq_core.codegen.dependence import dependences, stage_operands
from tessiq_core.codegen.description import KernelDescription, Read, Reduce, Stage, Write
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Extent, add, call, product

BLOCK = 2048
"""Elements of the innermost axis in one iteration; a multiple of every vector length."""

TILE = 512
"""Neighbouring columns that one iteration of a column reduction combines side by side.

Narrower tiles leave more to run in parallel, and jump through memory in shorter stretches; measured over 4096 x 1024,
512 was up to twice as fast as 256 where the result is written over all rows, and no slower elsewhere.
"""

NOMINAL_ROW = 128
"""What a symbolic innermost extent counts as where the grain is chosen; low, so that short rows do not get a thread."""

GRAIN_WORK = 1 << 17
"""Units of work worth a thread (about 20 us): one for each element loaded, computed or stored."""

EXPENSIVE = 8
"""Units of work of a function evaluated by a polynomial or by the C library."""


@dataclass(frozen=True)
class Nest:
    """Loops over `axes` (numbers into the domain, in order) that compute `stages` and do `writes`.

    `reduced` are the axes its reduces run over, inside an iteration; empty where the nest reduces nothing.
    """

    axes: tuple[int, ...]
    reads: tuple[Read, ...]
    stages: tuple[Stage, ...]
    writes: tuple[Write, ...]
    reduced: tuple[int, ...] = ()

    @property
    def by_rows(self) -> bool:
        """Whether a reduced axis is the innermost of all."""
        return bool(self.reduced) and (not self.axes or self.reduced[-1] > self.axes[-1])

    @property
    def inner(self) -> int | None:
        """The innermost axis; None for a nest without axes."""
        return self.axes[-1] if self.axes else None

    @property
    def outer(self) -> tuple[int, ...]:
        return self.axes[:-1]


def reduced_axes(kernel: KernelDescription) -> tuple[int, ...]:
    """The axes the kernel's reduces run over; empty where it has none. They agree where `reduce_problem` is None."""
    return next((stage.axes for stage in kernel.stages if isinstance(stage, Reduce)), ())


def reduce_problem(kernel: KernelDescription) -> Decline | None:
    """Why the reduces of an arranged kernel do not fit one nest (`reduce-axes`); None where they do.

    Reduces over different axes share no pass over memory, and one inside another would leave less to run in parallel.
    A reduce that lacks a kept axis other stages vary with would be computed again at every point of it.
    """
    reduced = reduced_axes(kernel)
    if not reduced:
        return None
    depends = dependences(kernel)
    every = frozenset(range(len(kernel.domain)))
    kept = every - frozenset(reduced)
    lacking: frozenset[int] = frozenset()
    for stage in kernel.stages:
        if isinstance(stage, Reduce):
            if stage.axes != reduced:
                return Decline(
                    "reduce-axes",
                    f"{stage.name} reduces over {_axes(stage.axes)} and others {_axes(reduced)}",
                    stage.name,
                )
            lacking |= kept - depends[stage.name]
    for name, axes in depends.items():
        if axes & lacking:
            return Decline("reduce-axes", f"{name} varies along {_axes(axes & lacking)}, and a reduce does not", name)
    for write in kernel.writes:
        if frozenset(write.axes) not in (every, kept) and any(isinstance(s, Reduce) for s in _needed(kernel, (write,))):
            return Decline(
                "reduce-axes", f"%{write.value} covers {_axes(write.axes)}, neither the kept axes nor all", write.stage
            )
    return None


def _axes(axes: Iterable[int]) -> str:
    return "(" + ", ".join(f"d{axis}" for axis in sorted(axes)) + ")"


def nests(kernel: KernelDescription) -> tuple[Nest, ...]:
    """The kernel's nests, in the order of their first writes. Unread stages and reads are left out."""
    reduced = reduced_axes(kernel)
    every = tuple(range(len(kernel.domain)))
    kept = tuple(axis for axis in every if axis not in reduced)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Write]] = {}
    for write in kernel.writes:
        key = (kept, reduced) if reduced and write.axes in (every, kept) else (write.axes, ())
        groups.setdefault(key, []).append(write)
    found = [_nest(kernel, axes, inside, tuple(writes)) for (axes, inside), writes in groups.items()]
    return tuple(found)


def _needed(kernel: KernelDescription, writes: Iterable[Write]) -> list[Stage]:
    needed = {write.stage for write in writes}
    stages: list[Stage] = []
    for stage in reversed(kernel.stages):
        if stage.name in needed:
            stages.insert(0, stage)
            needed.update(stage_operands(stage))
    return stages


def _nest(
    kernel: KernelDescription, axes: tuple[int, ...], reduced: tuple[int, ...], writes: tuple[Write, ...]
) -> Nest:
    stages = _needed(kernel, writes)
    needed = {write.stage for write in writes}.union(*(stage_operands(stage) for stage in stages))
    reads = tuple(read for read in kernel.reads if read.name in needed)
    return Nest(axes, reads, tuple(stages), writes, reduced)


def blocks(extent: Extent, size: int = BLOCK) -> Extent:
    """How many blocks of `size` an innermost axis has, rounded up."""
    return call("floordiv", add(extent, size - 1), size)


def iterations(kernel: KernelDescription) -> Extent:
    """How many iterations the kernel has: those of its nests together."""
    total: Extent = 0
    for nest in nests(kernel):
        total = add(total, nest_iterations(kernel, nest))
    return total


def nest_iterations(kernel: KernelDescription, nest: Nest) -> Extent:
    """How many iterations one nest has."""
    if nest.by_rows:
        return product([kernel.domain[axis] for axis in nest.axes])
    if nest.inner is None:
        return 1
    count = blocks(kernel.domain[nest.inner], TILE if nest.reduced else BLOCK)
    return product([*(kernel.domain[axis] for axis in nest.outer), count])


def grain(kernel: KernelDescription, expensive_calls: int) -> int:
    """The least number of iterations worth a thread; `expensive_calls` counts the costly functions of one point."""
    nest = max(nests(kernel), key=lambda nest: len(nest.axes) + len(nest.reduced))
    points = 1
    for axis in nest.reduced:
        points *= _nominal(kernel.domain[axis])
    if nest.inner is not None and not nest.by_rows:
        extent, block = kernel.domain[nest.inner], TILE if nest.reduced else BLOCK
        points *= min(extent, block) if isinstance(extent, int) else NOMINAL_ROW
    stages = len(kernel.stages)
    work = len(kernel.reads) + stages + len(kernel.writes) + EXPENSIVE * expensive_calls
    return max(1, GRAIN_WORK // (max(points, 1) * work))


def _nominal(extent: Extent) -> int:
    return extent if isinstance(extent, int) else NOMINAL_ROW
