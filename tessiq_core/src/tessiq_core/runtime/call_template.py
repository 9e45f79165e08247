"""Rebuilding the call a node stands for, by the rule of `tessiq_core.ir.graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tessiq_core.errors import Internal
from tessiq_core.ir.attributes import Attribute, Hole, holes
from tessiq_core.ir.graph import Node, Value
from tessiq_core.runtime.plan import SlotRef, Template


@dataclass(frozen=True)
class CallTemplate:
    """The positional and keyword arguments of a call, operands as slots.

    places: for each operand of the node, in order, the argument it is in: (position, None) or (-1, keyword).
    """

    arguments: tuple[Template, ...]
    keywords: tuple[tuple[str, Template], ...]
    places: tuple[tuple[int, str | None], ...]


def call_template(node: Node, slot_of: Callable[[Value], int]) -> CallTemplate:
    """The call of a node, each operand `v` standing as `SlotRef(slot_of(v))`.

    Raises Internal when operands and attributes do not fit together: the importer made a call nobody can make.
    """
    attributes = node.arguments
    numbered = {int(name): value for name, value in attributes.items() if name.isdigit()}
    named = {name: value for name, value in attributes.items() if not name.isdigit()}
    direct = len(node.operands) - sum(holes(value) for value in attributes.values())
    operands = iter(node.operands)
    size = direct + len(numbered)
    if direct < 0 or any(position >= size for position in numbered):
        raise Internal(
            f"tessiq: %{node.name} = {node.op}: {len(node.operands)} operands and positional attributes "
            f"{sorted(numbered)} leave a gap in the call; this is a bug in the importer"
        )
    places: list[tuple[int, str | None]] = []
    arguments: list[Template] = [None] * size
    for position in range(size):
        if position not in numbered:
            arguments[position] = SlotRef(slot_of(next(operands)))
            places.append((position, None))
    for position in sorted(numbered):
        arguments[position] = _fill(numbered[position], operands, slot_of)
        places += [(position, None)] * holes(numbered[position])
    keywords: list[tuple[str, Template]] = []
    for name, value in sorted(named.items()):
        keywords.append((name, _fill(value, operands, slot_of)))
        places += [(-1, name)] * holes(value)
    return CallTemplate(tuple(arguments), tuple(keywords), tuple(places))


def _fill(value: Attribute, operands: Iterator[Value], slot_of: Callable[[Value], int]) -> Template:
    if isinstance(value, Hole):
        return SlotRef(slot_of(next(operands)))
    if isinstance(value, tuple):
        return tuple(_fill(item, operands, slot_of) for item in value)
    return value
