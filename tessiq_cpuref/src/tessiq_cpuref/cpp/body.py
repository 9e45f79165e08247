"""The lines of one kernel's C function as they grow: names, loads, maps, stores, and the counters of outer loops."""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.codegen.canonical import canonical
from tessiq_core.codegen.description import Access, KernelDescription, Map, Read, Write
from tessiq_core.ir.extent import Extent
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp.elements import loaded, stored
from tessiq_cpuref.cpp.expressions import Typed, map_text, row_of
from tessiq_cpuref.cpp.extents import extent_text
from tessiq_cpuref.cpp.names import Names

Counter = tuple[str, str]
"""A loop counter's name and the C text of how many values it takes."""


def symbol_order(kernel: KernelDescription) -> tuple[str, ...]:
    """The names of the kernel's symbols in the order of its launch words."""
    return tuple(canonical(kernel).mapping.symbols)


class Body:
    """What every part of a function shares. `values` gives the C name and element type of every read and stage."""

    def __init__(self, kernel: KernelDescription, table: OperationTable) -> None:
        self.kernel = kernel
        self.table = table
        self.lines: list[str] = []
        self.names = Names()
        for number in range(len(kernel.domain)):
            for suffix in ("", "_end", "_at"):
                self.names.claim(f"d{number}{suffix}")
        self.symbols = {symbol: self.names.claim(symbol) for symbol in symbol_order(kernel)}
        self.values: dict[str, Typed] = {}
        for stage in (*kernel.reads, *kernel.stages):
            self.values[stage.name] = (self.names.claim(stage.name), stage.element)
        self.inputs = {read.value: read.element for read in kernel.reads}
        self.outputs = {write.value: write.element for write in kernel.writes}
        self.pointers = {value: self.names.claim(f"{value}_ptr") for value in (*self.inputs, *self.outputs)}

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def extent(self, extent: Extent) -> str:
        return extent_text(extent, self.symbols)

    def size(self, axis: int) -> str:
        """C text of an axis' extent."""
        return self.extent(self.kernel.domain[axis])

    def index(self, access: Access) -> str:
        terms = [self.extent(access.offset)] if access.offset != 0 else []
        for number, stride in enumerate(access.strides):
            if stride != 0:
                terms.append(f"d{number}" if stride == 1 else f"{self.extent(stride)} * d{number}")
        return " + ".join(terms) or "0"

    def load(self, depth: int, read: Read) -> None:
        name, element = self.values[read.name]
        text = loaded(f"{self.pointers[read.value]}[{self.index(read.access)}]", element)
        self.line(depth, f"const {element.name} {name} = {text};")

    def compute(self, depth: int, stage: Map) -> None:
        name, element = self.values[stage.name]
        self.line(depth, f"const {element.name} {name} = {map_text(stage, row_of(stage, self.table), self.values)};")

    def store(self, depth: int, write: Write) -> None:
        name, element = self.values[write.stage]
        place = f"{self.pointers[write.value]}[{self.index(write.access)}]"
        self.line(depth, f"{place} = {stored(name, element)};")

    def open_steps(self, depth: int, counters: Sequence[Counter]) -> str:
        """Start a loop from `first` to `last` over counters, the fastest first; gives the line that carries them on."""
        *fast, (slowest, _) = counters
        self.line(depth, "i64 rest = first;")
        for name, count in fast:
            self.line(depth, f"i64 {name} = rest % {count};")
            self.line(depth, f"rest /= {count};")
        self.line(depth, f"i64 {slowest} = rest;")
        self.line(depth, "for (i64 step = first; step < last; ++step) {")
        carry = f"++{slowest};"
        for name, count in reversed(fast):
            carry = f"if (++{name} == {count}) {{ {name} = 0; {carry} }}"
        return carry
