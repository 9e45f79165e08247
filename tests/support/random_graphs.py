"""Random well-formed graphs, small: mixed types, effects, several results, symbolic extents, decisions."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tessiq_core.ir import (
    ELEMENT_TYPES,
    HOLE,
    UNKNOWN,
    Attribute,
    Extent,
    Graph,
    Label,
    OpaqueType,
    ScalarType,
    TensorType,
    ValueType,
    extent,
    holes,
    opaque_element,
    tensor_type,
)

SYMBOLS = st.sampled_from(("s0", "s1", "n")).map(extent.symbol)


def _grow(inner: st.SearchStrategy[Extent]) -> st.SearchStrategy[Extent]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: extent.add(*p)),
        pairs.map(lambda p: extent.sub(*p)),
        pairs.map(lambda p: extent.mul(*p)),
        st.tuples(st.sampled_from(("floordiv", "mod", "max", "min")), inner, inner).map(lambda t: extent.call(*t)),
        st.tuples(inner, st.sampled_from((-1, 2, 9))).map(lambda p: extent.call("pow", *p)),
    )


LEAVES: st.SearchStrategy[Extent] = st.one_of(st.integers(-9, 9), SYMBOLS)
KNOWN: st.SearchStrategy[Extent] = st.recursive(LEAVES, _grow, max_leaves=4)
EXTENTS: st.SearchStrategy[Extent] = st.one_of(st.integers(0, 9), SYMBOLS, st.just(UNKNOWN), KNOWN).filter(
    lambda e: not (isinstance(e, int) and e < 0)
)

ELEMENTS = st.sampled_from((*ELEMENT_TYPES.values(), opaque_element("complex64"), opaque_element("float8_e4m3fn")))


@st.composite
def tensor_types(draw: st.DrawFn) -> TensorType:
    shape = tuple(draw(st.lists(EXTENTS, max_size=3)))
    strides = tuple(draw(EXTENTS) for _ in shape) if draw(st.booleans()) else None
    return tensor_type(draw(ELEMENTS), shape, strides)


# `st.text` gives no halves of surrogate pairs, which the verifier refuses.
TEXTS = st.text(max_size=6)
TYPES: st.SearchStrategy[ValueType] = st.one_of(
    tensor_types(),
    st.sampled_from((ScalarType("int"), ScalarType("float"), ScalarType("bool"))),
    EXTENTS.map(lambda e: ScalarType("int", e)),
    TEXTS.map(OpaqueType),
)

PLAIN: st.SearchStrategy[Attribute] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from((0.0, -0.0, 1.0, 1e-05, 1e22, float("inf"), float("-inf"), float("nan"))),
    TEXTS,
    st.builds(Label, st.sampled_from(("dtype", "device", "complex")), st.one_of(st.just("cuda:0"), TEXTS)),
)
ATTRIBUTES: st.SearchStrategy[Attribute] = st.recursive(
    st.one_of(PLAIN, st.just(HOLE)), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4
)

# Few operations and few values, so that equal nodes, dead nodes and writes between them are common.
ARITY = {
    "aten.add.Tensor": 2,
    "aten.exp.default": 1,
    "aten.t.default": 1,
    "aten.clone.default": 1,
    "other.op.default": None,
    "aten.copy_.default": 2,
}
DECISIONS: st.SearchStrategy[dict[str, Attribute]] = st.sampled_from(
    (
        {},
        {},
        {"tessiq.effect": "random"},
        {"tessiq.effect": "ordered"},
        {"tessiq.claim": "kernel", "tessiq.cluster": 0, "tessiq.group": 1},
        {"tessiq.claim": "library", "tessiq.library": "aten-out"},
        {"tessiq.decline": "no-row: there is none"},
    )
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph = Graph(draw(st.sampled_from(("main", "forward.part", "a::b"))))
    shared = draw(st.lists(TYPES, min_size=1, max_size=3))
    type = st.sampled_from(shared)
    values = [graph.add_parameter(f"p{index}", draw(type)) for index in range(draw(st.integers(1, 3)))]
    for number in range(draw(st.integers(0, 9))):
        op = draw(st.sampled_from(tuple(ARITY)))
        attributes: dict[str, Attribute] = {}
        if op == "other.op.default" and draw(st.booleans()):
            attributes = draw(st.dictionaries(st.sampled_from(("2", "dim", "from")), ATTRIBUTES, max_size=2))
        decisions = draw(DECISIONS) if draw(st.integers(0, 3)) == 0 else {}
        if op == "aten.copy_.default" and decisions.get("tessiq.claim") == "kernel":
            decisions = {}
        positions = ARITY[op]
        if positions is None:
            positions = 2 if "2" in attributes else draw(st.integers(0, 2))
        count = positions + sum(map(holes, attributes.values()))
        operands = [draw(st.sampled_from(values)) for _ in range(count)]
        size = 1 if ARITY[op] else draw(st.integers(0, 2))
        results = [(f"v{number}_{index}", draw(type)) for index in range(size)]
        values.extend(graph.append(op, operands, results, {**attributes, **decisions}).results)
    graph.set_results(draw(st.lists(st.sampled_from(values), max_size=3)))
    return graph


def dense_graph(seed: int) -> Graph:
    """A graph in which equal nodes, dead nodes, views, and writes between them are common. All values have one type."""
    random = Random(seed)
    type = tensor_type(ELEMENT_TYPES["f32"], (4, 4))
    graph = Graph()
    values = [graph.add_parameter(f"p{index}", type) for index in range(random.randint(1, 2))]
    pure = ("aten.add.Tensor", *["aten.exp.default"] * 3, "aten.t.default", "aten.clone.default", "other.op.default")
    # A graph without any writer in one of three, or most merges would be forbidden everywhere.
    pool = (*pure, *random.choice(((), ("aten.copy_.default",), ("other.print.default", "other.draw.default"))))
    effects = {"other.print.default": "ordered", "other.draw.default": "random"}
    for number in range(random.randint(2, 10)):
        op = random.choice(pool)
        operands = [
            random.choice(values[-4:]) for _ in range(2 if op in ("aten.add.Tensor", "aten.copy_.default") else 1)
        ]
        attributes: dict[str, Attribute] = {"tessiq.effect": effects[op]} if op in effects else {}
        count = 0 if op == "other.print.default" else 1
        results = [(f"v{number}", type)] * count
        values.extend(graph.append(op, operands, results, attributes).results)
    graph.set_results([random.choice(values) for _ in range(random.randint(1, 3))])
    return graph
