"""C++ kernels that reduce, against the reference emitter: rows, columns, chains, layouts, splits, special values."""

from __future__ import annotations

import itertools
import math
import random
from functools import cache

import pytest
import torch

from support.emitters import assert_same_bits, compile_all, compile_text, filled, iterations, launch, special_values
from tessiq_core.codegen import KernelDescription, parse_kernels
from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.ir.extent import evaluate
from tessiq_core.ir.types import ELEMENT_TYPES, F32, ElementType
from tessiq_core.runtime.element_map import dtype_of
from tessiq_cpuref import CppEmitter, ReferenceEmitter
from tessiq_cpuref.cpp.loops import TILE

pytestmark = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")

TEXT = """
kernel @rows(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  s = reduce sum(x) over d1 in f32 : f32
  m = reduce max(x) over d1 in f32 : f32
  write %s[d0] : f32 = s over d0
  write %m[d0] : f32 = m over d0
}
kernel @columns(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  s = reduce sum(x) over d0 in f32 : f32
  m = reduce min(x) over d0 in f32 : f32
  write %s[d1] : f32 = s over d1
  write %m[d1] : f32 = m over d1
}
kernel @all(d0 < s0, d1 < s1) {
  x = read %x[(s1 + 2)*d0 + d1] : f32
  s = reduce sum(x) over d0, d1 in f32 : f32
  write %s[0] : f32 = s
}
kernel @softmax(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  m = reduce max(x) over d1 in f32 : f32
  c = sub(x, m) in f32 : f32
  e = exp(c) in f32 : f32
  s = reduce sum(e) over d1 in f32 : f32
  y = div(e, s) in f32 : f32
  write %y[s1*d0 + d1] : f32 = y over d0, d1
}
kernel @column_softmax(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  m = reduce max(x) over d0 in f32 : f32
  c = sub(x, m) in f32 : f32
  e = exp(c) in f32 : f32
  s = reduce sum(e) over d0 in f32 : f32
  y = div(e, s) in f32 : f32
  write %y[s1*d0 + d1] : f32 = y over d0, d1
  write %m[d1] : f32 = m over d1
}
kernel @layer_norm(d0 < s0, d1 < s1) {
  h = read %h[s1*d0 + d1] : f16
  w = read %w[d1] : f32
  b = read %b[d1] : f32
  r = read %r[d0] : f32
  x = add(h, r) in f32 : f32
  s = reduce sum(x) over d1 in f32 : f32
  mean = mul(s, 0.03125) in f32 : f32
  c = sub(x, mean) in f32 : f32
  q = mul(c, c) in f32 : f32
  v = reduce sum(q) over d1 in f32 : f32
  e = add(v, 0.001) in f32 : f32
  rstd = rsqrt(e) in f32 : f32
  n = mul(c, rstd) in f32 : f32
  y = mul(n, w) in f32 : f32
  z = add(y, b) in f32 : f32
  write %z[s1*d0 + d1] : f32 = z over d0, d1
  write %mean[d0] : f32 = mean over d0
  write %rstd[d0] : f32 = rstd over d0
}
kernel @batch_norm(d0 < s0, d1 < s1, d2 < 6) {
  x = read %x[6*s1*d0 + 6*d1 + d2] : f32
  w = read %w[d1] : f32
  s = reduce sum(x) over d0, d2 in f32 : f32
  m = mul(s, 0.25) in f32 : f32
  t = tanh(w) in f32 : f32
  c = sub(x, m) in f32 : f32
  y = mul(c, t) in f32 : f32
  write %y[6*s1*d0 + 6*d1 + d2] : f32 = y over d0, d1, d2
  write %m[d1] : f32 = m over d1
}
kernel @tensors(d0 < 3, d1 < s0, d2 < 4, d3 < s1) {
  x = read %x[1 + 4*s0*s1*d0 + d1 + s0*d2 + 4*s0*d3] : f32
  k = read %k[2*d2] : f32
  p = add(x, k) in f32 : f32
  s = reduce sum(p) over d1, d3 in f32 : f32
  r = relu(s) in f32 : f32
  d = sub(p, s) in f32 : f32
  write %r[d0 + 3*d2] : f32 = r over d0, d2
  write %d[4*s0*s1*d0 + 4*s1*d1 + s1*d2 + d3] : f32 = d over d0, d1, d2, d3
}
kernel @expanded(d0 < s0, d1 < s1) {
  x = read %x[d0] : f32
  s = reduce sum(x) over d1 in f32 : f32
  m = reduce max(x) over d1 in f32 : f32
  z = add(s, m) in f32 : f32
  write %s[d0] : f32 = s over d0
  write %z[s1*d0 + d1] : f32 = z over d0, d1
}
kernel @expanded_columns(d0 < s0, d1 < s1) {
  x = read %x[d0] : f32
  s = reduce sum(x) over d0 in f32 : f32
  write %s[d1] : f32 = s over d1
}
kernel @indices(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  up = le(d1, d0) in i64 : bool
  k = where(up, x, 0.0) in f32 : f32
  s = reduce sum(k) over d1 in f32 : f32
  i = reduce max(up) over d1 in bool : bool
  write %s[d0] : f32 = s over d0
  write %i[d0] : bool = i over d0
  write %up[s1*d0 + d1] : bool = up over d0, d1
}
kernel @lone_write(d0 < s0, d1 < s1) {
  x = read %x[s1*d0 + d1] : f32
  b = read %b[d1] : f32
  t = relu(b) in f32 : f32
  y = add(x, t) in f32 : f32
  s = reduce sum(y) over d0, d1 in f32 : f32
  write %s[0] : f32 = s
  write %t[d1] : f32 = t over d1
}
kernel @static_softmax(d0 < 3, d1 < 100) {
  x = read %x[100*d0 + d1] : bf16
  m = reduce max(x) over d1 in bf16 : bf16
  c = sub(x, m) in f32 : f32
  e = exp(c) in f32 : f32
  s = reduce sum(e) over d1 in f32 : f32
  y = div(e, s) in f32 : bf16
  l = log(s) in f32 : f32
  write %y[100*d0 + d1] : bf16 = y over d0, d1
  write %l[d0] : f32 = l over d0
}
kernel @short_rows(d0 < s0, d1 < 31) {
  x = read %x[31*d0 + d1] : f32
  s = reduce sum(x) over d1 in f32 : f32
  c = sub(x, s) in f32 : f32
  m = reduce max(c) over d1 in f32 : f32
  write %s[d0] : f32 = s over d0
  write %m[d0] : f32 = m over d0
  write %c[31*d0 + d1] : f32 = c over d0, d1
}
kernel @odd_columns(d0 < s0, d1 < 501) {
  x = read %x[501*d0 + d1] : f32
  s = reduce sum(x) over d0 in f32 : f32
  c = sub(x, s) in f32 : f32
  q = reduce sum(c) over d0 in f32 : f32
  write %q[d1] : f32 = q over d1
  write %c[501*d0 + d1] : f32 = c over d0, d1
}
kernel @static_columns(d0 < 12, d1 < 1000) {
  x = read %x[1000*d0 + d1] : f16
  s = reduce sum(x) over d0 in f32 : f16
  m = reduce max(x) over d0 in f16 : f16
  write %s[d1] : f16 = s over d1
  write %m[d1] : f16 = m over d1
}
"""
KERNELS = {kernel.name: kernel for kernel in parse_kernels(TEXT)}
PAIRS = [(0, 3), (3, 0), (1, 1), (5, 7), (31, 33), (2, 1025), (1025, 2), (4, 5000), (700, 300), (1, 40000), (40000, 1)]
SMALL = [(0, 3), (3, 0), (1, 1), (5, 7), (17, 33)]


