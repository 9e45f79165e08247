"""The text form of kernels: exact round trips, and errors that point at the place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from support.kernels import any_kernels
from tessiq_core.codegen import Constant, KernelDescription, Map, parse_kernel, parse_kernels, print_kernel
from tessiq_core.codegen.description import Access, Read
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import attribute_key
from tessiq_core.ir.extent import UNKNOWN, add, symbol
from tessiq_core.ir.types import F32, opaque_element

EXAMPLE = """\
kernel @add_relu(d0 < 64, d1 < s0) {
  x = read %x[s0*d0 + d1] : f32
  b = read %b[3 + 2*d1] : f32
  n = read %n[0] : i64
  add = add(x, b) in f32 : f32
  c = le(x, 0.0) in f32 : bool
  r = rsub(add, 1) in f32 : f32
  i = mul(d1, -2) in i64 : i64
  w = where(c, -inf, true) in f32 : f32
  m = reduce max(add) over d1 in f32 : f32
  write %relu[s0*d0 + d1] : f32 = r over d0, d1
  write %m[d0] : f32 = m over d0
  write %n_1[0] : i64 = n
  members add, r, m
}"""


def constants(kernel: KernelDescription) -> list[object]:
    return [
        attribute_key(operand.value)
        for stage in kernel.stages
        if isinstance(stage, Map)
        for operand in stage.operands
        if isinstance(operand, Constant)
    ]


def test_prints_what_it_parsed() -> None:
    kernel = parse_kernel(EXAMPLE)
    assert print_kernel(kernel) == EXAMPLE
    assert kernel.domain == (64, symbol("s0"))
    assert kernel.reads[1].access == Access(3, (0, 2))
    assert kernel.writes[1].axes == (0,)
    assert kernel.writes[2].axes == ()
    assert kernel.members == ("add", "r", "m")


@given(any_kernels())
@settings(max_examples=150, deadline=None)
def test_round_trip_is_exact(kernel: KernelDescription) -> None:
    text = print_kernel(kernel)
    again = parse_kernel(text)
    assert again == kernel
    assert constants(again) == constants(kernel)  # == alone would let 1 pass for 1.0 and 0.0 for -0.0
    assert print_kernel(again) == text


def test_nan_unknown_extents_and_opaque_elements_survive() -> None:
    read = Read("x", "x", opaque_element("complex64"), Access(UNKNOWN, (UNKNOWN, add(symbol("s0"), -1))))
    stage = Map("y", "add", ("x", Constant(float("nan"))), F32, F32)
    kernel = KernelDescription("k", (UNKNOWN, 2), (read,), (stage,), (), ())
    text = print_kernel(kernel)
    assert "x = read %x[? + ?*d0 + (s0 - 1)*d1] : opaque(complex64)" in text
    assert "y = add(x, nan) in f32 : f32" in text
    again = parse_kernel(text)
    assert again.reads == kernel.reads
    assert print_kernel(again) == text


def test_comments_blank_lines_and_names_that_look_like_keywords() -> None:
    text = """
    // a kernel whose stages are called like the keywords
    kernel @k() {
      write = read %write[0] : f32   // not a write
      reduce = add(write, write) in f32 : f32

      members = neg(reduce) in f32 : f32
      over = reduce sum(members) in f32 : f32
      write %out[0] : f32 = over
    }
    """
    kernel = parse_kernel(text)
    assert [stage.name for stage in (*kernel.reads, *kernel.stages)] == ["write", "reduce", "members", "over"]
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_indices_are_brought_to_one_form() -> None:
    kernel = parse_kernel("kernel @k(d0 < 4, d1 < 2*s0 + s0) { x = read %x[d1 + 2*(s0 + 1)*d0 - 3 + d1*4] : f32 }")
    assert print_kernel(kernel).splitlines()[:2] == [
        "kernel @k(d0 < 4, d1 < 3*s0) {",
        "  x = read %x[-3 + (2*s0 + 2)*d0 + 5*d1] : f32",
    ]


def test_several_kernels_in_one_text() -> None:
    assert parse_kernels("// nothing\n") == ()
    two = parse_kernels(EXAMPLE + "\n\n" + EXAMPLE)
    assert two == (parse_kernel(EXAMPLE),) * 2


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("kernel @k(d0 < 4) {\n  x = read x[d0] : f32\n}", "2:12", "expected a value, such as %x, got x"),
        ("kernel @k(d1 < 4) {}", "1:11", "expected 'd0' (axes are numbered in order), got d1"),
        ("kernel @k(d0 < 4) {\n  x = read %x[d1] : f32\n}", "2:15", "an axis beyond the kernel's 1"),
        ("kernel @k(d0 < 4) {\n  x = read %x[d0*d0] : f32\n}", "2:17", "must be affine"),
        ("kernel @k(d0 < d0) {}", "1:16", "an extent cannot use an axis"),
        ("kernel @k(d0 < log(s0)) {}", "1:16", "expected one of floordiv, mod, max, min, pow, got log"),
        ("kernel @k(d0 < mod(s0)) {}", "1:16", "expected two arguments of mod, got 1"),
        ("kernel @k() {\n  x = read %x[0] : f33\n}", "2:20", "expected an element type"),
        ("kernel @k() {\n  d0 = read %x[0] : f32\n}", "2:3", "'d0' cannot name a stage"),
        ("kernel @k() {\n  y = neg(d0) in f32 : f32\n}", "2:11", "the kernel's 0 axes, got d0"),
        ("kernel @k() {\n  y = neg(x) f32\n}", "2:14", "expected 'in', got f32"),
        ("kernel @k() {\n  y = neg(x) in f32 : f32\n  x = read %x[0] : f32\n}", "3:3", "before the maps"),
        ("kernel @k() {\n  write %y[0] : f32 = x\n  x = neg(x) in f32 : f32\n}", "3:3", "before the writes"),
        ("kernel @k(d0 < 2) {\n  write %y[0] : f32 = x over d1\n}", "2:30", "one of the kernel's 1 axes, got d1"),
        ("kernel @k() {\n  members a\n  members b\n}", "3:3", "expected '}' after the kernel's lines"),
        ("kernel @k() {\n  x\n}", "3:1", "expected '=' after a stage's name, got }"),
        ("kernel @k() {\n", "2:1", "got the end of the text"),
        ("kernel @k() {} more", "1:16", "expected nothing after the kernel, got more"),
        ("kernel @k() {\n  x = reduce sum(1) in f32 : f32\n}", "2:18", "expected the name of a stage, got 1"),
    ],
)
def test_errors_say_where_and_what(text: str, place: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse_kernel(text, source="file.kernel")
    assert f"file.kernel:{place}: " in str(raised.value)
    assert message in str(raised.value)
    assert str(raised.value).splitlines()[-1].strip() == "^"
