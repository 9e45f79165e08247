"""Nodes to kernels: what the descriptions look like."""

from __future__ import annotations

import pytest

from support.kernels import lowered
from tessiq_core.codegen import KernelOperand, lower, print_kernel
from tessiq_core.codegen.lower import Lowered
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.extent import symbol
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.types import F32, tensor_type
from tessiq_core.ops.table import default_table


def text(body: str, *, returns: str, parameters: str) -> str:
    return print_kernel(lowered(body, returns=returns, parameters=parameters).description)


def test_elementwise_chain_with_a_broadcast_row() -> None:
    result = lowered(
        """%add = aten.add.Tensor(%x, %b) : f32[64, s0]
           %relu = aten.relu.default(%add) : f32[64, s0]""",
        parameters="%x: f32[64, s0], %b: f32[s0]",
        returns="%relu",
    )
    assert (
        print_kernel(result.description)
        == """kernel @add_relu(d0 < 64, d1 < s0) {
  x = read %x[s0*d0 + d1] : f32
  b = read %b[d1] : f32
  add = add(x, b) in f32 : f32
  relu = relu(add) in f32 : f32
  write %relu[s0*d0 + d1] : f32 = relu over d0, d1
  members add, relu
}"""
    )
    wide = tensor_type(F32, (64, symbol("s0")))
    assert result.operands.inputs == (
        KernelOperand("x", wide),
        KernelOperand("b", tensor_type(F32, (symbol("s0"),))),
    )
    assert result.operands.outputs == (KernelOperand("relu", wide),)


def test_all_packed_operands_become_one_loop() -> None:
    kernel = text("%y = aten.mul.Tensor(%x, %x) : f32[2, 3, 4]", parameters="%x: f32[2, 3, 4]", returns="%y")
    assert kernel.splitlines()[:3] == [
        "kernel @mul(d0 < 24) {",
        "  x = read %x[d0] : f32",
        "  y = mul(x, x) in f32 : f32",
    ]


def test_permuted_and_expanded_operands_are_read_in_place() -> None:
    kernel = text(
        "%y = aten.add.Tensor(%p, %e) : f32[3, 4]",
        parameters="%p: f32[3, 4; 1, 3], %e: f32[3, 4; 0, 2]",
        returns="%y",
    )
    assert "p = read %p[d0 + 3*d1] : f32" in kernel
    assert "e = read %e[2*d1] : f32" in kernel


def test_an_output_is_written_as_recorded() -> None:
    kernel = text(
        "%y = aten.clone.default(%x) {memory_format = @memory_format(channels_last)} : f32[2, 3, 4, 5; 60, 1, 15, 3]",
        parameters="%x: f32[2, 3, 4, 5]",
        returns="%y",
    )
    assert (
        kernel
        == """kernel @clone(d0 < 2, d1 < 20, d2 < 3) {
  x = read %x[60*d0 + d1 + 20*d2] : f32
  y = clone(x) in f32 : f32
  write %y[60*d0 + 3*d1 + d2] : f32 = y over d0, d1, d2
  members y
}"""
    )


@pytest.mark.parametrize(
    ("node", "stage"),
    [
        ("%y = aten.rsub.Scalar(%x) {1 = 1} : f32[8]", "y = rsub(x, 1) in f32 : f32"),
        ("%y = aten.sub.Tensor(%x) {0 = 1} : f32[8]", "y = sub(1, x) in f32 : f32"),
        ("%y = aten.sub.Tensor(%x) {1 = 1} : f32[8]", "y = sub(x, 1) in f32 : f32"),
        ("%y = aten.mul.Tensor(%x) {1 = -0.0} : f32[8]", "y = mul(x, -0.0) in f32 : f32"),
        ("%y = aten.add.Tensor(%i) {1 = 1.5} : f32[8]", "y = add(i, 1.5) in f32 : f32"),
        ("%y = aten.add.Tensor(%i) {1 = true} : i32[8]", "y = add(i, true) in i32 : i32"),
        ("%y = aten.add.Tensor(%h, %i) : f16[8]", "y = add(h, i) in f16 : f16"),
        ("%y = aten.add.Tensor(%h, %x) : f32[8]", "y = add(h, x) in f32 : f32"),
        ("%y = aten.add.Tensor(%x, %z) : f32[8]", "y = add(x, z) in f32 : f32"),
        ("%y = aten.div.Tensor(%i, %i) : f32[8]", "y = div(i, i) in f32 : f32"),
        ("%y = aten.le.Tensor(%x, %i) : bool[8]", "y = le(x, i) in f32 : bool"),
        ("%y = aten.eq.Scalar(%p) {1 = true} : bool[8]", "y = eq(p, true) in bool : bool"),
        ("%y = aten.mul.Tensor(%p, %p) : bool[8]", "y = mul(p, p) in bool : bool"),
        ("%y = aten.where.self(%p, %h, %x) : f32[8]", "y = where(p, h, x) in f32 : f32"),
        ("%y = aten.where.ScalarOther(%p, %h) {2 = 0.0} : f16[8]", "y = where(p, h, 0.0) in f16 : f16"),
        ("%y = aten._to_copy.default(%x) {dtype = @dtype(bfloat16)} : bf16[8]", "y = _to_copy(x) in bf16 : bf16"),
        ("%y = aten._to_copy.default(%x) {dtype = @dtype(int64)} : i64[8]", "y = _to_copy(x) in i64 : i64"),
        ("%y = aten._to_copy.default(%i) {dtype = @dtype(bool)} : bool[8]", "y = _to_copy(i) in bool : bool"),
    ],
)
def test_maps(node: str, stage: str) -> None:
    parameters = "%x: f32[8], %h: f16[8], %i: i32[8], %p: bool[8], %z: f64[]"
    assert f"  {stage}\n" in text(node, parameters=parameters, returns="%y")


