"""The C text of the functions expressions may call (`tessiq_core.ops.functions`), one entry a function and type.

The f32 functions that stand in loops worth vectorising are our own: branch-free, so that `#pragma omp simd` turns them
into vector code without any library, and so that an element's value does not depend on where in the array it stands.
Arguments are clamped *before* the polynomial (`x > hi ? hi : x` keeps a NaN); special values are selected after it.
Coefficients come from `tools/fit_math.py`. Where the machine has fused multiply-add these functions use it by name; the
flags forbid the compiler to contract anything else.

Largest error in units in the last place of f32, over every 997th bit pattern and dense stretches around the branch
points (`tests/cpu/test_cpuref_math.py` repeats it): with fused multiply-add exp 0.97, log 0.83, tanh 1.30, erf 0.98;
without exp 0.92, log 0.82, tanh 1.30, erf 1.16. sqrt, abs, floor, ceil, trunc are exact. pow, and everything in f64,
calls the C library through a declaration written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tessiq_core.ir.types import F32, F64, ElementType
from tessiq_cpuref.cpp import coefficients

PREFIX = "tq_"


@dataclass(frozen=True)
class Function:
    """A definition in the C text; `needs` are names of others that must stand before it."""

    text: str
    needs: tuple[str, ...] = ()
    expensive: bool = False


def horner(values: tuple[str, ...], variable: str) -> str:
    """C text of the polynomial with these coefficients, lowest degree first, in Horner's form."""
    text = f"{values[-1]}f"
    for value in reversed(values[:-1]):
        text = f"tq_madd({variable}, {text}, {value}f)"
    return text


# log(2) and its inverse. LN2_HIGH has 14 significant bits: n * LN2_HIGH is exact for every exponent n of f32.
_LOG2E = "0x1.715476p+0f"
_LN2_HIGH = "0x1.62e4p-1f"
_LN2_LOW = "0x1.7f7d1cp-20f"
# Adding 1.5 * 2**23 leaves the nearest integer in the low bits: rounding and conversion in one addition.
_ROUND = "12582912.0f"
_ROUND_BITS = "0x4B400000"

_MADD = Function("""\
static inline f32 tq_madd(f32 a, f32 b, f32 c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}""")

# exp for arguments in [-87, 88], where the scale 2**n is a normal number.
_EXP_SMALL = Function(
    f"""\
static inline f32 tq_exp_small(f32 x) {{
  f32 shifted = tq_madd(x, {_LOG2E}, {_ROUND});
  f32 n = shifted - {_ROUND};
  f32 r = tq_madd(n, -{_LN2_LOW}, tq_madd(n, -{_LN2_HIGH}, x));
  f32 e = 1.0f + tq_madd(r * r, {horner(coefficients.EXP, "r")}, r);
  return e * from_bits((to_bits(shifted) - {_ROUND_BITS} + 127) << 23);
}}""",
    ("madd",),
)

# The scale is applied in two halves, so that overflowing and denormal results round once.
_EXP = Function(
    f"""\
static inline f32 tq_exp(f32 x) {{
  f32 c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  f32 shifted = tq_madd(c, {_LOG2E}, {_ROUND});
  f32 n = shifted - {_ROUND};
  f32 r = tq_madd(n, -{_LN2_LOW}, tq_madd(n, -{_LN2_HIGH}, c));
  f32 e = 1.0f + tq_madd(r * r, {horner(coefficients.EXP, "r")}, r);
  i32 k = to_bits(shifted) - {_ROUND_BITS};
  i32 half = k >> 1;
  return e * from_bits((half + 127) << 23) * from_bits((k - half + 127) << 23);
}}""",
    ("madd",),
    expensive=True,
)

# x = 2**k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)]; log(1 + f) = f - (f*f/2 - s*(f*f/2 + z*P(z))), s = f/(2 + f).
_LOG = Function(
    f"""\
static inline f32 tq_log(f32 x) {{
  f32 y = x < 0x1p-126f ? x * 0x1p+23f : x;
  i32 bits = to_bits(y);
  i32 e = (bits - 0x3F3504F3) >> 23;
  f32 k = (f32)(x < 0x1p-126f ? e - 23 : e);
  f32 f = from_bits(bits - (e << 23)) - 1.0f;
  f32 s = f / (2.0f + f);
  f32 z = s * s;
  f32 h = 0.5f * f * f;
  f32 low = tq_madd(s, tq_madd(z, {horner(coefficients.LOG, "z")}, h), k * {_LN2_LOW});
  f32 v = tq_madd(k, {_LN2_HIGH}, f - (h - low));
  v = x < __builtin_inff() ? v : x;
  v = x < 0.0f ? __builtin_nanf("") : v;
  return x == 0.0f ? -__builtin_inff() : v;
}}""",
    ("madd",),
    expensive=True,
)

