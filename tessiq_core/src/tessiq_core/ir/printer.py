"""The text form of a graph, written. `tessiq_core.ir.parser` reads it back exactly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from tessiq_core.ir.attributes import Attribute, Hole, Label
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.types import OpaqueType, ScalarType, TensorType, ValueType

BARE_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]*")


def print_graph(graph: Graph) -> str:
    """The graph as text, ending in a newline. Equal texts mean equal graphs."""
    parameters = ", ".join(f"%{value.name}: {print_type(value.type)}" for value in graph.parameters)
    lines = [f"graph @{graph.name}({parameters}) {{"]
    lines.extend(f"  {print_node(node)}" for node in graph.nodes)
    lines.append(f"  {print_return(graph)}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def print_node(node: Node) -> str:
    """One node as one line, without indentation."""
    attributes = print_attributes(node.attributes)
    text = f"{node.op}({_values(node.operands)}){' ' + attributes if attributes else ''}"
    if not node.results:
        return text
    types = ", ".join(print_type(value.type) for value in node.results)
    return f"{_values(node.results)} = {text} : {types}"


def print_return(graph: Graph) -> str:
    """The graph's last line, `return …`."""
    return f"return {_values(graph.results)}".rstrip()


def print_type(type: ValueType) -> str:
    """`f32[2, s0]`, `f32[2, s0; 1, 2]` with strides in elements, `int(s0)`, `opaque "sparse_coo f32"`."""
    if isinstance(type, TensorType):
        inside = ", ".join(str(extent) for extent in type.shape)
        if type.strides is not None:
            inside += "; " + ", ".join(str(stride) for stride in type.strides)
        return f"{type.element}[{inside}]"
    if isinstance(type, ScalarType):
        return type.kind if type.value is None else f"{type.kind}({type.value})"
    return f"opaque {print_string(type.name)}" if isinstance(type, OpaqueType) else _foreign(type)


def print_attributes(attributes: Mapping[str, Attribute]) -> str:
    """`{1 = [1], keepdim = true}`, or nothing where there is none."""
    if not attributes:
        return ""
    return "{" + ", ".join(f"{name} = {print_attribute(value)}" for name, value in attributes.items()) + "}"


def print_attribute(value: Attribute) -> str:
    """One attribute's value. Floats always show that they are floats, and keep all their digits and their sign."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # Every NaN prints alike, as attribute_key treats them.
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, str):
        return print_string(value)
    if isinstance(value, Label):
        name = value.name if BARE_LABEL.fullmatch(value.name) else print_string(value.name)
        return f"@{value.kind}({name})"
    if isinstance(value, Hole):
        return "_"
    return f"[{', '.join(map(print_attribute, value))}]" if isinstance(value, tuple) else _foreign(value)


def print_string(text: str) -> str:
    """A JSON string on one line: printable characters as they are, everything else escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)


def _foreign(value: object) -> str:
    # Outside the closed set: only the verifier comes here, to show a broken graph.
    return f"<{value!r}>"


def _values(values: tuple[Value, ...]) -> str:
    return ", ".join(f"%{value.name}" for value in values)
