"""Runs a graph on terms instead of numbers, with memory: the oracle for passes that move or merge computations.

Every tensor is a buffer and how it is seen. Operations read what their operands' buffers hold now; views share their
source's buffer; writers change what buffers hold. What a caller can observe is what the results hold at the end, which
of the results and parameters share memory, what the parameters hold, and what happened in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tessiq_core.ir import Graph, Node, Value, attribute_key

Term = tuple[object, ...]


@dataclass(frozen=True)
class Tensor:
    buffer: int
    transposed: bool


@dataclass
class Machine:
    """`unknown_is_view`: whether an operator without a row returns its first operand's memory, or new memory."""

    unknown_is_view: bool
    memory: list[Term] = field(default_factory=list)
    values: dict[Value, Tensor] = field(default_factory=dict)
    happened: list[Term] = field(default_factory=list)

    def new(self, content: Term) -> Tensor:
        self.memory.append(content)
        return Tensor(len(self.memory) - 1, False)

    def read(self, tensor: Tensor) -> Term:
        content = self.memory[tensor.buffer]
        if not tensor.transposed:
            return content
        # Transposed twice is as it was.
        return content[1] if content[0] == "t" and isinstance(content[1], tuple) else ("t", content)

    def step(self, node: Node) -> None:
        operands = [self.values[value] for value in node.operands]
        arguments = tuple((name, attribute_key(value)) for name, value in node.arguments.items())
        term: Term = (node.op, arguments, tuple(self.read(operand) for operand in operands))
        effect = "writes" if node.op == "aten.copy_.default" else node.attribute("tessiq.effect", "none")
        if effect != "none":
            term = (*term, len(self.happened))
            self.happened.append(term)
        if effect in ("writes", "ordered"):
            for operand in operands:
                self.memory[operand.buffer] = ("written", term, self.memory[operand.buffer])
        for index, result in enumerate(node.results):
            self.values[result] = self.result(node, operands, (*term, index), str(effect))

    def result(self, node: Node, operands: list[Tensor], term: Term, effect: str) -> Tensor:
        if node.op == "aten.t.default" and operands:
            return Tensor(operands[0].buffer, not operands[0].transposed)
        if node.op == "aten.clone.default" and operands:
            return self.new(self.read(operands[0]))
        if node.op == "example.fused.default":
            inner = ("aten.exp.default", (), (self.read(operands[0]),), 0)
            return self.new(("aten.exp.default", (), (inner,), 0))
        may_be_view = effect in ("writes", "ordered") or node.op == "other.op.default"
        if may_be_view and self.unknown_is_view and operands:
            return operands[0]
        return self.new(term)


def observe(graph: Graph, *, unknown_is_view: bool) -> Term:
    """Everything a caller of the graph can tell."""
    machine = Machine(unknown_is_view)
    for value in graph.parameters:
        machine.values[value] = machine.new(("parameter", value.name))
    for node in graph.nodes:
        machine.step(node)
    seen = [machine.values[value] for value in (*graph.parameters, *graph.results)]
    first = {tensor.buffer: index for index, tensor in reversed(list(enumerate(seen)))}
    return (
        tuple(machine.read(tensor) for tensor in seen),
        tuple(first[tensor.buffer] for tensor in seen),
        tuple(machine.happened),
    )
