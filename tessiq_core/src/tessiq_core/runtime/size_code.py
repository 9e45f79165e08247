"""The tables of sizes the C++ runner evaluates: extents as code for a small stack machine (`csrc/sizes.h`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tessiq_core.ir.extent import Call, Expression, Extent, Symbol, Unknown

_CONSTANT, _SYMBOL, _ADD, _MULTIPLY, _FLOOR_DIVIDE, _MODULO, _MAX, _MIN, _POWER, _EMIT = range(10)
_FUNCTIONS = {"floordiv": _FLOOR_DIVIDE, "mod": _MODULO, "max": _MAX, "min": _MIN, "pow": _POWER}


class SizeTable:
    """Collects the extents a segment's steps need. Equal rows of extents share one place.

    extents: the entries so far. names: the symbols that are known, in the order the call passes their values.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = {name: number for number, name in enumerate(names)}
        self.extents: list[Extent] = []
        self._rows: dict[tuple[Extent, ...], tuple[int, int]] = {}

    def all(self, extents: Iterable[Extent]) -> tuple[int, int]:
        """The place of the extents, (start, count)."""
        row = tuple(extents)
        place = self._rows.get(row)
        if place is None:
            place = self._rows[row] = (len(self.extents), len(row))
            self.extents += row
        return place

    def one(self, extent: Extent) -> int:
        """The number of the extent's entry."""
        return self.all((extent,))[0]

    def code(self) -> list[int]:
        """The program that makes the table. Raises KeyError for a symbol not known here."""
        code: list[int] = []
        for extent in self.extents:
            self._push(extent, code)
            code.append(_EMIT)
        return code

    def _push(self, extent: Extent, code: list[int]) -> None:
        match extent:
            case int():
                code += (_CONSTANT, extent)
            case Expression():
                for number, (monomial, coefficient) in enumerate(extent.terms):
                    code += (_CONSTANT, coefficient)
                    for atom, power in monomial:
                        for _ in range(power):
                            self._push_atom(atom, code)
                            code.append(_MULTIPLY)
                    if number:
                        code.append(_ADD)
            case Unknown():
                raise KeyError("?")

    def _push_atom(self, atom: Symbol | Call, code: list[int]) -> None:
        if isinstance(atom, Symbol):
            code += (_SYMBOL, self.names[atom.name])
            return
        for number, argument in enumerate(atom.arguments):
            self._push(argument, code)
            if number:
                code.append(_FUNCTIONS[atom.function])
