"""`cse`: compute equal values once."""

from __future__ import annotations

from tessiq_core.ir.attributes import attribute_key
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ops.effects import effect_of
from tessiq_core.passes.aliasing import Aliasing
from tessiq_core.passes.manager import Pass, register

# Moving a reading between fusion groups could make two groups wait for each other.
_GROUPING = ("tessiq.cluster", "tessiq.group")


@register
class CommonSubexpressionElimination(Pass):
    """Make the readers of a computation that repeats an earlier one read the earlier one, and remove the repeat.

    Assumes: operators without a row carry `tessiq.effect` when they have one.

    Guarantees: of two nodes with the same operation, operands, arguments (1, 1.0 and True differ, and so do 0.0 and
    -0.0), result types and group, between which nothing is written, at most the first is read, unless memory forbids
    it as said below.

    Legal because: without an effect, the same operation on the same operands computes the same values, and nothing
    wrote to what they read in between. The two then differ only as memory, and only where the results are new memory:
    so nodes stay apart when one of their results may be written later, and when both may leave the graph, where a
    caller may write to one and not to the other.
    """

    name = "cse"
    description = "compute equal values once"

    def run(self, graph: Graph) -> bool:
        changed = False
        aliasing = Aliasing(graph, self.context.table)
        first: dict[tuple[object, ...], list[Node]] = {}
        for node in graph.nodes:
            if not node.results or effect_of(node, self.context.table) != "none":
                continue
            earlier = first.setdefault((aliasing.stretch(node), *_identity(node)), [])
            twin = next((other for other in earlier if _may_share(other, node, aliasing)), None)
            if twin is None:
                earlier.append(node)
                continue
            if not any(value.is_read for value in node.results):
                continue  # `dce` takes it away; here only a reading that moves is a change
            for ours, theirs in zip(node.results, twin.results, strict=True):
                graph.replace_uses(ours, theirs)
                aliasing.moved(ours, theirs)
            graph.erase(node)
            changed = True
        return changed


def _identity(node: Node) -> tuple[object, ...]:
    arguments = tuple((name, attribute_key(value)) for name, value in node.arguments.items())
    groups = tuple(attribute_key(node.attribute(name)) for name in _GROUPING)
    types = tuple(value.type for value in node.results)
    return (node.op, node.operands, arguments, groups, types)


def _may_share(a: Node, b: Node, aliasing: Aliasing) -> bool:
    for first, second in zip(a.results, b.results, strict=True):
        if aliasing.is_written(first) or aliasing.is_written(second):
            return False
        if aliasing.is_returned(first) and aliasing.is_returned(second):
            return False
    return True