def tried(name: str) -> list[dict[str, int]]:
    kernel = KERNELS[name]
    if name in ("odd_columns", "short_rows"):
        return [{"s0": 0}, {"s0": 40}, {"s0": 300}]
    if name.startswith("static"):
        return [{}]
    pairs = SMALL if len(kernel.domain) > 2 else PAIRS
    # Torch refuses the greatest of no element, and so must whoever calls.
    nothing = {"rows": 1, "softmax": 1, "expanded": 1, "indices": 1, "columns": 0, "column_softmax": 0}.get(name)
    return [{"s0": a, "s1": b} for a, b in pairs if nothing is None or (a, b)[nothing]]


CASES = [(name, sizes) for name in KERNELS for sizes in tried(name)]


@cache
def compiled() -> dict[str, tuple[Kernel, Kernel]]:
    kernels = list(KERNELS.values())
    pairs = zip(compile_all(CppEmitter(), kernels), compile_all(ReferenceEmitter(), kernels), strict=True)
    return dict(zip(KERNELS, pairs, strict=True))


def length_of(kernel: KernelDescription, sizes: dict[str, int]) -> int:
    """A number of elements every buffer fits in."""
    length = 1
    for item in (*kernel.reads, *kernel.writes):
        reach = evaluate(item.access.offset, sizes)
        for extent, stride in zip(kernel.domain, item.access.strides, strict=True):
            reach += max(evaluate(extent, sizes) - 1, 0) * evaluate(stride, sizes)
        length = max(length, reach + 1)
    return length


