"""What a target gives the compiler: emitters, library bindings, and the one kernel object they produce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.graph import Node
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.table import OperationTable


@dataclass(frozen=True)
class KernelOperand:
    """A buffer of a kernel: the IR value it holds and the exact type (element, shape, strides) the kernel assumes."""

    value: str
    type: TensorType


@dataclass(frozen=True)
class AddressLaunch:
    """A C function `void f(void *const *buffers, const int64_t *words, int64_t begin, int64_t end)`.

    Inputs' data pointers come first in `buffers`, then the outputs'. It computes the iterations [begin, end) of
    `iterations`; disjoint ranges may run on different threads. `grain` is the least range worth a thread.
    """

    address: int
    iterations: Extent
    grain: int


@dataclass(frozen=True)
class PythonLaunch:
    """A callable `f(inputs, outputs, words)` over the home's tensors; it must write every output in place."""

    function: Callable[[Sequence[Any], Sequence[Any], Sequence[int]], None]


@dataclass(frozen=True)
class OperatorLaunch:
    """A whole operator of PyTorch that writes its one output in place and allocates nothing for it: `aten.mm.out`.

    `inputs` are the numbers of the kernel's inputs in the order the operator takes them; the output is passed as `out`.
    """

    op: str
    inputs: tuple[int, ...]


Launch: TypeAlias = AddressLaunch | PythonLaunch | OperatorLaunch


@dataclass(frozen=True)
class Kernel:
    """Everything the executor knows of a kernel, whoever made it: generated, library or custom.

    name:            for people; unique within a recipe.
    origin:          who made it ("cpp", "reference", "aten-out"), for people.
    members:         names of the IR values it computes, absorbed ones included.
    inputs, outputs: buffers with the layout it demands; a failing buffer is an error naming the operand.
    words:           launch words (sizes, strides) as expressions of the call's symbols, each a signed 64-bit integer.
    workspace_bytes: scratch memory it needs, in bytes, as an expression.
    capturable:      whether a launch may be recorded into a device graph.
    source:          the generated text, for `explain`; "" for a library.
    """

    name: str
    origin: str
    members: tuple[str, ...]
    inputs: tuple[KernelOperand, ...]
    outputs: tuple[KernelOperand, ...]
    words: tuple[Extent, ...]
    launch: Launch
    workspace_bytes: Extent = 0
    capturable: bool = True
    source: str = ""


@runtime_checkable
class Emitter(Protocol):
    """Turns kernel descriptions into kernels. `accepts` and `source` are its text half: no torch, no compiler."""

    @property
    def name(self) -> str:
        """How options and reports call it (`cpp`)."""

    @property
    def target(self) -> str:
        """The target it belongs to (`cpuref`)."""

    @property
    def priority(self) -> int:
        """The highest available one of a target is used; ties go to the name that sorts first."""

    def available(self) -> Decline | None:
        """None when `compile` can work here, else why not (no compiler, no driver). Must be cheap and cached."""

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        """None when `compile` will produce this kernel, else why not. The claim and the build both ask this."""

    def source(self, kernels: Sequence[KernelDescription], table: OperationTable) -> str:
        """The text of one translation unit that holds these kernels."""

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        """Loaded kernels, in order; `operands[i]` gives the buffers of `kernels[i]`. Identical ones compile once."""

    def fingerprint(self) -> str:
        """Everything outside a description its output depends on (compiler, flags, architecture); a cache key part."""


@dataclass(frozen=True)
class KernelOperands:
    """The buffers of one description, in the order of its reads' distinct values and of its writes."""

    inputs: tuple[KernelOperand, ...]
    outputs: tuple[KernelOperand, ...]


@runtime_checkable
class LibraryBinding(Protocol):
    """Runs whole nodes by calling a library: claims a node, says which layouts it reads, builds its kernel."""

    @property
    def name(self) -> str:
        """How reports call it (`aten-out`)."""

    @property
    def target(self) -> str:
        """The target it belongs to."""

    @property
    def priority(self) -> int:
        """The binding with the highest priority that claims a node runs it."""

    def claim(self, node: Node, table: OperationTable) -> Decline | None:
        """None when `build` will produce a kernel for this node, else why not."""

    def layouts(self, node: Node, table: OperationTable) -> tuple[tuple[Extent, ...] | None, ...]:
        """For each operand the strides it must have, or None where it reads any. A demand costs a copy."""

    def build(self, node: Node, table: OperationTable) -> Kernel:
        """The kernel of a node `claim` accepted."""
