"""The parts of a report that are read off a scheduled graph and its kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tessiq_core.codegen.interfaces import Kernel, KernelOperand
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ir.printer import print_type
from tessiq_core.ir.types import ScalarType
from tessiq_core.passes.claims import CONSTANT
from tessiq_core.passes.decisions import claim_of
from tessiq_core.passes.schedule import Unit
from tessiq_core.runtime.report import Counts, KernelReport, UnitReport


def counts_of(graph: Graph, units: Sequence[Unit]) -> Counts:
    """How many nodes went where; see `Counts`."""
    nodes = Counter(_place(node) for node in graph.nodes)
    kinds = Counter(unit.kind for unit in units)
    return Counts(
        kernels=kinds["kernel"],
        library_kernels=kinds["library"],
        claimed=nodes["kernel"] + nodes["library"],
        views=nodes["view"],
        unclaimed=nodes["aten"],
        sizes=nodes["size"],
    )


def _place(node: Node) -> str:
    if node.op == CONSTANT:
        return "constant"
    if node.results and all(isinstance(value.type, ScalarType) for value in node.results):
        return "size"
    return claim_of(node) or "aten"


def unit_reports(
    units: Sequence[Unit], kernels: Sequence[Kernel], numbers: Mapping[int, int], moves: Sequence[tuple[str, ...]]
) -> tuple[UnitReport, ...]:
    """The schedule, one entry a unit."""
    return tuple(
        UnitReport(
            kind=unit.kind,
            nodes=tuple(node.name for node in unit.nodes),
            ops=tuple(node.op for node in unit.nodes),
            kernel=kernels[numbers[index]].name if index in numbers else "",
            moves=moves[index],
        )
        for index, unit in enumerate(units)
    )


def kernel_reports(kernels: Sequence[Kernel], descriptions: Sequence[str]) -> tuple[KernelReport, ...]:
    """What each kernel reads, writes and covers. `descriptions` has the texts of the first ones', the generated."""
    return tuple(
        KernelReport(
            name=kernel.name,
            origin=kernel.origin,
            members=kernel.members,
            inputs=tuple(map(_operand, kernel.inputs)),
            outputs=tuple(map(_operand, kernel.outputs)),
            words=tuple(map(str, kernel.words)),
            source=kernel.source,
            description=descriptions[number] if number < len(descriptions) else "",
        )
        for number, kernel in enumerate(kernels)
    )


def _operand(operand: KernelOperand) -> str:
    return f"%{operand.value}: {print_type(operand.type)}"
