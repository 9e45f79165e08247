"""Nodes to one kernel description, or the reason there is none.

Claiming asks `lower([node])` and the build calls `lower(group)`: one function, so that what is claimed is built.
The codes of its declines, stable:

    no-row               no row of the operation table means the operator
    category             the row is neither a map nor a reduce, or the node has not exactly one result
    movement-inside      the row only moves elements: a view, outside of kernels
    effect               the node writes memory, draws random numbers, or must keep its place
    argument             an argument no row consumes is not its default; a number out of the compute type's range
    scalar-operand       an operand is a number known only at the call
    opaque-type          an operand or the result is no dense tensor of an element type the compiler computes in
    element-type         the row does not compute in this type, or promotion gives another than the graph records
    result-type          the recorded shape is not what the operands and the row give
    unknown-extent       a shape, or a stride a kernel needs, is `?`
    broadcast            an operand's extent is neither 1 nor provably the result's
    iteration-space      the values have no common loops: none of them has every axis, or one would run diagonally
    symbolic-count       a mean over a number of elements known only at the call
    overlapping-output   a value to be written may have one element at two indices
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessiq_core.codegen.axes import AxisClasses, Space, tensor_of
from tessiq_core.codegen.calls import Call, read_call
from tessiq_core.codegen.check import check
from tessiq_core.codegen.collapse import arrange
from tessiq_core.codegen.description import (
    Access,
    Constant,
    KernelDescription,
    Map,
    Operand,
    Read,
    Reduce,
    Stage,
    Write,
)
from tessiq_core.codegen.interfaces import KernelOperand, KernelOperands
from tessiq_core.codegen.layout import never_overlaps
from tessiq_core.codegen.names import stage_name
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.extent import Extent, Unknown, product
from tessiq_core.ir.graph import Node, Value
from tessiq_core.ir.types import BOOL, F32, ElementType
from tessiq_core.ops.table import OperationTable

_DIVISION = "aten.div.Tensor"


@dataclass(frozen=True)
class Lowered:
    """A kernel's description, with its axes arranged, and its buffers: values read, by first use, then written."""

    description: KernelDescription
    operands: KernelOperands


def lower(nodes: Sequence[Node], table: OperationTable, *, name: str | None = None) -> Lowered | Decline:
    """One kernel that computes `nodes`, given in the graph's order; `name` is by default made of their rows' names.

    A value from outside is read with the strides of its type, 0 where it is broadcast. A value that is read outside
    the set or returned is written with the strides of its type; where no value is, the last node's is. A mean is a sum
    and a division. Declines with the codes at the top of this module; raises InvalidArgument for no nodes.
    """
    if not nodes:
        raise InvalidArgument("tessiq: lower: expected at least one node, got none")
    calls: list[Call] = []
    for node in nodes:
        call = read_call(node, table)
        if isinstance(call, Decline):
            return call
        calls.append(call)
    space = _space(calls)
    if isinstance(space, Decline):
        return space
    lowering = _Lowering(calls, space, table)
    problem = lowering.run()
    if problem is not None:
        return problem
    description = arrange(
        KernelDescription(
            name=name or _name(calls),
            domain=space.domain,
            reads=tuple(lowering.reads),
            stages=tuple(lowering.stages),
            writes=tuple(lowering.writes),
            members=tuple(call.result.name for call in calls),
        )
    )
    check(description, table)
    return Lowered(description, KernelOperands(tuple(lowering.inputs), tuple(lowering.outputs)))


def _name(calls: Sequence[Call]) -> str:
    names = [call.row.name.strip("_") for call in calls]
    return "_".join(names) if len(names) <= 4 else "_".join([*names[:3], f"{len(names) - 3}_more"])


def _space(calls: Sequence[Call]) -> Space | Decline:
    classes = AxisClasses()
    values: dict[Value, None] = {}
    unit_axis = False
    for call in calls:
        if call.reduced is None:
            problem = classes.broadcast(call.tensors, call.result)
        else:
            problem = classes.reduce(call.tensors[0], call.reduced, call.keepdim, call.result)
            unit_axis |= not _reduced_dimensions(call)
        if problem is not None:
            return problem
        values.update(dict.fromkeys((*call.tensors, call.result)))
    return classes.space(list(values), unit_axis)


def _reduced_dimensions(call: Call) -> list[int]:
    """The reduced dimensions that are loops: all but those of extent 1."""
    assert call.reduced is not None
    shape = tensor_of(call.tensors[0]).shape
    return [dim for dim in sorted(call.reduced) if shape[dim] != 1]


