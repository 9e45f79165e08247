"""The loops of a nest that reduces: passes over rows, or over tiles of columns. `combines` says how lanes add up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tessiq_core.codegen.description import Map, Read, Reduce
from tessiq_cpuref.cpp.body import Body, Counter
from tessiq_cpuref.cpp.combines import CHUNK, LANES, accumulator, cascades, combine_name, identity
from tessiq_cpuref.cpp.elements import convert, loaded, memory_type, stored
from tessiq_cpuref.cpp.levels import Levels, Pass
from tessiq_cpuref.cpp.loops import TILE, Nest, blocks

SHORT_ROW = 64
"""Rows known to be shorter have SHORT_LANES lanes: filling and folding the others costs more than they save.

Measured, 100000 rows of 7: 140 us with 4 lanes, 1000 us with 16; of 33: 480 us and 1200.
"""

SHORT_LANES = 4


def write_reduce_nest(body: Body, nest: Nest) -> None:
    """Append the loops of `nest` over the iterations from `first` to `last`."""
    (_Rows(body, nest) if nest.by_rows else _Columns(body, nest)).write()


class _Reductions:
    """What rows and columns share: lanes, and the body of the loop over lanes."""

    width: str
    lanes: int

    def __init__(self, body: Body, nest: Nest) -> None:
        self.body = body
        self.nest = nest
        self.levels = Levels(body.kernel, nest)
        self.arrays = {
            stage.name: body.names.claim(f"{stage.name}_lanes") for stage in nest.stages if isinstance(stage, Reduce)
        }
        self.sums = {name: body.names.claim(f"{name}_sums") for name in self.arrays}
        self.stored = self.levels.kept(body.table)
        self.stores = {name: body.names.claim(f"{name}_kept") for name in self.stored}

    def extent_of(self, axis: int) -> int | None:
        extent = self.body.kernel.domain[axis]
        return extent if isinstance(extent, int) else None

    def declare(self, depth: int, reduces: Iterable[Reduce], cascading: bool) -> None:
        for stage in reduces:
            lanes, type_name = self.arrays[stage.name], accumulator(stage).name
            self.body.line(depth, f"alignas(64) {type_name} {lanes}[{self.lanes}];")
            self.body.line(depth, f"tq_fill<{self.lanes}>({lanes}, {identity(stage)});")
            if cascading and cascades(stage):
                self.body.line(depth, f"tq_cascade<{self.lanes}, {type_name}> {self.sums[stage.name]};")

    def put(self, depth: int, reduces: Iterable[Reduce]) -> None:
        """A chunk of every floating sum is complete."""
        for stage in reduces:
            if cascades(stage):
                lanes = self.arrays[stage.name]
                self.body.line(depth, f"{self.sums[stage.name]}.put({lanes}, {self.width});")
                self.body.line(depth, f"tq_fill<{self.lanes}>({lanes}, {identity(stage)});")

    def finish(self, depth: int, reduces: Iterable[Reduce]) -> None:
        for stage in reduces:
            if cascades(stage):
                self.body.line(depth, f"{self.sums[stage.name]}.finish({self.arrays[stage.name]}, {self.width});")

    def outer_value(self, depth: int, part: Read | Map | Reduce) -> None:
        """Bring the value of an outer stage into the loop over lanes."""
        raise NotImplementedError

    def point(self, depth: int, run: Pass, known: Collection[str]) -> None:
        """One element of one pass. `known` are the kept maps an earlier pass has computed."""
        body, axis = self.body, self.nest.reduced[-1]
        for name in self.levels.needed(run.roots, known):
            part = self.levels.parts[name]
            c_name, element = body.values[name]
            if name not in self.levels.inner:
                self.outer_value(depth, part)
            elif name in known:
                body.line(depth, f"const {element.name} {c_name} = {loaded(f'{self.stores[name]}[d{axis}]', element)};")
            elif isinstance(part, Read):
                body.load(depth, part)
            elif isinstance(part, Map):
                body.compute(depth, part)
                if name in self.stores:
                    body.line(depth, f"{self.stores[name]}[d{axis}] = {stored(c_name, element)};")
        for write in run.writes:
            body.store(depth, write)
        for stage in run.reduces:
            text, element = body.values[stage.operand]
            value = convert(convert(text, element, stage.compute), stage.compute, accumulator(stage))
            lane = f"{self.arrays[stage.name]}[lane]"
            body.line(depth, f"{lane} = {combine_name(stage)}::of({lane}, {value});")

    def result(self, stage: Reduce, text: str) -> str:
        return convert(convert(text, accumulator(stage), stage.compute), stage.compute, stage.element)

    def open_axes(self, depth: int, axes: Sequence[int]) -> int:
        for axis in axes:
            self.body.line(depth, f"for (i64 d{axis} = 0; d{axis} < {self.body.size(axis)}; ++d{axis}) {{")
            depth += 1
        return depth

    def close_axes(self, depth: int, axes: Sequence[int]) -> None:
        for number in range(len(axes)):
            self.body.line(depth - number - 1, "}")


class _Rows(_Reductions):
    """A reduced axis is innermost: lanes are every LANES-th element, folded at the end of each pass."""

    def __init__(self, body: Body, nest: Nest) -> None:
        super().__init__(body, nest)
        self.inner = nest.reduced[-1]
        self.row = self.extent_of(self.inner)
        self.lanes = SHORT_LANES if self.row is not None and self.row < SHORT_ROW else LANES
        self.width = str(self.lanes)

    def write(self) -> None:
        body, depth, carry = self.body, 2, ""
        counters: list[Counter] = [(f"d{axis}", body.size(axis)) for axis in reversed(self.nest.axes)]
        if counters:
            carry = body.open_steps(depth, counters)
            depth += 1
        for read in self.nest.reads:
            if read.name not in self.levels.inner:
                body.load(depth, read)
        for name, extent in self.stored.items():
            body.line(depth, f"alignas(64) {memory_type(body.values[name][1])} {self.stores[name]}[{max(extent, 1)}];")
        known: set[str] = set()
        for level in range(self.levels.count):
            for stage in self.levels.outer_maps(level):
                body.compute(depth, stage)
            for write in self.levels.outer_writes(level):
                body.store(depth, write)
            run = self.levels.pass_at(level)
            if run.reduces:
                self._combine(depth, run, known)
            elif run.writes:
                self._write_only(depth, run, known)
            known |= self.stores.keys() & set(self.levels.needed(run.roots, known))
        if counters:
            body.line(3, carry)
            body.line(2, "}")

    def outer_value(self, depth: int, part: Read | Map | Reduce) -> None:
        """Nothing: it is a variable of the row."""

    def _write_only(self, depth: int, run: Pass, known: Collection[str]) -> None:
        inside = self.open_axes(depth, self.nest.reduced[:-1])
        self.body.line(0, "#pragma omp simd")
        inside = self.open_axes(inside, (self.inner,))
        self.point(inside, run, known)
        self.close_axes(inside, self.nest.reduced)

    def _combine(self, depth: int, run: Pass, known: Collection[str]) -> None:
        body, axis, size = self.body, self.inner, self.body.size(self.inner)
        around = self.nest.reduced[:-1]
        summing = any(cascades(stage) for stage in run.reduces)
        one_chunk = self.row is not None and self.row <= CHUNK * self.lanes
        cascading = summing and not (one_chunk and not around)
        for stage in run.reduces:
            name, element = body.values[stage.name]
            body.line(depth, f"{element.name} {name};")
        body.line(depth, "{")
        self.declare(depth + 1, run.reduces, cascading)
        inside = self.open_axes(depth + 1, around)
        at, end = f"d{axis}_at", f"d{axis}_end"
        chunked = cascading and not one_chunk
        if chunked:
            body.line(inside, f"for (i64 {at} = 0; {at} < {size};) {{")
            inside += 1
            body.line(inside, f"const i64 {end} = tq_min({at} + {CHUNK * self.lanes}, {size});")
        else:
            body.line(inside, f"i64 {at} = 0;")
            body.line(inside, f"const i64 {end} = {size};")
        if self.row is None or self.row >= self.lanes:
            body.line(inside, f"for (; {at} + {self.lanes} <= {end}; {at} += {self.lanes}) {{")
            self._lanes(inside + 1, str(self.lanes), run, known)
            body.line(inside, "}")
        if self.row is None or self.row % self.lanes:
            body.line(inside, f"if ({at} < {end}) {{")
            self._lanes(inside + 1, f"int({end} - {at})", run, known)
            body.line(inside + 1, f"{at} = {end};")
            body.line(inside, "}")
        if cascading:
            self.put(inside, run.reduces)
        if chunked:
            inside -= 1
            body.line(inside, "}")
        self.close_axes(inside, around)
        if cascading:
            self.finish(depth + 1, run.reduces)
        for stage in run.reduces:
            fold = f"tq_fold<{combine_name(stage)}, {self.lanes}>({self.arrays[stage.name]})"
            body.line(depth + 1, f"{body.values[stage.name][0]} = {self.result(stage, fold)};")
        body.line(depth, "}")

    def _lanes(self, depth: int, width: str, run: Pass, known: Collection[str]) -> None:
        axis = self.inner
        if not width.isdigit():
            self.body.line(depth, f"const int width = {width};")
            width = "width"
        self.body.line(0, "#pragma omp simd")
        self.body.line(depth, f"for (int lane = 0; lane < {width}; ++lane) {{")
        self.body.line(depth + 1, f"const i64 d{axis} = d{axis}_at + lane;")
        self.point(depth + 1, run, known)
        self.body.line(depth, "}")


class _Columns(_Reductions):
    """A kept axis is innermost: a tile of its neighbours are the lanes, and the reduced axes are loops around them."""

    def __init__(self, body: Body, nest: Nest) -> None:
        super().__init__(body, nest)
        assert nest.inner is not None
        self.inner = nest.inner
        columns = self.extent_of(self.inner)
        self.lanes = TILE if columns is None else max(min(-(-columns // LANES) * LANES, TILE), LANES)
        self.width = "width"
        self.one_tile = columns is not None and columns <= TILE
        self.tiles = {
            stage.name: body.names.claim(f"{stage.name}_tile")
            for stage in nest.stages
            if isinstance(stage, Map) and stage.name not in self.levels.inner
        }

    def write(self) -> None:
        body, depth, carry, size = self.body, 2, "", self.body.size(self.inner)
        counters: list[Counter] = [(f"d{axis}", body.size(axis)) for axis in reversed(self.nest.outer)]
        start = "0"
        if not self.one_tile:
            body.line(depth, f"const i64 blocks = {body.extent(blocks(body.kernel.domain[self.inner], TILE))};")
            counters.insert(0, ("block", "blocks"))
            start = f"block * {TILE}"
        if counters:
            carry = body.open_steps(depth, counters)
            depth += 1
        body.line(depth, f"const i64 d{self.inner}_at = {start};")
        body.line(depth, f"const int width = int(tq_min({TILE}, {size} - d{self.inner}_at));")
        for level in range(self.levels.count):
            self._between(depth, level)
            run = self.levels.pass_at(level)
            if run.reduces or run.writes:
                self._pass(depth, run)
        if counters:
            body.line(3, carry)
            body.line(2, "}")

    def outer_value(self, depth: int, part: Read | Map | Reduce) -> None:
        name, element = self.body.values[part.name]
        if isinstance(part, Read):
            self.body.load(depth, part)
            return
        if isinstance(part, Map):
            text = loaded(f"{self.tiles[part.name]}[lane]", element)
        else:
            text = self.result(part, f"{self.arrays[part.name]}[lane]")
        self.body.line(depth, f"const {element.name} {name} = {text};")

    def _between(self, depth: int, level: int) -> None:
        """Outer maps and writes of this level, column by column."""
        body, maps, writes = self.body, self.levels.outer_maps(level), self.levels.outer_writes(level)
        if not maps and not writes:
            return
        computed = {stage.name for stage in maps}
        used = {write.stage for write in writes}
        used.update(name for stage in maps for name in stage.operands if isinstance(name, str))
        for stage in maps:
            body.line(depth, f"alignas(64) {memory_type(stage.element)} {self.tiles[stage.name]}[{self.lanes}];")
        self._open_lanes(depth)
        for name, part in self.levels.parts.items():
            if name in computed:
                assert isinstance(part, Map)
                body.compute(depth + 1, part)
                text = stored(*body.values[name])
                body.line(depth + 1, f"{self.tiles[name]}[lane] = {text};")
            elif name in used:
                self.outer_value(depth + 1, part)
        for write in writes:
            body.store(depth + 1, write)
        body.line(depth, "}")

    def _pass(self, depth: int, run: Pass) -> None:
        body, reduced = self.body, self.nest.reduced
        rows = self.extent_of(reduced[0])
        few = len(reduced) == 1 and rows is not None and rows <= CHUNK
        cascading = any(cascades(stage) for stage in run.reduces) and not few
        self.declare(depth, run.reduces, cascading)
        if cascading:
            body.line(depth, "{")
            body.line(depth, "int rows = 0;")
        inside = self.open_axes(depth, reduced)
        self._open_lanes(inside)
        self.point(inside + 1, run, ())
        body.line(inside, "}")
        if cascading:
            body.line(inside, f"if (++rows == {CHUNK}) {{")
            body.line(inside + 1, "rows = 0;")
            self.put(inside + 1, run.reduces)
            body.line(inside, "}")
        self.close_axes(inside, reduced)
        if cascading:
            self.finish(depth, run.reduces)
            body.line(depth, "}")

    def _open_lanes(self, depth: int) -> None:
        self.body.line(0, "#pragma omp simd")
        self.body.line(depth, "for (int lane = 0; lane < width; ++lane) {")
        self.body.line(depth + 1, f"const i64 d{self.inner} = d{self.inner}_at + lane;")
