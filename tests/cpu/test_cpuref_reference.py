"""The reference emitter on kernels with reduces, several outputs and odd layouts, against PyTorch."""

from __future__ import annotations

import pytest
import torch

from support.emitters import buffers_of, compile_text, filled, launch, special_values
from tessiq_core.codegen import PythonLaunch, parse_kernel
from tessiq_core.ir.types import ELEMENT_TYPES
from tessiq_core.ops.row import Argument, Row
from tessiq_core.ops.table import default_table
from tessiq_cpuref import CppEmitter, ReferenceEmitter

SOFTMAX = """
kernel @softmax(d0 < s0, d1 < 33) {
  x = read %x[33*d0 + d1] : f32
  m = reduce max(x) over d1 in f32 : f32
  shifted = sub(x, m) in f32 : f32
  e = exp(shifted) in f32 : f32
  s = reduce sum(e) over d1 in f32 : f32
  y = div(e, s) in f32 : f32
  write %y[33*d0 + d1] : f32 = y over d0, d1
  members y
}
"""

LAYER_NORM = """
kernel @layer_norm(d0 < 5, d1 < 64) {
  x = read %x[64*d0 + d1] : bf16
  w = read %w[d1] : f32
  b = read %b[d1] : f32
  total = reduce sum(x) over d1 in f32 : f32
  mean = div(total, 64) in f32 : f32
  centred = sub(x, mean) in f32 : f32
  square = mul(centred, centred) in f32 : f32
  spread = reduce sum(square) over d1 in f32 : f32
  variance = div(spread, 64) in f32 : f32
  safe = add(variance, 1e-05) in f32 : f32
  rstd = rsqrt(safe) in f32 : f32
  unit = mul(centred, rstd) in f32 : f32
  scaled = mul(unit, w) in f32 : f32
  shifted = add(scaled, b) in f32 : f32
  y = _to_copy(shifted) in bf16 : bf16
  write %y[64*d0 + d1] : bf16 = y over d0, d1
  write %mean[d0] : f32 = mean over d0
  write %rstd[d0] : f32 = rstd over d0
  members y, mean, rstd
}
"""


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_softmax_is_one_kernel(rows: int) -> None:
    kernel = compile_text(ReferenceEmitter(), SOFTMAX)
    assert isinstance(kernel.launch, PythonLaunch)
    assert kernel.members == ("y",)
    x = torch.randn(rows, 33, generator=torch.Generator().manual_seed(1))
    y = torch.empty_like(x)
    launch(kernel, [x], [y], {"s0": rows})
    torch.testing.assert_close(y, torch.softmax(x, -1))


