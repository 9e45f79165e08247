"""Promotion is PyTorch's, for every pair of element types and every class of operand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from support.op_nodes import node
from support.op_torch import DTYPES, ELEMENTS, node_of_call
from tessiq_core.decline import Decline
from tessiq_core.ir import BOOL, ELEMENT_TYPES, F32, F64, I64, Graph, ScalarType, opaque_element, tensor_type
from tessiq_core.ops import BoundCall, Required, bind, compute_type, default_table
from tessiq_core.ops.promotion import promote_types, python_number_element, result_element

TABLE = default_table()
NAMES = list(ELEMENT_TYPES)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_promote_types(a: str, b: str) -> None:
    expected = ELEMENTS[torch.promote_types(DTYPES[a], DTYPES[b])]
    assert promote_types(ELEMENT_TYPES[a], ELEMENT_TYPES[b]) == expected


def _operands() -> list[tuple[str, Any]]:
    dimensioned = [(f"{name}[2]", torch.ones(2).to(dtype)) for name, dtype in DTYPES.items()]
    zero = [(f"{name}[]", torch.ones(()).to(dtype)) for name, dtype in DTYPES.items()]
    return [*dimensioned, *zero, ("bool", True), ("int", 1), ("float", 1.0)]


OPERANDS = _operands()
PAIRS = list(itertools.product(OPERANDS, OPERANDS))


def _classes(operands: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    classes: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for operand in operands:
        if isinstance(operand, torch.Tensor):
            classes[0 if operand.dim() else 1].append(ELEMENTS[operand.dtype])
        else:
            classes[2].append(python_number_element(operand))
    return classes


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=[f"{a[0]}-{b[0]}" for a, b in PAIRS])
def test_two_operands_of_any_class(left: tuple[str, Any], right: tuple[str, Any]) -> None:
    expected = ELEMENTS[torch.result_type(left[1], right[1])]
    assert result_element(*_classes([left[1], right[1]])) == expected


def test_three_operands_of_all_classes() -> None:
    tensors = [(value, value.dtype) for _, value in OPERANDS if isinstance(value, torch.Tensor)]
    for (a, _), (b, _), number in itertools.product(tensors[::2], tensors[1::2], (True, 1, 1.0)):
        expected = ELEMENTS[torch.ops.aten.where.self(torch.ones(2) > 0, a, b).dtype]
        assert result_element(*_classes([a, b])) == expected
        both = torch.ops.aten.add.Tensor(torch.ops.aten.add.Tensor(a, b), number)
        if expected != BOOL or number is not True:
            assert result_element(*_classes([a, b, number])) == ELEMENTS[both.dtype]


def test_no_operand_has_no_type() -> None:
    assert result_element([], [], []) is None


def _compute(spelling: str, *arguments: Any, **keywords: Any) -> Any:
    node, _ = node_of_call(spelling, arguments, keywords)
    bound = bind(node, TABLE)
    assert isinstance(bound, BoundCall), bound
    return compute_type(bound.row, bound, node.results[0].type.element)  # type: ignore[union-attr]


def _ones(name: str, *shape: int) -> torch.Tensor:
    return torch.ones(shape).to(DTYPES[name])


def test_compute_types() -> None:
    assert _compute("aten.add.Tensor", _ones("f32", 2), _ones("f64")) == F32
    assert _compute("aten.add.Tensor", _ones("i32", 2), 1.5) == F32
    assert _compute("aten.div.Tensor", _ones("i32", 2), _ones("i64", 2)) == F32
    assert _compute("aten.div.Tensor", _ones("bool", 2), _ones("f64")) == F64
    assert _compute("aten.eq.Scalar", _ones("i32", 2), 1.5) == F32
    assert _compute("aten.where.self", _ones("bool", 2), _ones("f32", 2), _ones("f64")) == F32
    assert _compute("aten.masked_fill.Scalar", _ones("f32", 2), _ones("bool", 2), -1) == F32
    assert _compute("aten.sum.default", _ones("i32", 2)) == I64
    assert _compute("aten._to_copy.default", _ones("i32", 2), dtype=torch.float64) == F64


@pytest.mark.parametrize(
    ("spelling", "arguments", "words"),
    [
        ("aten.bitwise_not.default", [torch.ones(2, dtype=torch.int8).bool()], None),
        ("aten.relu.default", [torch.ones(2, dtype=torch.int8)], None),
        ("aten.any.default", [torch.ones(2, dtype=torch.uint8)], "not in u8"),
        ("aten.pow.Tensor_Scalar", [torch.ones(2, dtype=torch.int32), 2], "not in i32"),
        ("aten.pow.Tensor_Scalar", [torch.ones(2).half(), 2], "not in f16"),
    ],
)
def test_the_row_says_which_types_it_computes_in(spelling: str, arguments: list[Any], words: str | None) -> None:
    found = _compute(spelling, *arguments)
    if words is None:
        assert not isinstance(found, Decline)
    else:
        assert isinstance(found, Decline)
        assert found.code == "element-type"
        assert words in found.reason


def test_another_default_dtype_is_declined_instead_of_rounded() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        found = _compute("aten.add.Tensor", torch.ones(2, dtype=torch.int32), 1.5)
    finally:
        torch.set_default_dtype(torch.float32)
    assert isinstance(found, Decline)
    assert "gives f32, but the graph records f64" in found.reason


def test_a_condition_takes_no_part_in_promotion() -> None:
    bound = bind(node("where(%c, %a, %b)", "bool[2]", c="u8[2]", a="bool[2]", b="bool[2]"), TABLE)
    assert isinstance(bound, BoundCall)
    assert compute_type(bound.row, bound, BOOL) == BOOL


def test_opaque_elements_are_declined() -> None:
    for operand, result in ((opaque_element("complex64"), F32), (F32, opaque_element("complex64"))):
        graph = Graph()
        x = graph.add_parameter("x", tensor_type(operand, (2,)))
        node = graph.append("abs", [x], [("r", tensor_type(result, (2,)))])
        bound = bind(node, TABLE)
        assert isinstance(bound, BoundCall)
        found = compute_type(bound.row, bound, result)
        assert isinstance(found, Decline)
        assert "opaque" in found.reason


def test_a_number_known_at_the_call_counts_as_a_number() -> None:
    graph = Graph()
    x = graph.add_parameter("x", tensor_type(ELEMENT_TYPES["f16"], (2,)))
    n = graph.add_parameter("n", ScalarType("float"))
    node = graph.append("mul", [x, n], [("r", tensor_type(ELEMENT_TYPES["f16"], (2,)))])
    bound = bind(node, TABLE)
    assert isinstance(bound, BoundCall)
    assert compute_type(bound.row, bound, ELEMENT_TYPES["f16"]) == ELEMENT_TYPES["f16"]


# -- every row that a kernel may compute, run by PyTorch ---------------------------------------------------------------

KERNEL_ROWS = [row for row in TABLE if row.category in ("elementwise", "copy", "reduction") and row.effect == "none"]
NUMBERS = {"exponent": 2, "threshold": 0, "min": 0, "max": 1, "scale": 2.0, "value": 0}
CONDITIONS = ("condition", "mask")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", KERNEL_ROWS, ids=[row.name for row in KERNEL_ROWS])
def test_the_first_spelling_gives_the_recorded_type(row: Any, name: str) -> None:
    """Where PyTorch runs the row on operands of this type, the promotion leads to the type PyTorch gives."""
    spelling, signature = next(iter(row.spellings.items()))
    arguments: list[Any] = []
    for argument in signature:
        if argument.name in row.operands:
            if argument.name in NUMBERS:
                number = NUMBERS[argument.name]
                arguments.append(bool(number) if name == "bool" else number)
            else:
                arguments.append(_ones("bool" if argument.name in CONDITIONS else name, 2, 3))
        elif isinstance(argument.default, Required):
            arguments.append([0] if row.name != "any" and row.name != "all" else 0)
    try:
        node, (output, *_) = node_of_call(spelling, arguments)
    except (RuntimeError, NotImplementedError):
        return  # PyTorch refuses the type; a graph cannot contain the call
    bound = bind(node, TABLE)
    assert isinstance(bound, BoundCall), bound
    found = compute_type(row, bound, ELEMENTS[output.dtype])
    if isinstance(found, Decline):
        # Only because the row does not compute in that type: never a disagreement about the result.
        assert f"{row.name} computes in" in found.reason
        computes = bound.row.elements
        assert name not in computes or row.compute == "result"
    else:
        assert found.name in row.elements
