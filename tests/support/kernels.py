"""Kernel descriptions for tests: lowering from text, random ones, and an interpreter in plain Python.

The interpreter knows a few integer rows (add, sub, rsub, mul, maximum, clone) and reduces by sum and max. Memory is a
function from (value, element index) to a small integer, so reads may go anywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from hypothesis import strategies as st

from tessiq_core.codegen.dependence import dependences
from tessiq_core.codegen.description import (
    Access,
    Axis,
    Constant,
    KernelDescription,
    Map,
    Operand,
    Read,
    Reduce,
    Stage,
    Write,
)
from tessiq_core.codegen.lower import Lowered, lower
from tessiq_core.decline import Decline
from tessiq_core.ir import extent as extents
from tessiq_core.ir.extent import Extent, evaluate
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.types import BF16, BOOL, F32, F64, I64, U8
from tessiq_core.ops.table import default_table

MAPS: Mapping[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "maximum": max,
    "clone": lambda a: a,
}
COMBINES: Mapping[str, Callable[[Sequence[int]], int]] = {
    "sum": sum,
    "max": lambda items: max(items, default=-(10**9)),
}


def memory(value: str, index: int) -> int:
    """What the tests' memory holds: small integers that differ between neighbours and between values."""
    return (index * 7 + sum(map(ord, value)) * 3) % 13 - 6


def points(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(size) for size in sizes))


def interpret(kernel: KernelDescription, sizes: Mapping[str, int] | None = None) -> dict[str, dict[int, int]]:
    """For each written value what the kernel stores at each element index; `sizes` gives the symbols."""
    sizes = sizes or {}
    domain = [evaluate(extent, sizes) for extent in kernel.domain]
    depends = dependences(kernel)
    by_name: dict[str, Read | Stage] = {stage.name: stage for stage in (*kernel.reads, *kernel.stages)}
    known: dict[tuple[str, tuple[int, ...]], int] = {}

    def index(access: Access, point: Sequence[int]) -> int:
        moved = sum(evaluate(stride, sizes) * at for stride, at in zip(access.strides, point, strict=True))
        return evaluate(access.offset, sizes) + moved

    def value_of(operand: Operand, point: tuple[int, ...]) -> int:
        if isinstance(operand, Constant):
            return int(operand.value)
        if isinstance(operand, Axis):
            return point[operand.number]
        key = (operand, tuple(point[axis] for axis in sorted(depends[operand])))
        if key not in known:
            known[key] = compute(by_name[operand], point)
        return known[key]

    def compute(stage: Read | Stage, point: tuple[int, ...]) -> int:
        if isinstance(stage, Read):
            return memory(stage.value, index(stage.access, point))
        if isinstance(stage, Map):
            return MAPS[stage.op](*(value_of(operand, point) for operand in stage.operands))
        items = []
        for inner in points([domain[axis] for axis in stage.axes]):
            moved = list(point)
            for axis, at in zip(stage.axes, inner, strict=True):
                moved[axis] = at
            items.append(value_of(stage.operand, tuple(moved)))
        return COMBINES[stage.combine](items)

    stored: dict[str, dict[int, int]] = {}
    for write in kernel.writes:
        cells = stored.setdefault(write.value, {})
        for partial in points([domain[axis] for axis in write.axes]):
            point = [0] * len(domain)
            for axis, at in zip(write.axes, partial, strict=True):
                point[axis] = at
            cells[index(write.access, point)] = value_of(write.stage, tuple(point))
    return stored


def lower_text(body: str, *, returns: str, parameters: str) -> Lowered | Decline:
    """Lower every node of a graph given in pieces of its text form."""
    graph = parse_graph(f"graph @main({parameters}) {{\n{body}\n  return {returns}\n}}")
    return lower(list(graph.nodes), default_table())


def lowered(body: str, *, returns: str, parameters: str) -> Lowered:
    """The same, where it must succeed."""
    result = lower_text(body, returns=returns, parameters=parameters)
    assert isinstance(result, Lowered), f"declined: {result}"
    return result


# -- random descriptions -----------------------------------------------------------------------------------------------
_SYMBOLS = ("s0", "s1", "s2")


@st.composite
def random_extents(draw: st.DrawFn, least: int = 0) -> Extent:
    """Integers, sums and products of symbols, and calls."""
    total: Extent = draw(st.integers(least, 5))
    for _ in range(draw(st.integers(0, 2))):
        factor: Extent = extents.symbol(draw(st.sampled_from(_SYMBOLS)))
        if draw(st.booleans()):
            factor = extents.call(draw(st.sampled_from(["floordiv", "mod", "max", "min"])), factor, 3)
        term = extents.mul(draw(st.integers(-3, 3)), factor)
        total = extents.add(total, extents.mul(term, draw(st.sampled_from([1, extents.symbol("s1")]))))
    return total


