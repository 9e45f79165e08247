"""`contrib-drop-identity-views`: remove views that give back the tensor they were given."""

from __future__ import annotations

from tessiq_core.ir.extent import provably_equal
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ir.types import TensorType
from tessiq_core.passes.manager import Pass

# Rows whose result, when it has the operand's sizes and strides, has its elements in the same places. `permute`,
# `transpose` and `t` are not among them: swapping two axes of one size and one stride keeps the type.
SAME_TYPE_MEANS_SAME_ELEMENTS = frozenset({"view", "alias", "expand", "slice", "squeeze"})


class DropIdentityViews(Pass):
    """Remove views, slices and expansions whose result is the tensor they were given.

    Assumes: types are right; nothing else.

    Guarantees: no `view`, `alias`, `expand`, `slice` or `squeeze` is left whose type is provably that of its operand,
    unless the graph returns it.

    Legal because: these operations only choose which element of their operand stands where, in order. With every size
    provably equal no element can be left out or repeated, and with every stride equal the elements stand in the same
    memory; so result and operand are the same tensor, to readers and to writers. What is returned stays: the caller
    may tell two tensor objects from one. An unknown size `?` is equal to nothing, so such a view stays.
    """

    name = "contrib-drop-identity-views"
    description = "remove views that give back the tensor they were given"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.nodes:
            if self._is_identity(node):
                graph.replace_uses(node.results[0], node.operands[0])
                graph.erase(node)
                changed = True
        return changed

    def _is_identity(self, node: Node) -> bool:
        row = self.context.table.row(node.op)
        if row is None or row.name not in SAME_TYPE_MEANS_SAME_ELEMENTS:
            return False
        if not node.operands or len(node.results) != 1 or node.results[0].is_returned:
            return False
        source, result = node.operands[0].type, node.results[0].type
        return (
            isinstance(source, TensorType)
            and isinstance(result, TensorType)
            and source.element == result.element
            and source.rank == result.rank
            and all(map(provably_equal, source.shape, result.shape))
            and all(map(provably_equal, source.layout, result.layout))
        )
