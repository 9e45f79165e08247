"""Single nodes for tests of the operation table, from the IR's text form."""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.ir import Node, parse_graph


def node(call: str, results: str = "f32[2, 3]", **parameters: str) -> Node:
    """The node `call` describes, such as `add(%x, %y) {alpha = 2}`, with results of these types.

    Each keyword is a graph parameter and its type; %x and %y are f32[2, 3] unless given.
    """
    types = {"x": "f32[2, 3]", "y": "f32[2, 3]", **parameters}
    listed = ", ".join(f"%{name}: {type}" for name, type in types.items())
    names = ", ".join(f"%r{number}" for number in range(len(split_types(results))))
    graph = parse_graph(f"graph @main({listed}) {{\n  {names} = {call} : {results}\n  return {names}\n}}")
    (only,) = tuple(graph.nodes)
    return only


def split_types(text: str) -> Sequence[str]:
    """The types of a comma-separated list; commas inside brackets belong to a type."""
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]
