"""`dce`: remove nodes whose results nobody reads."""

from __future__ import annotations

from tessiq_core.ir.graph import Graph
from tessiq_core.ops.effects import effect_of
from tessiq_core.passes.manager import Pass, register


@register
class DeadCodeElimination(Pass):
    """Remove nodes whose results nobody reads.

    Assumes: operators without a row carry `tessiq.effect` when they have one.

    Guarantees: every node that is left has an effect, or a result that is read or returned. Parameters stay.

    Legal because: a node without an effect only computes its results, so one nobody reads has no reader to notice.
    Nodes that write, draw random numbers or are ordered stay, and so do nodes without results: such a node can only
    be there for what it does.
    """

    name = "dce"
    description = "remove nodes whose results nobody reads"

    def run(self, graph: Graph) -> bool:
        changed = False
        # Backwards, so that the readers of a value are gone before its producer is looked at.
        for node in graph.reversed_nodes:
            is_dead = bool(node.results) and not any(value.is_read for value in node.results)
            if is_dead and effect_of(node, self.context.table) == "none":
                graph.erase(node)
                changed = True
        return changed
