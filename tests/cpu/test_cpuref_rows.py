"""Every row of the table with an expression, in every element type it computes in: C++ against the reference emitter.

One kernel a row and type, with symbolic extents and strides, is launched with every layout; so a new row is covered by
being in the table.
"""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch

from support.emitters import assert_same_bits, compile_all, filled, launch, special_values
from tessiq_core.codegen import Access, Constant, KernelDescription, Map, Read, Write
from tessiq_core.codegen.check import constant_fits
from tessiq_core.codegen.description import Operand
from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.ir.extent import symbol
from tessiq_core.ir.types import BOOL, ELEMENT_TYPES, F64, ElementType
from tessiq_core.ops.row import Row
from tessiq_core.ops.table import default_table
from tessiq_cpuref import CppEmitter, ReferenceEmitter

pytestmark = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")

ROWS = [row for row in default_table() if row.expression is not None and row.effect == "none"]
CASES = [(row.name, name) for name in ELEMENT_TYPES for row in ROWS if name in row.elements]
RANK = 3

# Numbers for arguments that take no tensor, each list one try. Representable in every type that takes them.
NUMBERS: dict[str, list[tuple[float | int, ...]]] = {
    "pow": [(value,) for value in (2, 3, 1, 0, 0.5, -0.5, -1, -2, 1.75, -3, math.inf, math.nan)],
    "native_dropout_backward": [(2,), (1.25,), (0,)],
    "clamp": [(-2, 3), (3, -2), (0, 0), (-math.inf, 2), (math.nan, 2), (0, math.nan)],
}
ANY_NUMBERS: list[tuple[float | int, ...]] = [(0,), (2,), (-1,), (1.5,), (math.inf,), (math.nan,)]

# Eager's vector and scalar code disagree about which zero is the greater, so it is no oracle for the sign.
ZERO_SIGN_OPEN = {"maximum", "minimum"}
# Functions that two good implementations round differently: compared with float64.
TRANSCENDENTAL = ("exp(", "log(", "tanh(", "erf(", "pow(")
# Where eager rounds between the steps of one operator, or is off in the last bit for denormals.
EAGER_ROUNDS = {
    *((row, half) for row in ("rsqrt", "sigmoid_backward", "native_dropout_backward") for half in ("f16", "bf16")),
    ("sqrt", "f64"),
    ("rsqrt", "f64"),
}


# Arguments whose tensor must be 0-dim: tried as numbers here.
ZERO_DIMENSIONAL = {("masked_fill", "value")}


def takes_tensor(row: Row, name: str) -> bool:
    if (row.name, name) in ZERO_DIMENSIONAL:
        return False
    for spelling in row.spellings:
        namespace, op, overload = spelling.split(".")
        schema = getattr(getattr(getattr(torch.ops, namespace), op), overload)._schema
        if any(argument.name == name and "Tensor" in str(argument.type) for argument in schema.arguments):
            return True
    return False


def number_lists(row: Row, element: ElementType) -> list[tuple[bool | int | float, ...]]:
    """The tries for the row's number arguments, those that fit the type, as floats where that is floating."""
    count = sum(not takes_tensor(row, name) for name in row.operands)
    if count == 0:
        return [()]
    found: list[tuple[bool | int | float, ...]] = []
    for numbers in NUMBERS.get(row.name, ANY_NUMBERS):
        if element.kind == "bool":
            numbers = tuple(bool(number) for number in numbers)
        elif element.is_integer:
            if any(number != number or number in (math.inf, -math.inf) for number in numbers):
                continue
            numbers = tuple(abs(int(number)) if element.kind == "uint" else int(number) for number in numbers)
        else:
            numbers = tuple(float(number) for number in numbers)
        assert len(numbers) == count, f"add numbers for row {row.name} to NUMBERS"
        assert all(constant_fits(number, element) for number in numbers)
        found.append(numbers)
    return list(dict.fromkeys(found)) if element.is_integer else found


def strides_of(name: str) -> tuple[object, ...]:
    return tuple(symbol(f"{name}_{axis}") for axis in range(RANK))


def describe(row: Row, element: ElementType) -> KernelDescription:
    """A kernel over three symbolic axes: each tensor operand read with symbolic strides, one write a try of numbers."""
    tensors = [name for name in row.operands if takes_tensor(row, name)]
    reads = [
        Read(f"x_{name}", name, BOOL if name in row.conditions else element, Access(0, strides_of(name)))
        for name in tensors
    ]
    result = BOOL if row.result == "bool" else element
    stages, writes = [], []
    for number, numbers in enumerate(number_lists(row, element)):
        values = iter(numbers)
        operands: list[Operand] = [f"x_{n}" if n in tensors else Constant(next(values)) for n in row.operands]
        stages.append(Map(f"y{number}", row.name, tuple(operands), element, result))
        access = Access(0, (symbol("out_0"), symbol("out_1"), 1))
        writes.append(Write(f"out{number}", f"y{number}", result, access, tuple(range(RANK))))
    domain = tuple(symbol(f"n{axis}") for axis in range(RANK))
    return KernelDescription(
        f"{row.name}_{element.name}", domain, tuple(reads), tuple(stages), tuple(writes), (row.name,)
    )


