"""The C++ emitter's text half: names, loops, extents, expressions, and what it declines. No torch, no compiler."""

from __future__ import annotations

import pytest

from tessiq_core.codegen import parse_kernel, parse_kernels
from tessiq_core.ir.extent import call, evaluate, symbol
from tessiq_core.ir.types import BF16, BOOL, ELEMENT_TYPES, F16, F32, F64, I32, I64, U8
from tessiq_core.ops.functions import FUNCTIONS
from tessiq_core.ops.table import default_table
from tessiq_cpuref import CppEmitter
from tessiq_cpuref.cpp.elements import constant, convert
from tessiq_cpuref.cpp.extents import extent_text
from tessiq_cpuref.cpp.loops import BLOCK, EXPENSIVE, GRAIN_WORK, grain, iterations, nests
from tessiq_cpuref.cpp.math import functions, horner
from tessiq_cpuref.cpp.names import Names, function_name

TABLE = default_table()
EMITTER = CppEmitter()


def kernel_text(stage: str, *, read: str = "f32", write: str = "f32", domain: str = "d0 < 4", index: str = "d0") -> str:
    return (
        f"kernel @k({domain}) {{\n  x = read %x[{index}] : {read}\n  {stage}\n  write %y[d0] : {write} = y over d0\n}}"
    )


def test_the_text_of_a_kernel_is_what_a_person_would_write() -> None:
    text = EMITTER.source([parse_kernel(kernel_text("y = relu(x) in f32 : f32", domain="d0 < 100"))], TABLE)
    function = text[text.index("// kernel @k") :]
    assert function == (
        "// kernel @k(d0 < 100) {\n"
        "//   x = read %x[d0] : f32\n"
        "//   y = relu(x) in f32 : f32\n"
        "//   write %y[d0] : f32 = y over d0\n"
        "// }\n"
        'extern "C" void tessiq_k(void *const *buffers, const i64 *words, i64 begin, i64 end) {\n'
        "  const f32 *__restrict x_ptr = (const f32 *)buffers[0];\n"
        "  f32 *__restrict y_ptr = (f32 *)buffers[1];\n"
        "  const i64 first = begin, last = end;\n"
        "  if (first < last) {\n"
        f"    const i64 d0_end = tq_min(last * {BLOCK}, 100);\n"
        "#pragma omp simd\n"
        f"    for (i64 d0 = first * {BLOCK}; d0 < d0_end; ++d0) {{\n"
        "      const f32 x = x_ptr[d0];\n"
        "      const f32 y = x < f32(0) ? f32(0) : x;\n"
        "      y_ptr[d0] = y;\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_the_unit_has_no_header_and_no_more_prelude_than_it_needs() -> None:
    plain = EMITTER.source([parse_kernel(kernel_text("y = relu(x) in f32 : f32"))], TABLE)
    assert "#include" not in plain
    assert "struct" not in plain
    assert "tq_exp" not in plain
    half = EMITTER.source([parse_kernel(kernel_text("y = exp(x) in f16 : f16", read="f16", write="f16"))], TABLE)
    assert "struct f16" in half
    assert "struct bf16" not in half
    assert half.count("static inline f32 tq_exp(") == 1
    assert "f16(tq_exp(f32(x)))" in half
    double = EMITTER.source([parse_kernel(kernel_text("y = exp(x) in f64 : f64", read="f64", write="f64"))], TABLE)
    assert 'extern "C" f64 exp(f64);' in double


def test_kernels_of_one_name_get_functions_of_two() -> None:
    first = parse_kernel(kernel_text("y = relu(x) in f32 : f32"))
    second = parse_kernel(kernel_text("y = neg(x) in f32 : f32"))
    text = EMITTER.source([first, second, first], TABLE)
    assert text.count("void tessiq_k(") == 1
    assert text.count("void tessiq_k_1(") == 1
    assert text.count('extern "C" void') == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (kernel_text("y = relu(x) in f32 : f32"), None),
        (kernel_text("y = relu(x) in f32 : f32", domain="d0 < ?"), "unknown-extent"),
        (kernel_text("y = relu(x) in f32 : f32", index="?*d0"), "unknown-extent"),
        (kernel_text("y = reduce sum(x) over d0 in f32 : f32"), None),
        (
            kernel_text(
                "r = reduce sum(x) over d1 in f32 : f32\n  c = reduce sum(x) over d0 in f32 : f32\n"
                "  z = reduce sum(c) over d1 in f32 : f32\n  y = add(r, z) in f32 : f32",
                domain="d0 < 4, d1 < 5",
                index="5*d0 + d1",
            ),
            "reduce-axes",
        ),
        (
            # The sum of x is the same at every d0, where b is not.
            kernel_text(
                "b = read %b[d0] : f32\n  s = reduce sum(x) over d1 in f32 : f32\n  y = add(b, s) in f32 : f32",
                domain="d0 < 4, d1 < 5",
                index="d1",
            ),
            "reduce-axes",
        ),
        (
            # Three passes over columns would each compute the tanh.
            "kernel @k(d0 < 4, d1 < 5) {\n  x = read %x[5*d0 + d1] : f32\n  t = tanh(x) in f32 : f32\n"
            "  m = reduce sum(t) over d0 in f32 : f32\n  c = sub(t, m) in f32 : f32\n"
            "  v = reduce max(c) over d0 in f32 : f32\n  y = add(c, v) in f32 : f32\n"
            "  write %y[5*d0 + d1] : f32 = y over d0, d1\n}",
            "recompute",
        ),
        (kernel_text("y = neg(x) in f32 : f32", read="opaque(complex64)"), "element-type"),
        (kernel_text("y = frobnicate(x) in f32 : f32"), "no-row"),
        (kernel_text("y = mm(x, x) in f32 : f32"), "no-expression"),
        (kernel_text("y = exp(x) in i32 : i32"), "function"),
    ],
)
def test_what_is_accepted_and_declined(text: str, code: str | None) -> None:
    declined = EMITTER.accepts(parse_kernel(text), TABLE)
    assert (None if declined is None else declined.code) == code