def test_a_known_size_is_a_constant() -> None:
    kernel = text("%y = aten.mul.Tensor(%x, %n) : f32[8]", parameters="%x: f32[8], %n: int(4)", returns="%y")
    assert "y = mul(x, 4) in f32 : f32" in kernel


def test_softmax_written_out_is_one_kernel() -> None:
    kernel = text(
        """%m = aten.amax.default(%x) {1 = [-1], 2 = true} : f32[4, 8, 1]
           %d = aten.sub.Tensor(%x, %m) : f32[4, 8, s0]
           %e = aten.exp.default(%d) : f32[4, 8, s0]
           %s = aten.sum.dim_IntList(%e) {1 = [-1], 2 = true} : f32[4, 8, 1]
           %o = aten.div.Tensor(%e, %s) : f32[4, 8, s0]""",
        parameters="%x: f32[4, 8, s0]",
        returns="%o",
    )
    assert (
        kernel
        == """kernel @amax_sub_exp_2_more(d0 < 32, d1 < s0) {
  x = read %x[s0*d0 + d1] : f32
  m = reduce max(x) over d1 in f32 : f32
  d = sub(x, m) in f32 : f32
  e = exp(d) in f32 : f32
  s = reduce sum(e) over d1 in f32 : f32
  o = div(e, s) in f32 : f32
  write %o[s0*d0 + d1] : f32 = o over d0, d1
  members m, d, e, s, o
}"""
    )


def test_layer_norm_written_out_is_one_kernel_with_three_outputs() -> None:
    kernel = text(
        """%h = aten.add.Tensor(%x, %r) : bf16[6, 16]
           %mean = aten.mean.dim(%h) {1 = [1], 2 = true} : bf16[6, 1]
           %c = aten.sub.Tensor(%h, %mean) : bf16[6, 16]
           %sq = aten.mul.Tensor(%c, %c) : bf16[6, 16]
           %var = aten.mean.dim(%sq) {1 = [1], 2 = true} : bf16[6, 1]
           %eps = aten.add.Tensor(%var) {1 = 1e-05} : bf16[6, 1]
           %rstd = aten.rsqrt.default(%eps) : bf16[6, 1]
           %n = aten.mul.Tensor(%c, %rstd) : bf16[6, 16]
           %y = aten.mul.Tensor(%n, %w) : bf16[6, 16]""",
        parameters="%x: bf16[6, 16], %r: bf16[6, 16], %w: bf16[16]",
        returns="%y, %mean, %rstd",
    )
    assert (
        kernel
        == """kernel @add_mean_sub_6_more(d0 < 6, d1 < 16) {
  x = read %x[16*d0 + d1] : bf16
  r = read %r[16*d0 + d1] : bf16
  w = read %w[d1] : bf16
  h = add(x, r) in bf16 : bf16
  mean_sum = reduce sum(h) over d1 in f32 : f32
  mean = div(mean_sum, 16) in f32 : bf16
  c = sub(h, mean) in bf16 : bf16
  sq = mul(c, c) in bf16 : bf16
  var_sum = reduce sum(sq) over d1 in f32 : f32
  var = div(var_sum, 16) in f32 : bf16
  eps = add(var, 1e-05) in bf16 : bf16
  rstd = rsqrt(eps) in bf16 : bf16
  n = mul(c, rstd) in bf16 : bf16
  y = mul(n, w) in bf16 : bf16
  write %mean[d0] : bf16 = mean over d0
  write %rstd[d0] : bf16 = rstd over d0
  write %y[16*d0 + d1] : bf16 = y over d0, d1
  members h, mean, c, sq, var, eps, rstd, n, y
}"""
    )