_TANH = Function(
    f"""\
static inline f32 tq_tanh(f32 x) {{
  f32 a = __builtin_fabsf(x);
  f32 z = a * a;
  f32 near = tq_madd(a, z * {horner(coefficients.TANH, "z")}, a);
  f32 c = a > 10.0f ? 10.0f : a;
  f32 far = 1.0f - 2.0f / (tq_exp_small(c + c) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? near : far, x);
}}""",
    ("madd", "exp_small"),
    expensive=True,
)

_ERF = Function(
    f"""\
static inline f32 tq_erf(f32 x) {{
  f32 a = __builtin_fabsf(x);
  f32 z = a * a;
  f32 near = tq_madd(a, {horner(coefficients.ERF, "z")}, a);
  f32 t = (a > 4.0f ? 4.0f : a) - 1.0f;
  f32 far = 1.0f - tq_exp_small(-{coefficients.ERFC_START}f - {horner(coefficients.ERFC, "t")});
  return __builtin_copysignf(a < 1.0f ? near : far, x);
}}""",
    ("madd", "exp_small"),
    expensive=True,
)


def _inline(name: str, type_name: str, body: str, *, returns: str = "") -> Function:
    return Function(f"static inline {returns or type_name} tq_{name}({type_name} x) {{ return {body}; }}")


def _library(name: str, symbol: str, type_name: str, arguments: int = 1) -> Function:
    parameters = ", ".join(f"{type_name} {letter}" for letter in "xy"[:arguments])
    passed = ", ".join("xy"[:arguments])
    declared = ", ".join([type_name] * arguments)
    return Function(
        f'extern "C" {type_name} {symbol}({declared});\n'
        f"static inline {type_name} tq_{name}({parameters}) {{ return {symbol}({passed}); }}",
        expensive=True,
    )


FLOAT32: dict[str, Function] = {
    "madd": _MADD,
    "exp_small": _EXP_SMALL,
    "exp": _EXP,
    "log": _LOG,
    "tanh": _TANH,
    "erf": _ERF,
    "sqrt": _inline("sqrt", "f32", "__builtin_sqrtf(x)"),
    "rsqrt": _inline("rsqrt", "f32", "1.0f / __builtin_sqrtf(x)"),
    "abs": _inline("abs", "f32", "__builtin_fabsf(x)"),
    "floor": _inline("floor", "f32", "__builtin_floorf(x)"),
    "ceil": _inline("ceil", "f32", "__builtin_ceilf(x)"),
    "trunc": _inline("trunc", "f32", "__builtin_truncf(x)"),
    "isnan": _inline("isnan", "f32", "x != x", returns="bool"),
    "pow": _library("pow", "powf", "f32", 2),
}

FLOAT64: dict[str, Function] = {
    "exp": _library("exp", "exp", "f64"),
    "log": _library("log", "log", "f64"),
    "tanh": _library("tanh", "tanh", "f64"),
    "erf": _library("erf", "erf", "f64"),
    "sqrt": _inline("sqrt", "f64", "__builtin_sqrt(x)"),
    "rsqrt": _inline("rsqrt", "f64", "1.0 / __builtin_sqrt(x)"),
    "abs": _inline("abs", "f64", "__builtin_fabs(x)"),
    "floor": _inline("floor", "f64", "__builtin_floor(x)"),
    "ceil": _inline("ceil", "f64", "__builtin_ceil(x)"),
    "trunc": _inline("trunc", "f64", "__builtin_trunc(x)"),
    "isnan": _inline("isnan", "f64", "x != x", returns="bool"),
    "pow": _library("pow", "pow", "f64", 2),
}


def _whole(element: ElementType) -> dict[str, Function]:
    """What is left of the functions on integers and bools."""
    name = element.name
    return {
        "abs": _inline("abs", name, f"x < 0 ? {name}(-x) : x" if element.kind == "int" else "x"),
        "floor": _inline("floor", name, "x"),
        "ceil": _inline("ceil", name, "x"),
        "trunc": _inline("trunc", name, "x"),
        "isnan": _inline("isnan", name, "false", returns="bool"),
    }


def functions(element: ElementType) -> dict[str, Function]:
    """The functions there are for arguments of this accumulation type."""
    if element == F32:
        return FLOAT32
    return FLOAT64 if element == F64 else _whole(element)


def definitions(calls: Iterable[tuple[str, ElementType]]) -> str:
    """The text that defines these functions for these accumulation types, with what they need, each once."""
    texts: dict[str, None] = {}

    def define(name: str, element: ElementType) -> None:
        function = functions(element)[name]
        for need in function.needs:
            define(need, element)
        texts.setdefault(function.text)

    for name, element in sorted(calls, key=lambda item: (item[0], item[1].name)):
        define(name, element)
    return "".join(f"{text}\n" for text in texts)
