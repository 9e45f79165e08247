"""One form for all kernels that differ in names only, so that the layers of a transformer compile once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tessiq_core.codegen.dependence import stage_operands
from tessiq_core.codegen.description import Access, KernelDescription, Map, Operand, Read, Stage, Write
from tessiq_core.codegen.text import print_kernel
from tessiq_core.ir import extent as extents
from tessiq_core.ir.extent import Call, Expression, Extent, Symbol


@dataclass(frozen=True)
class Renaming:
    """From a description's own names to the canonical ones, each in canonical order.

    values:  v0, v1, … by the order of reads, then of writes: the order of a kernel's buffers.
    stages:  t0, t1, … by position, reads first.
    symbols: s0, s1, … by first use in the domain, then the reads' and the writes' indices.
    """

    values: Mapping[str, str]
    stages: Mapping[str, str]
    symbols: Mapping[str, str]


class Canonical(NamedTuple):
    """The canonical text, how the names map to it, and the description the text spells."""

    text: str
    mapping: Renaming
    description: KernelDescription


def canonical(description: KernelDescription) -> Canonical:
    """The description with every name replaced by one that its position gives, kernel name and members dropped.

    Equal texts mean kernels that one compilation serves: same loops, same types, same constants (1, 1.0 and True
    differ, and 0.0 and -0.0). The reverse need not hold where symbols meet only inside one product: its factors sort
    by name.
    """
    values: dict[str, str] = {}
    for value in (*(read.value for read in description.reads), *(write.value for write in description.writes)):
        values.setdefault(value, f"v{len(values)}")
    stages: dict[str, str] = {}
    for stage in (*description.reads, *description.stages):
        stages[stage.name] = f"t{len(stages)}"
    symbols: dict[str, str] = {}
    for extent in _extents(description):
        for name in _symbols(extent):
            symbols.setdefault(name, f"s{len(symbols)}")
    sizes = {name: extents.symbol(new) for name, new in symbols.items()}

    def access(old: Access) -> Access:
        return Access(
            extents.substitute(old.offset, sizes), tuple(extents.substitute(stride, sizes) for stride in old.strides)
        )

    def operand(old: Operand) -> Operand:
        return stages[old] if isinstance(old, str) else old

    def stage_of(old: Stage) -> Stage:
        name = stages[old.name]
        if isinstance(old, Map):
            return replace(old, name=name, operands=tuple(operand(item) for item in old.operands))
        return replace(old, name=name, operand=stages[stage_operands(old)[0]])

    renamed = KernelDescription(
        name="kernel",
        domain=tuple(extents.substitute(extent, sizes) for extent in description.domain),
        reads=tuple(
            Read(stages[read.name], values[read.value], read.element, access(read.access)) for read in description.reads
        ),
        stages=tuple(stage_of(stage) for stage in description.stages),
        writes=tuple(
            Write(values[write.value], stages[write.stage], write.element, access(write.access), write.axes)
            for write in description.writes
        ),
        members=(),
    )
    return Canonical(print_kernel(renamed), Renaming(values, stages, symbols), renamed)


def _extents(description: KernelDescription) -> Iterator[Extent]:
    yield from description.domain
    reads = (read.access for read in description.reads)
    for access in (*reads, *(write.access for write in description.writes)):
        yield access.offset
        yield from access.strides


def _symbols(extent: Extent) -> Iterator[str]:
    """The extent's symbols in the order its text has them."""
    if isinstance(extent, Expression):
        for monomial, _coefficient in extent.terms:
            for atom, _power in monomial:
                if isinstance(atom, Symbol):
                    yield atom.name
                elif isinstance(atom, Call):
                    for argument in atom.arguments:
                        yield from _symbols(argument)
