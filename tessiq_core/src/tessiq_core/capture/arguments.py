"""The arguments of an FX call as operands and attributes of an IR node, by the rule of `tessiq_core.ir.graph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from tessiq_core.ir.attributes import HOLE, Attribute, Label
from tessiq_core.ir.graph import Value
from tessiq_core.runtime.element_map import label_of

Operand = Value | tuple[Value, ...] | Label
"""What an FX node became: a value, the values of a list it returned, or a label for a subgraph or an object."""


class Inexpressible(Exception):
    """An argument that attributes cannot hold (a dict, a slice, an object). Never leaves this package."""


def encode_call(
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    operand_of: Callable[[torch.fx.Node], Operand],
) -> tuple[list[Value], dict[str, Attribute]]:
    """Operands and attributes of a call. Raises Inexpressible for an argument that needs `CallObject`.

    A positional argument that is one value is an operand and nothing else; everything else is an attribute, with a
    hole for each value in it.
    """
    direct: list[Value] = []
    numbered: list[Value] = []
    named: list[Value] = []
    attributes: dict[str, Attribute] = {}
    for position, argument in enumerate(arguments):
        operand = operand_of(argument) if isinstance(argument, torch.fx.Node) else None
        if isinstance(operand, Value):
            direct.append(operand)
        else:
            attributes[str(position)] = _encode(argument, operand_of, numbered)
    for name in sorted(keywords):
        attributes[name] = _encode(keywords[name], operand_of, named)
    return direct + numbered + named, attributes


def _encode(argument: Any, operand_of: Callable[[torch.fx.Node], Operand], values: list[Value]) -> Attribute:
    if isinstance(argument, torch.fx.Node):
        operand = operand_of(argument)
        if isinstance(operand, Label):
            return operand
        if isinstance(operand, Value):
            values.append(operand)
            return HOLE
        values.extend(operand)
        return (HOLE,) * len(operand)
    if isinstance(argument, tuple | list):  # torch.Size too
        return tuple(_encode(item, operand_of, values) for item in argument)
    if argument is None or type(argument) in (bool, int, float, str):
        return argument  # type: ignore[no-any-return]
    if isinstance(argument, OpOverload):
        return Label("operator", str(argument))
    label = label_of(argument)
    if label is None:
        raise Inexpressible(type(argument).__name__)
    return label


class CallObject:
    """A call whose arguments attributes cannot hold, kept as a Python object: called with the node's operands.

    The node stands as `operator.call(@object(name), operands…)`. The object keeps the structure of the arguments and
    no FX node.
    """

    def __init__(self, target: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.target = target
        self.arguments = arguments
        self.keywords = keywords

    def __call__(self, *operands: object) -> object:
        return self.target(*_fill(self.arguments, operands), **_fill(self.keywords, operands))


class _Place:
    """Where operands `start` to `stop` stand in a kept call; `one` where it is a single value and no list."""

    def __init__(self, start: int, stop: int, one: bool) -> None:
        self.start, self.stop, self.one = start, stop, one


def keep_call(
    target: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    operand_of: Callable[[torch.fx.Node], Operand],
    object_of: Callable[[Label], object],
) -> tuple[CallObject, list[Value]]:
    """The call as an object, and its operands in the order in which the object takes them."""
    operands: list[Value] = []

    def keep(argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            operand = operand_of(argument)
            if isinstance(operand, Label):
                return object_of(operand)
            values = (operand,) if isinstance(operand, Value) else operand
            operands.extend(values)
            return _Place(len(operands) - len(values), len(operands), isinstance(operand, Value))
        if isinstance(argument, tuple | list):
            return tuple(keep(item) for item in argument)
        if isinstance(argument, Mapping):
            return {name: keep(item) for name, item in argument.items()}
        if isinstance(argument, slice):
            return slice(keep(argument.start), keep(argument.stop), keep(argument.step))
        return argument

    kept_arguments, kept_keywords = keep(arguments), keep(dict(keywords))
    return CallObject(target, kept_arguments, kept_keywords), operands


def _fill(kept: Any, operands: tuple[object, ...]) -> Any:
    if isinstance(kept, _Place):
        return operands[kept.start] if kept.one else operands[kept.start : kept.stop]
    if isinstance(kept, tuple):
        return tuple(_fill(item, operands) for item in kept)
    if isinstance(kept, dict):
        return {name: _fill(item, operands) for name, item in kept.items()}
    if isinstance(kept, slice):
        return slice(_fill(kept.start, operands), _fill(kept.stop, operands), _fill(kept.step, operands))
    return kept
