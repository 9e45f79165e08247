"""Affine index expressions as text: `3 + s0*d0 + d1`, read and written, with extents as their coefficients."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tessiq_core.codegen.description import Access
from tessiq_core.codegen.names import axis_number
from tessiq_core.ir.extent import FUNCTION_NAMES, UNKNOWN, Expression, Extent, add, call, mul, symbol
from tessiq_core.ir.scanner import Scanner

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"[0-9]+")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Affine:
    """offset + sum(strides[axis] * d_axis); axes that are absent have stride 0."""

    offset: Extent
    strides: dict[int, Extent] = field(default_factory=dict)

    def plus(self, other: Affine) -> Affine:
        strides = dict(self.strides)
        for axis, stride in other.strides.items():
            strides[axis] = add(strides.get(axis, 0), stride)
        return Affine(add(self.offset, other.offset), strides)

    def times(self, factor: Extent) -> Affine:
        strides = {axis: mul(stride, factor) for axis, stride in self.strides.items()}
        return Affine(mul(self.offset, factor), strides)


def print_access(access: Access) -> str:
    """The index: the offset where it is not 0, then each axis with a stride that is not 0; `0` for none of these."""
    parts = [str(access.offset)] if access.offset != 0 else []
    for number, stride in enumerate(access.strides):
        if stride != 0:
            parts.append(f"d{number}" if stride == 1 else f"{_factor(stride)}*d{number}")
    return " + ".join(parts) or "0"


def _factor(stride: Extent) -> str:
    text = str(stride)
    return f"({text})" if isinstance(stride, Expression) and len(stride.terms) > 1 else text


def parse_extent_at(scan: Scanner) -> Extent:
    """Read an extent: an affine expression without axes. Raises InvalidArgument with line and column."""
    start = scan.here()
    value = parse_affine(scan)
    if value.strides:
        raise scan.failure("an extent cannot use an axis", start)
    return value.offset


def parse_affine(scan: Scanner) -> Affine:
    """Read sums and products of integers, symbols, axes, calls and `?`, at most linear in the axes."""
    total = _product(scan)
    while scan.peek("+") or scan.peek("-"):
        if scan.accept("+"):
            total = total.plus(_product(scan))
        else:
            scan.expect("-", "between two terms")
            total = total.plus(_product(scan).times(-1))
    return total


def _product(scan: Scanner) -> Affine:
    total = _factor_at(scan)
    while scan.peek("*"):
        position = scan.here()
        scan.accept("*")
        factor = _factor_at(scan)
        if total.strides and factor.strides:
            raise scan.failure("an index must be affine: two axes cannot be multiplied", position)
        total = factor.times(total.offset) if factor.strides else total.times(factor.offset)
    return total


def _factor_at(scan: Scanner) -> Affine:
    if scan.accept("-"):
        return _factor_at(scan).times(-1)
    if scan.accept("("):
        inner = parse_affine(scan)
        scan.expect(")", "after the parenthesised expression")
        return inner
    if scan.accept("?"):
        return Affine(UNKNOWN)
    digits = scan.match(_DIGITS)
    if digits is not None:
        return Affine(int(digits))
    position = scan.here()
    word = scan.match(IDENTIFIER)
    if word is None:
        raise scan.error("an integer, a symbol, an axis or '('", position)
    if scan.peek("("):
        return Affine(_call(scan, word, position))
    axis = axis_number(word)
    return Affine(symbol(word)) if axis is None else Affine(0, {axis: 1})


def _call(scan: Scanner, function: str, position: int) -> Extent:
    if function not in FUNCTION_NAMES:
        raise scan.error(f"one of {', '.join(FUNCTION_NAMES)}", position)
    arguments = separated(scan, "(", ")", lambda: parse_extent_at(scan))
    if len(arguments) < 2 or (function not in ("max", "min") and len(arguments) != 2):
        raise scan.failure(f"expected two arguments of {function}, got {len(arguments)}", position)
    return call(function, *arguments)


def separated(scan: Scanner, opening: str, closing: str, item: Callable[[], _T]) -> list[_T]:
    """Read `opening item, item … closing`, with no item too."""
    scan.expect(opening, "before the list")
    items: list[_T] = []
    if not scan.accept(closing):
        items.append(item())
        while scan.accept(","):
            items.append(item())
        scan.expect(closing, "after the list")
    return items
