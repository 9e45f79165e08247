"""Every code `lower` declines with, and the node it names."""

from __future__ import annotations

import re
import sys

import pytest

from support.kernels import lower_text, lowered
from tessiq_core.codegen import lower
from tessiq_core.codegen.layout import never_overlaps
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import UNKNOWN, Extent, mul, symbol
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ops.table import OperationTable, default_table

PARAMETERS = (
    "%x: f32[4, 8], %y: f32[4, 4], %v: f32[4], %w: f32[8], %i: i32[4, 8], %u: u8[4, 8], %h: f16[4, 8], "
    '%c: opaque(complex64)[4, 8], %o: opaque "sparse_coo f32", %n: int(s0), %f: float, %q: f32[4, ?], '
    "%t: f32[4, 8; ?, 1], %s: f32[s0, 8], %r: f32[s1, 8]"
)

CASES = [
    ("no-row", "%z = aten.digamma.default(%x) : f32[4, 8]", "aten.digamma.default"),
    ("category", "%z = aten.mm.default(%y, %x) : f32[4, 8]", "matmul"),
    ("category", "%z, %z1 = aten.neg.default(%x) : f32[4, 8], f32[4, 8]", "2 results"),
    ("movement-inside", "%z = aten.t.default(%x) : f32[8, 4; 1, 8]", "view"),
    ("effect", "%z = aten.copy_.default(%x, %x) : f32[4, 8]", "writes"),
    ("effect", "%z, %z1 = aten.native_dropout.default(%x) {1 = 0.5, 2 = true} : f32[4, 8], bool[4, 8]", "random"),
    ("effect", '%z = aten.neg.default(%x) {tessiq.effect = "ordered"} : f32[4, 8]', "ordered"),
    ("argument", "%z = aten.add.Tensor(%x, %x) {alpha = 2} : f32[4, 8]", "alpha"),
    ("argument", "%z = aten.add.Tensor(%u) {1 = 300} : u8[4, 8]", "out of the range of u8"),
    ("argument", "%z = aten.add.Tensor(%u) {1 = -1} : u8[4, 8]", "out of the range of u8"),
    ("argument", "%z = aten.clamp.default(%x) {1 = 0.0} : f32[4, 8]", "max"),
    ("argument", "%z = aten.sum.dim_IntList(%x) {1 = [2]} : f32[4]", "names 2"),
    ("argument", "%z = aten.sum.dim_IntList(%x) {1 = [1, -1]} : f32[4]", "twice"),
    ("argument", "%z = aten.any.dims(%x) {1 = []} : bool[4, 8]", "empty"),
    ("argument", '%z = aten.add.Tensor(%x) {1 = "text"} : f32[4, 8]', "other"),
    ("scalar-operand", "%z = aten.mul.Tensor(%x, %n) : f32[4, 8]", "%n"),
    ("scalar-operand", "%z = aten.mul.Tensor(%x, %f) : f32[4, 8]", "%f"),
    ("opaque-type", "%z = aten.mul.Tensor(%c, %x) : f32[4, 8]", "complex64"),
    ("opaque-type", "%z = aten._to_copy.default(%x) : opaque(complex64)[4, 8]", "complex64"),
    ("opaque-type", "%z = aten.neg.default(%o) : f32[4, 8]", "%o"),
    ("element-type", "%z = aten.mean.default(%i) : f32[]", "i32"),
    ("element-type", "%z = aten.sub.Tensor(%x, %x) : f64[4, 8]", "f64"),
    ("element-type", "%z = aten.where.self(%u, %x, %x) : f32[4, 8]", "condition"),
    ("result-type", "%z = aten.neg.default(%x) : f32[2, 4, 8]", "shape"),
    ("result-type", "%z = aten.neg.default(%v) : f32[4, 4]", "shape"),
    ("result-type", "%z = aten.sum.dim_IntList(%x) {1 = [1]} : f32[4, 1]", "[4, 1]"),
    ("result-type", "%z = aten.sum.dim_IntList(%x) {1 = [1], 2 = true} : f32[4]", "[4, 1]"),
    ("unknown-extent", "%z = aten.neg.default(%q) : f32[4, 8]", "%q"),
    ("unknown-extent", "%z = aten.neg.default(%x) : f32[4, ?]", "%z"),
    ("unknown-extent", "%z = aten.neg.default(%t) : f32[4, 8]", "stride"),
    ("broadcast", "%z = aten.add.Tensor(%x, %v) : f32[4, 8]", "[4]"),
    ("broadcast", "%z = aten.add.Tensor(%s, %r) : f32[s0, 8]", "[s1, 8]"),
    ("broadcast", "%z = aten.add.Tensor(%x, %w) : f32[8]", "[4, 8]"),
    ("symbolic-count", "%z = aten.mean.dim(%s) {1 = [0]} : f32[8]", "s0"),
    ("overlapping-output", "%z = aten.neg.default(%x) : f32[4, 8; 0, 1]", "[0, 1]"),
    ("overlapping-output", "%z = aten.neg.default(%x) : f32[4, 8; 4, 1]", "[4, 1]"),
    ("overlapping-output", "%z = aten.neg.default(%s) : f32[s0, 8; 1, 1]", "[1, 1]"),
    # A row sum broadcast back along the columns of the same square matrix: one loop cannot be both.
    (
        "iteration-space",
        "%a = aten.sum.dim_IntList(%y) {1 = [1]} : f32[4] %z = aten.sub.Tensor(%y, %a) : f32[4, 4]",
        "two dimensions of %y",
    ),
    (
        "iteration-space",
        "%a = aten.neg.default(%v) : f32[4] %z = aten.neg.default(%w) : f32[8]",
        "no value of the group has all",
    ),
    (
        "iteration-space",
        "%a = aten.sum.dim_IntList(%x) {1 = [0]} : f32[8] %z = aten.add.Tensor(%s, %a) : f32[s0, 8]",
        "no value of the group has all",
    ),
]


