"""The reference emitter: a kernel description evaluated with torch's CPU operators. The living definition of a kernel.

Small and obvious comes first: one operator a stage, every stage stored. Other emitters are compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from tessiq_core.codegen.dependence import accesses, dependences
from tessiq_core.codegen.description import Access, Axis, Constant, KernelDescription, Map, Reduce
from tessiq_core.codegen.interfaces import Kernel, KernelOperands, PythonLaunch
from tessiq_core.codegen.text import print_kernel
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Unknown, evaluate, symbol, symbols
from tessiq_core.ops.table import OperationTable

if TYPE_CHECKING:
    import torch


class ReferenceEmitter:
    """Maps and reduces, any number of outputs, every element type but opaque ones; needs nothing but torch."""

    @property
    def name(self) -> str:
        return "reference"

    @property
    def target(self) -> str:
        return "cpuref"

    @property
    def priority(self) -> int:
        return 0

    def available(self) -> Decline | None:
        """None: it always works."""
        return None

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        """None for known extents, element types torch computes in, and rows that are maps without an effect;
        `unknown-extent`, `element-type`, `no-row`, `effect` or `category` otherwise."""
        extents = [*kernel.domain, *(e for index in accesses(kernel) for e in (index.offset, *index.strides))]
        if any(isinstance(extent, Unknown) for extent in extents):
            return Decline("unknown-extent", f"kernel @{kernel.name} has an extent or stride nobody knows")
        for stage in (*kernel.reads, *kernel.stages):
            if stage.element.is_opaque:
                return Decline("element-type", f"stage {stage.name} has elements of {stage.element}", stage.name)
        for stage in kernel.stages:
            if stage.compute.is_opaque:
                return Decline("element-type", f"stage {stage.name} computes in {stage.compute}", stage.name)
            problem = _row_problem(stage, table) if isinstance(stage, Map) else None
            if problem is not None:
                return problem
        return None

    def source(self, kernels: Sequence[KernelDescription], table: OperationTable) -> str:
        """The kernels' text forms: they are what is evaluated."""
        return "".join(f"{print_kernel(kernel)}\n" for kernel in kernels)

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        """Kernels whose launch evaluates the description, with one launch word a symbol, sorted by name."""
        return [_kernel(kernel, buffers, table) for kernel, buffers in zip(kernels, operands, strict=True)]

    def fingerprint(self) -> str:
        """The versions of this package and of torch, whose operators it calls."""
        return f"reference-{version('tessiq-cpuref')}-torch-{version('torch')}"


def _row_problem(stage: Map, table: OperationTable) -> Decline | None:
    row = table.row(stage.op)
    if row is None:
        return Decline("no-row", f"no row of the operation table means {stage.op}", stage.name)
    if row.effect != "none":
        return Decline("effect", f"row {row.name} has the effect {row.effect!r}", stage.name)
    if row.reference is None and row.category not in ("elementwise", "copy", "fill"):
        return Decline("category", f"row {row.name} ({row.category}) is no map", stage.name)
    return None


def _symbol_names(kernel: KernelDescription) -> list[str]:
    extents = [*kernel.domain, *(e for index in accesses(kernel) for e in (index.offset, *index.strides))]
    return sorted(set().union(*(symbols(extent) for extent in extents)) if extents else ())


def _kernel(kernel: KernelDescription, buffers: KernelOperands, table: OperationTable) -> Kernel:
    names = _symbol_names(kernel)

    def launch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], words: Sequence[int]) -> None:
        sizes = dict(zip(names, words, strict=True))
        inputs_by_value = dict(zip((operand.value for operand in buffers.inputs), inputs, strict=True))
        outputs_by_value = dict(zip((operand.value for operand in buffers.outputs), outputs, strict=True))
        run(kernel, inputs_by_value, outputs_by_value, sizes, table)

    return Kernel(
        name=kernel.name,
        origin="reference",
        members=kernel.members,
        inputs=buffers.inputs,
        outputs=buffers.outputs,
        words=tuple(symbol(name) for name in names),
        launch=PythonLaunch(launch),
        capturable=False,
        source=print_kernel(kernel),
    )


def run(
    kernel: KernelDescription,
    inputs: Mapping[str, torch.Tensor],
    outputs: Mapping[str, torch.Tensor],
    sizes: Mapping[str, int],
    table: OperationTable,
) -> None:
    """Evaluate the description: read `inputs`, write `outputs` in place (both by value name), symbols from `sizes`.

    A stage is a tensor with one dimension for each axis of the domain, of extent 1 where the stage does not depend on
    the axis; so a value that lacks an axis exists also where that axis is empty.
    """
    import torch

    from tessiq_core.runtime.element_map import dtype_of
    from tessiq_cpuref.operators import call_row, combine

    domain = [evaluate(extent, sizes) for extent in kernel.domain]
    depends = dependences(kernel)
    values: dict[str, torch.Tensor] = {}

    def extents_of(axes: frozenset[int]) -> list[int]:
        return [extent if axis in axes else 1 for axis, extent in enumerate(domain)]

    with torch.no_grad():
        for read in kernel.reads:
            values[read.name] = _strided(inputs[read.value], read.access, extents_of(depends[read.name]), sizes)
        for stage in kernel.stages:
            compute = dtype_of(stage.compute)
            if isinstance(stage, Reduce):
                whole = [domain[axis] if axis in stage.axes else -1 for axis in range(len(domain))]
                value = combine(stage.combine, values[stage.operand].expand(whole).to(compute), stage.axes)
            else:
                row = table.row(stage.op)
                if row is None:
                    raise Internal(f"tessiq: stage {stage.name} applies {stage.op!r}, which `accepts` declines")
                operands: list[torch.Tensor | bool | int | float] = []
                for operand in stage.operands:
                    if isinstance(operand, Constant):
                        operands.append(operand.value)
                    elif isinstance(operand, Axis):
                        shape = extents_of(frozenset({operand.number}))
                        operands.append(torch.arange(domain[operand.number]).view(shape))
                    else:
                        # What depends on no axis is a scalar to the operator, as `masked_fill` demands of its value.
                        whole_value = values[operand]
                        operands.append(whole_value if depends[operand] else whole_value.reshape(()))
                value = call_row(row, operands, compute).reshape(extents_of(depends[stage.name]))
            values[stage.name] = value.to(dtype_of(stage.element))
        for write in kernel.writes:
            written = extents_of(frozenset(write.axes))
            target = _strided(outputs[write.value], write.access, written, sizes)
            target.copy_(values[write.stage].expand(written))


def _strided(tensor: torch.Tensor, access: Access, extents: list[int], sizes: Mapping[str, int]) -> torch.Tensor:
    """The elements `access` names, relative to the tensor's own start.

    An empty tensor has none, also where strides of 0 leave its empty axis out of `extents`: no result depends on them.
    """
    if tensor.numel() == 0 and 0 not in extents:
        return tensor.new_zeros(extents)
    strides = [evaluate(stride, sizes) for stride in access.strides]
    return tensor.as_strided(extents, strides, tensor.storage_offset() + evaluate(access.offset, sizes))
