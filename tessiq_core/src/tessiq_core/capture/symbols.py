"""Symbolic sizes of PyTorch's tracer as extents, under names that do not depend on the program's own names.

The tracer names a size after a hash of where it comes from (`s33`), so the same function with another argument name
gets other names. Here symbols are renamed in the order in which the graph's placeholders show them: s0, s1, … for
sizes, u0, u1, … for sizes that only running the graph tells, z0, … for numbers that are no sizes.

A symbolic number is never turned into an int or a bool: that would specialise the compiled graph to today's size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import sympy  # type: ignore[import-untyped]
import torch
from torch.utils._sympy.functions import FloorDiv, Identity, ModularIndexing
from torch.utils._sympy.symbol import SymT, symbol_is_type

from tessiq_core.ir.extent import UNKNOWN, Extent, Unknown, add, call, mul, symbol

SymbolicNumber = torch.SymInt | torch.SymFloat | torch.SymBool
Number: TypeAlias = int | float | torch.SymInt | torch.SymFloat | torch.SymBool


def expression_of(number: Number) -> sympy.Basic:
    """The tracer's expression for a number, after what it has learnt since; an integer for a plain one."""
    if isinstance(number, SymbolicNumber):
        expression = number.node.expr
        assert isinstance(expression, sympy.Basic)
        return expression
    return sympy.Integer(number)


class Symbols:
    """The renaming of one graph. Fill it with `see_inputs` before asking for extents, then the names are canonical."""

    def __init__(self) -> None:
        self._names: dict[sympy.Symbol, str] = {}
        self._counts = {"s": 0, "u": 0, "z": 0}
        self._bound: set[sympy.Symbol] = set()
        self._extents: dict[sympy.Basic, Extent] = {}
        self._texts: dict[sympy.Basic, str] = {}
        self._shape_env: object = None

    # -- names -------------------------------------------------------------------------------------------------
    def see_inputs(self, values: Iterable[object]) -> None:
        """Name every symbol of the graph's inputs, in order: of each its shape, then its strides, then its value."""
        for value in values:
            if isinstance(value, torch.Tensor):
                for size in value.shape:
                    self._see(size, binds=True)
                if value.layout is torch.strided:
                    for stride in value.stride():
                        self._see(stride, binds=False)
            elif isinstance(value, SymbolicNumber):
                self._see(value, binds=True)

    def _see(self, number: Number, *, binds: bool) -> None:
        expression = expression_of(number)
        if isinstance(number, SymbolicNumber):
            self._shape_env = number.node.shape_env
        self._name_all(expression)
        if binds and isinstance(expression, sympy.Symbol):
            self._bound.add(expression)

    def _name_all(self, expression: sympy.Basic) -> None:
        # Where one expression shows several new symbols their order is the tracer's; each size is normally an input
        # of its own before that, so this decides between two equally good names and costs at most a cache miss.
        for free in sorted(expression.free_symbols, key=str):
            self.name(free)

    def name(self, free: sympy.Symbol) -> str:
        """The canonical name of a tracer's symbol; a new one where it has none yet."""
        known = self._names.get(free)
        if known is not None:
            return known
        if symbol_is_type(free, SymT.SIZE):
            kind = "s"
        elif symbol_is_type(free, SymT.UNBACKED_INT):
            kind = "u"
        else:
            kind = "z"
        name = f"{kind}{self._counts[kind]}"
        self._counts[kind] += 1
        self._names[free] = name
        return name

    @property
    def tracer_names(self) -> dict[str, str]:
        """Canonical name -> the tracer's, for people."""
        return {name: str(free) for free, name in self._names.items()}

    # -- extents -----------------------------------------------------------------------------------------------
    def extent(self, number: int | torch.SymInt) -> Extent:
        """The number as an extent; `?` where the IR has no such expression, or a call could not compute it.

        A size that is neither an input nor an axis of one has no value a launch could use, unless a node of the
        graph produces it (u0, …).
        """
        if not isinstance(number, torch.SymInt):
            return number
        self._shape_env = number.node.shape_env
        return self._convert(expression_of(number))

    def _convert(self, expression: sympy.Basic) -> Extent:
        known = self._extents.get(expression)
        if known is None:
            known = self._extents[expression] = self._convert_new(expression)
        return known

    def _convert_new(self, expression: sympy.Basic) -> Extent:
        if isinstance(expression, sympy.Integer):
            return int(expression)
        if isinstance(expression, sympy.Symbol):
            unbacked = symbol_is_type(expression, SymT.UNBACKED_INT)
            if not unbacked and expression not in self._bound:
                return UNKNOWN
            return symbol(self.name(expression))
        arguments = [self._convert(argument) for argument in expression.args]
        if any(isinstance(argument, Unknown) for argument in arguments):
            return UNKNOWN
        return _combine(expression, arguments)

    # -- text for keys -----------------------------------------------------------------------------------------
    def text(self, number: Number) -> str:
        """A canonical text of a number: equal for equal expressions, whatever the program's argument names."""
        if not isinstance(number, SymbolicNumber):
            return str(number)
        self._shape_env = number.node.shape_env
        return self._text(expression_of(number))

    def _text(self, expression: sympy.Basic) -> str:
        known = self._texts.get(expression)
        if known is None:
            if isinstance(expression, sympy.Symbol):
                known = self.name(expression)
            elif not expression.args:
                known = str(expression)
            else:
                arguments = [self._text(argument) for argument in expression.args]
                if isinstance(expression, sympy.Add | sympy.Mul) or type(expression).__name__ in ("Max", "Min"):
                    arguments.sort()  # sympy's own order follows the tracer's names
                known = f"{type(expression).__name__}({','.join(arguments)})"
            self._texts[expression] = known
        return known

    def facts(self) -> list[str]:
        """What the tracer promises of the named symbols: `s0 in [2, int_oo]`, and `Mod(s0,8) = 0`, sorted."""
        shape_env = self._shape_env
        if shape_env is None:
            return []
        facts: list[str] = []
        for free, name in self._names.items():
            interval = shape_env.var_to_range.get(free)  # type: ignore[attr-defined]
            if interval is not None:
                facts.append(f"{name} in [{interval.lower}, {interval.upper}]")
        for expression in shape_env.divisible:  # type: ignore[attr-defined]
            if all(free in self._names for free in expression.free_symbols):
                facts.append(f"{self._text(expression)} = 0")
        return sorted(facts)