def buffers(kernel: KernelDescription, sizes: dict[str, int]) -> tuple[list[torch.Tensor], list[ElementType], int]:
    length = length_of(kernel, sizes)
    source = torch.Generator().manual_seed(length)
    reads = {read.value: read.element for read in kernel.reads}
    inputs = [torch.randn(length, generator=source).to(dtype_of(element)) for element in reads.values()]
    return inputs, [write.element for write in kernel.writes], length


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_reductions_agree_with_the_reference(name: str, sizes: dict[str, int]) -> None:
    inputs, elements, length = buffers(KERNELS[name], sizes)
    results = []
    for kernel in compiled()[name]:
        results.append([filled(element, length) for element in elements])
        launch(kernel, inputs, results[-1], sizes)
    for number, (got, expected) in enumerate(zip(*results, strict=True)):
        tolerance = {2: 1e-2, 4: 2e-5}.get(got.element_size(), 0)
        # A sum's rounding is relative to what is added, not to what remains.
        scale = math.sqrt(length) if got.dtype == torch.float32 else 1.0
        torch.testing.assert_close(
            got, expected, rtol=tolerance, atol=1e-6 * scale, equal_nan=True, msg=lambda m, n=number: f"output {n}: {m}"
        )
        untouched = expected == 77 if got.dtype != torch.bool else torch.zeros_like(expected)
        assert torch.equal(got[untouched], expected[untouched])


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_any_split_computes_the_whole(name: str, sizes: dict[str, int]) -> None:
    kernel = compiled()[name][0]
    total = iterations(kernel, sizes)
    if total > 800:
        pytest.skip("many iterations: the smaller sizes try the same loops")
    inputs, elements, length = buffers(KERNELS[name], sizes)
    whole = [filled(element, length) for element in elements]
    launch(kernel, inputs, whole, sizes)
    draw = random.Random(name)
    single = [(start, start + 1) for start in range(total)]
    cuts = [0, *sorted(draw.randint(0, total) for _ in range(3)), total]
    for pieces in (single[::-1], draw.sample(single, total), list(itertools.pairwise(cuts))):
        outputs = [filled(element, length) for element in elements]
        launch(kernel, inputs, outputs, sizes, pieces)
        for got, expected in zip(outputs, whole, strict=True):
            assert_same_bits(got, expected, f"{name} {sizes} in {pieces[:4]}")


def test_iterations_are_rows_or_tiles() -> None:
    kernels = compiled()
    assert iterations(kernels["rows"][0], {"s0": 9, "s1": 5000}) == 9
    assert iterations(kernels["columns"][0], {"s0": 5000, "s1": 2 * TILE + 1}) == 3
    assert iterations(kernels["all"][0], {"s0": 9, "s1": 9}) == 1
    assert iterations(kernels["batch_norm"][0], {"s0": 5, "s1": 7}) == 7
    assert iterations(kernels["lone_write"][0], {"s0": 0, "s1": 7}) == 2


COMBINES = ("sum", "prod", "max", "min", "any", "all")


def combined(element: ElementType) -> KernelDescription:
    lines = ["kernel @every(d0 < s0, d1 < s1) {", f"  x = read %x[s1*d0 + d1] : {element.name}"]
    writes = []
    for combine in COMBINES:
        result = "bool" if combine in ("any", "all") else element.name
        accumulated = result
        if combine in ("sum", "prod") and element.name in ("f16", "bf16"):
            accumulated = "f32"
        lines.append(f"  {combine}_ = reduce {combine}(x) over d1 in {accumulated} : {result}")
        writes.append(f"  write %{combine}[d0] : {result} = {combine}_ over d0")
    return parse_kernels("\n".join([*lines, *writes, "}"]))[0]


@cache
def every_type() -> dict[str, tuple[Kernel, Kernel]]:
    kernels = [combined(element) for element in ELEMENT_TYPES.values()]
    pairs = zip(compile_all(CppEmitter(), kernels), compile_all(ReferenceEmitter(), kernels), strict=True)
    return dict(zip(ELEMENT_TYPES, pairs, strict=True))


