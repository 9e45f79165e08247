"""Where memory is written, and which values' memory is written or leaves the graph: what tells equal values apart.

Reading one of two equal values instead of the other is legal only as long as nobody writes through either. Inside the
graph the writers are nodes with an effect; outside it, whoever gets the results may write to them, and two results
that were separate tensors must stay separate.
"""

from __future__ import annotations

from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.table import OperationTable
from tessiq_core.passes.units import BARRIERS


class Aliasing:
    """What may happen to each value's memory after it is computed, through the value itself and what is made from it.

    Found by one walk from the graph's end to its start: movement rows give views of what they read, or may; other
    rows give new memory; an operator without a row may do either.
    """

    def __init__(self, graph: Graph, table: OperationTable) -> None:
        self._written: set[Value] = set()
        self._returned: set[Value] = set(graph.results)
        self._stretch: dict[Node, int] = {}
        stretch = 0
        for node in graph.reversed_nodes:
            writes = effect_of(node, table) in BARRIERS
            stretch += writes
            self._stretch[node] = stretch
            row = table.row(node.op)
            if writes:
                # Which operand it writes to is not in the table: all of them count.
                self._written.update(node.operands)
            if writes or row is None or row.category == "movement":
                for flagged in (self._written, self._returned):
                    if not flagged.isdisjoint(node.results):
                        flagged.update(node.operands)

    def is_written(self, value: Value) -> bool:
        """True when a later node may write to the value, or to a view of it."""
        return value in self._written

    def is_returned(self, value: Value) -> bool:
        """True when the value, or a view of it, may leave the graph as a result."""
        return value in self._returned

    def stretch(self, node: Node) -> int:
        """A number that is equal for nodes between which nothing is written; 0 where nothing is written after."""
        return self._stretch[node]

    def moved(self, old: Value, new: Value) -> None:
        """Record that the readers of `old` now read `new`."""
        for flagged in (self._written, self._returned):
            if old in flagged:
                flagged.add(new)

    def placed(self, node: Node, beside: Node) -> None:
        """Record a new node in the stretch of `beside`. Nothing is known of its results, so everything is assumed."""
        self._stretch[node] = self._stretch[beside]
        self._written.update(node.results)
        self._returned.update(node.results)