@cache
def compiled(element_name: str) -> dict[str, tuple[KernelDescription, Kernel, Kernel]]:
    """Both emitters' kernels of every row that computes in the type, compiled in one call."""
    element = ELEMENT_TYPES[element_name]
    kernels = {row.name: describe(row, element) for row in ROWS if element_name in row.elements}
    cpp = compile_all(CppEmitter(), list(kernels.values()))
    reference = compile_all(ReferenceEmitter(), list(kernels.values()))
    return {name: (kernels[name], a, b) for name, a, b in zip(kernels, cpp, reference, strict=True)}


def layouts(tensors: list[torch.Tensor]) -> dict[str, tuple[list[int], list[tuple[torch.Tensor, list[int]]]]]:
    """Name -> (domain, for each operand its storage and strides). Operand i varies along axis i where it broadcasts."""
    count = len(tensors)
    length = max(len(tensor) for tensor in tensors)
    found: dict[str, tuple[list[int], list[tuple[torch.Tensor, list[int]]]]] = {}
    # Every value of each operand with every value of the others.
    domain = [len(tensors[axis]) if axis < count else 1 for axis in range(RANK)]
    crossed = [(t, [1 if axis == place else 0 for axis in range(RANK)]) for place, t in enumerate(tensors)]
    found["broadcast"] = (domain, crossed)
    found["broadcast-inner"] = (domain[::-1], [(t, strides[::-1]) for t, strides in crossed])
    pad = [torch.cat([t.roll(shift), t])[: 2 * length].repeat(2 * length) for shift, t in enumerate(tensors)]
    n = length
    found["packed"] = ([2, 3, n], [(t, [3 * n, n, 1]) for t in pad])
    found["permuted"] = ([2, 3, n], [(t, [1, 2 * n, 2] if i % 2 else [n, 2 * n, 1]) for i, t in enumerate(pad)])
    found["expanded"] = ([2, 3, n], [(t, [0, 1, 0] if i % 2 else [0, 0, 1]) for i, t in enumerate(pad)])
    found["all-zero-stride"] = ([2, 2, 2], [(t, [0, 0, 0]) for t in tensors])
    found["empty"] = ([2, 0, 3], [(t, [3, 3, 1]) for t in tensors])
    found["one-point"] = ([1, 1, 1], [(t, [0, 0, 0]) for t in tensors])
    return found


@pytest.mark.parametrize(("row_name", "element_name"), CASES)
def test_cpp_agrees_with_the_reference(row_name: str, element_name: str) -> None:
    row = default_table().row(row_name)
    assert row is not None
    assert row.expression is not None
    description, cpp, reference = compiled(element_name)[row_name]
    wide = any(function in row.expression for function in TRANSCENDENTAL)
    if wide:
        reference = compile_all(ReferenceEmitter(), [describe(row, F64)])[0]
    near = wide or (row_name, element_name) in EAGER_ROUNDS
    tensors = [special_values(read.element) for read in description.reads]
    if near and len(tensors) > 1:
        # An infinity times what one implementation flushes to 0 and another does not is NaN for one of them.
        tensors = [tensor[tensor.isnan() | (tensor.abs() <= 100)] for tensor in tensors]
    for layout, (domain, operands) in layouts(tensors).items():
        sizes = {f"n{axis}": extent for axis, extent in enumerate(domain)}
        for read, (_, strides) in zip(description.reads, operands, strict=True):
            sizes.update({f"{read.value}_{axis}": stride for axis, stride in enumerate(strides)})
        sizes.update({"out_0": domain[1] * domain[2], "out_1": domain[2]})
        element = description.writes[0].element
        got = [filled(element, *domain) for _ in description.writes]
        expected = [filled(F64 if wide else element, *domain) for _ in description.writes]
        inputs = [storage for storage, _ in operands]
        launch(cpp, inputs, got, sizes)
        launch(reference, [tensor.double() for tensor in inputs] if wide else inputs, expected, sizes)
        for number, (a, b) in enumerate(zip(got, expected, strict=True)):
            what = f"{row_name} {element_name} {layout} #{number}"
            if near:
                assert_near(a, b.to(a.dtype), what)
            elif row_name in ZERO_SIGN_OPEN and a.is_floating_point():
                assert_same_bits(a + 0, b + 0, what)
            else:
                assert_same_bits(a, b, what)


def assert_near(got: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Within what two good implementations may differ by, a few units in the last place; infinities and NaN alike."""
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 4e-6, torch.float64: 1e-13}[got.dtype]
    torch.testing.assert_close(
        got, expected, rtol=tolerance, atol=tolerance / 4, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def test_the_table_has_rows_to_test() -> None:
    assert len(ROWS) > 30
    assert {"f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64", "bool"} == {name for _, name in CASES}
