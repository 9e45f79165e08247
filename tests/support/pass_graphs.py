"""Graphs and small stand-ins for the tests of the compile passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tessiq_core.codegen.any_emitter import AnyEmitter
from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.types import BOOL, F32, TensorType, packed_strides, tensor_type
from tessiq_core.ops.table import OperationTable

SQUARE = tensor_type(F32, (8, 8))
COLUMN = tensor_type(F32, (8, 1))


@dataclass
class Library:
    """Claims `op`; demands `demand(operand type)` of each operand."""

    name: str = "lib"
    target: str = "test"
    priority: int = 0
    op: str = "aten.mm.default"
    demand: Callable[[TensorType], tuple[Extent, ...] | None] = field(default=lambda type: packed_strides(type.shape))

    def claim(self, node: Node, table: OperationTable) -> Decline | None:
        return None if node.op == self.op else Decline("not-mine", f"{self.name} runs {self.op} only", node.name)

    def layouts(self, node: Node, table: OperationTable) -> tuple[tuple[Extent, ...] | None, ...]:
        return tuple(self.demand(v.type) if isinstance(v.type, TensorType) else None for v in node.operands)

    def build(self, node: Node, table: OperationTable) -> Kernel:
        raise AssertionError("no test builds")


class MapsOnly(AnyEmitter):
    """Refuses reductions, and kernels with more writes than `writes`."""

    def __init__(self, writes: int = 100) -> None:
        self.writes = writes

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        if any(not hasattr(stage, "op") for stage in kernel.stages):
            return Decline("reduce", "this emitter has no reductions yet")
        if len(kernel.writes) > self.writes:
            return Decline("writes", f"this emitter writes at most {self.writes} values")
        return super().accepts(kernel, table)


def chain(length: int, *, other: str = "aten.relu.default", every: int = 0) -> Graph:
    """relu after relu; every `every`-th node is `other`."""
    graph = Graph()
    value = graph.add_parameter("x", SQUARE)
    for n in range(length):
        op = other if every and n % every == every - 1 else "aten.relu.default"
        value = graph.append(op, [value], [(f"v{n}", SQUARE)]).results[0]
    graph.set_results([value])
    return graph


def diamonds(count: int) -> Graph:
    """Each diamond's end is the next one's start; every third has an arm that ATen runs."""
    graph = Graph()
    value = graph.add_parameter("x", SQUARE)
    for n in range(count):
        left = graph.append("aten.relu.default", [value], [(f"l{n}", SQUARE)]).results[0]
        op = "aten.exp.default" if n % 3 else "aten.foo.default"
        right = graph.append(op, [value], [(f"r{n}", SQUARE)]).results[0]
        value = graph.append("aten.add.Tensor", [left, right], [(f"j{n}", SQUARE)]).results[0]
    graph.set_results([value])
    return graph


def layers(count: int, width: int) -> Graph:
    """Layers of which every node reads two of the layer before; of each seven nodes ATen runs two."""
    graph = Graph()
    row: list[Value] = [graph.add_parameter(f"x{n}", SQUARE) for n in range(width)]
    for layer in range(count):
        following: list[Value] = []
        for n in range(width):
            op = "aten.foo.Tensor" if (layer * width + n) % 7 in (0, 3) else "aten.add.Tensor"
            operands = [row[n], row[(3 * n + layer) % width]]
            following.append(graph.append(op, operands, [(f"v{layer}_{n}", SQUARE)]).results[0])
        row = following
    graph.set_results(row)
    return graph


@st.composite
def graphs(draw: st.DrawFn, *, size: int = 16) -> Graph:
    """Kernels, reductions, views, nodes of ATen, and nodes with every effect, over squares and columns."""
    graph = Graph()
    squares = [graph.add_parameter("x", SQUARE), graph.add_parameter("y", SQUARE)]
    columns = [graph.add_parameter("c", COLUMN)]
    kinds = ["unary", "binary", "column", "reduce", "view", "aten", "write", "random", "ordered"]
    weights = ["unary", "binary", "binary", "aten"]
    for n in range(draw(st.integers(1, size))):
        kind = draw(st.sampled_from(kinds + weights * 2))
        a = draw(st.sampled_from(squares[-6:]))
        b = draw(st.sampled_from(squares[-6:]))
        c = draw(st.sampled_from(columns))
        new = (f"v{n}", SQUARE)
        if kind == "reduce":
            attributes = {"1": (1,), "2": True}
            columns += graph.append("aten.sum.dim_IntList", [a], [(f"v{n}", COLUMN)], attributes).results
        elif kind == "ordered":
            graph.append("aten.check.default", [a], [], {"tessiq.effect": "ordered"})
        elif kind == "random":
            results = [new, (f"m{n}", tensor_type(BOOL, (8, 8)))]
            squares.append(graph.append("aten.native_dropout.default", [a], results, {"1": 0.5, "2": True}).results[0])
        else:
            op, operands = {
                "unary": ("aten.relu.default", [a]),
                "binary": ("aten.add.Tensor", [a, b]),
                "column": ("aten.mul.Tensor", [a, c]),
                "view": ("aten.alias.default", [a]),
                "aten": ("aten.foo.default", [a, b]),
                "write": ("aten.copy_.default", [a, b]),
            }[kind]
            squares += graph.append(op, operands, [new]).results
    graph.set_results(draw(st.lists(st.sampled_from([*squares, *columns]), min_size=1, max_size=4)))
    return graph
