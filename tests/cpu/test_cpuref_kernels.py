"""C++ kernels whose layout is known when they are compiled: loops, splits, mixed types, several outputs, casts."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest
import torch

from support.emitters import (
    assert_same_bits,
    buffers_of,
    compile_all,
    compile_text,
    filled,
    iterations,
    launch,
    special_values,
)
from tessiq_core.codegen import KernelDescription, parse_kernels
from tessiq_core.codegen.interfaces import AddressLaunch, Kernel
from tessiq_core.ir.extent import evaluate
from tessiq_core.ir.types import ELEMENT_TYPES, ElementType
from tessiq_core.ops.table import default_table
from tessiq_core.runtime.element_map import dtype_of
from tessiq_cpuref import CppEmitter, ReferenceEmitter
from tessiq_cpuref.cpp.loops import BLOCK

pytestmark = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")

TEXT = """
kernel @packed(d0 < 7, d1 < 33) {
  x = read %x[33*d0 + d1] : f32
  y = add(x, x) in f32 : f32
  write %y[33*d0 + d1] : f32 = y over d0, d1
}
kernel @long_rows(d0 < 3, d1 < 5000) {
  x = read %x[5003*d0 + d1] : f32
  y = mul(x, 3.0) in f32 : f32
  write %y[5000*d0 + d1] : f32 = y over d0, d1
}
kernel @transposed(d0 < 5, d1 < 6, d2 < 7) {
  x = read %x[d0 + 5*d1 + 30*d2] : f32
  b = read %b[3 + 2*d1] : f32
  y = sub(x, b) in f32 : f32
  write %y[42*d0 + 7*d1 + d2] : f32 = y over d0, d1, d2
}
kernel @channels_last(d0 < 2, d1 < 3, d2 < 4, d3 < 5) {
  x = read %x[60*d0 + 20*d1 + 5*d2 + d3] : f32
  y = neg(x) in f32 : f32
  write %y[60*d0 + d1 + 15*d2 + 3*d3] : f32 = y over d0, d1, d2, d3
}
kernel @scalar() {
  x = read %x[4] : f32
  y = relu(x) in f32 : f32
  write %y[0] : f32 = y
}
kernel @empty(d0 < 3, d1 < 0) {
  x = read %x[d1] : f32
  y = relu(x) in f32 : f32
  write %y[d1] : f32 = y over d0, d1
}
kernel @symbolic(d0 < s1, d1 < s0) {
  x = read %x[2*s0*d0 + d1] : f32
  b = read %b[d1] : f32
  y = add(x, b) in f32 : f32
  write %y[s0*d0 + d1] : f32 = y over d0, d1
}
kernel @one_symbol(d0 < 2*s0 + 1) {
  x = read %x[d0] : f32
  y = add(x, 1.0) in f32 : f32
  write %y[d0] : f32 = y over d0
}
kernel @expressions(d0 < floordiv(s0, 2), d1 < max(1, s1)) {
  x = read %x[mod(s0, 3) + max(1, s1)*d0 + d1] : i64
  y = mul(x, 2) in i64 : i64
  write %y[max(1, s1)*d0 + d1] : i64 = y over d0, d1
}
kernel @two_spaces(d0 < s0, d1 < 6) {
  x = read %x[6*d0 + d1] : f32
  b = read %b[d1] : f32
  c = relu(b) in f32 : f32
  y = add(x, c) in f32 : f32
  write %y[6*d0 + d1] : f32 = y over d0, d1
  write %c[d1] : f32 = c over d1
}
kernel @mixed(d0 < 9, d1 < 29) {
  h = read %h[d1] : f16
  b = read %b[29*d0 + d1] : bf16
  m = read %m[d0] : bool
  i = read %i[d1] : i16
  wide = add(h, b) in f32 : f32
  half = mul(b, b) in bf16 : bf16
  big = add(i, 40000) in i32 : i32
  less = lt(wide, big) in f32 : bool
  both = logical_and(less, m) in bool : bool
  pick = where(both, half, big) in f32 : f32
  write %pick[29*d0 + d1] : f32 = pick over d0, d1
  write %both[29*d0 + d1] : bool = both over d0, d1
  write %half[29*d0 + d1] : bf16 = half over d0, d1
}
kernel @indices(d0 < 4, d1 < 5) {
  x = read %x[5*d0 + d1] : f32
  up = lt(d0, d1) in i64 : bool
  y = where(up, x, -inf) in f32 : f32
  s = add(d0, d1) in i32 : i32
  write %y[5*d0 + d1] : f32 = y over d0, d1
  write %s[5*d0 + d1] : i32 = s over d0, d1
}
kernel @names(d0 < 8) {
  float = read %int[d0] : f32
  acc_t = add(float, 1.0) in f32 : f32
  begin = mul(acc_t, float) in f32 : f32
  tq_exp = exp(begin) in f32 : f32
  i64 = clone(tq_exp) in f32 : f32
  write %double[d0] : f32 = i64 over d0
}
"""
KERNELS = {kernel.name: kernel for kernel in parse_kernels(TEXT)}

# For each kernel the symbols to try; {} where it has none.
SIZES: dict[str, list[dict[str, int]]] = {
    "symbolic": [{"s0": 5, "s1": 3}, {"s0": 4100, "s1": 2}, {"s0": 0, "s1": 4}, {"s0": 3, "s1": 0}, {"s0": 1, "s1": 1}],
    "one_symbol": [{"s0": 0}, {"s0": 3000}],
    "expressions": [{"s0": 7, "s1": 4}, {"s0": 8, "s1": 0}, {"s0": 1, "s1": 2}],
    "two_spaces": [{"s0": 4}, {"s0": 0}],
}
CASES = [(name, sizes) for name in KERNELS for sizes in SIZES.get(name, [{}])]


@cache
def compiled() -> dict[str, tuple[Kernel, Kernel]]:
    descriptions = list(KERNELS.values())
    pairs = zip(compile_all(CppEmitter(), descriptions), compile_all(ReferenceEmitter(), descriptions), strict=True)
    return dict(zip(KERNELS, pairs, strict=True))


def storage(kernel: KernelDescription, sizes: dict[str, int]) -> tuple[list[torch.Tensor], list[ElementType], int]:
    """Inputs filled with special and ordinary values, the outputs' element types, and a length all buffers fit in."""
    length = 1
    for item in (*kernel.reads, *kernel.writes):
        reach = evaluate(item.access.offset, sizes)
        for extent, stride in zip(kernel.domain, item.access.strides, strict=True):
            reach += max(evaluate(extent, sizes) - 1, 0) * evaluate(stride, sizes)
        length = max(length, reach + 1)
    inputs = []
    for number, element in enumerate({read.value: read.element for read in kernel.reads}.values()):
        values = special_values(element).roll(number)
        inputs.append(values.repeat(length // len(values) + 1)[:length].clone())
    return inputs, [write.element for write in kernel.writes], length


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_known_layouts_agree_with_the_reference(name: str, sizes: dict[str, int]) -> None:
    inputs, elements, length = storage(KERNELS[name], sizes)
    results = []
    for kernel in compiled()[name]:
        outputs = [filled(element, length) for element in elements]
        launch(kernel, inputs, outputs, sizes)
        results.append(outputs)
    for number, (got, expected) in enumerate(zip(*results, strict=True)):
        if name == "names":  # exp is ours on one side and torch's on the other
            torch.testing.assert_close(got, expected, rtol=1e-6, atol=0, equal_nan=True)
        else:
            # Elements that no write covers must keep what was there.
            assert_same_bits(got, expected, f"{name} {sizes} output {number}")


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_any_split_into_ranges_computes_the_whole(name: str, sizes: dict[str, int]) -> None:
    kernel = compiled()[name][0]
    inputs, elements, length = storage(KERNELS[name], sizes)
    total = iterations(kernel, sizes)
    whole = [filled(element, length) for element in elements]
    launch(kernel, inputs, whole, sizes)
    draw = random.Random(name)
    single = [(start, start + 1) for start in range(total)]
    cuts = [0, *sorted(draw.randint(0, total) for _ in range(3)), total]
    for pieces in (single, single[::-1], draw.sample(single, total), list(itertools.pairwise(cuts))):
        outputs = [filled(element, length) for element in elements]
        launch(kernel, inputs, outputs, sizes, pieces)
        for got, expected in zip(outputs, whole, strict=True):
            assert_same_bits(got, expected, f"{name} {sizes} in {pieces[:4]}")
    if total:
        # An iteration left out shows: the pieces really divide the work.
        outputs = [filled(element, length) for element in elements]
        launch(kernel, inputs, outputs, sizes, single[:-1])
        assert any(not torch.equal(a, b) for a, b in zip(outputs, whole, strict=True))


def test_long_axes_are_split_into_blocks_and_short_rows_are_not() -> None:
    assert iterations(compiled()["long_rows"][0]) == 3 * -(-5000 // BLOCK)
    assert iterations(compiled()["one_symbol"][0], {"s0": BLOCK}) == 3
    assert iterations(compiled()["transposed"][0]) < 42  # the axis that is contiguous in the output is inside
    assert iterations(compiled()["two_spaces"][0], {"s0": 0}) == 1  # %c is written though its neighbour is empty
    launches = {name: kernel.launch for name, (kernel, _) in compiled().items()}
    assert all(isinstance(item, AddressLaunch) and item.grain >= 1 for item in launches.values())


def casts(source: ElementType) -> KernelDescription:
    lines = [f"kernel @cast_{source.name}(d0 < s0) {{", f"  x = read %x[d0] : {source.name}"]
    lines += [f"  to_{name} = _to_copy(x) in {name} : {name}" for name in ELEMENT_TYPES]
    lines += [f"  write %to_{name}[d0] : {name} = to_{name} over d0" for name in ELEMENT_TYPES]
    return parse_kernels("\n".join([*lines, "}"]))[0]


@cache
def cast_kernels() -> dict[str, tuple[Kernel, Kernel]]:
    descriptions = [casts(element) for element in ELEMENT_TYPES.values()]
    pairs = zip(compile_all(CppEmitter(), descriptions), compile_all(ReferenceEmitter(), descriptions), strict=True)
    return dict(zip(ELEMENT_TYPES, pairs, strict=True))


@pytest.mark.parametrize("source", ELEMENT_TYPES)
def test_casts_between_all_types_round_as_torch_does(source: str) -> None:
    element = ELEMENT_TYPES[source]
    values = special_values(element)
    if element.is_float:
        # Ties and their neighbours in both half types, denormals of both, and the edge of overflow.
        extra = torch.tensor(
            [
                1 + 2**-11,
                1 + 3 * 2**-11,
                1 + 2**-8,
                1 + 3 * 2**-8,
                2**-25,
                3 * 2**-25,
                2**-24,
                5e-41,
                65519,
                65520,
                3.4e38,
            ],
            dtype=torch.float64,
        )
        ordinary = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 50
        values = torch.cat([values.double(), extra, -extra, ordinary, ordinary * 2**-16]).to(dtype_of(element))
    outputs = [[filled(e, len(values)) for e in ELEMENT_TYPES.values()] for _ in range(2)]
    for kernel, results in zip(cast_kernels()[source], outputs, strict=True):
        launch(kernel, [values], results, {"s0": len(values)})
    for target, got, expected in zip(ELEMENT_TYPES.values(), *outputs, strict=True):
        kept = torch.ones(len(values), dtype=torch.bool)
        if element.is_float and target.is_integer:
            # A float outside the range has no defined value in torch either.
            info = torch.iinfo(dtype_of(target))
            wide = values.double().trunc()
            kept = (wide >= float(info.min)) & (wide < float(info.max) + (info.bits < 64))
        assert_same_bits(got[kept], expected[kept], f"{source} to {target}")


def test_bytes_that_are_neither_0_nor_1_are_true() -> None:
    kernel = compile_all(
        CppEmitter(),
        list(
            parse_kernels(
                """
                kernel @truth(d0 < 40) {
                  m = read %m[d0] : bool
                  x = read %x[d0] : f32
                  y = where(m, x, 0.0) in f32 : f32
                  n = logical_not(m) in bool : bool
                  write %y[d0] : f32 = y over d0
                  write %n[d0] : bool = n over d0
                }
                """
            )
        ),
    )[0]
    raw = torch.arange(40, dtype=torch.uint8) * 6
    outputs = [torch.empty(40), torch.empty(40, dtype=torch.bool)]
    launch(kernel, [raw.view(torch.bool), torch.ones(40)], outputs)
    assert torch.equal(outputs[0], (raw != 0).float())
    assert torch.equal(outputs[1], raw == 0)


def test_numbers_are_exact_in_arithmetic_and_rounded_in_comparisons() -> None:
    kernels = parse_kernels(
        """
        kernel @numbers(d0 < 1) {
          x = read %x[d0] : bf16
          y = mul(x, 0.1) in bf16 : bf16
          e = eq(x, 0.1) in bf16 : bool
          write %y[d0] : bf16 = y over d0
          write %e[d0] : bool = e over d0
        }
        kernel @wide(d0 < 1) {
          x = read %x[d0] : f64
          i = read %i[d0] : i64
          y = add(x, 1.000000000000000222) in f64 : f64
          z = add(i, -9223372036854775808) in i64 : i64
          write %y[d0] : f64 = y over d0
          write %z[d0] : i64 = z over d0
        }
        """
    )
    half, wide = compile_all(CppEmitter(), list(kernels))
    x = torch.tensor([0.1], dtype=torch.bfloat16)
    got = [torch.empty(1, dtype=torch.bfloat16), torch.empty(1, dtype=torch.bool)]
    launch(half, [x], got)
    assert_same_bits(got[0], x * 0.1)
    assert_same_bits(got[1], x == 0.1)
    assert got[1].item()
    more = [torch.empty(1, dtype=torch.float64), torch.empty(1, dtype=torch.int64)]
    launch(wide, [torch.zeros(1, dtype=torch.float64), torch.tensor([-1])], more)
    assert more[0].item() == 1 + 2**-52
    assert more[1].item() == 2**63 - 1  # wrapped


def test_kernels_that_differ_in_names_only_are_compiled_once() -> None:
    text = """
    kernel @first(d0 < s3, d1 < s0) {
      a = read %a[s0*d0 + d1] : f32
      r = relu(a) in f32 : f32
      write %r[s0*d0 + 2*d1] : f32 = r over d0, d1
      members r
    }
    kernel @second(d0 < s0, d1 < s7) {
      q = read %q[s7*d0 + d1] : f32
      other = relu(q) in f32 : f32
      write %other[s7*d0 + 2*d1] : f32 = other over d0, d1
      members other
    }
    """
    descriptions = parse_kernels(text)
    first, second = compile_all(CppEmitter(), list(descriptions))
    assert isinstance(first.launch, AddressLaunch)
    assert isinstance(second.launch, AddressLaunch)
    assert first.launch.address == second.launch.address
    assert [str(word) for word in first.words] == ["s3", "s0"]
    assert [str(word) for word in second.words] == ["s0", "s7"]
    assert second.members == ("other",)
    assert second.name == "second"
    assert CppEmitter().source(descriptions, default_table()).count('extern "C" void') == 1
    # Each gives its own sizes in the order the shared function reads them.
    x = torch.arange(-6.0, 6.0)
    for kernel, sizes in ((first, {"s3": 3, "s0": 4}), (second, {"s0": 3, "s7": 4})):
        out = filled(ELEMENT_TYPES["f32"], 16)
        launch(kernel, [x], [out], sizes)
        expected = filled(ELEMENT_TYPES["f32"], 16)
        expected.as_strided((3, 4), (4, 2)).copy_(x.view(3, 4).relu())
        assert torch.equal(out[8:], expected[8:])


def test_many_kernels_are_compiled_in_two_units() -> None:
    text = "\n".join(
        f"""
        kernel @n{number}(d0 < {number + 1}) {{
          x = read %x[d0] : f32
          y = add(x, {number}.5) in f32 : f32
          write %y[d0] : f32 = y over d0
        }}
        """
        for number in range(42)
    )
    descriptions = list(parse_kernels(text))
    kernels = CppEmitter().compile(descriptions, [buffers_of(item) for item in descriptions], default_table())
    assert [kernel.name for kernel in kernels] == [f"n{number}" for number in range(42)]
    for number in (0, 20, 21, 41):
        out = torch.empty(number + 1)
        launch(kernels[number], [torch.zeros(number + 1)], [out])
        assert torch.equal(out, torch.full((number + 1,), number + 0.5))
        assert f"@n{number}(" in kernels[number].source


def test_a_chain_is_bit_equal_to_eager() -> None:
    """A fused multiply-add would round once where eager rounds twice: several percent of the elements would differ."""
    kernel = compile_text(
        CppEmitter(),
        """
        kernel @chain(d0 < 20000) {
          x = read %x[d0] : f32
          w = read %w[d0] : f32
          product = mul(x, w) in f32 : f32
          moved = add(product, 1.5) in f32 : f32
          less = sub(moved, w) in f32 : f32
          y = relu(less) in f32 : f32
          write %y[d0] : f32 = y over d0
          write %moved[d0] : f32 = moved over d0
        }
        """,
    )
    draw = torch.Generator().manual_seed(5)
    x, w = torch.randn(20000, generator=draw), torch.randn(20000, generator=draw)
    y, moved = torch.empty(20000), torch.empty(20000)
    launch(kernel, [x, w], [y, moved])
    assert_same_bits(moved, x * w + 1.5)
    assert_same_bits(y, torch.relu(x * w + 1.5 - w))


def test_iterations_write_distinct_elements() -> None:
    kernel, _ = compiled()["one_symbol"]
    length = 2 * BLOCK + 5
    for piece in range(3):
        out = torch.zeros(length)
        launch(kernel, [torch.zeros(length)], [out], {"s0": BLOCK + 2}, [(piece, piece + 1)])
        written = out.nonzero().flatten()
        assert written[0] == piece * BLOCK
        assert len(written) == min(BLOCK, length - piece * BLOCK)
