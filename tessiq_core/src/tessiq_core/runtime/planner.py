"""From scheduled units to a plan: slots, steps, transfers, and when each slot is last read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tessiq_core.codegen.interfaces import Kernel, KernelOperand
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.movement import view_offsets
from tessiq_core.ops.table import OperationTable
from tessiq_core.passes.claims import CONSTANT
from tessiq_core.passes.decisions import CLUSTER
from tessiq_core.passes.schedule import Unit
from tessiq_core.passes.units import BARRIERS
from tessiq_core.runtime.call_template import call_template
from tessiq_core.runtime.imported import OutputSpec
from tessiq_core.runtime.liveness import slots_read, with_releases
from tessiq_core.runtime.operators import holds_gil, is_mutable, resolve, writes_to
from tessiq_core.runtime.places import DEVICE, HOME, Places, View
from tessiq_core.runtime.plan import CallStep, KernelStep, LateSymbol, Plan, Step
from tessiq_core.runtime.symbols import input_bindings, late_definitions, settle_symbols

RETURNS = "tessiq.returns"
"""On a node whose operator returns a list of exactly one value."""


@dataclass(frozen=True)
class Planned:
    """A plan, and what each unit moved across for it.

    moves: for each unit the names of the values that crossed between home and device.
    writes_constant: the plan writes to a constant, so the recipe must not serve another graph.
    """

    plan: Plan
    moves: tuple[tuple[str, ...], ...]
    writes_constant: bool


def make_plan(
    graph: Graph,
    units: Sequence[Unit],
    kernels: Sequence[Kernel],
    kernel_of: Mapping[int, int],
    outputs: OutputSpec,
    table: OperationTable,
    *,
    adopt: bool = True,
) -> Planned:
    """The plan of a scheduled graph.

    kernel_of: for the index of each kernel and library unit, its number in `kernels`.
    adopt:     kernels read and write the home's tensors in place. False puts kernels and library calls on the
               device's side: a value crosses to it once for all who read it there, and back when it is read at home
               or returned; views of what is on the device stay there.

    Raises Internal where the compiler's parts do not fit together.
    """
    return _Planner(graph, kernels, table, adopt).run(units, kernel_of, outputs)


def leaving_together(graph: Graph, table: OperationTable) -> set[Value]:
    """The values whose memory two or more different results may share.

    Movement rows give views of what they read, operators without a row may; other rows give new memory.
    """
    results: dict[Value, set[Value]] = {value: {value} for value in graph.results}  # of each value, two at most
    for node in graph.reversed_nodes:
        row = table.row(node.op)
        if row is None or row.category == "movement":
            through = {result for value in node.results for result in results.get(value, ())}
            for value in node.operands if through else ():
                found = results.setdefault(value, set())
                found.update(islice(through - found, 2 - min(len(found), 2)))
    return {value for value, found in results.items() if len(found) > 1}


class _Planner:
    def __init__(self, graph: Graph, kernels: Sequence[Kernel], table: OperationTable, adopt: bool) -> None:
        self.graph = graph
        self.kernels = kernels
        self.table = table
        self.side = HOME if adopt else DEVICE
        self.steps: list[Step] = []
        self.places = Places(self.steps, () if adopt else leaving_together(graph, table))
        self.values = {value.name: value for value in graph.values()}
        self.constants: list[tuple[int, str]] = []
        self.written: set[Value] = set()
        self.bindings = input_bindings(graph)
        self.definitions = late_definitions(graph, self.bindings)
        self.late: list[LateSymbol] = []

    def run(self, units: Sequence[Unit], kernel_of: Mapping[int, int], outputs: OutputSpec) -> Planned:
        parameters = [self.places.born(value, HOME) for value in self.graph.parameters]
        moves: list[tuple[str, ...]] = []
        for index, unit in enumerate(units):
            self.places.moved.clear()
            if unit.kind in ("kernel", "library"):
                self._kernel(kernel_of[index])
            else:
                for node in unit.nodes:
                    self._view(node) if unit.kind == "view" else self._call(node)
            moves.append(tuple(self.places.moved))
        results = [self.places.slot(value, HOME) for value in self.graph.results]
        read = {slot for step in self.steps for slot in slots_read(step)} | set(results)
        raw = {slot for step in self.steps if not isinstance(step, CallStep) for slot in slots_read(step)}
        checked = tuple(slot for slot in parameters if slot in raw)
        held = {*checked, *self._held_results(raw)}
        steps, symbols, late = settle_symbols(
            self.steps, self.kernels, self.bindings, self.late, [self.places.slots[slot].type for slot in held]
        )
        plan = Plan(
            slots=tuple(self.places.slots),
            inputs=tuple(slot if slot in read else None for slot in parameters),
            constants=tuple((slot, name) for slot, name in self.constants if slot in read),
            symbols=symbols,
            steps=tuple(with_releases(steps, set(results))),
            outputs=tuple(None if position is None else results[position] for position in outputs.positions),
            checked=checked,
            writes=tuple(s for v, s in zip(self.graph.parameters, parameters, strict=True) if v in self.written),
            late=late,
            literals=outputs.literals,
        )
        constants = any(v.producer is not None and v.producer.op == CONSTANT for v in self.written)
        return Planned(plan, tuple(moves), constants)

    def _held_results(self, raw: set[int]) -> set[int]:
        """The results of calls whose layout is settled or checked: those whose memory is read directly, and those of a
        call that tells a symbol, which are settled after it."""
        late = {definition.step for definition in self.late}
        return {
            slot
            for index, step in enumerate(self.steps)
            if isinstance(step, CallStep)
            for slot in step.results
            if slot is not None and (slot in raw or index in late)
        }

    # -- units ---------------------------------------------------------------------------------------------------
    def _kernel(self, number: int) -> None:
        kernel = self.kernels[number]
        inputs = tuple(self.places.slot(self._value(kernel, operand), self.side) for operand in kernel.inputs)
        outputs = tuple(self.places.born(self._value(kernel, operand), self.side) for operand in kernel.outputs)
        self.steps.append(KernelStep(kernel.name, number, inputs, outputs))

    def _value(self, kernel: Kernel, operand: KernelOperand) -> Value:
        value = self.values.get(operand.value)
        if value is None or value.type != operand.type:
            have = "which the graph does not have" if value is None else f"which the graph has as {value.type}"
            raise Internal(f"tessiq: kernel {kernel.name} has an operand %{operand.value}: {operand.type}, {have}")
        return value

    def _view(self, node: Node) -> None:
        offsets = view_offsets(node, self.table)
        if isinstance(offsets, Decline):
            raise Internal(f"tessiq: %{node.name} is claimed as a view, but {offsets}; this is a bug in mark-supported")
        source = next(value for value in node.operands if isinstance(value.type, TensorType))
        on_device = self.side == DEVICE and node.has_attribute(CLUSTER)
        for value, offset in zip(node.results, offsets, strict=True):
            self.places.is_view(value, View(source, node.name, offset, on_device))

    def _call(self, node: Node) -> None:
        if node.op == CONSTANT:
            self.constants.append((self.places.born(node.results[0], HOME), str(node.attribute("0"))))
            return
        template = call_template(node, lambda value: self.places.slot(value, HOME))
        op = self._spelling(node.op)
        operator = resolve(op)
        effect = effect_of(node, self.table)
        results = tuple(
            self.places.born(value, HOME) if value.is_read or value in self.definitions else None
            for value in node.results
        )
        for value, slot in zip(node.results, results, strict=True):
            for name, axis in self.definitions.get(value, ()):
                assert slot is not None
                self.late.append(LateSymbol(name, len(self.steps), slot, axis))
        # A result of an operator that writes is the memory it wrote to: a copy in other strides would not be.
        own_memory = not (effect in BARRIERS and is_mutable(operator))
        expected = tuple(
            value.type if isinstance(value.type, TensorType) and slot is not None and own_memory else None
            for value, slot in zip(node.results, results, strict=True)
        )
        returns = "many" if node.has_attribute(RETURNS) else {0: "none", 1: "one"}.get(len(results), "many")
        arguments, keywords = template.arguments, template.keywords
        gil = holds_gil(operator)
        self.steps.append(CallStep(node.name, op, arguments, keywords, results, returns, expected, gil))
        if effect in BARRIERS:
            targets = {
                value
                for value, (position, keyword) in zip(node.operands, template.places, strict=True)
                if isinstance(value.type, TensorType) and writes_to(operator, position, keyword)
            }
            self.written |= {self.places.root(value) for value in targets}
            self.places.written(targets)

    def _spelling(self, op: str) -> str:
        """The operator's full name; hand-written graphs use the table's short names."""
        row = self.table.row(op)
        return op if row is None or op in row.spellings else next(iter(row.spellings), op)
