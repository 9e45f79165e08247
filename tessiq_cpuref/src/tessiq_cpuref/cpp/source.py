"""Kernel descriptions as one header-free C++ translation unit. Imports no torch.

Each kernel becomes

    extern "C" void tessiq_NAME(void *const *buffers, const i64 *words, i64 begin, i64 end)

`buffers` are the values read, in the order of their first read, then those written. `words` are the kernel's symbols in
the order `tessiq_core.codegen.canonical` numbers them, so that kernels equal but for names agree on it. `begin` and
`end` are iterations as `tessiq_cpuref.cpp.loops` numbers them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.codegen.canonical import canonical
from tessiq_core.codegen.description import Access, KernelDescription, Map
from tessiq_core.codegen.text import print_kernel
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.types import BF16, F16, ElementType
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp import math
from tessiq_cpuref.cpp.elements import BF16_TEXT, F16_TEXT, PRELUDE, loaded, memory_type, stored
from tessiq_cpuref.cpp.expressions import Typed, function_calls, map_text, row_of
from tessiq_cpuref.cpp.extents import EXTENT_TEXT, extent_text
from tessiq_cpuref.cpp.loops import BLOCK, Nest, blocks, nest_iterations, nests
from tessiq_cpuref.cpp.names import Names


def symbol_order(kernel: KernelDescription) -> tuple[str, ...]:
    """The names of the kernel's symbols in the order of its launch words."""
    return tuple(canonical(kernel).mapping.symbols)


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
    parts += [_Function(kernel, name, table).text() for kernel, name in zip(kernels, names, strict=True)]
    return "\n".join(part for part in parts if part)


class _Function:
    """Writes one kernel's function, headed by its description."""

    def __init__(self, kernel: KernelDescription, name: str, table: OperationTable) -> None:
        self.kernel = kernel
        self.name = name
        self.table = table
        self.nests = nests(kernel)
        self.lines: list[str] = []
        self.names = Names()
        for number in range(len(kernel.domain)):
            self.names.claim(f"d{number}")
            self.names.claim(f"d{number}_end")
        self.nest_ends = [self.names.claim(f"end{number}") for number in range(len(self.nests))]
        self.symbols = {symbol: self.names.claim(symbol) for symbol in symbol_order(kernel)}
        self.values: dict[str, Typed] = {}
        for stage in (*kernel.reads, *kernel.stages):
            self.values[stage.name] = (self.names.claim(stage.name), stage.element)
        self.inputs = {read.value: read.element for read in kernel.reads}
        self.outputs = {write.value: write.element for write in kernel.writes}
        self.pointers = {value: self.names.claim(f"{value}_ptr") for value in (*self.inputs, *self.outputs)}

    def text(self) -> str:
        self.lines = [f"// {line}" for line in print_kernel(self.kernel).splitlines()]
        self._line(0, f'extern "C" void {self.name}(void *const *buffers, const i64 *words, i64 begin, i64 end) {{')
        types = [f"const {memory_type(element)}" for element in self.inputs.values()]
        types += [memory_type(element) for element in self.outputs.values()]
        for index, (type_name, pointer) in enumerate(zip(types, self.pointers.values(), strict=True)):
            self._line(1, f"{type_name} *__restrict {pointer} = ({type_name} *)buffers[{index}];")
        for index, symbol in enumerate(self.symbols.values()):
            self._line(1, f"const i64 {symbol} = words[{index}];")
        start = "0"
        for nest, stop in zip(self.nests, self.nest_ends, strict=True):
            if len(self.nests) == 1:
                self._line(1, "const i64 first = begin, last = end;")
            else:
                self._line(1, f"const i64 {stop} = {start} + {self._extent(nest_iterations(self.kernel, nest))};")
                self._line(1, "{")
                self._line(1, f"const i64 first = tq_max(begin, {start}) - {start};")
                self._line(1, f"const i64 last = tq_min(end, {stop}) - {start};")
                start = stop
            self._line(1, "if (first < last) {")
            self._nest(nest)
            self._line(1, "}" if len(self.nests) == 1 else "}}")
        self._line(0, "}")
        return "\n".join(self.lines) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def _extent(self, extent: Extent) -> str:
        return extent_text(extent, self.symbols)

    def _nest(self, nest: Nest) -> None:
        if nest.inner is None:
            self._point(nest, 2)
        elif nest.outer:
            self._outer(nest, nest.inner)
        else:
            extent = self._extent(self.kernel.domain[nest.inner])
            self._inner(nest, nest.inner, 2, f"first * {BLOCK}", f"tq_min(last * {BLOCK}, {extent})")

    def _outer(self, nest: Nest, inner: int) -> None:
        """Counters for the block and the outer axes, started at `first` and carried on like an odometer."""
        extent = self.kernel.domain[inner]
        one_block = isinstance(extent, int) and extent <= BLOCK
        counters = [(f"d{axis}", self._extent(self.kernel.domain[axis])) for axis in reversed(nest.outer)]
        if not one_block:
            self._line(2, f"const i64 blocks = {self._extent(blocks(extent))};")
            counters.insert(0, ("block", "blocks"))
        slowest = counters.pop()[0]
        self._line(2, "i64 rest = first;")
        for name, count in counters:
            self._line(2, f"i64 {name} = rest % {count};")
            self._line(2, f"rest /= {count};")
        self._line(2, f"i64 {slowest} = rest;")
        self._line(2, "for (i64 step = first; step < last; ++step) {")
        text = self._extent(extent)
        if one_block:
            self._inner(nest, inner, 3, "0", text)
        else:
            self._inner(nest, inner, 3, f"block * {BLOCK}", f"tq_min((block + 1) * {BLOCK}, {text})")
        carry = f"++{slowest};"
        for name, count in reversed(counters):
            carry = f"if (++{name} == {count}) {{ {name} = 0; {carry} }}"
        self._line(3, carry)
        self._line(2, "}")

    def _inner(self, nest: Nest, inner: int, depth: int, start: str, stop: str) -> None:
        axis = f"d{inner}"
        self._line(depth, f"const i64 {axis}_end = {stop};")
        self._line(0, "#pragma omp simd")
        self._line(depth, f"for (i64 {axis} = {start}; {axis} < {axis}_end; ++{axis}) {{")
        self._point(nest, depth + 1)
        self._line(depth, "}")

    def _point(self, nest: Nest, depth: int) -> None:
        """Loads, stages and stores of one point of the nest."""
        for read in nest.reads:
            name, element = self.values[read.name]
            load = loaded(f"{self.pointers[read.value]}[{self._index(read.access)}]", element)
            self._line(depth, f"const {element.name} {name} = {load};")
        for stage in nest.stages:
            if not isinstance(stage, Map):
                raise Internal(f"tessiq: cpp was given the reduce stage {stage.name}, which `accepts` declines")
            name, element = self.values[stage.name]
            text = map_text(stage, row_of(stage, self.table), self.values)
            self._line(depth, f"const {element.name} {name} = {text};")
        for write in nest.writes:
            name, element = self.values[write.stage]
            place = f"{self.pointers[write.value]}[{self._index(write.access)}]"
            self._line(depth, f"{place} = {stored(name, element)};")

    def _index(self, access: Access) -> str:
        terms = [self._extent(access.offset)] if access.offset != 0 else []
        for number, stride in enumerate(access.strides):
            if stride != 0:
                terms.append(f"d{number}" if stride == 1 else f"{self._extent(stride)} * d{number}")
        return " + ".join(terms) or "0"
