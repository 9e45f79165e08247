"""Extents as integers, for one set of values of the symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tessiq_core.ir.extent import Extent, evaluate


class Sizes:
    """Evaluates extents; each expression once."""

    def __init__(self, values: Mapping[str, int]) -> None:
        """`values`: the integer each symbol has in this call."""
        self.values = dict(values)
        self._known: dict[Extent, int] = {}

    def one(self, extent: Extent) -> int:
        """The extent's integer. Raises Internal for an unknown extent or symbol."""
        if isinstance(extent, int):
            return extent
        known = self._known.get(extent)
        if known is None:
            known = self._known[extent] = evaluate(extent, self.values)
        return known

    def all(self, extents: Iterable[Extent]) -> tuple[int, ...]:
        """The integers of several extents."""
        return tuple(self.one(extent) for extent in extents)
