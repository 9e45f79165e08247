"""PyTorch's type promotion, without PyTorch.

Operands fall into three classes: tensors with dimensions, 0-dim tensors, Python numbers. Each class promotes among
itself; a later class then counts only where its kind (bool < integer < floating) is higher. The rule is the one
documented under "Type promotion" in torch's "Tensor Attributes" page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tessiq_core.decline import Decline
from tessiq_core.ir.attributes import Attribute
from tessiq_core.ir.graph import Value
from tessiq_core.ir.types import (
    BF16,
    BOOL,
    ELEMENT_TYPES,
    F16,
    F32,
    I16,
    I64,
    U8,
    ElementType,
    ScalarType,
    TensorType,
)
from tessiq_core.ops.arguments import Bound, BoundCall
from tessiq_core.ops.row import Row

DEFAULT_FLOAT: Final = F32
"""The element type of a Python float, as `torch.get_default_dtype()` starts out."""

_SCALAR_ELEMENTS: Final = {"bool": BOOL, "int": I64, "float": DEFAULT_FLOAT}


def promote_types(a: ElementType, b: ElementType) -> ElementType:
    """The smallest element type both convert to, as `torch.promote_types`: f16 with bf16 is f32, u8 with i8 is i16.

    Neither may be opaque.
    """
    if a == b:
        return a
    rank_a, rank_b = _kind_rank(a), _kind_rank(b)
    if rank_a != rank_b:
        return a if rank_a > rank_b else b
    if {a, b} == {F16, BF16}:
        return F32
    if U8 in (a, b):
        other = b if a == U8 else a
        return I16 if other.size == 1 else other
    return a if a.size > b.size else b


def _kind_rank(element: ElementType) -> int:
    return {"bool": 0, "int": 1, "uint": 1, "float": 2}[element.kind]


def _combine(higher: ElementType | None, lower: ElementType | None) -> ElementType | None:
    """What operands of a later class (`lower`) make of the type of the earlier ones."""
    if higher is None or lower is None:
        return higher or lower
    return lower if _kind_rank(lower) > _kind_rank(higher) else higher


def result_element(
    dimensioned: Iterable[ElementType], zero_dimensional: Iterable[ElementType], numbers: Iterable[ElementType]
) -> ElementType | None:
    """The common type of tensors with dimensions, 0-dim tensors and Python numbers; None for no operand at all."""
    classes: list[ElementType | None] = []
    for members in (dimensioned, zero_dimensional, numbers):
        common: ElementType | None = None
        for element in members:
            common = element if common is None else promote_types(common, element)
        classes.append(common)
    return _combine(classes[0], _combine(classes[1], classes[2]))


def compute_type(row: Row, bound: BoundCall, result_type: ElementType) -> ElementType | Decline:
    """The element type the row computes in for this call.

    `result_type` is the element type the graph records for the first result. Declines with code `element-type` when
    an operand is opaque, when the type is none the row computes in, and when promotion does not lead to what the
    graph records (another default dtype, say): a kernel would round differently there.
    """
    node = bound.node.name
    if result_type.is_opaque:
        return Decline("element-type", f"the result's element type {result_type} is opaque", node)
    promoted = _promote(row, bound)
    if isinstance(promoted, Decline):
        return promoted
    compute = promoted
    if row.compute == "result":
        compute = result_type
    elif row.compute == "float" and not promoted.is_float:
        compute = DEFAULT_FLOAT
    if compute.name not in row.elements:
        return Decline("element-type", f"{row.name} computes in {_names(row.elements)}, not in {compute}", node)
    expected = _expected_result(row, bound, compute)
    if expected is not None and expected != result_type:
        return Decline(
            "element-type", f"{row.name} of these operands gives {expected}, but the graph records {result_type}", node
        )
    return compute


def _promote(row: Row, bound: BoundCall) -> ElementType | Decline:
    dimensioned: list[ElementType] = []
    zero_dimensional: list[ElementType] = []
    numbers: list[ElementType] = []
    for name in row.operands:
        operand = bound.arguments[name]
        if isinstance(operand, Value) and isinstance(operand.type, TensorType):
            element = operand.type.element
            if element.is_opaque:
                return Decline(
                    "element-type", f"operand {name!r} has the opaque element type {element}", bound.node.name
                )
            if name not in row.conditions:
                (dimensioned if operand.type.rank else zero_dimensional).append(element)
        elif name not in row.conditions:
            number = _number(operand)
            if number is None:
                return Decline("element-type", f"operand {name!r} is no tensor and no real number", bound.node.name)
            numbers.append(number)
    common = result_element(dimensioned, zero_dimensional, numbers)
    if common is None:
        return Decline("element-type", f"{row.name} has no operand to take an element type from", bound.node.name)
    return common


def _number(operand: Bound) -> ElementType | None:
    if isinstance(operand, Value):
        return _SCALAR_ELEMENTS[operand.type.kind] if isinstance(operand.type, ScalarType) else None
    return python_number_element(operand)


def python_number_element(number: Bound | Attribute) -> ElementType | None:
    """The element type of a Python number by itself: bool, i64 or f32; None for what is no number."""
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        return I64
    return DEFAULT_FLOAT if isinstance(number, float) else None


def _expected_result(row: Row, bound: BoundCall, compute: ElementType) -> ElementType | None:
    """The element type the row says its first result has; None where only the graph knows."""
    if row.result == "bool":
        return BOOL
    if row.result == "compute":
        return compute
    if row.result == "first":
        first = bound.operands[0] if bound.operands else None
        if isinstance(first, Value) and isinstance(first.type, TensorType):
            return first.type.element
    return None


def _names(elements: tuple[str, ...]) -> str:
    return "every element type" if set(elements) == set(ELEMENT_TYPES) else ", ".join(elements) or "none"
