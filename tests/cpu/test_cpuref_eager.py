"""Every row with an expression, lowered from the node a real call gives: the reference emitter against eager."""

from __future__ import annotations

import math

import pytest
import torch

from support.emitters import assert_same_bits, filled, launch, special_values
from support.op_torch import node_of_call, overload
from tessiq_core.codegen import lower
from tessiq_core.decline import Decline
from tessiq_core.ir.types import ELEMENT_TYPES, ElementType, TensorType
from tessiq_core.ops.row import Row
from tessiq_core.ops.table import default_table
from tessiq_cpuref import ReferenceEmitter

ROWS = [row for row in default_table() if row.expression is not None and row.effect == "none"]
CASES = [(row.name, name) for row in ROWS for name in ELEMENT_TYPES]
LAYOUTS = ("packed", "permuted", "broadcast", "expanded", "sliced", "zero-dim", "empty")

# Rows whose eager kernel gives other last bits, or another zero, for other layouts of the same values.
LAYOUT_DEPENDENT = ("exp(", "log(", "tanh(", "erf(", "pow(", "sqrt(", "rsqrt(", "$self > $other", "$self < $other")


def operands_of(row: Row, element: ElementType, layout: str) -> list[torch.Tensor | float | int | bool]:
    """Arguments in the order of the first spelling: tensors of the type where it takes tensors, else a number."""
    spelling = next(iter(row.spellings))
    found: list[torch.Tensor | float | int | bool] = []
    for argument in overload(spelling)._schema.arguments:
        if argument.name not in row.operands:
            break
        if "Tensor" in str(argument.type):
            kind = ELEMENT_TYPES["bool"] if argument.name in (*row.conditions, "mask") else element
            values = special_values(kind)
            if "gelu" in row.name and kind.is_float:
                # oneDNN's gelu gives NaN for large values and for infinities.
                values = values[values.isnan() | (values.abs() <= 100)]
            found.append(laid_out(values.roll(len(found)), layout, len(found)))
        elif element.is_float:
            found.append(1.5 + len(found))
        else:
            found.append(True if element.kind == "bool" else len(found))
    return found


def laid_out(values: torch.Tensor, layout: str, place: int) -> torch.Tensor:
    """The values as a tensor of this layout; operand number `place` differs from its neighbours where that matters."""
    many = values.repeat(24 // len(values) + 1)[:24].clone()
    match layout:
        case "permuted":
            return many.view(2, 3, 4).permute((2, 0, 1) if place % 2 else (2, 1, 0)).reshape(4, 2, 3).permute(1, 2, 0)
        case "broadcast":
            return many[:4] if place % 2 else many.view(2, 3, 4)
        case "expanded":
            return many[:3, None].expand(2, 3, 4) if place % 2 else many[:4].expand(2, 3, 4)
        case "sliced":
            return torch.cat([many, many]).view(2, 3, 8)[..., 1::2]
        case "zero-dim":
            return many[place]
        case "empty":
            return many[:0].view(2, 0, 4)
    return many.view(2, 3, 4)


@pytest.mark.parametrize(("row_name", "element_name"), CASES)
def test_the_reference_agrees_with_eager(row_name: str, element_name: str) -> None:
    row = default_table().row(row_name)
    assert row is not None
    assert row.expression is not None
    emitter, element = ReferenceEmitter(), ELEMENT_TYPES[element_name]
    spelling = next(iter(row.spellings))
    for layout in LAYOUTS:
        if row.name == "gelu_backward" and layout == "broadcast":
            continue  # oneDNN's does not broadcast
        arguments = operands_of(row, element, layout)
        try:
            node, (expected,) = node_of_call(spelling, arguments)
        except RuntimeError:
            # Eager refuses the type (subtraction of bools, gelu of integers): no graph can hold the call.
            assert element_name not in row.elements
            return
        lowered = lower([node], default_table())
        if isinstance(lowered, Decline):
            assert lowered.code == "element-type"
            assert element_name not in row.elements
            return
        assert emitter.accepts(lowered.description, default_table()) is None
        (kernel,) = emitter.compile([lowered.description], [lowered.operands], default_table())
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        names = [value.name for value in node.operands]
        inputs = [tensors[names.index(operand.value)] for operand in kernel.inputs]
        type = node.results[0].type
        assert isinstance(type, TensorType)
        got = filled(type.element, *expected.shape).as_strided(expected.shape, expected.stride())
        launch(kernel, inputs, [got])
        what = f"{row_name} {element_name} {layout}"
        if any(text in row.expression for text in LAYOUT_DEPENDENT):
            torch.testing.assert_close(got, expected, equal_nan=True, msg=lambda text, what=what: f"{what}: {text}")
        else:
            assert_same_bits(got, expected, what)


@pytest.mark.parametrize(
    ("spelling", "left", "right"),
    [
        ("aten.add.Tensor", "f32", "i64"),
        ("aten.mul.Tensor", "bf16", "f16"),
        ("aten.sub.Tensor", "u8", "i8"),
        ("aten.div.Tensor", "i32", "i32"),
        ("aten.lt.Tensor", "i64", "f16"),
        ("aten.maximum.default", "i16", "f64"),
        ("aten.add.Tensor", "bool", "i8"),
    ],
)
def test_operands_of_two_types_promote_as_in_eager(spelling: str, left: str, right: str) -> None:
    a, b = special_values(ELEMENT_TYPES[left])[:, None], special_values(ELEMENT_TYPES[right])
    node, (expected,) = node_of_call(spelling, [a, b])
    lowered = lower([node], default_table())
    assert not isinstance(lowered, Decline), lowered
    (kernel,) = ReferenceEmitter().compile([lowered.description], [lowered.operands], default_table())
    got = torch.empty_like(expected)
    launch(kernel, [a, b], [got])
    assert_same_bits(got, expected)


@pytest.mark.parametrize("number", [0.1, -0.0, math.inf, math.nan, 3, True])
@pytest.mark.parametrize("element_name", ["f16", "bf16", "f32", "i32"])
def test_numbers_stay_where_the_graph_had_them(number: float, element_name: str) -> None:
    x = special_values(ELEMENT_TYPES[element_name])
    for spelling in ("aten.sub.Scalar", "aten.rsub.Scalar", "aten.mul.Tensor", "aten.eq.Scalar"):
        try:
            node, (expected,) = node_of_call(spelling, [x, number])
        except RuntimeError:
            assert isinstance(number, bool)  # eager refuses to subtract a bool
            continue
        lowered = lower([node], default_table())
        assert not isinstance(lowered, Decline), lowered
        (kernel,) = ReferenceEmitter().compile([lowered.description], [lowered.operands], default_table())
        got = torch.empty_like(expected)
        launch(kernel, [x], [got])
        assert_same_bits(got, expected, f"{spelling} {number}")


def test_the_table_has_rows_to_test() -> None:
    assert len(ROWS) > 30
