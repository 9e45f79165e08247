"""Random graphs of integer nodes: the lowered kernel stores what the nodes, evaluated one by one, compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support.kernels import COMBINES, MAPS, interpret, memory, points
from tessiq_core.codegen import lower, print_kernel
from tessiq_core.decline import Decline
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.printer import print_graph
from tessiq_core.ir.types import I64, TensorType, tensor_type
from tessiq_core.ops.table import default_table

BINARY = {
    "aten.add.Tensor": "add",
    "aten.sub.Tensor": "sub",
    "aten.mul.Tensor": "mul",
    "aten.maximum.default": "maximum",
}
REDUCTIONS = {"aten.sum.dim_IntList": "sum", "aten.amax.default": "max"}


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    shape: list[int] = []
    for back in range(1, max(len(a), len(b)) + 1):
        x, y = (a[-back] if back <= len(a) else 1), (b[-back] if back <= len(b) else 1)
        if x != y and 1 not in (x, y):
            return None
        shape.insert(0, y if x == 1 else x)
    return tuple(shape)


def sizes_of(value: Value) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    sizes = [extent for extent in value.type.shape if isinstance(extent, int)]
    assert len(sizes) == value.type.rank
    return tuple(sizes)


@st.composite
def types(draw: st.DrawFn, shape: tuple[int, ...], *, stored: bool) -> TensorType:
    """Dense strides in any order; a value that is only read may also repeat or skip elements."""
    strides = [0] * len(shape)
    step = 1
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = 0 if not stored and draw(st.integers(0, 4)) == 0 else step
        step *= max(shape[axis], 1) * (1 if stored else draw(st.sampled_from([1, 1, 2])))
    packed = draw(st.booleans())
    return tensor_type(I64, shape, None if packed else tuple(strides))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph = Graph()
    base = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 2, 3]), max_size=3)))
    values = [graph.add_parameter("p0", draw(types(base, stored=False)))]
    for number in range(1, draw(st.integers(1, 3))):
        some = tuple(1 if draw(st.integers(0, 2)) == 0 else extent for extent in base[draw(st.integers(0, 1)) :])
        values.append(graph.add_parameter(f"p{number}", draw(types(some, stored=False))))
    for number in range(draw(st.integers(1, 5))):
        values.append(draw(nodes(graph, values, f"n{number}")).results[0])
    computed = [value for value in values if value.producer is not None]
    graph.set_results([*draw(st.lists(st.sampled_from(computed), max_size=2, unique=True)), computed[-1]])
    return graph


@st.composite
def nodes(draw: st.DrawFn, graph: Graph, values: Sequence[Value], name: str) -> Node:
    first = draw(st.sampled_from(values))
    shape = sizes_of(first)
    kind = draw(st.integers(0, 5))
    if kind == 0:
        type = draw(types(shape, stored=True))
        return graph.append("aten.rsub.Scalar", [first], [(name, type)], {"1": draw(st.integers(-3, 3))})
    if kind <= 2:
        dims = draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1)) if shape else []
        keepdim = draw(st.integers(0, 3)) > 0
        reduced = dims or range(len(shape))
        left = tuple(1 if dim in reduced else size for dim, size in enumerate(shape) if keepdim or dim not in reduced)
        named = tuple(dim - len(shape) if draw(st.booleans()) else dim for dim in dims)
        op = draw(st.sampled_from(sorted(REDUCTIONS)))
        return graph.append(op, [first], [(name, draw(types(left, stored=True)))], {"1": named, "2": keepdim})
    fitting = [(other, both) for other in values if (both := broadcast(shape, sizes_of(other))) is not None]
    other, both = draw(st.sampled_from(fitting))
    type = draw(types(both, stored=True))
    return graph.append(draw(st.sampled_from(sorted(BINARY))), [first, other], [(name, type)])


def evaluator(value: Value) -> Callable[[tuple[int, ...]], int]:
    """The value as a function of its own index, straight from the definition of each operation."""
    node = value.producer
    assert isinstance(value.type, TensorType)
    if node is None:
        strides = value.type.layout
        return lambda at: memory(value.name, sum(i * s for i, s in zip(at, strides, strict=True) if isinstance(s, int)))
    inputs = [(evaluator(operand), sizes_of(operand)) for operand in node.operands]

    def aligned(number: int, at: tuple[int, ...]) -> int:
        function, sizes = inputs[number]
        own = at[len(at) - len(sizes) :]
        return function(tuple(0 if size == 1 else i for i, size in zip(own, sizes, strict=True)))

    if node.op in BINARY:
        return lambda at: MAPS[BINARY[node.op]](aligned(0, at), aligned(1, at))
    constant = node.attribute("1")
    if isinstance(constant, int):
        return lambda at: constant - aligned(0, at)
    assert isinstance(constant, tuple)
    function, sizes = inputs[0]
    dims = {dim % len(sizes) for dim in constant if isinstance(dim, int)} or set(range(len(sizes)))

    def reduce(at: tuple[int, ...]) -> int:
        rest = iter(at) if not node.attribute("2") else iter(i for dim, i in enumerate(at) if dim not in dims)
        fixed = [None if dim in dims else next(rest) for dim in range(len(sizes))]
        ranges = [size if dim in dims else 1 for dim, size in enumerate(sizes)]
        return COMBINES[REDUCTIONS[node.op]](
            [
                function(tuple(f if f is not None else i for f, i in zip(fixed, inner, strict=True)))
                for inner in points(ranges)
            ]
        )

    return reduce


@given(graphs())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_kernel_computes_what_the_nodes_do(graph: Graph) -> None:
    result = lower(list(graph.nodes), default_table())
    if isinstance(result, Decline):
        # Nodes without a common loop are refused; too many of these and hypothesis gives up on the assumption.
        assert result.code == "iteration-space", f"{result}\n{print_graph(graph)}"
    assume(not isinstance(result, Decline))
    stored = interpret(result.description)
    expected: dict[str, dict[int, int]] = {}
    for value in dict.fromkeys(graph.results):
        function = evaluator(value)
        assert isinstance(value.type, TensorType)
        strides = value.type.layout
        expected[value.name] = {
            sum(i * s for i, s in zip(at, strides, strict=True) if isinstance(s, int)): function(at)
            for at in points(sizes_of(value))
        }
    assert stored == expected, f"{print_graph(graph)}{print_kernel(result.description)}"
