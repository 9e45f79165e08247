"""Extents: an integer, an integer expression over symbols, or unknown.

An expression is kept in one canonical form, an integer polynomial over *atoms* (a symbol, or a call of
floordiv, mod, max, min, pow), so that two equal expressions are equal objects and print the same text.
Sizes and strides of tensors, offsets and launch words are all extents. Nothing here imports sympy or torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.errors import Internal, InvalidArgument


@dataclass(frozen=True)
class Unknown:
    """An extent nothing is known about until the call. Prints as `?`; never provably equal to anything."""

    def __str__(self) -> str:
        return "?"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Symbol:
    """A size that arrives with the call. `name` is an identifier; canonical names are s0, s1, … by first use."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call:
    """An integer function polynomials cannot express: `floordiv`, `mod` (Python's rounding), `max`, `min`, `pow`."""

    function: str
    arguments: tuple[int | Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(str(a) for a in self.arguments)})"


Atom: TypeAlias = Symbol | Call
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]  # (atom, power >= 1), sorted by text


@dataclass(frozen=True)
class Expression:
    """Sum of coefficient * monomial, at least one monomial not constant. Build with the functions below."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            factors = [str(atom) for atom, power in monomial for _ in range(power)]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text = "*".join(factors)
            if parts:
                parts.append(f" {sign} {text}")
            else:
                parts.append(f"-{text}" if coefficient < 0 else text)
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Expression({self})"


Extent: TypeAlias = int | Expression | Unknown
KnownExtent: TypeAlias = int | Expression

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": lambda *a: max(a),
    "min": lambda *a: min(a),
    "pow": lambda a, b: a**b,
}
FUNCTION_NAMES = tuple(_FUNCTIONS)


def _terms(value: KnownExtent) -> dict[Monomial, int]:
    if isinstance(value, Expression):
        return dict(value.terms)
    return {(): value} if value else {}


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[tuple[str, int], ...]]:
    # Higher degree first and the constant last, then alphabetical: the order a person writes.
    degree = sum(power for _, power in monomial)
    return (-degree, tuple((str(atom), power) for atom, power in monomial))


def _build(terms: Mapping[Monomial, int]) -> KnownExtent:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Expression(tuple(sorted(kept.items(), key=lambda item: _monomial_key(item[0]))))


def _of_atom(atom: Atom) -> Expression:
    return Expression(((((atom, 1),), 1),))


def symbol(name: str) -> Expression:
    """The extent that is the symbol `name`."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidArgument(f"tessiq: a symbol's name must be an identifier, not {name!r}")
    return _of_atom(Symbol(name))


