"""Names in the C text: IR names where C++ allows them."""

from __future__ import annotations

import re

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false final float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq typeof restrict
    """,
    )
)

OURS = frozenset(
    re.findall(
        r"\w+",
        """
    i8 u8 i16 u16 i32 u32 i64 f16 bf16 f32 f64 buffers words begin end first last rest step block blocks lane width rows
    linux unix to_bits from_bits f16_to_f32 f32_to_f16 f16_of_bits bf16_of_bits
    """,
    )
)
"""Names the emitter writes itself; `linux` and `unix` are macros of the gnu dialects."""


def function_name(kernel: str) -> str:
    """The exported name of a kernel: a prefix keeps `exp` and `div` apart from the C library's."""
    return "tessiq_" + re.sub(r"[^A-Za-z0-9_]", "_", kernel)


class Names:
    """Gives every thing of one function a C identifier of its own, its IR name if that is free."""

    def __init__(self) -> None:
        self._taken = set(KEYWORDS | OURS)

    def claim(self, stem: str) -> str:
        """`stem` with characters C does not know replaced, and `_` appended until it is free."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", stem)
        if not name or name[0].isdigit():
            name = f"v{name}"
        # Leading underscores and the prefix `tq_` belong to the compiler and to the functions of `math`.
        if name.startswith(("_", "tq_")):
            name = f"v{name}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