def _combine(expression: sympy.Basic, arguments: list[Extent]) -> Extent:
    """The extent of a function of extents, none of them unknown."""
    match expression:
        case sympy.Add():
            total: Extent = 0
            for argument in arguments:
                total = add(total, argument)
            return total
        case sympy.Mul():
            result: Extent = 1
            for argument in arguments:
                result = mul(result, argument)
            return result
        case FloorDiv():  # CleanDiv, a division known to be exact, is one too
            return call("floordiv", *arguments)
        case ModularIndexing():
            base, divisor, modulus = arguments
            return call("mod", call("floordiv", base, divisor), modulus)
        case Identity():
            return arguments[0]
        case sympy.Pow():
            return _power(arguments)
    # The tracer's own Max, Min, Mod, … are no subclasses of sympy's, so their names say what they are.
    match type(expression).__name__:
        case "Max":
            return call("max", *arguments)
        case "Min":
            return call("min", *arguments)
        case "Mod" | "PythonMod":
            return call("mod", *arguments)
        case "PowByNatural":
            return _power(arguments)
    return UNKNOWN


def _power(arguments: list[Extent]) -> Extent:
    base, exponent = arguments
    # A negative power is a fraction, and a symbolic one might be negative in some call.
    return call("pow", base, exponent) if isinstance(exponent, int) and exponent >= 0 else UNKNOWN
