"""The pass `fuse`: which nodes one generated kernel computes."""

from __future__ import annotations

from collections.abc import Iterable

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.passes.decisions import CLUSTER, FUSE, GROUP, claim_of, number_of, set_numbers
from tessiq_core.passes.grouping import Grouping
from tessiq_core.passes.manager import Pass, register
from tessiq_core.passes.sizes import value_bytes
from tessiq_core.passes.units import Dependencies, dependencies


@register
class Fuse(Pass):
    """Group the nodes claimed as kernels into kernels, by the bytes they move.

    Two groups of one cluster are merged when `lower` describes the union as one kernel and the emitter accepts it, it
    moves no more bytes than the two, it stays within a size (`passes/grouping.py` says which and why), and no cycle
    closes. Symbols count as 1024 where bytes are compared. A value that is read inside is not read from memory, and
    not written either unless the graph returns it or somebody outside reads it.

    Candidates are tried in rounds. In a round the producers and consumers of the values that move most bytes come
    first, and each group is merged at most once, so a chain of n nodes takes about log n rounds that describe each
    node once, instead of n descriptions of a growing kernel. A pair that was refused is tried again only after one
    side has grown. When no producer and consumer are left, groups that read the same value over the same domain are
    merged where that saves bytes, in rounds of the same kind.

    Assumes: `cluster` has run. Decisions of an earlier run are not read.

    Guarantees: every node claimed as a kernel has `tessiq.group`, numbered from 0 by first node, and no other node
    has; one left over would be a claim without a kernel, and raises Internal. The graph of groups and single other
    nodes has no cycle. A node that reads another group's value has `tessiq.fuse`, which says why the two are apart.

    Legal because: a kernel computes from its reads what its nodes compute one by one, and it is described from the
    same nodes, types and layouts. No kernel has an effect (`lower` refuses), and dependencies by effect take part in
    the search for cycles, so nothing crosses a node that writes, draws random numbers or is ordered.
    """

    name = "fuse"
    description = "group kernels by the bytes they move"

    def run(self, graph: Graph) -> bool:
        depends = dependencies(graph, self.context.table)
        kernels = [p for p, node in enumerate(depends.nodes) if claim_of(node) == "kernel"]
        grouping = Grouping(depends, kernels, self.context)
        edges = _edges(depends, kernels)
        shared = _shared_reads(depends, kernels)
        while True:
            while _merge_round(grouping, edges):
                edges = [(a, b) for a, b in edges if grouping.find(a) != grouping.find(b)]
            if not _merge_siblings(grouping, shared):
                break
        numbers: dict[int, int] = {}
        decided: dict[Node, int | None] = dict.fromkeys(depends.nodes)
        for position in kernels:
            decided[depends.nodes[position]] = numbers.setdefault(grouping.find(position), len(numbers))
        changed = set_numbers(decided, GROUP)
        return _record_refusals(depends, decided, grouping) or changed


def _may_fuse(depends: Dependencies, a: int, b: int) -> bool:
    cluster = number_of(depends.nodes[a], CLUSTER)
    return cluster is not None and cluster == number_of(depends.nodes[b], CLUSTER)


def _edges(depends: Dependencies, kernels: list[int]) -> list[tuple[int, int]]:
    """Producer and consumer of each value between kernels of one cluster, the most bytes saved first."""
    inside = set(kernels)
    weighed: list[tuple[int, int, int, int]] = []
    for position in kernels:
        for index, value in enumerate(depends.nodes[position].operands):
            source = depends.position[value.producer] if value.producer is not None else -1
            if source in inside and _may_fuse(depends, source, position):
                # Fused with its only reader the value is neither written nor read; otherwise it is still written.
                only = len(value.readers) == 1 and not value.is_returned
                weighed.append((-value_bytes(value.type) * (2 if only else 1), position, index, source))
    return list(dict.fromkeys((source, position) for _, position, _, source in sorted(weighed)))


def _merge_round(grouping: Grouping, edges: Iterable[tuple[int, int]]) -> bool:
    merged: set[int] = set()
    for producer, consumer in edges:
        a, b = grouping.find(producer), grouping.find(consumer)
        if a != b and a not in merged and b not in merged and grouping.merge(a, b):
            merged.add(grouping.find(a))
    return bool(merged)


def _shared_reads(depends: Dependencies, kernels: list[int]) -> list[tuple[Value, list[int]]]:
    """The values several kernels of one cluster read, with those kernels in graph order."""
    readers: dict[tuple[Value, int], list[int]] = {}
    for position in kernels:
        cluster = number_of(depends.nodes[position], CLUSTER)
        if cluster is not None:
            for value in dict.fromkeys(depends.nodes[position].operands):
                readers.setdefault((value, cluster), []).append(position)
    return [(value, positions) for (value, _), positions in readers.items() if len(positions) > 1]


def _merge_siblings(grouping: Grouping, shared: list[tuple[Value, list[int]]]) -> bool:
    """One round over neighbours among the readers of each value; each group is merged at most once."""
    merged: set[int] = set()
    for value, positions in shared:
        last: dict[tuple[Extent, ...], int] = {}  # by domain, the group before that reads all of the value
        for position in positions:
            group = grouping.find(position)
            description = grouping.group(group).description
            if not _reads_every_point(description, value):
                continue
            before = last.get(description.domain)
            if (
                before is not None
                and grouping.find(before) != group
                and group not in merged
                and grouping.find(before) not in merged
                and grouping.merge(before, group, must_save=True)
            ):
                merged.add(grouping.find(group))
            last[description.domain] = position
    return bool(merged)


def _reads_every_point(description: KernelDescription, value: Value) -> bool:
    """Whether the kernel reads another element of the value at each point of its domain: merging is for that read.

    Groups that share a bias or a scalar have little to gain from each other.
    """
    return any(
        read.value == value.name
        and all(
            extent == 1 or stride != 0 for extent, stride in zip(description.domain, read.access.strides, strict=True)
        )
        for read in description.reads
    )


def _record_refusals(depends: Dependencies, groups: dict[Node, int | None], grouping: Grouping) -> bool:
    changed = False
    for position, node in enumerate(depends.nodes):
        reasons: list[str] = []
        for value in dict.fromkeys(node.operands):
            producer = value.producer
            if producer is None or groups[node] is None or groups[producer] in (None, groups[node]):
                continue
            reasons.append(
                f"not fused with %{value.name}: {_why_apart(depends, depends.position[producer], position, grouping)}"
            )
        if reasons:
            changed |= node.set_attribute(FUSE, "; ".join(reasons))
        else:
            changed |= node.remove_attribute(FUSE)
    return changed


def _why_apart(depends: Dependencies, producer: int, consumer: int, grouping: Grouping) -> str:
    if not _may_fuse(depends, producer, consumer):
        return "it is in another cluster"
    refused = grouping.refusal(producer, consumer)
    if refused is None:
        raise Internal(
            f"tessiq: %{depends.nodes[producer].name} and %{depends.nodes[consumer].name} were left in two kernels "
            "without a reason; this is a bug in the pass fuse"
        )
    return f"{refused.code}: {refused.reason}"
