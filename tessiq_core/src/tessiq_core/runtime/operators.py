"""PyTorch's operators by the names plans use: `aten.mm.default`, `operator.mul`, `higher_order.cond`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from tessiq_core.errors import NotFound

Operator = Callable[..., Any]

# Operators of these namespaces are implemented in C++ and run without the interpreter.
_NATIVE_NAMESPACES = ("aten",)


def resolve(name: str) -> Operator:
    """The callable a plan means by `name`. Raises NotFound saying what is missing."""
    namespace, _, rest = name.partition(".")
    if namespace == "higher_order":
        found = getattr(torch.ops.higher_order, rest, None)
    else:
        found = _overload(namespace, rest)
    if found is None:
        found = _function(name)
    if not callable(found):
        raise NotFound(
            f"tessiq: the operator {name!r} is not registered with PyTorch in this process; "
            "import the package that defines it before running the compiled function"
        )
    return found  # type: ignore[no-any-return]


def _overload(namespace: str, rest: str) -> Any:
    operator_name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator_name, None)
    if not isinstance(packet, OpOverloadPacket):
        return packet if isinstance(packet, HigherOrderOperator) else None
    return getattr(packet, overload or "default", None)


def _function(name: str) -> Any:
    """A Python function FX put into a graph, such as `operator.mul` or `torch.sym_max`; None where there is none."""
    module, _, function = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), function, None) if module else None
    except ModuleNotFoundError:
        return None


def fast_call(found: Operator) -> Operator:
    """What to call for it: an overload's bound C++ entry, which skips one Python frame (0.15 µs)."""
    return found._op if type(found) is OpOverload else found


def holds_gil(found: Operator) -> bool:
    """Whether a call needs the interpreter: Python functions, higher-order operators, and namespaces other than
    `aten`, whose operators may be registered from Python."""
    return not (isinstance(found, OpOverload) and found.namespace in _NATIVE_NAMESPACES)


def nests(found: Operator) -> bool:
    """Whether a call may return lists of values, perhaps in other lists, rather than the values side by side."""
    if not isinstance(found, OpOverload):
        return True
    return any(isinstance(item.type, torch.ListType) for item in found._schema.returns)


def flatten(results: Any) -> list[Any]:
    """The values of a call's results, in order, out of every list and tuple."""
    if isinstance(results, list | tuple):
        return [value for item in results for value in flatten(item)]
    return [results]


def is_mutable(found: Operator) -> bool:
    """Whether the operator's schema says that it writes to an argument."""
    return isinstance(found, OpOverload) and found._schema.is_mutable


def writes_to(found: Operator, position: int, keyword: str | None) -> bool:
    """Whether the operator's schema says that it writes to this argument: positional number `position`, or the one
    called `keyword`. True for every argument of what has no schema."""
    if not isinstance(found, OpOverload):
        return True
    for index, argument in enumerate(found._schema.arguments):
        if (argument.name == keyword) if keyword is not None else (index == position and not argument.kwarg_only):
            return argument.alias_info is not None and argument.alias_info.is_write
    return False
