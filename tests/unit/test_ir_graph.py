"""Graph mutations keep use lists, names and the list of nodes in step."""

from __future__ import annotations

import pytest

from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir import Graph, ScalarType, parse_graph, print_graph, verify

TEXT = """\
graph @main(%x: f32[2]) {
  %a = aten.neg.default(%x) : f32[2]
  %b = aten.add.Tensor(%a, %a) : f32[2]
  %c = aten.exp.default(%b) : f32[2]
  return %b, %c
}
"""


@pytest.fixture
def graph() -> Graph:
    return parse_graph(TEXT)


def test_use_lists_follow_every_mutation(graph: Graph) -> None:
    a, b, c = graph.nodes
    (x,) = graph.parameters
    assert [(use.node, use.index) for use in a.results[0].uses] == [(b, 0), (b, 1)]
    assert a.results[0].readers == (b,)
    assert b.set_operand(1, x)
    assert not b.set_operand(1, x)
    assert graph.replace_uses(b.results[0], x)
    assert not graph.replace_uses(b.results[0], x)
    assert c.operands == (x,)
    assert graph.results == (x, c.results[0])
    verify(graph)
    graph.erase(b)
    graph.erase(a)
    verify(graph)
    assert print_graph(graph).count("\n") == 4


def test_erasing_what_is_read_names_the_readers(graph: Graph) -> None:
    _, b, _ = graph.nodes
    with pytest.raises(InvalidArgument, match=r"%b is still read by %c, result 0; move those readers first"):
        graph.erase(b)
    verify(graph)


def test_a_taken_name_leaves_the_graph_as_it_was(graph: Graph) -> None:
    type = graph.parameters[0].type
    with pytest.raises(InvalidArgument, match=r"already has a value %a; use Graph.unused_name\('a'\)"):
        graph.append("f", graph.parameters, [("fresh", type), ("a", type)])
    with pytest.raises(InvalidArgument, match="already has a value %b"):
        graph.rename(graph.parameters[0], "b")
    verify(graph)
    assert print_graph(graph) == TEXT
    assert graph.unused_name("fresh") == "fresh"
    assert graph.unused_name("a") == "a_1"


def test_renaming_frees_the_old_name(graph: Graph) -> None:
    graph.rename(graph.parameters[0], "input")
    graph.rename(graph.parameters[0], "input")
    graph.add_parameter("x", ScalarType("int"))
    verify(graph)


def test_moving_keeps_the_order_numbers_right(graph: Graph) -> None:
    a, b, c = graph.nodes
    assert graph.comes_before(a, c)
    graph.move_before(c, None)
    graph.move_before(a, b)
    first = graph.insert_before(a, "f", (), [])
    assert graph.comes_before(first, a)
    assert graph.comes_before(b, c)
    assert not graph.comes_before(c, b)
    last = graph.append("f", (), [])
    assert graph.comes_before(c, last)
    assert next(node.op for node in graph.reversed_nodes) == "f"
    verify(graph)


def test_the_node_just_yielded_may_go_and_the_next_one_may_not(graph: Graph) -> None:
    graph.set_results([])
    for node in graph.reversed_nodes:
        graph.erase(node)
    assert len(graph) == 0
    other = parse_graph(TEXT)
    other.set_results([])
    _, b, c = other.nodes
    walk = other.nodes
    while next(walk) is not b:
        pass
    other.erase(c)
    with pytest.raises(Internal, match=r"aten\.exp\.default was erased while the graph was iterated"):
        next(walk)


def test_attributes_know_their_types(graph: Graph) -> None:
    node = next(graph.nodes)
    assert node.set_attribute("1", 1)
    assert not node.set_attribute("1", 1)
    assert node.set_attribute("1", 1.0)
    assert node.set_attribute("1", True)
    assert node.set_attribute("1", 0.0)
    assert node.set_attribute("1", -0.0)
    assert node.set_attribute("1", float("nan"))
    assert not node.set_attribute("1", float("nan"))
    assert node.set_attribute("10", 0)
    assert node.set_attribute("2", 0)
    assert node.set_attribute("tessiq.claim", "kernel")
    assert list(node.attributes) == ["1", "2", "10", "tessiq.claim"]
    assert list(node.arguments) == ["1", "2", "10"]
    assert node.remove_attribute("2")
    assert not node.remove_attribute("2")