def test_layer_norm_writes_three_values_in_two_types() -> None:
    kernel = compile_text(ReferenceEmitter(), LAYER_NORM)
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(5, 64, generator=draw).bfloat16()
    w, b = torch.randn(64, generator=draw), torch.randn(64, generator=draw)
    y, mean, rstd = torch.empty_like(x), torch.empty(5), torch.empty(5)
    launch(kernel, [x, w, b], [y, mean, rstd])
    expected, means, rstds = torch.native_layer_norm(x.float(), [64], w, b, 1e-5)
    torch.testing.assert_close(mean, means.flatten())
    torch.testing.assert_close(rstd, rstds.flatten())
    torch.testing.assert_close(y, expected.bfloat16(), rtol=8e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("combine", "element", "compute", "result"),
    [
        ("sum", "f32", "f32", "f32"),
        ("sum", "bool", "i64", "i64"),
        ("sum", "f16", "f32", "f16"),
        ("prod", "i32", "i64", "i64"),
        ("max", "f32", "f32", "f32"),
        ("min", "i8", "i8", "i8"),
        ("max", "bool", "bool", "bool"),
        ("any", "f32", "bool", "bool"),
        ("all", "f32", "bool", "bool"),
    ],
)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_reduces_in_every_way(combine: str, element: str, compute: str, result: str, axes: tuple[int, ...]) -> None:
    shape = (3, 4, 5)
    values = special_values(ELEMENT_TYPES[element])
    x = values.repeat(60 // len(values) + 1)[:60].clone().view(shape)
    kept = [axis for axis in range(3) if axis not in axes]
    step, strides = 1, {}
    for axis in reversed(kept):
        strides[axis] = step
        step *= shape[axis]
    index = " + ".join(f"{strides[axis]}*d{axis}" for axis in kept) or "0"
    over = ", ".join(f"d{axis}" for axis in axes)
    covered = f" over {', '.join(f'd{axis}' for axis in kept)}" if kept else ""
    kernel = compile_text(
        ReferenceEmitter(),
        f"""
        kernel @reduce(d0 < 3, d1 < 4, d2 < 5) {{
          x = read %x[20*d0 + 5*d1 + d2] : {element}
          r = reduce {combine}(x) over {over} in {compute} : {result}
          write %r[{index}] : {result} = r{covered}
        }}
        """,
    )
    got = filled(ELEMENT_TYPES[result], *(shape[axis] for axis in kept))
    launch(kernel, [x], [got])
    match combine:
        case "sum":
            expected = x.sum(axes, dtype=torch.float32 if compute == "f32" else None).to(got.dtype)
        case "prod":
            expected = x.long()
            for axis in reversed(axes):
                expected = expected.prod(axis)
        case "max" | "min":
            expected = (torch.amax if combine == "max" else torch.amin)(x, axes)
        case _:
            expected = (torch.any if combine == "any" else torch.all)(x.bool(), axes)
    torch.testing.assert_close(got, expected, equal_nan=True)


def test_a_reduce_over_an_axis_its_operand_lacks_counts_every_point() -> None:
    kernel = compile_text(
        ReferenceEmitter(),
        """
        kernel @repeated(d0 < 3, d1 < s0) {
          x = read %x[d0] : f32
          s = reduce sum(x) over d1 in f32 : f32
          write %s[d0] : f32 = s over d0
        }
        """,
    )
    x = torch.tensor([1.0, 2.0, 3.0])
    for count in (0, 1, 4):
        out = torch.full((3,), 9.0)
        launch(kernel, [x], [out], {"s0": count})
        assert torch.equal(out, x * count)


def test_a_value_without_an_axis_is_written_also_where_that_axis_is_empty() -> None:
    kernel = compile_text(
        ReferenceEmitter(),
        """
        kernel @half_empty(d0 < s0, d1 < 4) {
          x = read %x[4*d0 + d1] : f32
          b = read %b[d1] : f32
          c = neg(b) in f32 : f32
          y = add(x, c) in f32 : f32
          s = reduce sum(x) over d0 in f32 : f32
          write %y[4*d0 + d1] : f32 = y over d0, d1
          write %c[d1] : f32 = c over d1
          write %s[d1] : f32 = s over d1
        }
        """,
    )
    b = torch.arange(4.0)
    outputs = [torch.empty(0, 4), torch.full((4,), 9.0), torch.full((4,), 9.0)]
    launch(kernel, [torch.empty(0, 4), b], outputs, {"s0": 0})
    assert torch.equal(outputs[1], -b)
    assert torch.equal(outputs[2], torch.zeros(4))


def test_indices_are_relative_to_the_tensors_own_start() -> None:
    kernel = compile_text(
        ReferenceEmitter(),
        """
        kernel @offset(d0 < 3) {
          x = read %x[1 + 2*d0] : f32
          y = neg(x) in f32 : f32
          write %y[1 + d0] : f32 = y over d0
        }
        """,
    )
    base, target = torch.arange(20.0), torch.zeros(10)
    launch(kernel, [base[5:]], [target[4:]])
    assert target.tolist() == [0, 0, 0, 0, 0, -6, -8, -10, 0, 0]


def test_inputs_that_require_grad_stay_out_of_autograd() -> None:
    kernel = compile_text(
        ReferenceEmitter(),
        "kernel @k(d0 < 2) {\n  x = read %x[d0] : f32\n  y = exp(x) in f32 : f32\n  write %y[d0] : f32 = y over d0\n}",
    )
    x, y = torch.zeros(2, requires_grad=True), torch.empty(2)
    launch(kernel, [x], [y])
    assert y.tolist() == [1, 1]
    assert not y.requires_grad


def test_a_plugins_row_is_computed_by_its_reference_and_generated_from_its_expression() -> None:
    row = Row(
        name="cube_plus",
        category="elementwise",
        spellings={"testns.cube_plus.default": (Argument("self"), Argument("bias"))},
        consumes=("self", "bias"),
        expression="$self * $self * $self + $bias",
        elements=("f32",),
        origin="test",
        reference=lambda x, bias: x * x * x + bias,
    )
    table = default_table().with_rows([row])
    kernel = parse_kernel(
        """
        kernel @cube(d0 < 5) {
          x = read %x[d0] : f32
          y = cube_plus(x, 0.5) in f32 : f32
          write %y[d0] : f32 = y over d0
        }
        """
    )
    x = torch.linspace(-2, 2, 5)
    emitters = [ReferenceEmitter(), *([CppEmitter()] if CppEmitter().available() is None else [])]
    for emitter in emitters:
        assert emitter.accepts(kernel, table) is None
        (built,) = emitter.compile([kernel], [buffers_of(kernel)], table)
        y = torch.empty(5)
        launch(built, [x], [y])
        assert torch.equal(y, x * x * x + 0.5), emitter.name


def test_the_reference_declines_what_it_cannot_evaluate() -> None:
    emitter, table = ReferenceEmitter(), default_table()

    def code(text: str) -> str:
        declined = emitter.accepts(parse_kernel(text), table)
        return "" if declined is None else declined.code

    def one(read: str, stage: str, write: str) -> str:
        return f"kernel @k(d0 < 4) {{\n  x = read %x[d0] : {read}\n  {stage}\n  write %y[d0] : {write} = y over d0\n}}"

    assert code(one("f32", "y = relu(x) in f32 : f32", "f32")) == ""
    assert code(one("opaque(complex64)", "y = neg(x) in f32 : f32", "f32")) == "element-type"
    assert code(one("f32", "y = frobnicate(x) in f32 : f32", "f32")) == "no-row"
    assert code(one("f32", "y = native_dropout(x, 0.5, true) in f32 : f32", "f32")) == "effect"
    assert code(one("f32", "y = mm(x, x) in f32 : f32", "f32")) == "category"
    assert code(one("f32", "y = relu(x) in f32 : f32", "f32").replace("d0 < 4", "d0 < ?")) == "unknown-extent"


@pytest.mark.parametrize("extent", [2, 33])
def test_an_operand_that_varies_with_no_axis_is_whole_to_an_operator_that_takes_only_tensors(extent: int) -> None:
    # Eager's gelu_backward refuses a 0-dim gradient, which is what the gradient of a mean is.
    text = f"""
    kernel @gelu_backward(d0 < {extent}) {{
      g = read %g[0] : f32
      x = read %x[d0] : f32
      y = gelu_backward(g, x) in f32 : f32
      write %y[d0] : f32 = y over d0
      members y
    }}
    """
    kernel = compile_text(ReferenceEmitter(), text)
    x = torch.randn(extent, generator=torch.Generator().manual_seed(1))
    y = torch.empty_like(x)
    launch(kernel, [torch.tensor(0.5), x], [y], {})
    expected = torch.ops.aten.gelu_backward(torch.full_like(x, 0.5), x)
    torch.testing.assert_close(y, expected, rtol=0, atol=0)


def test_an_empty_operand_without_strides_has_no_element_to_read() -> None:
    text = """
    kernel @total(d0 < 0, d1 < 3) {
      x = read %x[0] : f32
      y = mul(x, x) in f32 : f32
      t = reduce sum(x) over d0, d1 in f32 : f32
      write %y[3*d0 + d1] : f32 = y over d0, d1
      write %t[0] : f32 = t
      members y, t
    }
    """
    kernel = compile_text(ReferenceEmitter(), text)
    y, t = torch.empty(0, 3), torch.full((), 5.0)
    launch(kernel, [torch.empty_strided((0, 3), (0, 0))], [y, t], {})
    assert t.item() == 0
