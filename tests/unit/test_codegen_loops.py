"""Loop order and merging keep what a kernel computes, and give emitters the loops they want."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.kernels import interpret, meaningful_kernels
from tessiq_core.codegen import (
    KernelDescription,
    arrange,
    bytes_moved,
    check,
    collapse,
    parse_kernel,
    permute_axes,
    print_kernel,
    reorder,
)
from tessiq_core.ir.extent import add, mul, symbol
from tessiq_core.ops.table import default_table


@pytest.mark.parametrize("transform", [reorder, collapse, arrange])
@given(kernel=meaningful_kernels())
@settings(max_examples=120, deadline=None)
def test_meaning_is_kept_and_a_second_run_changes_nothing(transform, kernel: KernelDescription) -> None:  # type: ignore[no-untyped-def]
    changed = transform(kernel)
    check(changed, default_table())
    assert interpret(changed) == interpret(kernel), print_kernel(changed)
    assert transform(changed) == changed
    assert bytes_moved(changed) == bytes_moved(kernel)


@given(meaningful_kernels(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_order_of_the_axes_computes_the_same(kernel: KernelDescription, random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(kernel.domain)))
    random.shuffle(order)
    assert interpret(permute_axes(kernel, order)) == interpret(kernel)


def test_contiguous_axes_become_one() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 2, d1 < s0, d2 < s1) {
      x = read %x[s0*s1*d0 + s1*d1 + d2] : f32
      y = neg(x) in f32 : f32
      write %y[s0*s1*d0 + s1*d1 + d2] : f32 = y over d0, d1, d2
    }""")
    once = collapse(kernel)
    assert once.domain == (mul(2, mul(symbol("s0"), symbol("s1"))),)
    assert once.reads[0].access.strides == (1,)
    sizes = {"s0": 3, "s1": 2}
    assert {v: len(cells) for v, cells in interpret(once_with_clone(once), sizes).items()} == {"y": 12}
    assert interpret(once_with_clone(once), sizes) == interpret(once_with_clone(kernel), sizes)


def once_with_clone(kernel: KernelDescription) -> KernelDescription:
    """The same kernel over a row the tests' interpreter knows."""
    return parse_kernel(print_kernel(kernel).replace("neg(", "clone("))


def test_a_broadcast_row_keeps_its_axis() -> None:
    text = """kernel @k(d0 < 4, d1 < 8) {
  x = read %x[8*d0 + d1] : f32
  b = read %b[d1] : f32
  y = add(x, b) in f32 : f32
  write %y[8*d0 + d1] : f32 = y over d0, d1
}"""
    assert print_kernel(collapse(parse_kernel(text))) == text


def test_softmax_over_the_last_of_four_axes_has_two_loops() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 2, d1 < 3, d2 < 5, d3 < 7) {
      x = read %x[105*d0 + 35*d1 + 7*d2 + d3] : f32
      m = reduce max(x) over d3 in f32 : f32
      y = sub(x, m) in f32 : f32
      write %y[105*d0 + 35*d1 + 7*d2 + d3] : f32 = y over d0, d1, d2, d3
      members m, y
    }""")
    assert (
        print_kernel(arrange(kernel))
        == """kernel @k(d0 < 30, d1 < 7) {
  x = read %x[7*d0 + d1] : f32
  m = reduce max(x) over d1 in f32 : f32
  y = sub(x, m) in f32 : f32
  write %y[7*d0 + d1] : f32 = y over d0, d1
  members m, y
}"""
    )


def test_channels_last_outputs_become_one_loop() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 2, d1 < 3, d2 < 5, d3 < 7) {
      x = read %x[105*d0 + d1 + 21*d2 + 3*d3] : f32
      y = neg(x) in f32 : f32
      write %y[105*d0 + d1 + 21*d2 + 3*d3] : f32 = y over d0, d1, d2, d3
    }""")
    assert arrange(kernel).domain == (210,)
    assert collapse(kernel).domain == (2, 3, 35)


def test_the_writes_decide_over_the_reads() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 4, d1 < s0) {
      x = read %x[s0*d0 + d1] : f32
      y = neg(x) in f32 : f32
      write %y[d0 + 4*d1] : f32 = y over d0, d1
    }""")
    swapped = reorder(kernel)
    assert swapped.domain == (symbol("s0"), 4)
    assert swapped.writes[0].access.strides == (4, 1)
    assert swapped.reads[0].access.strides == (1, symbol("s0"))


def test_a_reduced_axis_follows_the_read() -> None:
    rows = """kernel @k(d0 < 4, d1 < 9) {
  x = read %x[9*d0 + d1] : f32
  m = reduce sum(x) over d1 in f32 : f32
  write %m[d0] : f32 = m over d0
}"""
    assert print_kernel(reorder(parse_kernel(rows))) == rows
    columns = reorder(parse_kernel(rows.replace("9*d0 + d1", "d0 + 4*d1")))
    assert columns.domain == (9, 4)
    assert columns.stages[0].axes == (0,)  # type: ignore[union-attr]


def test_unit_axes_go_unless_a_reduce_or_an_index_needs_them() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 1, d1 < 4, d2 < 1, d3 < 1) {
      x = read %x[4*d0 + d1] : i64
      r = reduce sum(x) over d2 in i64 : i64
      y = add(r, d3) in i64 : i64
      write %y[d1] : i64 = y over d0, d1, d3
    }""")
    assert (
        print_kernel(collapse(kernel))
        == """kernel @k(d0 < 4, d1 < 1, d2 < 1) {
  x = read %x[d0] : i64
  r = reduce sum(x) over d1 in i64 : i64
  y = add(r, d2) in i64 : i64
  write %y[d0] : i64 = y over d0, d2
}"""
    )


def test_bytes_moved_counts_each_element_once() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 16, d1 < s0) {
      x = read %x[s0*d0 + d1] : bf16
      again = read %x[s0*d0 + d1] : bf16
      b = read %b[d1] : f32
      n = read %n[0] : f64
      y = where(x, b, n) in f32 : f32
      m = reduce max(y) over d1 in f32 : f32
      write %y[s0*d0 + d1] : f32 = y over d0, d1
      write %m[d0] : f32 = m over d0
    }""")
    per_column = 2 * 16 + 4 + 4 * 16  # %x, %b and %y; the number and %m do not grow with s0
    assert bytes_moved(kernel) == add(mul(per_column, symbol("s0")), 8 + 4 * 16)


def test_bytes_of_a_sliding_window_are_no_more_than_its_span() -> None:
    kernel = parse_kernel("""kernel @k(d0 < 8, d1 < 3) {
      x = read %x[d0 + d1] : f32
      m = reduce sum(x) over d1 in f32 : f32
      write %m[d0] : f32 = m over d0
    }""")
    assert bytes_moved(kernel) == 10 * 4 + 8 * 4
