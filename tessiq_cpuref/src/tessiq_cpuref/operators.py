"""One stage of a kernel as one call of PyTorch: the row's operator for a map, torch's own reduction for a reduce."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch

from tessiq_core.errors import Internal, Unsupported
from tessiq_core.ops.row import Row

Operand = torch.Tensor | bool | int | float


def call_row(row: Row, operands: Sequence[Operand], compute: torch.dtype) -> torch.Tensor:
    """The row's value for these operands, in the order of `row.operands`, each tensor converted to `compute` first.

    Conditions are converted to bool instead. A plugin's row is computed by its `reference`, a row of the table by
    the spelling that takes numbers where the operands are numbers; where none does, a number becomes a 0-dim tensor.
    """
    converted: list[Operand] = []
    for name, operand in zip(row.operands, operands, strict=True):
        target = torch.bool if name in row.conditions else compute
        converted.append(operand.to(target) if isinstance(operand, torch.Tensor) else operand)
    if len({operand.shape for operand in converted if isinstance(operand, torch.Tensor)}) > 1:
        converted = _whole(row, converted)
    if callable(row.reference):
        value = row.reference(*converted)
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"tessiq: the reference of row {row.name} of {row.origin} returned no tensor")
        return value
    spelling = _spelling(row, converted)
    arguments: list[object] = []
    keywords: dict[str, object] = {}
    named = dict(zip(row.operands, converted, strict=True))
    for name, is_tensor in _schema(spelling):
        if name not in named:
            continue
        operand = named[name]
        if is_tensor and not isinstance(operand, torch.Tensor):
            operand = torch.tensor(operand, dtype=torch.bool if name in row.conditions else compute)
        keywords[name] = operand
    for name, _ in _schema(spelling):
        if name not in keywords:
            break
        arguments.append(keywords.pop(name))
    value = _overload(spelling)(*arguments, **keywords)
    if not isinstance(value, torch.Tensor):
        raise Internal(f"tessiq: {spelling} returned {type(value).__name__} where a map needs one tensor")
    return value


def combine(name: str, operand: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """`operand` combined over `axes`, which stay as dimensions of extent 1, in the operand's own dtype.

    Raises IndexError, as torch does, for max and min over no element.
    """
    match name:
        case "sum":
            return operand.sum(list(axes), keepdim=True, dtype=operand.dtype)
        case "max":
            return torch.amax(operand, list(axes), keepdim=True)
        case "min":
            return torch.amin(operand, list(axes), keepdim=True)
        case "any":
            return torch.any(operand.to(torch.bool), list(axes), keepdim=True)
        case "all":
            return torch.all(operand.to(torch.bool), list(axes), keepdim=True)
        case "prod":
            for axis in axes:
                operand = torch.prod(operand, axis, keepdim=True, dtype=operand.dtype)
            return operand
    raise Internal(f"tessiq: a reduce cannot combine with {name!r}")


def _spelling(row: Row, operands: Sequence[Operand]) -> str:
    """The first spelling that takes a tensor for every tensor and a number for every number, else for every tensor."""
    fallback: str | None = None
    for spelling in row.spellings:
        takes_tensor = dict(_schema(spelling))
        pairs = [(takes_tensor[name], operand) for name, operand in zip(row.operands, operands, strict=True)]
        if all(takes == isinstance(operand, torch.Tensor) for takes, operand in pairs):
            return spelling
        if fallback is None and all(takes for takes, operand in pairs if isinstance(operand, torch.Tensor)):
            fallback = spelling
    if fallback is None:
        raise Unsupported(f"tessiq: no overload of {row.name} takes tensors where the kernel's operands are tensors")
    return fallback


def _whole(row: Row, operands: Sequence[Operand]) -> list[Operand]:
    """The operands with the tensors in their common shape, packed: some of eager's kernels (oneDNN's gelu) refuse
    broadcast ones. A 0-dim tensor stays one where the operator also takes a number, as masked_fill's value must."""
    numbers = () if callable(row.reference) else tuple(map(_schema, row.spellings))
    stays = [
        not isinstance(operand, torch.Tensor)
        or (operand.dim() == 0 and any(not dict(schema)[name] for schema in numbers))
        for name, operand in zip(row.operands, operands, strict=True)
    ]
    shapes = [o.shape for o, kept in zip(operands, stays, strict=True) if isinstance(o, torch.Tensor) and not kept]
    shape = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return [
        o.expand(shape).contiguous() if isinstance(o, torch.Tensor) and not kept else o
        for o, kept in zip(operands, stays, strict=True)
    ]


@cache
def _overload(spelling: str) -> torch._ops.OpOverload:
    """The operator `aten.add.Tensor` spells."""
    namespace, name, overload = spelling.split(".")
    found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    assert isinstance(found, torch._ops.OpOverload)
    return found


@cache
def _schema(spelling: str) -> tuple[tuple[str, bool], ...]:
    """Name of each argument, and whether it is a tensor; in the schema's order."""
    arguments = _overload(spelling)._schema.arguments
    return tuple((argument.name, "Tensor" in str(argument.type)) for argument in arguments)