_FLOATS = st.one_of(
    st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, 1e-300, 1e22, 5e-324])
)
_NAMES = st.from_regex(r"[a-z_]{1,6}", fullmatch=True).filter(lambda name: name not in ("true", "false", "inf", "nan"))
_ELEMENTS = st.sampled_from([F32, BF16, F64, I64, U8, BOOL])


@st.composite
def any_kernels(draw: st.DrawFn) -> KernelDescription:
    """Descriptions the text form can hold; they need not make sense."""
    rank = draw(st.integers(0, 3))
    axes = st.lists(st.integers(0, rank - 1), unique=True, max_size=rank).map(sorted) if rank else st.just([])

    def access() -> Access:
        return Access(draw(random_extents()), tuple(draw(random_extents(least=-4)) for _ in range(rank)))

    names = draw(st.lists(_NAMES, min_size=4, max_size=7, unique=True))
    reads = tuple(Read(name, f"v_{name}", draw(_ELEMENTS), access()) for name in names[:2])
    stages: list[Stage] = []
    operands: st.SearchStrategy[Operand] = st.one_of(
        st.sampled_from(names), st.booleans().map(Constant), st.integers().map(Constant), _FLOATS.map(Constant)
    )
    if rank:
        operands = st.one_of(operands, st.integers(0, rank - 1).map(Axis))
    for name in names[2:]:
        if draw(st.booleans()):
            op = draw(st.sampled_from(["add", "where", "read", "reduce", "contrib.scale", "mylib::f"]))
            many = tuple(draw(st.lists(operands, max_size=3)))
            stages.append(Map(name, op, many, draw(_ELEMENTS), draw(_ELEMENTS)))
        else:
            source = draw(st.sampled_from(names))
            stages.append(Reduce(name, "sum", source, tuple(draw(axes)), draw(_ELEMENTS), draw(_ELEMENTS)))
    writes = tuple(
        Write(f"w_{stage.name}", stage.name, stage.element, access(), tuple(draw(axes))) for stage in stages[-2:]
    )
    members = tuple(draw(st.lists(_NAMES, max_size=3)))
    domain = tuple(draw(random_extents()) for _ in range(rank))
    return KernelDescription(draw(_NAMES), domain, reads, tuple(stages), writes, members)


def _packed(sizes: Sequence[int], order: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Dense strides of `axes`, the last of `order` innermost; 0 for the other axes."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(order):
        if axis in axes:
            strides[axis] = step
            step *= sizes[axis]
    return tuple(strides)


@st.composite
def meaningful_kernels(draw: st.DrawFn) -> KernelDescription:
    """Small integer kernels that `check` passes and `interpret` runs: packed, permuted and broadcast operands."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4]), max_size=4))
    every = list(range(len(sizes)))
    orders = st.one_of(st.just(every), st.permutations(every))
    reads = []
    for name in ("a", "b"):
        axes = draw(st.sets(st.sampled_from(every))) if every and draw(st.booleans()) else every
        strides = _packed(sizes, draw(orders), list(axes))
        reads.append(Read(name, name, I64, Access(draw(st.integers(0, 2)), strides)))
    stages: list[Stage] = []
    for number in range(draw(st.integers(1, 4))):
        earlier = [stage.name for stage in (*reads, *stages)]
        name = f"t{number}"
        if every and draw(st.integers(0, 2)) == 0:
            over = draw(st.sets(st.sampled_from(every), min_size=1))
            combine = draw(st.sampled_from(["sum", "max"]))
            stages.append(Reduce(name, combine, draw(st.sampled_from(earlier)), tuple(sorted(over)), I64, I64))
            continue
        operands: list[Operand] = [draw(st.sampled_from(earlier))]
        kind = draw(st.integers(0, 7))
        if kind == 0:
            operands.append(Constant(draw(st.integers(-3, 3))))
        elif kind == 1 and every:
            operands.append(Axis(draw(st.sampled_from(every))))
        else:
            operands.append(draw(st.sampled_from(earlier)))
        stages.append(Map(name, draw(st.sampled_from(["add", "sub", "mul", "maximum"])), tuple(operands), I64, I64))
    bare = KernelDescription("random", tuple(sizes), tuple(reads), tuple(stages), (), ())
    depends = dependences(bare)
    writes = []
    for stage in stages[-draw(st.integers(1, 2)) :]:
        more = draw(st.sets(st.sampled_from(every))) if every and draw(st.booleans()) else set()
        over = depends[stage.name] | more
        strides = _packed(sizes, draw(orders), list(over))
        writes.append(Write(f"out_{stage.name}", stage.name, I64, Access(0, strides), tuple(sorted(over))))
    return KernelDescription("random", tuple(sizes), tuple(reads), tuple(stages), tuple(writes), ("t0",))
