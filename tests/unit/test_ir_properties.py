"""Random graphs: the text form is exact, general passes keep graphs well formed, the verifier sees corruption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.memory_model import observe
from support.random_graphs import ATTRIBUTES, EXTENTS, KNOWN, TYPES, dense_graph, graphs
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir import (
    Attribute,
    Extent,
    Graph,
    Node,
    RewritePattern,
    ScalarType,
    Value,
    ValueType,
    attribute_key,
    extent,
    find_problem,
    parse_attribute,
    parse_extent,
    parse_graph,
    parse_type,
    print_attribute,
    print_graph,
    print_type,
)
from tessiq_core.ir.graph import Use
from tessiq_core.passes import PassContext, run_pipeline

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(EXTENTS)
def test_an_extent_is_what_its_text_says(value: Extent) -> None:
    assert parse_extent(str(value)) == value


@quick
@given(KNOWN, KNOWN, st.dictionaries(st.just("s0"), st.integers(1, 5)), st.integers(1, 5), st.integers(1, 5))
def test_arithmetic_on_extents_is_arithmetic(
    a: Extent, b: Extent, values: dict[str, int], other: int, third: int
) -> None:
    sizes = {"s0": 2, "s1": other, "n": third, **values}
    try:
        x, y = extent.evaluate(a, sizes), extent.evaluate(b, sizes)
    except InvalidArgument:
        return  # a division by zero, or a negative power
    assert extent.evaluate(extent.add(a, b), sizes) == x + y
    assert extent.evaluate(extent.sub(a, b), sizes) == x - y
    assert extent.evaluate(extent.mul(a, b), sizes) == x * y
    assert extent.evaluate(extent.call("max", a, b), sizes) == max(x, y)
    assert extent.evaluate(extent.call("min", a, b), sizes) == min(x, y)
    if y:
        assert extent.evaluate(extent.call("floordiv", a, b), sizes) == x // y
        assert extent.evaluate(extent.call("mod", a, b), sizes) == x % y
    replaced = extent.substitute(a, sizes)
    assert replaced == x or extent.evaluate(replaced, {}) == x


@quick
@given(KNOWN, KNOWN)
def test_equal_extents_are_written_alike_whatever_the_order(a: Extent, b: Extent) -> None:
    assert extent.add(a, b) == extent.add(b, a)
    assert extent.mul(a, b) == extent.mul(b, a)
    assert extent.sub(extent.add(a, b), b) == a
    assert extent.call("max", a, b) == extent.call("max", b, a)


@quick
@given(TYPES)
def test_a_type_is_what_its_text_says(type: ValueType) -> None:
    assert parse_type(print_type(type)) == type


@quick
@given(ATTRIBUTES)
def test_an_attribute_is_what_its_text_says(value: Attribute) -> None:
    assert attribute_key(parse_attribute(print_attribute(value))) == attribute_key(value)


@quick
@given(graphs())
def test_a_graph_is_what_its_text_says(graph: Graph) -> None:
    assert find_problem(graph) is None
    text = print_graph(graph)
    again = parse_graph(text)
    assert print_graph(again) == text
    for ours, theirs in zip(graph.values(), again.values(), strict=True):
        assert (ours.name, ours.type) == (theirs.name, theirs.type)
        assert len(ours.uses) == len(theirs.uses)
    for a, b in zip(graph.nodes, again.nodes, strict=True):
        assert (a.op, list(a.attributes)) == (b.op, list(b.attributes))
        assert [attribute_key(v) for v in a.attributes.values()] == [attribute_key(v) for v in b.attributes.values()]


PATTERNS = (
    RewritePattern(
        "example.fused",
        """graph @p(%x: f32[?]) {
          %a = aten.exp.default(%x) : f32[?]
          %b = aten.exp.default(%a) : f32[?]
          return %b
        }""",
        "graph @r(%x: f32[?]) { %b = example.fused.default(%x) : f32[?]  return %b }",
    ),
    RewritePattern(
        "example.no-clone",
        "graph @p(%x: f32[?]) { %a = aten.clone.default(%x) : f32[?]  return %a }",
        "graph @r(%x: f32[?]) { return %x }",
    ),
)
CONTEXT = PassContext.for_text(patterns=PATTERNS)


SEEDS = range(300)


@pytest.mark.parametrize("unknown_is_view", [False, True])
@pytest.mark.parametrize("pipeline", ["dce", "cse", "rewrite", "rewrite,cse,dce"])
def test_no_caller_can_tell_what_a_general_pass_did(pipeline: str, unknown_is_view: bool) -> None:
    for seed in SEEDS:
        graph = dense_graph(seed)
        text = print_graph(graph)
        before = observe(graph, unknown_is_view=unknown_is_view)
        # run_pipeline itself verifies the graph and that each pass told the truth about `changed`.
        run_pipeline(graph, pipeline, CONTEXT)
        after = observe(graph, unknown_is_view=unknown_is_view)
        assert after == before, f"dense_graph({seed}):\n{text}became\n{print_graph(graph)}"


def test_the_passes_act_on_many_of_the_random_graphs() -> None:
    acted: Counter[str] = Counter()
    for seed in SEEDS:
        results = run_pipeline(dense_graph(seed), "rewrite,cse,dce", CONTEXT, verify=False)
        acted.update(result.name for result in results if result.changed)
    assert min(acted[name] for name in ("rewrite", "cse", "dce")) >= 30, acted


# Each pass comes to rest. A pipeline need not: a node that dce removes may have kept a pattern from matching.
@pytest.mark.parametrize("name", ["dce", "cse", "rewrite"])
@quick
@given(graph=graphs())
def test_general_passes_keep_graphs_well_formed_and_come_to_rest(name: str, graph: Graph) -> None:
    run_pipeline(graph, name, CONTEXT)
    assert [result.changed for result in run_pipeline(graph, name, CONTEXT)] == [False]


# -- random corruption ---------------------------------------------------------------------------------------------


def _reader(graph: Graph) -> Node | None:
    return next((node for node in graph.nodes if node.operands), None)


def drop_a_use(graph: Graph) -> bool:
    node = _reader(graph)
    return node is not None and node.operands[0]._uses.pop(Use(node, 0), True) is None


def add_a_use(graph: Graph) -> bool:
    node = _reader(graph)
    if node is None:
        return False
    graph.parameters[0]._uses[Use(node, len(node.operands))] = None
    return True


def read_behind_the_back(graph: Graph) -> bool:
    node = _reader(graph)
    other = next((value for value in graph.parameters if node is not None and value is not node.operands[0]), None)
    if node is None or other is None:
        return False
    node._operands[0] = other
    return True


def read_itself(graph: Graph) -> bool:
    node = next((node for node in graph.nodes if node.operands and node.results), None)
    return node is not None and node.set_operand(0, node.results[0])


def read_another_graph(graph: Graph) -> bool:
    node = _reader(graph)
    return node is not None and node.set_operand(0, Value("stranger", ScalarType("int"), None, 0))


def share_a_name(graph: Graph) -> bool:
    node = next((node for node in graph.nodes if node.results), None)
    if node is None:
        return False
    node.results[0].name = graph.parameters[0].name
    return True


def lose_a_node(graph: Graph) -> bool:
    node = graph._first
    if node is None:
        return False
    graph._first = node._next
    return True


def miscount(graph: Graph) -> bool:
    graph._count += 1
    return True


def contradict(graph: Graph) -> bool:
    node = graph._first
    return node is not None and (
        node.set_attribute("tessiq.claim", "view") | node.set_attribute("tessiq.decline", "no-row: none")
    )


def drop_an_operand(graph: Graph) -> bool:
    node = next((node for node in graph.nodes if node.operands), None)
    if node is None:
        return False
    index = len(node.operands) - 1
    del node.operands[index]._uses[Use(node, index)]
    node._operands.pop()
    return node.set_attribute("9", 0)


CORRUPTIONS = (
    drop_a_use,
    add_a_use,
    read_behind_the_back,
    read_itself,
    read_another_graph,
    share_a_name,
    lose_a_node,
    miscount,
    contradict,
    drop_an_operand,
)


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda function: function.__name__)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs())
def test_the_verifier_sees_corruption(corrupt: Callable[[Graph], bool], graph: Graph) -> None:
    if corrupt(graph):
        assert find_problem(graph) is not None
