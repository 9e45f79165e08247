"""An emitter of text only: it accepts every description, and its source is the description's own text form."""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.codegen.check import check
from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import Kernel, KernelOperands
from tessiq_core.codegen.text import print_kernel
from tessiq_core.decline import Decline
from tessiq_core.errors import Unsupported
from tessiq_core.ops.table import OperationTable


class AnyEmitter:
    """For passes over text, where no target is chosen: `tessiq opt`, golden files. It never compiles."""

    @property
    def name(self) -> str:
        return "any"

    @property
    def target(self) -> str:
        return "any"

    @property
    def priority(self) -> int:
        return 0

    def available(self) -> Decline | None:
        """Always a decline, `text-only`: there is nothing to compile for."""
        return Decline("text-only", "emitter 'any' writes kernels as text; it compiles for no target")

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        """None for every well-formed description. Raises Internal for a malformed one, as `check` does."""
        check(kernel, table)
        return None

    def source(self, kernels: Sequence[KernelDescription], table: OperationTable) -> str:
        """The kernels' text forms, with a blank line between two and a newline at the end."""
        return "\n\n".join(print_kernel(kernel) for kernel in kernels) + "\n" if kernels else ""

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        """Raises Unsupported."""
        raise Unsupported(
            "tessiq: emitter 'any' only writes kernels as text and cannot compile one; choose a target's emitter "
            "(`tessiq plugins` lists them)"
        )

    def fingerprint(self) -> str:
        return "any"
