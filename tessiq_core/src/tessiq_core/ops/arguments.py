"""Binds a node's operands and attributes to the arguments of its operator's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.decline import Decline
from tessiq_core.ir.attributes import Attribute, Hole, Label, attribute_key, holes
from tessiq_core.ir.graph import Node, Value
from tessiq_core.ir.printer import print_attribute
from tessiq_core.ops.row import Argument, Required, Row
from tessiq_core.ops.table import OperationTable

Bound: TypeAlias = "Value | Attribute | tuple[Bound, ...]"


@dataclass(frozen=True)
class BoundCall:
    """A node as a call of its row.

    row:       the row.
    arguments: every argument of the spelling's schema, defaults filled in. A list the graph wrote with holes is a
               tuple with the operands in place.
    node:      the node that was bound.
    """

    row: Row
    arguments: Mapping[str, Bound]
    node: Node

    @property
    def operands(self) -> tuple[Bound, ...]:
        """What the row's `operands` are bound to, in order: the operands of a map or reduce stage."""
        return tuple(self.arguments[name] for name in self.row.operands)


def bind(node: Node, table: OperationTable) -> BoundCall | Decline:
    """The node as a call of its row, by the rule of `tessiq_core.ir.graph`.

    A short name (`add`) has the signature of its row's first spelling. Declines with code `no-row`, or with code
    `argument` when an argument the row does not consume has another value than its default (or one the row allows),
    when an operand of the expression is `none`, and when the call does not fit the signature.
    """
    row = table.row(node.op)
    if row is None:
        return Decline("no-row", f"no row of the operation table means {node.op}", node.name)
    signature = row.spellings.get(node.op)
    if signature is None:
        signature = next(iter(row.spellings.values()))
    given = _given(node, signature)
    if isinstance(given, Decline):
        return given
    arguments: dict[str, Bound] = {}
    for argument in signature:
        if argument.name in given:
            arguments[argument.name] = given[argument.name]
        elif isinstance(argument.default, Required):
            return _decline(node, f"argument {argument.name!r} is missing; {node.op} requires it")
        else:
            arguments[argument.name] = argument.default
    for argument in signature:
        if argument.name not in row.consumes and not _harmless(argument, arguments[argument.name], row, table):
            return _decline(
                node,
                f"argument {argument.name!r} is {_text(arguments[argument.name])}, and {row.name} does not take it",
            )
    if row.expression is not None:
        for name in row.operands:
            if arguments[name] is None:
                return _decline(node, f"argument {name!r} is none, and the expression of {row.name} needs a value")
    return BoundCall(row, arguments, node)


def values(bound: Bound) -> Iterator[Value]:
    """The operands inside a bound argument, in order."""
    if isinstance(bound, Value):
        yield bound
    elif isinstance(bound, tuple):
        for item in bound:
            yield from values(item)


def _decline(node: Node, reason: str) -> Decline:
    return Decline("argument", reason, node.name)


def _given(node: Node, signature: tuple[Argument, ...]) -> dict[str, Bound] | Decline:
    """What the node passes, by argument name."""
    attributes = node.arguments
    positional = [argument.name for argument in signature if not argument.keyword_only]
    numbered = {int(name): value for name, value in attributes.items() if name.isdigit()}
    named = {name: value for name, value in attributes.items() if not name.isdigit()}
    operands = iter(node.operands)
    plain = len(node.operands) - sum(holes(value) for value in attributes.values())
    if plain < 0:
        return _decline(node, f"{node.op} has {-plain} more holes than operands")
    positions: dict[int, Bound] = {}
    position = 0
    for _ in range(plain):
        while position in numbered:
            position += 1
        positions[position] = next(operands)
        position += 1
    for index in sorted(numbered):
        positions[index] = _fill(numbered[index], operands)
    given: dict[str, Bound] = {}
    for index in sorted(positions):
        if index >= len(positional):
            return _decline(
                node, f"positional argument {index} of {node.op} is one too many; it takes {len(positional)}"
            )
        given[positional[index]] = positions[index]
    known = {argument.name for argument in signature}
    for name in sorted(named):
        if name not in known:
            return _decline(node, f"{node.op} has no argument {name!r}; it has {', '.join(sorted(known))}")
        if name in given:
            return _decline(node, f"argument {name!r} of {node.op} is passed twice")
        given[name] = _fill(named[name], operands)
    return given


def _fill(value: Attribute, operands: Iterator[Value]) -> Bound:
    if isinstance(value, Hole):
        return next(operands)
    if isinstance(value, tuple) and holes(value):
        return tuple(_fill(item, operands) for item in value)
    return value


def _harmless(argument: Argument, bound: Bound, row: Row, table: OperationTable) -> bool:
    """Whether the value of an argument no kernel reads leaves the operation what the row says it is."""
    if any(True for _ in values(bound)):
        return False
    allowed = row.allows.get(argument.name, ())
    if not isinstance(argument.default, Required):
        allowed = (argument.default, *allowed)
    return any(_same(bound, value, table.home) for value in allowed)


def _same(bound: Bound, value: Attribute, home: str) -> bool:
    if isinstance(value, Label) and value == Label("device", "home"):
        return isinstance(bound, Label) and bound.kind == "device" and bound.name == home
    if isinstance(bound, int | float) and isinstance(value, int | float):
        # `alpha=1.0` is `alpha=1`: numbers are compared by value, but never with a bool.
        return isinstance(bound, bool) == isinstance(value, bool) and bound == value
    return not isinstance(bound, Value) and attribute_key(_plain(bound)) == attribute_key(value)


def _plain(bound: Bound) -> Attribute:
    if isinstance(bound, tuple):
        return tuple(_plain(item) for item in bound)
    assert not isinstance(bound, Value)
    return bound


def _text(bound: Bound) -> str:
    if any(True for _ in values(bound)):
        return ", ".join(f"%{value.name}" for value in values(bound))
    return print_attribute(_plain(bound))