@pytest.mark.parametrize("columns", [1, 2, 3, 33, 90])
@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_every_combine_in_every_type_with_special_values(name: str, columns: int) -> None:
    element = ELEMENT_TYPES[name]
    values = special_values(element)
    # Each row starts at another value, so infinities and NaN meet all others and every lane; some rows are ordinary.
    rows = [values.repeat(columns // len(values) + 2)[start : start + columns] for start in range(len(values))]
    ordinary = torch.randint(0 if element.kind in ("uint", "bool") else -3, 4, (20, columns)).to(values.dtype)
    x = torch.cat([torch.stack(rows), ordinary, torch.zeros(1, columns, dtype=values.dtype)])
    sizes = {"s0": len(x), "s1": columns}
    elements = [ELEMENT_TYPES["bool"] if combine in ("any", "all") else element for combine in COMBINES]
    results = []
    for kernel in every_type()[name]:
        results.append([filled(item, len(x)) for item in elements])
        launch(kernel, [x], results[-1], sizes)
    for combine, got, expected in zip(COMBINES, *results, strict=True):
        if combine in ("sum", "prod") and element.is_float:
            # Whether the greatest numbers overflow on the way depends on the order.
            kept = ~(x.abs() == torch.finfo(x.dtype).max).any(1) if columns > 2 else slice(None)
            torch.testing.assert_close(got[kept], expected[kept], equal_nan=True, msg=lambda m, c=combine: f"{c}: {m}")
        else:
            assert torch.equal(got.isnan(), expected.isnan()), combine
            assert torch.equal(got[~got.isnan()], expected[~expected.isnan()]), combine


@pytest.mark.parametrize("name", ["f32", "i64", "bool"])
def test_nothing_combines_to_what_torch_says(name: str) -> None:
    text = f"""
    kernel @nothing(d0 < 3, d1 < s0) {{
      x = read %x[s0*d0 + d1] : {name}
      a = reduce sum(x) over d1 in {"i64" if name == "bool" else name} : {"i64" if name == "bool" else name}
      b = reduce prod(x) over d1 in {"i64" if name == "bool" else name} : {"i64" if name == "bool" else name}
      c = reduce any(x) over d1 in bool : bool
      d = reduce all(x) over d1 in bool : bool
      write %a[d0] : {"i64" if name == "bool" else name} = a over d0
      write %b[d0] : {"i64" if name == "bool" else name} = b over d0
      write %c[d0] : bool = c over d0
      write %d[d0] : bool = d over d0
    }}
    """
    kernel = compile_text(CppEmitter(), text)
    number = torch.int64 if name == "bool" else dtype_of(ELEMENT_TYPES[name])
    outputs = [torch.full((3,), 77, dtype=number) for _ in range(2)] + [torch.ones(3).bool(), torch.zeros(3).bool()]
    x = torch.empty(3, 0, dtype=dtype_of(ELEMENT_TYPES[name]))
    launch(kernel, [x], outputs, {"s0": 0})
    assert torch.equal(outputs[0], x.sum(1, dtype=number))
    assert torch.equal(outputs[1], x.prod(1, dtype=number))
    assert torch.equal(outputs[2], x.any(1))
    assert torch.equal(outputs[3], x.all(1))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("rows", (64, 1000)),
        ("short_rows", (500, 31)),
        ("rows", (16, 20000)),
        ("rows", (2, 1 << 20)),
        ("columns", (2000, 64)),
        ("columns", (100000, 8)),
        ("all", (1000, 1000)),
    ],
)
@pytest.mark.parametrize("positive", [True, False])
def test_sums_are_no_less_exact_than_torchs(name: str, shape: tuple[int, int], positive: bool) -> None:
    source = torch.Generator().manual_seed(1)
    x = torch.rand(shape, generator=source) if positive else torch.randn(shape, generator=source)
    given = torch.cat([x, torch.zeros(shape[0], 2)], 1) if name == "all" else x
    dims = {"rows": [1], "short_rows": [1], "columns": [0], "all": [0, 1]}[name]
    exact = x.double().sum(dims).reshape(-1)
    out = [filled(F32, x.numel()) for _ in KERNELS[name].writes]
    launch(compiled()[name][0], [given.contiguous()], out, {"s0": shape[0], "s1": shape[1]})
    ours = (out[0][: exact.numel()].double() - exact).abs()
    torchs = (x.sum(dims).reshape(-1).double() - exact).abs()
    floor = 2**-24 * float(exact.abs().max())  # half a unit in the last place: no sum is better than that for sure
    assert float(ours.max()) <= 1.5 * float(torchs.max()) + floor
    if exact.numel() > 30:
        assert float(ours.square().mean().sqrt()) <= 1.1 * float(torchs.square().mean().sqrt()) + floor / 4


def test_integers_wrap() -> None:
    kernel = every_type()["i64"][0]
    x = torch.full((1, 3), 2**62)
    outputs = [filled(ELEMENT_TYPES["bool" if combine in ("any", "all") else "i64"], 1) for combine in COMBINES]
    launch(kernel, [x], outputs, {"s0": 1, "s1": 3})
    assert outputs[0].item() == x.sum().item() == 3 * 2**62 - 2**64
