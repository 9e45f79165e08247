"""Extents as C expressions over `i64` symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Call, Extent, Symbol, Unknown

# Python's rounding, towards minus infinity, which is what extents mean; C's is towards zero.
EXTENT_TEXT = """\
static inline i64 tq_floordiv(i64 a, i64 b) {
  i64 q = a / b, r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
static inline i64 tq_mod(i64 a, i64 b) { return a - tq_floordiv(a, b) * b; }
static inline i64 tq_min(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 tq_max(i64 a, i64 b) { return a > b ? a : b; }
static inline i64 tq_pow(i64 a, i64 b) { i64 p = 1; while (b-- > 0) p *= a; return p; }
"""


def extent_text(extent: Extent, symbols: Mapping[str, str]) -> str:
    """C text of the extent, a name, a literal, a call or in parentheses; `symbols` gives each symbol's C name.

    Raises Internal for `?`: the compiler must not ask.
    """
    if isinstance(extent, Unknown):
        raise Internal("tessiq: cpp was asked for the C text of an unknown extent `?`, which `accepts` declines")
    if isinstance(extent, int):
        text = str(extent) if abs(extent) < 2**31 else f"{extent}LL"
        return text if extent >= 0 else f"({text})"
    terms = [_term(monomial, factor, symbols) for monomial, factor in extent.terms]
    whole = len(terms) == 1 and re.fullmatch(r"\w+(\(.*\))?", terms[0]) is not None and " * " not in terms[0]
    return terms[0] if whole else f"({' + '.join(terms)})"


def _term(monomial: Iterable[tuple[Symbol | Call, int]], factor: int, symbols: Mapping[str, str]) -> str:
    factors = [_atom(atom, symbols) for atom, power in monomial for _ in range(power)]
    if factor != 1 or not factors:
        factors.insert(0, extent_text(factor, symbols))
    return " * ".join(factors)


def _atom(atom: Symbol | Call, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return symbols[atom.name]
    first, *rest = (extent_text(argument, symbols) for argument in atom.arguments)
    if atom.function in ("min", "max"):
        for argument in rest:
            first = f"tq_{atom.function}({first}, {argument})"
        return first
    return f"tq_{atom.function}({', '.join([first, *rest])})"