@pytest.mark.parametrize(("code", "body", "word"), CASES)
def test_declines(code: str, body: str, word: str) -> None:
    result = lower_text(body, parameters=PARAMETERS, returns="%z")
    assert isinstance(result, Decline), "lowered"
    assert (result.code, result.node.rstrip("1")) in ((code, "z"), (code, "y")), str(result)
    assert word in result.reason


def test_the_codes_are_those_the_module_lists() -> None:
    doc = sys.modules["tessiq_core.codegen.lower"].__doc__  # the package's own `lower` is the function
    assert doc is not None
    listed = set(re.findall(r"^    ([a-z-]+)  ", doc, re.MULTILINE))
    assert listed == {code for code, _, _ in CASES}


def test_a_mean_needs_a_row_that_divides() -> None:
    table = OperationTable([row for row in default_table() if row.name != "div"])
    graph = parse_graph("graph @main(%x: f32[4]) { %z = aten.mean.default(%x) : f32[] return %z }")
    result = lower(list(graph.nodes), table)
    assert isinstance(result, Decline)
    assert result.code == "no-row"
    assert "aten.div.Tensor" in result.reason


def test_an_overlapping_value_inside_the_kernel_is_harmless() -> None:
    lowered(
        "%a = aten.neg.default(%x) : f32[4, 8; 0, 1] %z = aten.neg.default(%a) : f32[4, 8]",
        parameters="%x: f32[4, 8]",
        returns="%z",
    )


S0 = symbol("s0")


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), (), True),
        ((4, 8), (8, 1), True),
        ((4, 8), (1, 4), True),
        ((4, 8), (16, 1), True),
        ((4, 8), (16, 2), True),
        ((4, 8), (7, 1), False),
        ((4, 8), (0, 1), False),
        ((1, 8), (0, 1), True),
        ((0, 8), (0, 0), True),
        ((4, S0), (S0, 1), True),
        ((4, S0), (1, 4), True),
        ((4, S0, 3), (mul(3, S0), 1, S0), True),
        ((4, S0), (S0, 2), False),
        ((4, 8), (UNKNOWN, 1), False),
    ],
)
def test_overlap(shape: tuple[Extent, ...], strides: tuple[Extent, ...], expected: bool) -> None:
    assert never_overlaps(shape, strides) is expected