def add(a: Extent, b: Extent) -> Extent:
    """a + b; unknown if either is."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    terms = _terms(a)
    for monomial, coefficient in _terms(b).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _build(terms)


def mul(a: Extent, b: Extent) -> Extent:
    """a * b; unknown if either is, unless one is the integer 0."""
    if a == 0 or b == 0:
        return 0
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    terms: dict[Monomial, int] = {}
    for left, x in _terms(a).items():
        for right, y in _terms(b).items():
            powers: dict[Atom, int] = dict(left)
            for atom, power in right:
                powers[atom] = powers.get(atom, 0) + power
            monomial = tuple(sorted(powers.items(), key=lambda item: str(item[0])))
            terms[monomial] = terms.get(monomial, 0) + x * y
    return _build(terms)


def sub(a: Extent, b: Extent) -> Extent:
    """a - b; unknown if either is."""
    return add(a, mul(-1, b))


def product(extents: tuple[Extent, ...] | list[Extent]) -> Extent:
    """The product of all; 1 for none."""
    result: Extent = 1
    for extent in extents:
        result = mul(result, extent)
    return result


def call(function: str, *arguments: Extent) -> Extent:
    """`floordiv`, `mod`, `max`, `min` or `pow` of extents, folded where the arguments are integers.

    Raises InvalidArgument for another function's name and for a number of arguments it does not take.
    """
    if function not in _FUNCTIONS:
        raise InvalidArgument(f"tessiq: extents know the functions {', '.join(FUNCTION_NAMES)}, not {function!r}")
    takes_any = function in ("max", "min")
    if len(arguments) != 2 and not (takes_any and arguments):
        takes = "at least one argument" if takes_any else "two arguments"
        raise InvalidArgument(f"tessiq: the extent function {function} takes {takes}, not {len(arguments)}")
    known: list[KnownExtent] = []
    for argument in arguments:
        if isinstance(argument, Unknown):
            return UNKNOWN
        known.append(argument)
    if function in ("max", "min"):
        return _extremum(function, known)
    if all(isinstance(a, int) for a in known) and not _has_no_integer_value(function, known[1]):
        return _FUNCTIONS[function](*known)
    if function == "floordiv":
        if known[1] == 1:
            return known[0]
        if isinstance(known[1], int) and known[1] > 0 and isinstance(known[0], Expression):
            if all(c % known[1] == 0 for _, c in known[0].terms):
                return _build({m: c // known[1] for m, c in known[0].terms})
    if function == "mod" and isinstance(known[1], int) and known[1] > 0 and isinstance(known[0], Expression):
        if all(c % known[1] == 0 for _, c in known[0].terms):
            return 0
    if function == "pow" and isinstance(known[1], int) and 0 <= known[1] <= 8:
        return product([known[0]] * known[1])
    return _of_atom(Call(function, tuple(known)))


def _has_no_integer_value(function: str, second: KnownExtent) -> bool:
    # Division by zero, and a negative power, which Python answers with a float: both stay calls.
    if not isinstance(second, int):
        return False
    return second < 0 if function == "pow" else second == 0


def _extremum(function: str, arguments: list[KnownExtent]) -> Extent:
    flat: list[KnownExtent] = []
    for argument in arguments:
        nested = _as_call(argument, function)
        flat.extend(nested if nested is not None else (argument,))
    integers = [a for a in flat if isinstance(a, int)]
    others = sorted({a for a in flat if isinstance(a, Expression)}, key=str)
    merged: list[KnownExtent] = [_FUNCTIONS[function](*integers)] if integers else []
    merged.extend(others)
    return merged[0] if len(merged) == 1 else _of_atom(Call(function, tuple(merged)))


def _as_call(value: KnownExtent, function: str) -> tuple[KnownExtent, ...] | None:
    if isinstance(value, Expression) and len(value.terms) == 1:
        monomial, coefficient = value.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            atom = monomial[0][0]
            if isinstance(atom, Call) and atom.function == function:
                return atom.arguments
    return None


def symbols(extent: Extent) -> set[str]:
    """Names of the symbols that occur in the extent."""
    found: set[str] = set()
    if isinstance(extent, Expression):
        for monomial, _ in extent.terms:
            for atom, _power in monomial:
                if isinstance(atom, Symbol):
                    found.add(atom.name)
                else:
                    for argument in atom.arguments:
                        found |= symbols(argument)
    return found


def substitute(extent: Extent, values: Mapping[str, Extent]) -> Extent:
    """The extent with each named symbol replaced; symbols not named stay."""
    if not isinstance(extent, Expression):
        return extent
    total: Extent = 0
    for monomial, coefficient in extent.terms:
        term: Extent = coefficient
        for atom, power in monomial:
            if isinstance(atom, Symbol):
                factor: Extent = values.get(atom.name, _of_atom(atom))
            else:
                factor = call(atom.function, *(substitute(a, values) for a in atom.arguments))
            for _ in range(power):
                term = mul(term, factor)
        total = add(total, term)
    return total


def evaluate(extent: Extent, values: Mapping[str, int]) -> int:
    """The integer the extent has for these values of its symbols.

    Raises Internal for an unknown extent or a symbol without a value: the compiler must not ask then. Raises
    InvalidArgument for a division by zero and for a negative power, which these sizes have no integer for.
    """
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Unknown):
        raise Internal("tessiq: an unknown extent `?` has no value before the call; this is a bug in tessiq")
    total = 0
    for monomial, coefficient in extent.terms:
        term = coefficient
        for atom, power in monomial:
            if isinstance(atom, Symbol):
                if atom.name not in values:
                    raise Internal(f"tessiq: symbol {atom.name} has no value in this call; this is a bug in tessiq")
                factor = values[atom.name]
            else:
                factor = _evaluate_call(atom, values)
            term *= factor**power
        total += term
    return total


def _evaluate_call(atom: Call, values: Mapping[str, int]) -> int:
    arguments = [evaluate(argument, values) for argument in atom.arguments]
    if atom.function not in ("max", "min") and _has_no_integer_value(atom.function, arguments[1]):
        shown = ", ".join(map(str, arguments))
        raise InvalidArgument(
            f"tessiq: the extent {atom} is {atom.function}({shown}) in this call, which is no integer"
        )
    return _FUNCTIONS[atom.function](*arguments)


def provably_equal(a: Extent, b: Extent) -> bool:
    """True when the two are the same number in every call. `?` equals nothing, not even itself."""
    return not isinstance(a, Unknown) and a == b
