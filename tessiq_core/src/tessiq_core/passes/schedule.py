"""The order units run in: generated kernels, library calls, views and ATen operators."""

from __future__ import annotations

from dataclasses import dataclass

from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ops.table import OperationTable
from tessiq_core.passes.decisions import CLAIM, GROUP, claim_of, number_of
from tessiq_core.passes.units import dependencies, unit_order

UNIT_KINDS = ("kernel", "view", "library", "aten")


@dataclass(frozen=True)
class Unit:
    """What is launched as one.

    kind:  "kernel" (a generated one), "view", "library", or "aten" for a node the target did not claim.
    nodes: in graph order; only a kernel has more than one.
    """

    kind: str
    nodes: tuple[Node, ...]


def schedule(graph: Graph, table: OperationTable) -> list[Unit]:
    """The units of a graph the compile pipeline has run on, in an order that respects data and effects.

    Of the units that could run next, the one whose first node stands first in the graph runs; a graph without groups
    keeps its order. Linear in nodes and edges but for a logarithm.

    Raises Internal where no order exists, and for a kernel claim without a group: it would have no kernel.
    """
    depends = dependencies(graph, table)
    first_of_group: dict[int, int] = {}
    unit_of: list[int] = []
    members: dict[int, list[Node]] = {}
    for position, node in enumerate(depends.nodes):
        unit = position
        if claim_of(node) == "kernel":
            group = number_of(node, GROUP)
            if group is None:
                raise Internal(
                    f"tessiq: {node.op} (%{node.name}) is claimed as a kernel and has no {GROUP}; run the pass fuse "
                    "after everything that claims nodes"
                )
            unit = first_of_group.setdefault(group, position)
        unit_of.append(unit)
        members.setdefault(unit, []).append(node)
    order = unit_order(depends.before, unit_of)
    if order is None:
        groups = sorted(group for group, first in first_of_group.items() if len(members[first]) > 1)
        raise Internal(
            f"tessiq: no order of kernels exists: some of the groups {groups} wait for each other through nodes "
            "outside them; fuse must refuse such a merge"
        )
    return [Unit(_kind(members[unit][0]), tuple(members[unit])) for unit in order]


def _kind(node: Node) -> str:
    claim = claim_of(node)
    if claim not in ("", *UNIT_KINDS[:3]):
        raise Internal(f"tessiq: %{node.name}: {CLAIM} must be one of {', '.join(UNIT_KINDS[:3])}, not {claim!r}")
    return claim or "aten"
