"""Attributes of nodes: a closed set of plain values, ordered and compared by type as well as by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Label:
    """A named constant the compiler carries: kind is dtype, layout, device, memory_format, complex or subgraph."""

    kind: str
    name: str


@dataclass(frozen=True)
class Hole:
    """Marks where the node's next operand stands inside a list or a keyword argument. Prints as `_`."""


HOLE = Hole()

Attribute: TypeAlias = bool | int | float | str | Label | Hole | tuple["Attribute", ...] | None


def attribute_key(value: Attribute) -> tuple[object, ...]:
    """A hashable identity: 1, 1.0 and True differ, 0.0 and -0.0 differ, every NaN is equal to itself."""
    if isinstance(value, tuple):
        return ("list", *(attribute_key(item) for item in value))
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, Label):
        return ("label", value.kind, value.name)
    return (type(value).__name__, value)


def holes(value: Attribute) -> int:
    """How many operands the attribute has places for."""
    if isinstance(value, Hole):
        return 1
    return sum(holes(item) for item in value) if isinstance(value, tuple) else 0
