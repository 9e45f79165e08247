"""The plan: a recipe flattened for execution. Plain data only: integers, words, names, size expressions.

Values live in numbered slots. A runner starts with inputs and constants in their slots, binds the call's symbols,
executes the steps in order, drops the slots each step releases, and gathers the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.ir.attributes import Attribute
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.types import TensorType, ValueType


@dataclass(frozen=True)
class SlotRef:
    """The value in slot `slot`, as an argument of a call."""

    slot: int


Template: TypeAlias = "SlotRef | Attribute | tuple[Template, ...]"


@dataclass(frozen=True)
class CallStep:
    """A whole operator through PyTorch (`aten.mm.default`), or a Python one on sizes (`operator.mul`).

    `results` has a slot (or None where unread) for each value it returns; `returns` is "one", "many" or "none".
    `expected` gives the type each result must have: a result with other strides is copied into the recorded ones.
    `holds_gil` marks steps that need the interpreter.
    """

    node: str
    op: str
    arguments: tuple[Template, ...]
    keywords: tuple[tuple[str, Template], ...]
    results: tuple[int | None, ...]
    returns: str
    expected: tuple[TensorType | None, ...]
    holds_gil: bool
    release: tuple[int, ...] = ()


@dataclass(frozen=True)
class ViewStep:
    """A view resolved at compile time: `shape`, `strides` and `offset` in elements, relative to the source's start."""

    node: str
    source: int
    result: int
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    offset: Extent
    release: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelStep:
    """Launch kernel number `kernel` of the recipe on these slots; the outputs are allocated first."""

    node: str
    kernel: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...] = ()


@dataclass(frozen=True)
class TransferStep:
    """Copy a tensor across: `direction` is "to-device" or "to-home"."""

    node: str
    direction: str
    source: int
    result: int
    release: tuple[int, ...] = ()


Step: TypeAlias = CallStep | ViewStep | KernelStep | TransferStep


@dataclass(frozen=True)
class SymbolBinding:
    """Where a call finds symbol `name`: input number `input` itself (`axis` is None), or that axis of its shape."""

    name: str
    input: int
    axis: int | None = None


@dataclass(frozen=True)
class LateSymbol:
    """A symbol only running tells: after step number `step` it is the number in `slot`, or that axis of its shape.

    Steps up to that one do not depend on it. When it is known, the runner gives the step's results the layout their
    slots' types say, as `CallStep.expected` does for others.
    """

    name: str
    step: int
    slot: int
    axis: int | None = None


@dataclass(frozen=True)
class Slot:
    """What a slot holds: the IR value's name and type, and whether its memory is the device's (not the home's)."""

    name: str
    type: ValueType
    on_device: bool = False


@dataclass(frozen=True)
class Plan:
    """`outputs` follow the output spec: a slot, or None where the graph returns None at that position.

    `inputs` has the slot of each input of the call, or None for an input nothing reads.
    `constants` pairs a slot with a name in the recipe's constants. `checked` are the slots of inputs whose memory is
    read directly (by a kernel, a view or a transfer), whose layout the runner compares with the slot's type before it
    trusts it. `writes` are the slots of inputs the plan writes to.
    `late` are symbols no input has, in the order of their steps.
    `literals` are (output position, number) pairs for outputs that are plain numbers.
    """

    slots: tuple[Slot, ...]
    inputs: tuple[int | None, ...]
    constants: tuple[tuple[int, str], ...]
    symbols: tuple[SymbolBinding, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int | None, ...]
    checked: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    late: tuple[LateSymbol, ...] = ()
    literals: tuple[tuple[int, bool | int | float], ...] = ()
