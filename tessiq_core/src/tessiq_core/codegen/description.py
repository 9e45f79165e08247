"""Kernel descriptions: what one generated kernel computes, for every emitter alike.

A kernel iterates over a domain of axes d0, d1, …. It reads values through affine index maps, computes stages, and
writes values through affine index maps. A stage is a function of some of the axes:

- a *read* depends on the axes with a non-zero stride;
- a *map* applies one row of the operation table to earlier stages and constants, and depends on the union of their
  axes;
- a *reduce* combines a stage over some axes, and no longer depends on those.

So a softmax over d1 is: read x; m = reduce max x over d1; e = exp(x - m); s = reduce sum e over d1; write e / s.
A write covers exactly the axes its map has; the stage written depends on no other axis.

Types: a map computes in `compute` (operands are converted to it first; the arithmetic itself happens in its
accumulation type: f32 for f16 and bf16) and its value is rounded to `element`. A reduce accumulates in `compute`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.ir.extent import Extent
from tessiq_core.ir.types import ElementType


@dataclass(frozen=True)
class Access:
    """An affine index into a value's own elements: offset + sum(strides[i] * d_i), in elements.

    `strides` has one entry an axis of the domain; 0 where the value does not vary with it. The index is relative to
    the first element of the value (a view's own start), never to its storage.
    """

    offset: Extent
    strides: tuple[Extent, ...]


@dataclass(frozen=True)
class Read:
    """Stage `name`: the element of `value` (an IR value's name) at `access`."""

    name: str
    value: str
    element: ElementType
    access: Access


@dataclass(frozen=True)
class Constant:
    """A number at the argument position where the graph had it: bool, int or float."""

    value: bool | int | float


@dataclass(frozen=True)
class Axis:
    """The index along axis `number`, as an i64 operand (for `arange` and masks)."""

    number: int


StageRef: TypeAlias = str
Operand: TypeAlias = "StageRef | Constant | Axis"


@dataclass(frozen=True)
class Map:
    """Stage `name`: operation-table row `op` applied to `operands`, in the order of the row's `consumes`."""

    name: str
    op: str
    operands: tuple[Operand, ...]
    compute: ElementType
    element: ElementType


@dataclass(frozen=True)
class Reduce:
    """Stage `name`: `operand` combined over `axes` by `combine` (sum, prod, max, min, any, all)."""

    name: str
    combine: str
    operand: StageRef
    axes: tuple[int, ...]
    compute: ElementType
    element: ElementType


Stage: TypeAlias = Map | Reduce


@dataclass(frozen=True)
class Write:
    """Store stage `stage` into `value` of element type `element`, at `access`, for every point of `axes`."""

    value: str
    stage: StageRef
    element: ElementType
    access: Access
    axes: tuple[int, ...]


@dataclass(frozen=True)
class KernelDescription:
    """One kernel: domain extents, reads, stages in SSA order, writes, and the IR values it computes (`members`).

    Every stage name, of reads too, is an identifier and the name of the IR value it holds where there is one.
    """

    name: str
    domain: tuple[Extent, ...]
    reads: tuple[Read, ...]
    stages: tuple[Stage, ...]
    writes: tuple[Write, ...]
    members: tuple[str, ...]
