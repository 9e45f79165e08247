"""Which dimensions of a group's values run together: the loop axes of one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Extent, provably_equal
from tessiq_core.ir.graph import Value
from tessiq_core.ir.types import TensorType

Dimension: TypeAlias = tuple[Value, int]


def tensor_of(value: Value) -> TensorType:
    """The value's type, which the caller has made sure is a tensor's."""
    assert isinstance(value.type, TensorType)
    return value.type


@dataclass(frozen=True)
class Space:
    """The loop axes of a kernel.

    domain: the extent of every axis.
    axes:   for a value, the axis of each of its dimensions, None for a dimension of extent 1.
    """

    domain: tuple[Extent, ...]
    axes: dict[Value, tuple[int | None, ...]]


class AxisClasses:
    """Sets of dimensions that are one loop. Dimensions of extent 1 are in none: they never move an index."""

    def __init__(self) -> None:
        self._parents: dict[Dimension, Dimension] = {}

    def _root(self, dimension: Dimension) -> Dimension:
        while (parent := self._parents.setdefault(dimension, dimension)) != dimension:
            grandparent = self._parents.setdefault(parent, parent)
            self._parents[dimension] = grandparent
            dimension = grandparent
        return dimension

    def _join(self, a: Dimension, b: Dimension) -> None:
        self._parents[self._root(a)] = self._root(b)

    def broadcast(self, operands: Iterable[Value], result: Value) -> Decline | None:
        """The operands, aligned at their last dimensions, run along with `result`'s; None when they can.

        Declines with `broadcast` where an operand's extent is neither 1 nor provably the result's, and with
        `result-type` where the result has a dimension that no operand gives it.
        """
        shape = tensor_of(result).shape
        given = {index for index, extent in enumerate(shape) if extent == 1}
        operands = list(operands)
        for operand in operands:
            sizes = tensor_of(operand).shape
            lead = len(shape) - len(sizes)
            for index, extent in enumerate(sizes):
                if extent == 1 and lead + index >= 0:
                    continue
                if lead + index < 0 or not provably_equal(extent, shape[lead + index]):
                    return Decline(
                        "broadcast",
                        f"%{operand.name} has shape {_shape(sizes)} and the result {_shape(shape)}; each extent must "
                        f"be 1 or provably the same",
                        result.name,
                    )
                self._join((operand, index), (result, lead + index))
                given.add(lead + index)
        if operands and len(given) < len(shape):
            return Decline("result-type", f"the recorded shape {_shape(shape)} is not the operands'", result.name)
        return None

    def reduce(self, operand: Value, dims: frozenset[int], keepdim: bool, result: Value) -> Decline | None:
        """Dimensions of `operand` outside `dims` run along with `result`'s; declines with `result-type`."""
        sizes, shape = tensor_of(operand).shape, tensor_of(result).shape
        places = [index for index in range(len(sizes)) if keepdim or index not in dims]
        expected = tuple(1 if index in dims else sizes[index] for index in places)
        if len(shape) != len(expected) or not all(map(provably_equal, shape, expected)):
            return Decline(
                "result-type", f"the recorded shape is {_shape(shape)}, the row gives {_shape(expected)}", result.name
            )
        for place, index in enumerate(places):
            if index not in dims and sizes[index] != 1:
                self._join((operand, index), (result, place))
        return None

    def space(self, values: Sequence[Value], unit_axis: bool) -> Space | Decline:
        """The loop axes of all these values, in the order of the dimensions of the widest.

        `unit_axis` adds a last axis of extent 1, for reductions over nothing but extents of 1. Declines with
        `iteration-space` where no single value has every axis, or one value would run along its own diagonal.
        """
        classes: dict[Value, tuple[Dimension | None, ...]] = {
            value: tuple(
                None if extent == 1 else self._root((value, index))
                for index, extent in enumerate(tensor_of(value).shape)
            )
            for value in values
        }
        everything = {root for roots in classes.values() for root in roots if root is not None}
        widest: tuple[Value, list[Dimension]] | None = None
        for value, roots in classes.items():
            own = [root for root in roots if root is not None]
            if len(set(own)) < len(own):
                return Decline("iteration-space", f"two dimensions of %{value.name} would be one loop", value.name)
            if widest is None and len(own) == len(everything):
                widest = (value, own)
        if widest is None:
            return Decline("iteration-space", "no value of the group has all of its axes", values[-1].name)
        numbers: dict[Dimension | None, int] = {root: number for number, root in enumerate(widest[1])}
        domain = [extent for extent in tensor_of(widest[0]).shape if extent != 1]
        if unit_axis:
            domain.append(1)
        axes = {value: tuple(numbers.get(root) for root in roots) for value, roots in classes.items()}
        return Space(tuple(domain), axes)


def _shape(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"
