"""Tracer expressions as extents: the same number for the same sizes, or `?`."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from torch.utils._sympy import functions as fn

from tessiq_core.capture.symbols import Symbols
from tessiq_core.ir.extent import UNKNOWN, Unknown, evaluate

X, Y = sympy.Symbol("s7", integer=True, positive=True), sympy.Symbol("s3", integer=True, positive=True)
U, F = sympy.Symbol("u9", integer=True), sympy.Symbol("zf2", real=True)


class Number(torch.SymInt):
    """A symbolic int made of an expression; asking it for an int or a bool is the error this package must not make."""

    def __init__(self, expression: Any) -> None:
        super().__init__(self)
        self.expr = expression
        self.shape_env = None
        self.node: Any = self

    def __int__(self) -> int:
        raise AssertionError("a symbolic size was made an int")

    __bool__ = __index__ = __int__  # type: ignore[assignment]


def named() -> Symbols:
    symbols = Symbols()
    symbols.see_inputs([Number(X), Number(Y)])
    return symbols


@pytest.mark.parametrize(
    "expression",
    [
        X * Y,
        2 * X * Y + X - 3,
        fn.FloorDiv(X + 1, 2),
        fn.CleanDiv(X * Y, Y),
        fn.Mod(X, 4),
        fn.PythonMod(X - 9, 4),
        fn.ModularIndexing(X, 2, 3),
        fn.Max(1, X - 2),
        fn.Min(X, Y, 5),
        X**2,
        fn.PowByNatural(X, 3),
        fn.FloorDiv(X - 7, 2),
        fn.Identity(X + Y),
        sympy.Integer(12),
    ],
    ids=str,
)
def test_the_extent_is_the_same_number(expression: Any) -> None:
    extent = named().extent(Number(expression))
    assert not isinstance(extent, Unknown)
    for x, y in ((2, 3), (5, 2), (16, 7)):
        assert evaluate(extent, {"s0": x, "s1": y}) == int(expression.subs({X: x, Y: y}))


@pytest.mark.parametrize(
    "expression",
    [fn.TruncToInt(F), X * sympy.Rational(1, 2), 2**X, X**-1, fn.IntTrueDiv(X, Y), fn.Max(1, fn.TruncToInt(F))],
    ids=str,
)
def test_what_extents_cannot_say_is_unknown(expression: Any) -> None:
    assert named().extent(Number(expression)) is UNKNOWN


def test_names_follow_the_inputs() -> None:
    symbols = named()
    assert str(symbols.extent(Number(X))) == "s0"
    assert str(symbols.extent(Number(Y))) == "s1"
    assert symbols.tracer_names == {"s0": "s7", "s1": "s3"}
    assert str(symbols.extent(Number(U))) == "u0"


def test_a_size_no_call_could_compute_is_unknown() -> None:
    symbols = Symbols()
    symbols.see_inputs([Number(X * Y), Number(Y)])
    assert str(symbols.extent(Number(Y))) == "s0"
    assert symbols.extent(Number(X)) is UNKNOWN


def test_text_does_not_depend_on_the_tracers_order() -> None:
    first, second = Symbols(), Symbols()
    first.see_inputs([Number(X), Number(Y)])
    second.see_inputs([Number(Y), Number(X)])
    one = first.text(Number(X + 2 * Y + fn.Max(X, Y)))
    other = second.text(Number(Y + 2 * X + fn.Max(X, Y)))
    assert one == other
    assert one != first.text(Number(2 * X + Y + fn.Max(X, Y)))


def test_plain_numbers_pass() -> None:
    assert named().extent(4) == 4
    assert named().text(4) == "4"
