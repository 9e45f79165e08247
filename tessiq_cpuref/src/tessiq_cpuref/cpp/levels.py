"""The passes of a nest that reduces: what each one loads, computes, combines and writes.

The *level* of a stage is how many reduces lie one behind the other before it: 0 for reads, that of its operands for a
map, one more than its operand's for a reduce. Pass number n runs through the reduced axes once, combines for the
reduces whose operands have level n, and does the writes of that level. A stage is *inner* where it varies along a
reduced axis; the others, *outer* ones, are computed once for each point of the kept axes, between passes. Inner maps
that several passes need are computed again in each, but for expensive ones where a row of them fits the stack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tessiq_core.codegen.collapse import arrange
from tessiq_core.codegen.dependence import dependences, stage_operands
from tessiq_core.codegen.description import KernelDescription, Map, Read, Reduce, Write
from tessiq_core.decline import Decline
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp import math
from tessiq_cpuref.cpp.elements import memory_type
from tessiq_cpuref.cpp.expressions import function_calls, row_of
from tessiq_cpuref.cpp.loops import Nest, nests

KEPT_BYTES = 1 << 15
"""The most bytes of a row's expensive values that are kept from one pass to the next, on the stack."""

MOST_TIMES = 2
"""How often one kernel may compute an expensive map of the same element."""


@dataclass(frozen=True)
class Pass:
    """One run through the reduced axes; `roots` are the stages it needs: the reduces' operands and what is written."""

    reduces: tuple[Reduce, ...]
    writes: tuple[Write, ...]

    @property
    def roots(self) -> tuple[str, ...]:
        return (*(stage.operand for stage in self.reduces), *(write.stage for write in self.writes))


class Levels:
    """The levels of one nest of an arranged kernel."""

    def __init__(self, kernel: KernelDescription, nest: Nest) -> None:
        self.kernel = kernel
        self.nest = nest
        reduced = frozenset(nest.reduced)
        depends = dependences(kernel)
        self.parts: dict[str, Read | Map | Reduce] = {part.name: part for part in (*nest.reads, *nest.stages)}
        self.inner = {name for name in self.parts if depends[name] & reduced}
        self.level: dict[str, int] = {read.name: 0 for read in nest.reads}
        for stage in nest.stages:
            below = max((self.level[name] for name in stage_operands(stage)), default=0)
            self.level[stage.name] = below + isinstance(stage, Reduce)
        self.count = max(self.level.values(), default=0) + 1

    def is_inner(self, write: Write) -> bool:
        """Whether the write covers the reduced axes."""
        return not frozenset(write.axes).isdisjoint(self.nest.reduced)

    def pass_at(self, level: int) -> Pass:
        reduces = [s for s in self.nest.stages if isinstance(s, Reduce) and self.level[s.operand] == level]
        writes = [w for w in self.nest.writes if self.is_inner(w) and self.level[w.stage] == level]
        return Pass(tuple(reduces), tuple(writes))

    def outer_maps(self, level: int) -> list[Map]:
        """The maps between the pass before this level and that of it."""
        return [
            stage
            for stage in self.nest.stages
            if isinstance(stage, Map) and stage.name not in self.inner and self.level[stage.name] == level
        ]

    def outer_writes(self, level: int) -> list[Write]:
        return [write for write in self.nest.writes if not self.is_inner(write) and self.level[write.stage] == level]

    def needed(self, roots: Iterable[str], known: Collection[str] = ()) -> list[str]:
        """What `roots` are computed from, themselves included, in the kernel's order: inner reads and maps, and the
        outer values or `known` ones they start at."""
        found: set[str] = set()
        todo = list(roots)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                part = self.parts[name]
                if isinstance(part, Map) and name in self.inner and name not in known:
                    todo += stage_operands(part)
        return [name for name in self.parts if name in found]

    def repeated(self, table: OperationTable) -> dict[str, int]:
        """The expensive inner maps that more than one pass needs, and how many do."""
        times: dict[str, int] = {}
        for level in range(self.count):
            for name in self.needed(self.pass_at(level).roots):
                part = self.parts[name]
                if name in self.inner and isinstance(part, Map) and _expensive(part, table):
                    times[name] = times.get(name, 0) + 1
        return {name: number for name, number in times.items() if number > 1}

    def kept(self, table: OperationTable) -> dict[str, int]:
        """Those of `repeated` whose values for a whole row stay on the stack, and the elements of a row."""
        if not self.nest.by_rows or len(self.nest.reduced) > 1:
            return {}
        extent = self.kernel.domain[self.nest.reduced[0]]
        found: dict[str, int] = {}
        left = KEPT_BYTES
        for name in self.repeated(table):
            if isinstance(extent, int):
                part = self.parts[name]
                left -= extent * (1 if memory_type(part.element) == "u8" else part.element.size)
                if left >= 0:
                    found[name] = extent
        return found


def _expensive(stage: Map, table: OperationTable) -> bool:
    calls = function_calls(stage, row_of(stage, table))
    return any(math.functions(element)[name].expensive for name, element in calls)


def recompute_problem(kernel: KernelDescription, table: OperationTable) -> Decline | None:
    """`recompute` where an expensive map would be computed over and over: storing it once costs less."""
    arranged = arrange(kernel)
    for nest in nests(arranged):
        if nest.reduced:
            levels = Levels(arranged, nest)
            kept = levels.kept(table)
            for name, times in levels.repeated(table).items():
                if times > MOST_TIMES and name not in kept:
                    return Decline("recompute", f"{name} is expensive, and {times} passes would compute it", name)
    return None
