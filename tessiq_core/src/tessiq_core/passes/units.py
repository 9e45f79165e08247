"""The graph of units: nodes that run together count as one, and merging keeps that graph acyclic.

Everything that joins nodes (`cluster`, `fuse`) or orders them (`schedule`) works on two things made here: the list of
what each node must wait for, and `UnitGraph`, which merges units only where no cycle closes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.table import OperationTable

BARRIERS = ("writes", "ordered")

# Labels of neighbouring units start this far apart, so that about forty insertions at one place fit before all units
# are relabelled.
_GAP = 1 << 40

_DONE = -1  # what a walk yields last


@dataclass(frozen=True)
class Dependencies:
    """What each node waits for, by the nodes' positions in the graph.

    nodes:    the graph's nodes in order; everything else here speaks of them by position.
    position: the position of each node.
    before:   for each node the positions it waits for, all smaller than its own: the producers of what it reads,
              and, for effects, the nodes whose order against it must stay.
    effects:  each node's effect.

    A node that writes or is ordered waits for every node since the last such one, and every node after it waits for
    it; a random node waits for the random node before it. Each node therefore adds at most two edges for its effects.
    """

    nodes: tuple[Node, ...]
    position: dict[Node, int]
    before: tuple[tuple[int, ...], ...]
    effects: tuple[str, ...]


def dependencies(graph: Graph, table: OperationTable) -> Dependencies:
    """What each node of the graph waits for. Costs one visit of every node and operand."""
    nodes = tuple(graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    effects = tuple(effect_of(node, table) for node in nodes)
    before: list[tuple[int, ...]] = []
    barrier = -1
    random = -1
    for index, node in enumerate(nodes):
        waits = dict.fromkeys(position[v.producer] for v in node.operands if v.producer is not None)
        if effects[index] in BARRIERS:
            waits.update(dict.fromkeys(range(max(barrier, 0), index)))
        elif barrier >= 0:
            waits[barrier] = None
        if effects[index] == "random":
            if random >= 0:
                waits[random] = None
            random = index
        if effects[index] in BARRIERS:
            barrier = index
        before.append(tuple(waits))
    return Dependencies(nodes, position, tuple(before), effects)


def unit_order(before: Sequence[Sequence[int]], unit_of: Sequence[int]) -> list[int] | None:
    """The units in a legal order, the one that starts first in the graph first; None where they form a cycle.

    `unit_of` gives the unit of each node; a unit is named by any number.
    """
    start: dict[int, int] = {}
    for index, unit in enumerate(unit_of):
        start.setdefault(unit, index)
    after: dict[int, set[int]] = {unit: set() for unit in start}
    waits = dict.fromkeys(start, 0)
    for index, sources in enumerate(before):
        unit = unit_of[index]
        for source in sources:
            other = unit_of[source]
            if other != unit and unit not in after[other]:
                after[other].add(unit)
                waits[unit] += 1
    ready = [(start[unit], unit) for unit, count in waits.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, unit = heapq.heappop(ready)
        order.append(unit)
        for other in after[unit]:
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(ready, (start[other], other))
    return order if len(order) == len(start) else None


class UnitGraph:
    """Units, kept in a topological order through every merge.

    Merging `a` and `b`, `a` first in the order, closes a cycle exactly when a path of more than one edge leads from
    `a` to `b`, and such a path lies between the two in the order. `merge` therefore walks forward from `a` and
    backward from `b`, one edge each in turn, within that stretch only. Where the walks meet there is a path and the
    merge is refused. Where one of them ends, what it visited is moved out of the way (after `b`, or before `a`) and
    the merged unit takes the other's place, so the order stays topological. (The idea is Pearce and Kelly's, "A
    dynamic topological sort algorithm for directed acyclic graphs", 2006, with the two walks balanced.)

    A walk costs twice the edges of the shorter side. Merging a node into the neighbour before it, which is what a
    pass over a graph in order mostly does, walks over a few edges however large the neighbour has grown. Edge sets
    are joined smaller into larger. No bound better than quadratic holds for every graph, so `steps` counts the edges
    walked, and a caller bounds them by `budget`: a merge that would go over it is refused, which is always legal.
    """

    def __init__(self, before: Sequence[Sequence[int]], unit_of: Sequence[int], *, budget: int | None = None) -> None:
        """Units as `unit_of` gives them, by numbers below `len(before)`.

        budget: most edges all merges together may walk; None for no bound.

        Raises Internal when the units form a cycle from the start.
        """
        order = unit_order(before, unit_of)
        if order is None:
            raise Internal("tessiq: the units the graph starts with wait for each other; this is a bug in tessiq")
        size = len(before)
        self.steps = 0
        self.budget = budget
        self._parent = list(range(size))
        self._after: list[set[int]] = [set() for _ in range(size)]
        self._before: list[set[int]] = [set() for _ in range(size)]
        for index, sources in enumerate(before):
            unit = unit_of[index]
            for source in sources:
                if unit_of[source] != unit:
                    self._after[unit_of[source]].add(unit)
                    self._before[unit].add(unit_of[source])
        self._label = [0] * size
        self._previous = [-1] * size
        self._next = [-1] * size
        self._first = order[0] if order else -1
        for place, unit in enumerate(order):
            self._label[unit] = place * _GAP
            self._previous[unit] = order[place - 1] if place else -1
            self._next[unit] = order[place + 1] if place + 1 < len(order) else -1

    def find(self, unit: int) -> int:
        """The number the unit goes by now, after the merges it was in."""
        root = unit
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[unit] != root:
            self._parent[unit], unit = root, self._parent[unit]
        return root

    @property
    def exhausted(self) -> bool:
        """Whether the budget is spent, and every further merge is refused without looking."""
        return self.budget is not None and self.steps >= self.budget

    def merge(self, a: int, b: int) -> bool:
        """Make the two one unit; False, and nothing changed, where that would close a cycle or exceed the budget."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if self._label[a] > self._label[b]:
            a, b = b, a
        moved = self._between(a, b)
        if moved is None:
            return False
        side, units = moved
        units.sort(key=self._label.__getitem__)
        for unit in units:
            self._unlink(unit)
        if side == "after":
            self._insert(units, b, self._next[b])
            kept, gone = b, a
        else:
            self._insert(units, self._previous[a], a)
            kept, gone = a, b
        self._unlink(gone)
        self._join(kept, gone)
        return True

    def can_merge(self, a: int, b: int) -> bool:
        """Whether `merge` would succeed now."""
        a, b = self.find(a), self.find(b)
        if self._label[a] > self._label[b]:
            a, b = b, a
        return a == b or self._between(a, b) is not None

    def _between(self, a: int, b: int) -> tuple[str, list[int]] | None:
        """What lies between and hangs on one side: successors of `a` or predecessors of `b`; None for a path."""
        ahead: set[int] = set()
        behind: set[int] = set()
        forward = self._walk(a, b, self._after, ahead)
        backward = self._walk(b, a, self._before, behind)
        while True:
            if self.exhausted:
                return None
            met = next(forward, _DONE)
            if met is _DONE:
                return "after", list(ahead)
            if met is not None and (met == b or met in behind):
                return None
            met = next(backward, _DONE)
            if met is _DONE:
                return "before", list(behind)
            if met is not None and (met == a or met in ahead):
                return None

    def _walk(self, start: int, end: int, edges: list[set[int]], visited: set[int]) -> Iterator[int | None]:
        """Visit what is reachable from `start` strictly inside the stretch; yields a unit when it is new.

        Yields `end` when an edge from a visited unit leads to it: the direct edge from `start` is no path.
        """
        low, high = sorted((self._label[start], self._label[end]))
        stack = [start]
        while stack:
            unit = stack.pop()
            for stale in edges[unit]:
                self.steps += 1
                other = self.find(stale)
                if other == end and unit != start:
                    yield end
                if low < self._label[other] < high and other not in visited:
                    visited.add(other)
                    stack.append(other)
                    yield other
                else:
                    yield None

    def _join(self, kept: int, gone: int) -> None:
        self._parent[gone] = kept
        for edges in (self._after, self._before):
            if len(edges[kept]) < len(edges[gone]):
                edges[kept], edges[gone] = edges[gone], edges[kept]
            edges[kept] |= edges[gone]
            edges[gone] = set()
            edges[kept] -= {kept, gone}

    # -- the order: a linked list whose labels grow --------------------------------------------------------------
    def _unlink(self, unit: int) -> None:
        before, after = self._previous[unit], self._next[unit]
        if before < 0:
            self._first = after
        else:
            self._next[before] = after
        if after >= 0:
            self._previous[after] = before

    def _insert(self, units: list[int], last: int, following: int) -> None:
        """Put the units, in this order, between two neighbours; -1 for a neighbour that does not exist."""
        if not units:
            return
        room = _GAP * (len(units) + 1)
        low = self._label[last] if last >= 0 else self._label[following] - room
        high = self._label[following] if following >= 0 else low + room
        step = (high - low) // (len(units) + 1)
        for place, unit in enumerate(units):
            self._label[unit] = low + step * (place + 1)
            self._previous[unit] = last
            if last < 0:
                self._first = unit
            else:
                self._next[last] = unit
            last = unit
        self._next[last] = following
        if following >= 0:
            self._previous[following] = last
        if step == 0:
            self._relabel()

    def _relabel(self) -> None:
        label = 0
        unit = self._first
        while unit >= 0:
            self._label[unit] = label
            label += _GAP
            unit = self._next[unit]
