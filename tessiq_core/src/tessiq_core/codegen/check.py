"""The verifier of kernel descriptions. A failure is a bug in tessiq, never in the user's program."""

from __future__ import annotations

from collections.abc import Iterator

from tessiq_core.codegen.dependence import dependences
from tessiq_core.codegen.description import Access, Axis, Constant, KernelDescription, Map, Reduce
from tessiq_core.codegen.names import is_stage_name
from tessiq_core.codegen.text import print_kernel
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Unknown
from tessiq_core.ir.types import ElementType
from tessiq_core.ops.schema import REDUCTIONS
from tessiq_core.ops.table import OperationTable


def check(description: KernelDescription, table: OperationTable) -> None:
    """Raise Internal, with the kernel's text, where the description breaks a rule an emitter relies on.

    - names: reads and stages have distinct names that are identifiers, no `d3` and no `inf`; operands are earlier ones;
    - extents: none is `?`; every index has one stride an axis;
    - maps: the row exists, has an expression and as many operands; a constant has no wider kind than the type the
      map computes in (no float constant in an integer map);
    - reduces: a known `combine`, over one or more distinct axes of the domain, sorted;
    - writes: at least one; each value is written once and not read; the index moves only along the write's own axes,
      and the stage depends on no other; the stage's element type is the one stored.
    """
    for problem in _problems(description, table):
        raise Internal(
            f"tessiq: kernel @{description.name} is malformed: {problem}. This is a bug in tessiq; the kernel is\n"
            f"{print_kernel(description)}"
        )


def _problems(kernel: KernelDescription, table: OperationTable) -> Iterator[str]:
    rank = len(kernel.domain)
    elements: dict[str, ElementType] = {}
    for number, extent in enumerate(kernel.domain):
        if isinstance(extent, Unknown) or (isinstance(extent, int) and extent < 0):
            yield f"axis d{number} must have a known extent of 0 or more, not {extent}"
    for read in kernel.reads:
        yield from _name(read.name, elements)
        yield from _access(read.access, f"read {read.name}", rank)
        yield from _element(read.element, f"read {read.name}")
        elements[read.name] = read.element
    for stage in kernel.stages:
        yield from _name(stage.name, elements)
        yield from _element(stage.compute, f"stage {stage.name}")
        yield from _element(stage.element, f"stage {stage.name}")
        yield from _map(stage, elements, rank, table) if isinstance(stage, Map) else _reduce(stage, elements, rank)
        elements[stage.name] = stage.element
    yield from _values(kernel)
    yield from _writes(kernel, elements)


def _name(name: str, taken: dict[str, ElementType]) -> Iterator[str]:
    if not is_stage_name(name):
        yield f"{name!r} cannot name a stage"
    if name in taken:
        yield f"two stages are called {name}"


def _element(element: ElementType, what: str) -> Iterator[str]:
    if element.is_opaque:
        yield f"{what} has the element type {element}, which no kernel can hold"


def _access(access: Access, what: str, rank: int) -> Iterator[str]:
    if len(access.strides) != rank:
        yield f"{what} has {len(access.strides)} strides where the domain has {rank} axes"
    if any(isinstance(extent, Unknown) for extent in (access.offset, *access.strides)):
        yield f"{what} has an index with `?` in it"


def _map(stage: Map, earlier: dict[str, ElementType], rank: int, table: OperationTable) -> Iterator[str]:
    row = table.row(stage.op)
    if row is None:
        yield f"stage {stage.name} applies {stage.op!r}, which is no row of the operation table"
        return
    if row.expression is None:
        yield f"stage {stage.name} applies {stage.op!r}, a row without an expression"
    if len(stage.operands) != len(row.operands):
        yield (
            f"stage {stage.name} gives {stage.op} {len(stage.operands)} operands where the row has "
            f"{len(row.operands)} ({', '.join(row.operands)})"
        )
    for operand in stage.operands:
        if isinstance(operand, Constant):
            if not constant_fits(operand.value, stage.compute):
                yield f"stage {stage.name} has the constant {operand.value!r} in a map that computes in {stage.compute}"
        elif isinstance(operand, Axis):
            if not 0 <= operand.number < rank:
                yield f"stage {stage.name} reads the index d{operand.number}, and the domain has {rank} axes"
        elif operand not in earlier:
            yield f"stage {stage.name} reads {operand}, which is no earlier stage"


def constant_fits(value: bool | int | float, compute: ElementType) -> bool:
    """Whether PyTorch would let a Python number of this kind take part in `compute` without promoting it."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return compute.is_integer or compute.is_float
    return isinstance(value, float) and compute.is_float


def _reduce(stage: Reduce, earlier: dict[str, ElementType], rank: int) -> Iterator[str]:
    if stage.operand not in earlier:
        yield f"stage {stage.name} reads {stage.operand}, which is no earlier stage"
    if stage.combine not in REDUCTIONS:
        yield f"stage {stage.name} combines with {stage.combine!r}; there are {', '.join(REDUCTIONS)}"
    if not stage.axes:
        yield f"stage {stage.name} reduces over no axis"
    yield from _axes(stage.axes, f"stage {stage.name}", rank)


def _axes(axes: tuple[int, ...], what: str, rank: int) -> Iterator[str]:
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < rank for axis in axes):
        yield f"{what} must name distinct axes of the {rank} there are, in order, not {axes}"


def _values(kernel: KernelDescription) -> Iterator[str]:
    read: dict[str, ElementType] = {}
    for entry in kernel.reads:
        if read.setdefault(entry.value, entry.element) != entry.element:
            yield f"%{entry.value} is read as {read[entry.value]} and as {entry.element}"
    written: set[str] = set()
    for write in kernel.writes:
        if write.value in written:
            yield f"%{write.value} is written twice"
        if write.value in read:
            yield f"%{write.value} is read and written"
        written.add(write.value)
    if not written:
        yield "it writes nothing"


def _writes(kernel: KernelDescription, elements: dict[str, ElementType]) -> Iterator[str]:
    rank = len(kernel.domain)
    depends = dependences(kernel)
    for write in kernel.writes:
        what = f"the write of %{write.value}"
        yield from _access(write.access, what, rank)
        yield from _axes(write.axes, what, rank)
        if write.stage not in elements:
            yield f"{what} stores {write.stage}, which is no stage"
            continue
        if elements[write.stage] != write.element:
            yield f"{what} stores {write.stage}, of type {elements[write.stage]}, as {write.element}"
        moving = {axis for axis, stride in enumerate(write.access.strides) if stride != 0}
        if not moving <= set(write.axes):
            yield f"{what} has an index that moves along axes it does not cover"
        if not depends[write.stage] <= set(write.axes):
            outside = ", ".join(f"d{axis}" for axis in sorted(depends[write.stage] - set(write.axes)))
            yield f"{what} stores {write.stage}, which depends on {outside} too"
