"""Kernel descriptions as one header-free C++ translation unit. Imports no torch.

Each kernel becomes

    extern "C" void tessiq_NAME(void *const *buffers, const i64 *words, i64 begin, i64 end)

`buffers` are the values read, in the order of their first read, then those written. `words` are the kernel's symbols in
the order `tessiq_core.codegen.canonical` numbers them, so that kernels equal but for names agree on it. `begin` and
`end` are iterations as `tessiq_cpuref.cpp.loops` numbers them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.codegen.description import KernelDescription, Map, Reduce
from tessiq_core.codegen.text import print_kernel
from tessiq_core.errors import Internal
from tessiq_core.ir.types import BF16, F16, ElementType
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp import combines, math
from tessiq_cpuref.cpp.body import Body
from tessiq_cpuref.cpp.elements import BF16_TEXT, F16_TEXT, PRELUDE, memory_type
from tessiq_cpuref.cpp.expressions import function_calls, row_of
from tessiq_cpuref.cpp.extents import EXTENT_TEXT
from tessiq_cpuref.cpp.loops import BLOCK, Nest, blocks, nest_iterations, nests
from tessiq_cpuref.cpp.reductions import write_reduce_nest


def unit_text(kernels: Sequence[KernelDescription], names: Sequence[str], table: OperationTable) -> str:
    """The translation unit that holds these kernels, exported under `names`, and no more of the prelude than needed."""
    calls: set[tuple[str, ElementType]] = set()
    elements: set[ElementType] = set()
    for kernel in kernels:
        elements.update(read.element for read in kernel.reads)
        for stage in kernel.stages:
            elements.update((stage.element, stage.compute))
            if isinstance(stage, Map):
                calls.update(function_calls(stage, row_of(stage, table)))
    parts = [PRELUDE]
    parts += [F16_TEXT] if F16 in elements else []
    parts += [BF16_TEXT] if BF16 in elements else []
    parts += [EXTENT_TEXT, math.definitions(calls)]
    reduces = any(isinstance(stage, Reduce) for kernel in kernels for stage in kernel.stages)
    parts += [combines.TEXT] if reduces else []
    parts += [_Function(kernel, name, table).text() for kernel, name in zip(kernels, names, strict=True)]
    return "\n".join(part for part in parts if part)


class _Function(Body):
    """Writes one kernel's function, headed by its description."""

    def __init__(self, kernel: KernelDescription, name: str, table: OperationTable) -> None:
        super().__init__(kernel, table)
        self.name = name
        self.nests = nests(kernel)
        self.nest_ends = [self.names.claim(f"end{number}") for number in range(len(self.nests))]

    def text(self) -> str:
        self.lines = [f"// {line}" for line in print_kernel(self.kernel).splitlines()]
        self.line(0, f'extern "C" void {self.name}(void *const *buffers, const i64 *words, i64 begin, i64 end) {{')
        types = [f"const {memory_type(element)}" for element in self.inputs.values()]
        types += [memory_type(element) for element in self.outputs.values()]
        for index, (type_name, pointer) in enumerate(zip(types, self.pointers.values(), strict=True)):
            self.line(1, f"{type_name} *__restrict {pointer} = ({type_name} *)buffers[{index}];")
        for index, symbol in enumerate(self.symbols.values()):
            self.line(1, f"const i64 {symbol} = words[{index}];")
        start = "0"
        for nest, stop in zip(self.nests, self.nest_ends, strict=True):
            if len(self.nests) == 1:
                self.line(1, "const i64 first = begin, last = end;")
            else:
                self.line(1, f"const i64 {stop} = {start} + {self.extent(nest_iterations(self.kernel, nest))};")
                self.line(1, "{")
                self.line(1, f"const i64 first = tq_max(begin, {start}) - {start};")
                self.line(1, f"const i64 last = tq_min(end, {stop}) - {start};")
                start = stop
            self.line(1, "if (first < last) {")
            self._nest(nest)
            self.line(1, "}" if len(self.nests) == 1 else "}}")
        self.line(0, "}")
        return "\n".join(self.lines) + "\n"

    def _nest(self, nest: Nest) -> None:
        if nest.reduced:
            write_reduce_nest(self, nest)
        elif nest.inner is None:
            self._point(nest, 2)
        elif nest.outer:
            self._outer(nest, nest.inner)
        else:
            extent = self.size(nest.inner)
            self._inner(nest, nest.inner, 2, f"first * {BLOCK}", f"tq_min(last * {BLOCK}, {extent})")

    def _outer(self, nest: Nest, inner: int) -> None:
        """Counters for the block and the outer axes, started at `first` and carried on like an odometer."""
        extent = self.kernel.domain[inner]
        one_block = isinstance(extent, int) and extent <= BLOCK
        counters = [(f"d{axis}", self.size(axis)) for axis in reversed(nest.outer)]
        if not one_block:
            self.line(2, f"const i64 blocks = {self.extent(blocks(extent))};")
            counters.insert(0, ("block", "blocks"))
        carry = self.open_steps(2, counters)
        text = self.extent(extent)
        if one_block:
            self._inner(nest, inner, 3, "0", text)
        else:
            self._inner(nest, inner, 3, f"block * {BLOCK}", f"tq_min((block + 1) * {BLOCK}, {text})")
        self.line(3, carry)
        self.line(2, "}")

    def _inner(self, nest: Nest, inner: int, depth: int, start: str, stop: str) -> None:
        axis = f"d{inner}"
        self.line(depth, f"const i64 {axis}_end = {stop};")
        self.line(0, "#pragma omp simd")
        self.line(depth, f"for (i64 {axis} = {start}; {axis} < {axis}_end; ++{axis}) {{")
        self._point(nest, depth + 1)
        self.line(depth, "}")

    def _point(self, nest: Nest, depth: int) -> None:
        """Loads, stages and stores of one point of a nest that reduces nothing."""
        for read in nest.reads:
            self.load(depth, read)
        for stage in nest.stages:
            if not isinstance(stage, Map):
                raise Internal(f"tessiq: cpp was given the reduce stage {stage.name} where nothing is reduced")
            self.compute(depth, stage)
        for write in nest.writes:
            self.store(depth, write)