def test_every_row_with_an_expression_is_accepted_in_every_type_it_computes_in() -> None:
    for row in TABLE:
        if row.expression is None or row.effect != "none":
            continue
        for element in row.elements:
            operands = ", ".join("x" for _ in row.operands)
            result = "bool" if row.result == "bool" else element
            stage = f"y = {row.name}({operands}) in {element} : {result}"
            text = kernel_text(stage, read=element, write=result)
            assert EMITTER.accepts(parse_kernel(text), TABLE) is None, (row.name, element)


def test_every_function_of_the_language_exists_for_floats() -> None:
    for element in (F32, F64):
        assert set(FUNCTIONS) <= set(functions(element)), element


def test_names_are_kept_where_c_allows_them() -> None:
    names = Names()
    assert [names.claim(stem) for stem in ("relu", "relu", "float", "f32", "buffers", "3d", "a.b", "_x", "tq_exp")] == [
        "relu",
        "relu_",
        "float_",
        "f32_",
        "buffers_",
        "v3d",
        "a_b",
        "v_x",
        "vtq_exp",
    ]
    assert function_name("exp") == "tessiq_exp"
    assert function_name("a-b.c") == "tessiq_a_b_c"


def test_extents_are_c_expressions() -> None:
    s0, s1 = symbol("s0"), symbol("s1")
    names = {"s0": "s0", "s1": "n"}
    assert extent_text(7, names) == "7"
    assert extent_text(-7, names) == "(-7)"
    assert extent_text(2**40, names) == "1099511627776LL"
    assert extent_text(s1, names) == "n"
    assert extent_text(call("max", 1, s0, s1), names) == "tq_max(tq_max(1, s0), n)"
    assert extent_text(call("floordiv", s0, 2), names) == "tq_floordiv(s0, 2)"


def test_conversions_and_constants() -> None:
    assert convert("x", F32, F32) == "x"
    assert convert("x", BF16, F32) == "f32(x)"
    assert convert("x", F64, F16) == "f16(f32(x))"
    assert convert("x", F16, BF16) == "bf16(f32(x))"
    assert convert("x", F32, U8) == "u8(i32(x))"
    assert convert("x", I64, BOOL) == "bool(x)"
    assert constant(0.1, F32) == "f32(0.1)"
    assert constant(float("-inf"), F64) == "f64(-__builtin_inf())"
    assert constant(float("nan"), F32) == 'f32(__builtin_nan(""))'
    assert constant(-0.0, F32) == "f32(-0.0)"
    assert constant(True, I32) == "i32(1)"
    assert constant(-(2**63), I64) == "i64(-9223372036854775807LL - 1)"
    assert all(constant(1, element) == f"{name}(1)" for name, element in ELEMENT_TYPES.items())
    assert horner(("0x1p+0", "0x1p+1"), "x") == "tq_madd(x, 0x1p+1f, 0x1p+0f)"


def test_a_write_without_an_axis_is_a_nest_of_its_own() -> None:
    (kernel,) = parse_kernels(
        """
        kernel @two(d0 < s0, d1 < 6) {
          x = read %x[6*d0 + d1] : f32
          b = read %b[d1] : f32
          c = relu(b) in f32 : f32
          y = add(x, c) in f32 : f32
          write %y[6*d0 + d1] : f32 = y over d0, d1
          write %c[d1] : f32 = c over d1
        }
        """
    )
    full, lone = nests(kernel)
    assert (full.axes, full.inner, full.outer) == ((0, 1), 1, (0,))
    assert [read.name for read in lone.reads] == ["b"]
    assert [stage.name for stage in lone.stages] == ["c"]
    assert evaluate(iterations(kernel), {"s0": 10}) == 11
    assert evaluate(iterations(kernel), {"s0": 0}) == 1


def test_the_grain_is_work_not_elements() -> None:
    long = parse_kernel(kernel_text("y = relu(x) in f32 : f32", domain="d0 < 1000000"))
    short = parse_kernel(
        "kernel @k(d0 < 1000, d1 < 4) {\n  x = read %x[4*d0 + d1] : f32\n  y = relu(x) in f32 : f32\n"
        "  write %y[d0 + 1000*d1] : f32 = y over d0, d1\n}"
    )
    assert grain(long, 0) == GRAIN_WORK // (BLOCK * 3)
    assert grain(long, 2) == GRAIN_WORK // (BLOCK * (3 + 2 * EXPENSIVE))
    assert grain(short, 0) == GRAIN_WORK // (4 * 3)
    assert grain(long, 1000) == 1