class _Lowering:
    """Collects the parts of one description, node by node."""

    def __init__(self, calls: Sequence[Call], space: Space, table: OperationTable) -> None:
        self.calls = calls
        self.space = space
        self.table = table
        self.members = {call.node for call in calls}
        self.stage_of: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.reads: list[Read] = []
        self.stages: list[Stage] = []
        self.writes: list[Write] = []
        self.inputs: list[KernelOperand] = []
        self.outputs: list[KernelOperand] = []

    def run(self) -> Decline | None:
        """Everything, in order; the first decline where there is one."""
        for call in self.calls:
            problem = self._call(call)
            if problem is not None:
                return problem
        leaving = [call for call in self.calls if self._leaves(call.result)]
        for call in leaving or self.calls[-1:]:
            problem = self._write(call)
            if problem is not None:
                return problem
        return None

    def _leaves(self, value: Value) -> bool:
        return value.is_returned or any(reader not in self.members for reader in value.readers)

    def _call(self, call: Call) -> Decline | None:
        operands: list[Operand] = []
        for operand in call.operands:
            stage = operand if isinstance(operand, Constant) else self._stage(operand, call)
            if isinstance(stage, Decline):
                return stage
            operands.append(stage)
        if call.reduced is None:
            name = self._new_name(call.result.name)
            self.stages.append(Map(name, call.row.name, tuple(operands), call.compute, call.type.element))
            self.stage_of[call.result] = name
            return None
        source = operands[0]
        assert isinstance(source, str)
        return self._reduce(call, source)

    def _reduce(self, call: Call, source: str) -> Decline | None:
        combine = call.row.reduction
        assert combine is not None
        axes = self._reduced_axes(call)
        if not call.row.averages:
            name = self._new_name(call.result.name)
            compute = _accumulation(combine, call.compute)
            self.stages.append(Reduce(name, combine, source, axes, compute, call.type.element))
            self.stage_of[call.result] = name
            return None
        count = product([self.space.domain[axis] for axis in axes])
        division = self.table.row(_DIVISION)
        if not isinstance(count, int):
            return Decline(
                "symbolic-count", f"{call.row.name} divides by {count}, known only at the call", call.result.name
            )
        if division is None:
            return Decline("no-row", f"{call.row.name} needs a row for {_DIVISION}", call.result.name)
        # The sum stays in its accumulation type until it is divided: one rounding, as in eager's own mean.
        compute = _accumulation(combine, call.compute)
        total = self._new_name(f"{call.result.name}_sum")
        name = self._new_name(call.result.name)
        self.stages.append(Reduce(total, combine, source, axes, compute, compute))
        self.stages.append(Map(name, division.name, (total, Constant(count)), compute, call.type.element))
        self.stage_of[call.result] = name
        return None

    def _reduced_axes(self, call: Call) -> tuple[int, ...]:
        places = self.space.axes[call.tensors[0]]
        axes = sorted(axis for dim in _reduced_dimensions(call) if (axis := places[dim]) is not None)
        return tuple(axes) or (len(self.space.domain) - 1,)

    def _stage(self, value: Value, call: Call) -> str | Decline:
        """The stage that holds the value: computed here already, or read."""
        if value in self.stage_of:
            return self.stage_of[value]
        access = self._access(value, call)
        if isinstance(access, Decline):
            return access
        name = self._new_name(value.name)
        type = tensor_of(value)
        self.reads.append(Read(name, value.name, type.element, access))
        self.inputs.append(KernelOperand(value.name, type))
        self.stage_of[value] = name
        return name

    def _write(self, call: Call) -> Decline | None:
        value, type = call.result, call.type
        access = self._access(value, call)
        if isinstance(access, Decline):
            return access
        if not never_overlaps(type.shape, type.layout):
            strides = ", ".join(map(str, type.layout))
            return Decline("overlapping-output", f"%{value.name} is to be written with strides [{strides}]", value.name)
        axes = tuple(sorted(axis for axis in self.space.axes[value] if axis is not None))
        self.writes.append(Write(value.name, self.stage_of[value], type.element, access, axes))
        self.outputs.append(KernelOperand(value.name, type))
        return None

    def _access(self, value: Value, call: Call) -> Access | Decline:
        strides: list[Extent] = [0] * len(self.space.domain)
        for axis, stride in zip(self.space.axes[value], tensor_of(value).layout, strict=True):
            if axis is not None:
                if isinstance(stride, Unknown):
                    return Decline("unknown-extent", f"%{value.name} has a stride nobody knows", call.result.name)
                strides[axis] = stride
        return Access(0, tuple(strides))

    def _new_name(self, stem: str) -> str:
        name = stage_name(stem, self.taken)
        self.taken.add(name)
        return name


def _accumulation(combine: str, compute: ElementType) -> ElementType:
    """What a reduce accumulates in: half types in f32, as eager does; truth in bool."""
    if combine in ("any", "all"):
        return BOOL
    if combine in ("sum", "prod") and compute.is_float and compute.size < 4:
        return F32
    return compute
