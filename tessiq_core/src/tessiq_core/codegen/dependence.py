"""Which axes a stage varies with, and what it reads: the questions every user of a description asks."""

from __future__ import annotations

from collections.abc import Iterator

from tessiq_core.codegen.description import Access, Axis, KernelDescription, Reduce, Stage, StageRef


def access_axes(access: Access) -> frozenset[int]:
    """The axes with a stride that is not 0."""
    return frozenset(axis for axis, stride in enumerate(access.strides) if stride != 0)


def stage_operands(stage: Stage) -> tuple[StageRef, ...]:
    """The names of the stages it reads, in order, repetitions kept."""
    if isinstance(stage, Reduce):
        return (stage.operand,)
    return tuple(operand for operand in stage.operands if isinstance(operand, str))


def dependences(kernel: KernelDescription) -> dict[StageRef, frozenset[int]]:
    """For every read and stage the axes it varies with: a map those of its operands, a reduce all but its own axes.

    A reduce may run over an axis its operand does not vary with (the gradient of a sum reads with stride 0): the
    same element is then combined once for every point of the axis.
    """
    axes: dict[StageRef, frozenset[int]] = {read.name: access_axes(read.access) for read in kernel.reads}
    for stage in kernel.stages:
        found: frozenset[int] = frozenset()
        for operand in stage_operands(stage):
            found |= axes[operand]
        if isinstance(stage, Reduce):
            found -= frozenset(stage.axes)
        else:
            found |= {operand.number for operand in stage.operands if isinstance(operand, Axis)}
        axes[stage.name] = found
    return axes


def accesses(kernel: KernelDescription) -> Iterator[Access]:
    """The index of every write, then of every read."""
    yield from (write.access for write in kernel.writes)
    yield from (read.access for read in kernel.reads)


def index_axes(kernel: KernelDescription) -> frozenset[int]:
    """The axes whose index is itself an operand of a map."""
    return frozenset(
        operand.number
        for stage in kernel.stages
        if not isinstance(stage, Reduce)
        for operand in stage.operands
        if isinstance(operand, Axis)
    )
