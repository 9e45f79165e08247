"""`rewrite`: apply the rewrite patterns that plugins offer."""

from __future__ import annotations

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ops.effects import effect_of
from tessiq_core.passes.aliasing import Aliasing
from tessiq_core.passes.manager import Pass, register
from tessiq_core.passes.matching import CompiledPattern, Match, compile_pattern, match

ABSORBED = "tessiq.absorbed"
# A pattern whose replacement matches again never comes to rest; real sets of patterns need far fewer steps than this.
_STEPS_A_NODE = 8


@register
class Rewrite(Pass):
    """Replace what the context's patterns describe by what they say, until none matches.

    Assumes: nothing is claimed yet; a pattern's two graphs compute the same value, which its author tests.

    Guarantees: no pattern matches any more. The new root has the name and the type of the value it replaces, and
    lists the values that no longer exist in `tessiq.absorbed`.

    Legal because: the pattern's author promises equal values. A match holds no node with an effect and spans no
    write, so computing it later, where its last node stood, reads the same memory; and no value inside it is read or
    returned outside, so nobody misses one. A replacement that returns a parameter makes two values one, which is
    refused where anything is written later, and where the result, or a view of it, is returned.
    """

    name = "rewrite"
    description = "apply the rewrite patterns that plugins offer"

    def run(self, graph: Graph) -> bool:
        patterns = [self._compiled(pattern) for pattern in self.context.patterns]
        steps = _STEPS_A_NODE * (len(graph) + 1) * len(patterns)
        changed = False
        while True:
            counts = {pattern.name: self._apply(pattern, graph) for pattern in patterns}
            if not any(counts.values()):
                return changed
            changed = True
            steps -= sum(counts.values())
            if steps < 0:
                names = ", ".join(repr(name) for name, count in counts.items() if count)
                raise InvalidArgument(
                    f"tessiq: rewriting does not come to rest, because the replacements of {names} match patterns "
                    "again and again; change or leave out one of them"
                )

    def _compiled(self, source: RewritePattern) -> CompiledPattern:
        pattern = compile_pattern(source)
        for graph in (pattern.pattern, pattern.replacement):
            for node in graph.nodes:
                if (effect := effect_of(node, self.context.table)) != "none":
                    raise InvalidArgument(
                        f"tessiq: rewrite pattern {source.name!r}: {node.op} has the effect {effect!r}, and operations "
                        "with an effect neither match nor replace; leave it out"
                    )
        return pattern

    def _apply(self, pattern: CompiledPattern, graph: Graph) -> int:
        """Replace every match there is now; returns how many."""
        count = 0
        aliasing = Aliasing(graph, self.context.table)
        # Last node first: the longest chain that ends somewhere is found from its end.
        for node in reversed(tuple(graph.nodes)):
            if node.graph is None:
                continue
            found = self._match(pattern, node, aliasing)
            if found is not None:
                _replace(pattern, found, graph, aliasing)
                count += 1
        return count

    def _match(self, pattern: CompiledPattern, root: Node, aliasing: Aliasing) -> Match | None:
        def may_take(node: Node) -> bool:
            same_stretch = aliasing.stretch(node) == aliasing.stretch(root)
            return same_stretch and effect_of(node, self.context.table) == "none"

        found = match(pattern, root, self.context.table, may_take)
        if found is None:
            return None
        new = pattern.replacement.results[0]
        if new.producer is not None:
            return found
        # The result becomes another name for what a parameter bound.
        old = found.values[pattern.pattern.results[0]]
        kept = found.values[pattern.pattern.parameters[new.index]]
        stays_inside = not aliasing.is_returned(old) and aliasing.stretch(root) == 0
        return found if stays_inside and old.type == kept.type else None


def _replace(pattern: CompiledPattern, found: Match, graph: Graph, aliasing: Aliasing) -> None:
    old = found.values[pattern.pattern.results[0]]
    # The pattern's own order is one in which everything stands after what it reads. Equal nodes of the pattern may
    # mean one node here.
    taken = list(dict.fromkeys(found.nodes[node] for node in pattern.pattern.nodes))
    root = found.nodes[pattern.root]
    values: dict[Value, Value] = {
        ours: found.values[theirs]
        for ours, theirs in zip(pattern.replacement.parameters, pattern.pattern.parameters, strict=True)
    }
    result = pattern.replacement.results[0]
    for node in pattern.replacement.nodes:
        types = [old.type if value is result else found.type_of(value) for value in node.results]
        names = _free_names(graph, [value.name for value in node.results])
        operands = [values[value] for value in node.operands]
        made = graph.insert_before(root, node.op, operands, zip(names, types, strict=True), node.attributes)
        values.update(zip(node.results, made.results, strict=True))
        aliasing.placed(made, root)
    graph.replace_uses(old, values[result])
    absorbed = [name for node in taken for name in (*_absorbed(node), *(value.name for value in node.results))]
    for node in reversed(taken):
        graph.erase(node)
    new_root = values[result].producer
    if result.producer is not None and new_root is not None:
        # The value lives on under the name that readers of the text, and of reports, know.
        graph.rename(values[result], old.name)
        new_root.set_attribute(ABSORBED, tuple(name for name in absorbed if name != old.name))


def _absorbed(node: Node) -> tuple[str, ...]:
    names = node.attribute(ABSORBED, ())
    return tuple(str(name) for name in names) if isinstance(names, tuple) else ()


def _free_names(graph: Graph, wanted: list[str]) -> list[str]:
    names: list[str] = []
    for stem in wanted:
        name = graph.unused_name(stem)
        while name in names:
            name = graph.unused_name(f"{name}_1")
        names.append(name)
    return names