@pytest.mark.parametrize(
    ("node", "stage"),
    [
        ("%y = aten.sum.default(%x) : f32[]", "y = reduce sum(x) over d0 in f32 : f32"),
        ("%y = aten.sum.dim_IntList(%x) {1 = [0]} : f32[8]", "y = reduce sum(x) over d0 in f32 : f32"),
        ("%y = aten.sum.dim_IntList(%x) {1 = [-1], 2 = true} : f32[4, 1]", "y = reduce sum(x) over d1 in f32 : f32"),
        ("%y = aten.sum.dim_IntList(%x) {1 = []} : f32[]", "y = reduce sum(x) over d0 in f32 : f32"),
        ("%y = aten.sum.default(%i) : i64[]", "y = reduce sum(i) over d0 in i64 : i64"),
        ("%y = aten.sum.dim_IntList(%h) {1 = [0]} : f16[8]", "y = reduce sum(h) over d0 in f32 : f16"),
        ("%y = aten.amax.default(%h) {1 = [0]} : f16[8]", "y = reduce max(h) over d0 in f16 : f16"),
        ("%y = aten.amin.default(%i) : i32[]", "y = reduce min(i) over d0 in i32 : i32"),
        ("%y = aten.any.dim(%x) {1 = 1} : bool[4]", "y = reduce any(x) over d1 in bool : bool"),
        ("%y = aten.all.default(%i) : bool[]", "y = reduce all(i) over d0 in bool : bool"),
        ("%y = aten.mean.default(%x) : f32[]", "y = div(y_sum, 32) in f32 : f32"),
        ("%y = aten.mean.dim(%h) {1 = [0]} : f16[8]", "y = div(y_sum, 4) in f32 : f16"),
    ],
)
def test_reductions(node: str, stage: str) -> None:
    kernel = text(node, parameters="%x: f32[4, 8], %h: f16[4, 8], %i: i32[4, 8]", returns="%y")
    assert f"  {stage}\n" in kernel


@pytest.mark.parametrize(
    ("parameter", "dims", "result", "axis"),
    [("f32[]", "[]", "f32[]", 0), ("f32[1]", "[0]", "f32[]", 0), ("f32[3, 1]", "[1]", "f32[3]", 1)],
)
def test_a_reduction_over_one_element_still_reduces(parameter: str, dims: str, result: str, axis: int) -> None:
    # sum([-0.0]) is 0.0 and not -0.0, so it is no copy.
    node = f"%y = aten.sum.dim_IntList(%x) {{1 = {dims}}} : {result}"
    kernel = text(node, parameters=f"%x: {parameter}", returns="%y")
    assert f"d{axis} < 1" in kernel
    assert f"y = reduce sum(x) over d{axis} in f32 : f32" in kernel


def test_empty_tensors_lower_like_others() -> None:
    kernel = text(
        """%m = aten.sum.dim_IntList(%x) {1 = [1], 2 = true} : f32[4, 1]
           %y = aten.sub.Tensor(%x, %m) : f32[4, 0; 1, 1]""",
        parameters="%x: f32[4, 0; 1, 1]",
        returns="%y, %m",
    )
    assert "d1 < 0" in kernel
    assert "write %m[d0] : f32 = m over d0" in kernel


def test_scalars_have_no_loop() -> None:
    kernel = text("%y = aten.neg.default(%x) : f32[]", parameters="%x: f32[]", returns="%y")
    assert kernel.splitlines()[0] == "kernel @neg() {"
    assert "write %y[0] : f32 = y\n" in kernel


def test_only_what_leaves_the_group_is_written() -> None:
    graph = parse_graph("""graph @main(%x: f32[8]) {
      %a = aten.neg.default(%x) : f32[8]
      %b = aten.exp.default(%a) : f32[8]
      %c = aten.mul.Tensor(%a, %b) : f32[8]
      %d = aten.mul.Tensor(%b, %b) : f32[8]
      return %c, %d
    }""")
    first, second, third, _ = graph.nodes
    result = lower([first, second, third], default_table(), name="three")
    assert isinstance(result, Lowered)
    assert result.description.name == "three"
    assert [write.value for write in result.description.writes] == ["b", "c"]
    assert [operand.value for operand in result.operands.outputs] == ["b", "c"]
    assert result.description.members == ("a", "b", "c")


def test_a_result_nobody_reads_is_written_so_that_a_claim_can_be_asked() -> None:
    graph = parse_graph("graph @main(%x: f32[8]) { %a = aten.neg.default(%x) : f32[8] return %x }")
    result = lower(list(graph.nodes), default_table())
    assert isinstance(result, Lowered)
    assert [write.value for write in result.description.writes] == ["a"]


def test_stage_names_avoid_axes_and_constants() -> None:
    kernel = text(
        """%inf = aten.add.Tensor(%d0, %true) : f32[8]
           %y = aten.mean.default(%inf) : f32[]
           %y_sum = aten.add.Tensor(%y, %inf) : f32[8]""",
        parameters="%d0: f32[8], %true: f32[8]",
        returns="%y_sum, %y",
    )
    assert "  d0_ = read %d0[d0] : f32\n" in kernel
    assert "  inf_ = add(d0_, true_) in f32 : f32\n" in kernel
    assert "  y_sum_1 = add(y, inf_) in f32 : f32\n" in kernel


def test_lowering_nothing_is_a_mistake() -> None:
    with pytest.raises(InvalidArgument, match="at least one node"):
        lower([], default_table())
