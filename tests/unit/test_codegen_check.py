"""The verifier of descriptions: each rule has a kernel that breaks it and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from support.kernels import meaningful_kernels
from tessiq_core.codegen import AnyEmitter, Emitter, KernelDescription, check, parse_kernel, print_kernel
from tessiq_core.errors import Internal, Unsupported
from tessiq_core.ops.table import default_table

GOOD = """\
kernel @good(d0 < 4, d1 < s0) {
  x = read %x[s0*d0 + d1] : f32
  i = read %i[d0] : i64
  m = reduce max(x) over d1 in f32 : f32
  y = sub(x, m) in f32 : f32
  z = add(i, 1) in i64 : i64
  write %y[s0*d0 + d1] : f32 = y over d0, d1
  write %z[d0] : i64 = z over d0
  members m, y, z
}"""


def test_a_good_kernel_passes() -> None:
    assert check(parse_kernel(GOOD), default_table()) is None


@given(meaningful_kernels())
@settings(max_examples=50, deadline=None)
def test_random_kernels_pass(kernel: KernelDescription) -> None:
    check(kernel, default_table())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d0 < 4", "d0 < ?", "axis d0 must have a known extent"),
        ("d0 < 4", "d0 < -4", "axis d0 must have a known extent"),
        ("%x[s0*d0 + d1]", "%x[? + d0]", "read x has an index with `?` in it"),
        ("%x[s0*d0 + d1] : f32", "%x[d0] : opaque(complex64)", "opaque(complex64), which no kernel can hold"),
        ("i = read", "x = read", "two stages are called x"),
        ("y = sub(x, m)", "y = sub(x, y)", "stage y reads y, which is no earlier stage"),
        ("max(x)", "max(y)", "stage m reads y, which is no earlier stage"),
        ("sub(x, m)", "nonsense(x, m)", "applies 'nonsense', which is no row"),
        ("sub(x, m)", "mm(x, m)", "applies 'mm', a row without an expression"),
        ("sub(x, m)", "sub(x)", "gives sub 1 operands where the row has 2 (self, other)"),
        ("add(i, 1)", "add(i, 1.0)", "the constant 1.0 in a map that computes in i64"),
        ("add(i, 1) in i64 : i64", "add(i, 1) in bool : i64", "the constant 1 in a map that computes in bool"),
        ("reduce max", "reduce mean", "combines with 'mean'"),
        ("reduce max(x) over d1", "reduce max(x)", "stage m reduces over no axis"),
        ("reduce max(x) over d1", "reduce max(x) over d1, d0", "must name distinct axes"),
        ("%y[s0*d0 + d1] : f32 = y over d0, d1", "%y[d0] : f32 = y over d0", "stores y, which depends on d1 too"),
        ("%z[d0] : i64 = z over d0", "%z[d0 + d1] : i64 = z over d0", "moves along axes it does not cover"),
        ("%z[d0] : i64 = z", "%z[d0] : i64 = w", "stores w, which is no stage"),
        ("%z[d0] : i64 = z", "%z[d0] : i32 = z", "stores z, of type i64, as i32"),
        ("write %z", "write %y", "%y is written twice"),
        ("write %z", "write %x", "%x is read and written"),
        ("%i[d0] : i64", "%x[d0] : i64", "%x is read as f32 and as i64"),
    ],
)
def test_each_rule(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(Internal) as raised:
        check(parse_kernel(GOOD.replace(old, new)), default_table())
    assert message in str(raised.value)
    assert "kernel @good" in str(raised.value)


def test_a_kernel_must_write() -> None:
    with pytest.raises(Internal, match="it writes nothing"):
        check(parse_kernel("kernel @k() { x = read %x[0] : f32 }"), default_table())


def test_rank_of_an_index() -> None:
    kernel = parse_kernel(GOOD)
    short = KernelDescription("short", (4,), kernel.reads[:1], (), (), ())
    with pytest.raises(Internal, match="read x has 2 strides where the domain has 1 axes"):
        check(short, default_table())


def test_the_text_emitter() -> None:
    emitter = AnyEmitter()
    kernel = parse_kernel(GOOD)
    assert isinstance(emitter, Emitter)
    assert emitter.name == "any"
    assert emitter.accepts(kernel, default_table()) is None
    assert emitter.source([kernel, kernel], default_table()) == f"{print_kernel(kernel)}\n\n{print_kernel(kernel)}\n"
    assert emitter.source([], default_table()) == ""
    unavailable = emitter.available()
    assert unavailable is not None
    assert unavailable.code == "text-only"
    with pytest.raises(Unsupported, match="cannot compile"):
        emitter.compile([kernel], [], default_table())
    with pytest.raises(Internal):
        emitter.accepts(parse_kernel(GOOD.replace("sub(x, m)", "sub(x)")), default_table())
