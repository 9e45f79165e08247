"""What a kernel needs to know of one node: its row, operands and types; or why no kernel can run it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tessiq_core.codegen.check import constant_fits
from tessiq_core.codegen.description import Constant
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Unknown
from tessiq_core.ir.graph import Node, Value
from tessiq_core.ir.types import BOOL, ElementType, ScalarType, TensorType
from tessiq_core.ops.arguments import Bound, BoundCall, bind
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.promotion import compute_type
from tessiq_core.ops.row import Row
from tessiq_core.ops.table import OperationTable


@dataclass(frozen=True)
class Call:
    """One node of a kernel.

    operands: in the order of the row's operands, a tensor value or a number.
    compute:  the element type the row computes in.
    reduced:  for a reduction the operand's dimensions it combines, else None; `keepdim` goes with it.
    """

    node: Node
    row: Row
    operands: tuple[Value | Constant, ...]
    result: Value
    type: TensorType
    compute: ElementType
    reduced: frozenset[int] | None = None
    keepdim: bool = False

    @property
    def tensors(self) -> tuple[Value, ...]:
        return tuple(operand for operand in self.operands if isinstance(operand, Value))


def read_call(node: Node, table: OperationTable) -> Call | Decline:
    """The node as a map or a reduce. Declines with the codes `lower` lists."""
    effect = effect_of(node, table)
    if effect != "none":
        return Decline("effect", f"{node.op} has the effect {effect!r}; it stays one whole operator", node.name)
    bound = bind(node, table)
    if isinstance(bound, Decline):
        return bound
    row = bound.row
    if row.category == "movement":
        return Decline("movement-inside", f"{row.name} only moves elements; it is a view outside of kernels", node.name)
    if row.expression is None and row.reduction is None:
        return Decline("category", f"{row.name} ({row.category}) is neither a map nor a reduce", node.name)
    result = _result(node)
    if isinstance(result, Decline):
        return result
    type, value = result
    operands: list[Value | Constant] = []
    for name, item in zip(row.operands, bound.operands, strict=True):
        operand = _operand(name, item, node)
        if isinstance(operand, Decline):
            return operand
        operands.append(operand)
    compute = _compute(bound, type, node)
    if isinstance(compute, Decline):
        return compute
    if row.reduction is not None:
        return _reduction(bound, operands, type, value, compute)
    for index, operand in enumerate(operands):
        if isinstance(operand, Constant):
            converted = _constant(operand.value, row, compute, node)
            if isinstance(converted, Decline):
                return converted
            operands[index] = converted
    return Call(node, row, tuple(operands), value, type, compute)


def _result(node: Node) -> tuple[TensorType, Value] | Decline:
    if len(node.results) != 1:
        return Decline("category", f"{node.op} has {len(node.results)} results; a map or a reduce has one", node.name)
    value = node.results[0]
    problem = _tensor_problem(value, node)
    if problem is not None:
        return problem
    assert isinstance(value.type, TensorType)
    return value.type, value


def _tensor_problem(value: Value, node: Node) -> Decline | None:
    if not isinstance(value.type, TensorType):
        return Decline("opaque-type", f"%{value.name} is no dense tensor", node.name)
    if value.type.element.is_opaque:
        return Decline("opaque-type", f"%{value.name} has elements of {value.type.element}", node.name)
    if any(isinstance(extent, Unknown) for extent in value.type.shape):
        return Decline("unknown-extent", f"%{value.name} has a dimension of unknown extent", node.name)
    return None


def _operand(name: str, bound: Bound, node: Node) -> Value | Constant | Decline:
    if isinstance(bound, Value):
        if isinstance(bound.type, ScalarType):
            if bound.type.kind == "int" and isinstance(bound.type.value, int):
                return Constant(bound.type.value)
            return Decline(
                "scalar-operand", f"argument {name!r} is the number %{bound.name}, known only at the call", node.name
            )
        return _tensor_problem(bound, node) or bound
    if isinstance(bound, bool | int | float):
        return Constant(bound)
    return Decline("argument", f"argument {name!r} is neither a tensor nor a number", node.name)


def _compute(bound: BoundCall, type: TensorType, node: Node) -> ElementType | Decline:
    compute = compute_type(bound.row, bound, type.element)
    if isinstance(compute, Decline):
        return compute
    for name in bound.row.conditions:
        condition = bound.arguments[name]
        if isinstance(condition, Value) and isinstance(condition.type, TensorType) and condition.type.element != BOOL:
            # A map converts its operands to the compute type first; only of a bool does that keep the truth.
            return Decline("element-type", f"condition {name!r} is {condition.type.element}, not bool", node.name)
    return compute


def _constant(value: bool | int | float, row: Row, compute: ElementType, node: Node) -> Constant | Decline:
    """The number as a kernel may hold it. A row that computes in its result's type converts, as PyTorch does."""
    if row.compute == "result" and not constant_fits(value, compute):
        if compute == BOOL:
            return Constant(value != 0)
        if math.isfinite(value):
            value = int(value)
    if not constant_fits(value, compute):
        return Decline("argument", f"{value!r} cannot be an operand of {row.name} in {compute}", node.name)
    if compute.is_integer and not isinstance(value, bool):
        bits = 8 * compute.size
        low, high = (0, 2**bits) if compute.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        if not low <= value < high:
            return Decline("argument", f"{value!r} is out of the range of {compute}; PyTorch decides", node.name)
    return Constant(value)


def _reduction(
    bound: BoundCall, operands: Sequence[Value | Constant], type: TensorType, result: Value, compute: ElementType
) -> Call | Decline:
    node, row = bound.node, bound.row
    operand = operands[0]
    if not isinstance(operand, Value):
        return Decline("argument", f"{row.name} of a number has nothing to combine", node.name)
    assert isinstance(operand.type, TensorType)
    dims = _reduced(bound, operand.type.rank)
    if isinstance(dims, Decline):
        return dims
    keepdim = bound.arguments.get("keepdim", False)
    if not isinstance(keepdim, bool):
        return Decline("argument", "argument 'keepdim' is neither true nor false", node.name)
    if compute.is_float and compute.size < 4 and operand.type.element != compute:
        return Decline(
            "element-type",
            f"{row.name} converts {operand.type.element} to {compute} before it combines; cast the operand first",
            node.name,
        )
    return Call(node, row, (operand,), result, type, compute, dims, keepdim)


def _reduced(bound: BoundCall, rank: int) -> frozenset[int] | Decline:
    """The dimensions argument `dim` names; all where the spelling has none, or it is none or empty."""
    given = bound.arguments.get("dim")
    if given is None:
        return frozenset(range(rank))
    items = given if isinstance(given, tuple) else (given,)
    if not items:
        if bound.row.reduction in ("any", "all"):
            # PyTorch combines nothing then, where its other reductions combine everything.
            return Decline("argument", "argument 'dim' is an empty list", bound.node.name)
        return frozenset(range(rank))
    dims: list[int] = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int):
            return Decline("argument", "argument 'dim' is not a list of integers", bound.node.name)
        limit = max(rank, 1)
        if not -limit <= item < limit:
            return Decline(
                "argument", f"argument 'dim' names {item}, and the operand's rank is {rank}", bound.node.name
            )
        dims.append(item % limit)
    if len(set(dims)) < len(dims):
        return Decline("argument", "argument 'dim' names a dimension twice", bound.node.name)
    return frozenset(dim for dim in dims if dim < rank)
