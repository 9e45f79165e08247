"""Element types in C++: their names, the prelude that defines them, conversions and constants.

Types keep the names of the IR (`f32`, `i64`). f16 and bf16 are structs of 16 bits with a conversion to and from f32, in
plain integer arithmetic, so that no header and no compiler extension is needed. In memory they are `u16`: g++ does not
vectorise a loop that loads or stores structs. A bool lives in memory as a byte that counts as true when it is not 0:
`Tensor.view(torch.bool)` may leave any byte.
"""

from __future__ import annotations

import math

from tessiq_core.ir.types import BF16, BOOL, F16, F32, ElementType

PRELUDE = """\
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef float f32;
typedef double f64;

static inline i32 to_bits(f32 x) { i32 bits; __builtin_memcpy(&bits, &x, 4); return bits; }
static inline f32 from_bits(i32 bits) { f32 x; __builtin_memcpy(&x, &bits, 4); return x; }
"""

F16_TEXT = """\
static inline f32 f16_to_f32(u16 h) {
  u32 magnitude = h & 0x7FFFu;
  u32 normal = (magnitude << 13) + 0x38000000u;                     // exponent bias 15 becomes 127
  u32 special = (magnitude << 13) | 0x7F800000u;                    // infinity and NaN
  u32 denormal = (u32)to_bits((f32)(i32)magnitude * 0x1p-24f);
  u32 bits = magnitude < 0x400u ? denormal : (magnitude >= 0x7C00u ? special : normal);
  return from_bits((i32)(bits | ((h & 0x8000u) << 16)));
}
static inline u16 f32_to_f16(f32 x) {                               // to nearest, ties to even
  u32 bits = (u32)to_bits(x);
  u32 magnitude = bits & 0x7FFFFFFFu;
  u32 normal = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 leaves multiples of 2**-24, the step of denormal f16, in the low bits, rounded by the addition itself.
  f32 small = magnitude < 0x38800000u ? from_bits((i32)magnitude) : 0.0f;
  u32 denormal = (u32)to_bits(small + 0.5f) - 0x3F000000u;
  u32 special = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  u32 result = magnitude < 0x38800000u ? denormal : (magnitude >= 0x477FF000u ? special : normal);
  return (u16)(result | ((bits >> 16) & 0x8000u));
}
struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(f32 x) : bits(f32_to_f16(x)) {}
  operator f32() const { return f16_to_f32(bits); }
};
static inline f16 f16_of_bits(u16 bits) { f16 x; x.bits = bits; return x; }
"""

BF16_TEXT = """\
struct bf16 {                                                       // to nearest, ties to even
  u16 bits;
  bf16() = default;
  explicit bf16(f32 x) {
    u32 wide = (u32)to_bits(x);
    u32 rounded = (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16;
    bits = (u16)(x != x ? 0x7FC0u : rounded);
  }
  operator f32() const { return from_bits((i32)((u32)bits << 16)); }
};
static inline bf16 bf16_of_bits(u16 bits) { bf16 x; x.bits = bits; return x; }
"""

ACCUMULATION: dict[ElementType, ElementType] = {F16: F32, BF16: F32}
"""Half types compute in f32 inside one operator; every other type in itself."""


def accumulation(element: ElementType) -> ElementType:
    """The type arithmetic happens in for this compute type: what an expression calls `acc_t`."""
    return ACCUMULATION.get(element, element)


def memory_type(element: ElementType) -> str:
    """The C type an element has in memory."""
    return "u8" if element == BOOL else "u16" if element in ACCUMULATION else element.name


def loaded(text: str, element: ElementType) -> str:
    """C text of the element whose memory is `text`."""
    if element in ACCUMULATION:
        return f"{element.name}_of_bits({text})"
    return f"{text} != 0" if element == BOOL else text


def stored(text: str, element: ElementType) -> str:
    """C text of what goes into memory for the element `text`."""
    return f"{text}.bits" if element in ACCUMULATION else text


def convert(text: str, source: ElementType, target: ElementType) -> str:
    """C text of `text`, an expression of type `source` that binds like a name or a call, converted as torch does.

    Into bool by comparison with 0, into half types through f32, out of floats into integers towards zero. A float
    outside an integer's range has no defined value, as in torch; u8 goes through i32, so that -1.0 is 255.
    """
    if source == target:
        return text
    if source in ACCUMULATION:
        return convert(f"f32({text})", F32, target)
    if target in ACCUMULATION:
        return f"{target.name}({text})" if source == F32 else f"{target.name}(f32({text}))"
    if target == BOOL:
        return f"bool({text})"
    if source.is_float and target.kind == "uint":
        return f"{target.name}(i32({text}))"
    return f"{target.name}({text})"


def constant(value: bool | int | float, target: ElementType) -> str:
    """C text of a number as a value of type `target`, exactly: a decimal that reads back as the same double."""
    if isinstance(value, float):
        return f"{target.name}({_float_text(value)})"
    if isinstance(value, bool):
        return f"{target.name}({int(value)})"
    if value == -(2**63):
        return f"{target.name}(-9223372036854775807LL - 1)"
    return f"{target.name}({value}{'LL' if abs(value) >= 2**31 else ''})"


def _float_text(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return repr(value)
