"""The pass `cluster`: claimed nodes that run together."""

from __future__ import annotations

from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.types import TensorType
from tessiq_core.passes.decisions import CLUSTER, claim_of, set_numbers
from tessiq_core.passes.manager import Pass, register
from tessiq_core.passes.placement import views_at_home
from tessiq_core.passes.units import Dependencies, UnitGraph, dependencies

# Edges that all merges of the second step together may walk, for each node and edge of the graph. Layered graphs and
# chains with side branches need less than 2; what goes over it is left in smaller clusters.
WALK_FACTOR = 16


@register
class Cluster(Pass):
    """Number the claimed nodes by the cluster they run in.

    Neighbours are two claimed nodes of which one reads the other's result, and two kernels that read the same value.

    Assumes: `mark-supported` has run. Decisions of an earlier run are not read.

    Guarantees: every claimed node without an effect has `tessiq.cluster`, numbered from 0 by first node; no other
    node has. The graph whose units are the clusters and the single other nodes has no cycle, dependencies by effect
    included. Where crossings cost something, a view that costs fewer bytes of crossing at home is in no cluster (see
    `passes/placement.py`); it stays claimed, because a view at home is as free as one on the device.

    Legal because: merging only names units, and no node is moved; an order of units exists as long as they do not
    wait for each other in a circle. Two steps make sure of that:

    1. Every node gets a phase: how often a path to it leaves claimed nodes and comes back. A claimed node has the
       largest phase of the claimed nodes it waits for, and one more than that of the unclaimed ones; an unclaimed
       node has the largest phase of what it waits for, or -1. Phases never fall along an edge, and rise between two
       claimed nodes joined through an unclaimed one. So neighbours of one phase can be merged without looking: a path
       that leaves the cluster comes back only in a later phase. This takes time linear in nodes and edges.
    2. Phases are cautious: a claimed node that only feeds a later phase could run in it. So every edge between
       clusters that remains is tried on the graph of units, which keeps itself acyclic (`UnitGraph`). The edges
       walked by all tries together are at most WALK_FACTOR times the size of the graph; past that, edges are left.

    Nodes with an effect are never merged: they count as unclaimed here.
    """

    name = "cluster"
    description = "group neighbouring claimed nodes; keep the graph of groups acyclic"

    def run(self, graph: Graph) -> bool:
        depends = dependencies(graph, self.context.table)
        units = clusters(depends)
        home = set() if self.context.crossings_free else views_at_home(depends, units)
        numbers: dict[int, int] = {}
        decided: dict[Node, int | None] = {}
        for index, (node, unit) in enumerate(zip(depends.nodes, units, strict=True)):
            inside = unit is not None and index not in home
            decided[node] = numbers.setdefault(unit, len(numbers)) if inside and unit is not None else None
        return set_numbers(decided, CLUSTER)


def clusters(depends: Dependencies) -> list[int | None]:
    """For each node the cluster it is in, named by the position of one of its nodes; None where it is in none."""
    joins = [
        bool(claim_of(node)) and effect == "none" for node, effect in zip(depends.nodes, depends.effects, strict=True)
    ]
    roots = _merge_within_phases(depends, joins, _phases(depends, joins))
    edges = sum(len(sources) for sources in depends.before)
    units = UnitGraph(depends.before, roots, budget=WALK_FACTOR * (len(roots) + edges))
    for index, sources in enumerate(depends.before):
        if joins[index]:
            for source in sources:
                if joins[source]:
                    units.merge(roots[source], roots[index])
    return [units.find(root) if joined else None for root, joined in zip(roots, joins, strict=True)]


def _phases(depends: Dependencies, joins: list[bool]) -> list[int]:
    phases: list[int] = []
    for joined, sources in zip(joins, depends.before, strict=True):
        phase = 0 if joined else -1
        for source in sources:
            phase = max(phase, phases[source] + (1 if joined and not joins[source] else 0))
        phases.append(phase)
    return phases


def _merge_within_phases(depends: Dependencies, joins: list[bool], phases: list[int]) -> list[int]:
    parent = list(range(len(joins)))

    def find(unit: int) -> int:
        while parent[unit] != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    readers: dict[tuple[Value, int], int] = {}  # the last kernel of that phase that reads the value
    for index, node in enumerate(depends.nodes):
        if not joins[index]:
            continue
        near = [s for s in depends.before[index] if joins[s] and phases[s] == phases[index]]
        if claim_of(node) == "kernel":
            for value in node.operands:
                if isinstance(value.type, TensorType):
                    near.append(readers.setdefault((value, phases[index]), index))
        for other in near:
            a, b = sorted((find(other), find(index)))
            parent[b] = a
    return [find(index) for index in range(len(joins))]
