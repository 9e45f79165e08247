"""Each check of the verifier, by corrupting a graph in the way it is there to catch."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest

from tessiq_core.errors import Internal
from tessiq_core.ir import (
    CHECKS,
    F32,
    HOLE,
    ElementType,
    Graph,
    Label,
    Node,
    OpaqueType,
    ScalarType,
    TensorType,
    Value,
    find_problem,
    parse_graph,
    symbol,
    verify,
)
from tessiq_core.ir.extent import Expression
from tessiq_core.ir.graph import Use

TEXT = """\
graph @main(%x: f32[2, 3], %y: f32[2, 3]) {
  %a = aten.neg.default(%x) : f32[2, 3]
  %v, %m = aten.var_mean.correction(%a) {1 = [1], correction = 0} : f32[2], f32[2]
  %b = aten.add.Tensor(%a, %y) {alpha = 2} : f32[2, 3]
  %c = aten.cat.default(%a, %b) {0 = [_, _]} : f32[4, 3]
  return %c, %v, %c
}
"""


class Colour(enum.IntEnum):
    RED = 1


CORRUPTIONS: list[tuple[str, str, Callable[[Graph, Any], object]]] = []


def corrupts(check: str, message: str) -> Callable[[Callable[[Graph, Any], object]], None]:
    def add(function: Callable[[Graph, Any], object]) -> None:
        CORRUPTIONS.append((check, message, function))

    return add


def attribute(check: str, message: str, name: str, value: Any) -> None:
    CORRUPTIONS.append((check, message, lambda graph, n: n["b"].set_attribute(name, value)))


def type_of_b(message: str, type: Any) -> None:
    def change(graph: Graph, n: Any) -> None:
        n["b"].results[0].type = type

    CORRUPTIONS.append(("types are of the closed set", message, change))


LIST = "the node list is linked"


@corrupts(LIST, "the link back from aten.add.Tensor does not lead to the node before it")
def _(graph: Graph, n: Any) -> None:
    n["b"]._previous = n["a"]


@corrupts(LIST, "the list has 3 nodes, the graph counts 4")
def _(graph: Graph, n: Any) -> None:
    n["v"]._next, n["c"]._previous = n["c"], n["v"]


@corrupts(LIST, "the list is longer than the 3 nodes the graph counts")
def _(graph: Graph, n: Any) -> None:
    graph._count = 3


@corrupts(LIST, "belongs to no graph or to another")
def _(graph: Graph, n: Any) -> None:
    n["b"].graph = None


@corrupts(LIST, "the graph's last node is not where the list ends")
def _(graph: Graph, n: Any) -> None:
    graph._last = n["b"]


@corrupts(LIST, "the link back from aten.neg.default")
def _(graph: Graph, n: Any) -> None:
    n["c"]._next, n["a"]._previous = n["a"], n["v"]  # a circle


@corrupts(LIST, "order numbers do not increase at aten.add.Tensor")
def _(graph: Graph, n: Any) -> None:
    n["b"]._order = 0


@corrupts("results point back", r"result 0 of aten.add.Tensor, %b, says it is number 1 of <aten.add.Tensor b>")
def _(graph: Graph, n: Any) -> None:
    n["b"].results[0].index = 1


@corrupts("results point back", "result 0 of aten.add.Tensor, %b, says it is number 0 of <aten.neg.default a>")
def _(graph: Graph, n: Any) -> None:
    n["b"].results[0].producer = n["a"]


@corrupts("results point back", "parameter 1, %y, says it is number 0 of None")
def _(graph: Graph, n: Any) -> None:
    graph.parameters[1].index = 0


@corrupts("names are unique", "two values are called %a")
def _(graph: Graph, n: Any) -> None:
    n["b"].results[0].name = "a"


@corrupts("names are unique", "value's name must be an identifier, not '1b'")
def _(graph: Graph, n: Any) -> None:
    graph.rename(n["b"].results[0], "1b")


@corrupts("names are unique", "operation's name must be identifiers separated by .*, not 'aten add'")
def _(graph: Graph, n: Any) -> None:
    n["b"].op = "aten add"


@corrupts("names are unique", "not 'return'")
def _(graph: Graph, n: Any) -> None:
    n["b"].op = "return"


@corrupts("names are unique", "graph's name must be")
def _(graph: Graph, n: Any) -> None:
    graph.name = ""


@corrupts("names are unique", "the graph's table of names is wrong about %b, %q")
def _(graph: Graph, n: Any) -> None:
    n["b"].results[0].name = "q"


@corrupts("operands are defined before", "operand 0 of aten.neg.default reads %b before it is defined")
def _(graph: Graph, n: Any) -> None:
    n["a"].set_operand(0, n["b"].results[0])


@corrupts("operands are defined before", "operand 1 of aten.cat.default reads %b before it is defined")
def _(graph: Graph, n: Any) -> None:
    graph.move_before(n["c"], n["a"])
    n["c"].set_operand(0, graph.parameters[0])


@corrupts("operands are defined before", "reads %z which is not defined in this graph")
def _(graph: Graph, n: Any) -> None:
    n["a"].set_operand(0, Value("z", ScalarType("int"), None, 0))


@corrupts("returned values are defined", "result 0 of the graph, %z, is not defined in this graph")
def _(graph: Graph, n: Any) -> None:
    graph.set_results([Value("z", ScalarType("int"), None, 0)])


@corrupts("use lists are exact", "the use list of %a leaves out operand 1 of aten.add.Tensor, which reads it")
def _(graph: Graph, n: Any) -> None:
    del graph.parameters[1]._uses[Use(n["b"], 1)]
    n["b"]._operands[1] = n["a"].results[0]


@corrupts("use lists are exact", "the use list of %m names operand 0 of aten.add.Tensor, which does not read it")
def _(graph: Graph, n: Any) -> None:
    n["v"].results[1]._uses[Use(n["b"], 0)] = None


@corrupts("use lists are exact", "the use list of %c leaves out result 2 of the graph, which reads it")
def _(graph: Graph, n: Any) -> None:
    del n["c"].results[0]._uses[Use(None, 2)]


type_of_b("of %b is 'f32', not a TensorType", "f32")
type_of_b("unknown element type <f33>", TensorType(ElementType("f33", "float", 4), (2,)))
type_of_b("unknown element type <f32>", TensorType(ElementType("f32", "float", 8), (2,)))
type_of_b("unknown element type", TensorType(ElementType("a b", "opaque", 0), (2,)))
type_of_b("has 1 extents but 2 strides", TensorType(F32, (2,), (1, 1)))
type_of_b("has a negative extent", TensorType(F32, (-2,)))
type_of_b("spells out strides that are the packed ones", TensorType(F32, (2, 3), (3, 1)))
type_of_b("has the extent True", TensorType(F32, (True,)))
type_of_b(r"has the extent 2\.0", TensorType(F32, (2.0,)))  # type: ignore[arg-type]
type_of_b(
    r"has the extent s0 . 0, whose canonical form is s0",
    TensorType(F32, (Expression(((symbol("s0").terms[0][0], 1), ((), 0))),)),
)
type_of_b("scalar of kind 'complex'", ScalarType("complex"))
type_of_b("is a float scalar with an extent", ScalarType("float", 2))
type_of_b("half a surrogate pair", OpaqueType("\ud800"))

CLOSED = "attributes are of the closed set"
attribute(CLOSED, r"attribute '2' of aten.add.Tensor is \[1\] of list", "2", [1])
attribute(CLOSED, "of Colour, not a bool", "2", Colour.RED)
attribute(CLOSED, "of Colour, not a bool", "2", (1, (Colour.RED,)))
attribute(CLOSED, "half a surrogate pair", "2", "\udc00")
attribute(CLOSED, "is a label of kind 'a b'", "2", Label("a b", "c"))
attribute(CLOSED, "has a name that is neither", "a b", 1)
attribute(CLOSED, "has a name that is neither", "01", 1)
attribute(CLOSED, "decisions have no places for operands", "tessiq.note", (1, HOLE))

PLACES = "operands match the places"
attribute(PLACES, "has 2 operands, but its attributes leave 3 positions and 0 holes to fill", "3", 1)
attribute(PLACES, "has 2 operands, but its attributes leave 0 positions and 3 holes to fill", "from", (HOLE,) * 3)

DECISIONS = "decisions are consistent"
attribute(DECISIONS, "has tessiq.claim 'gpu', not one of kernel, view, library", "tessiq.claim", "gpu")
attribute(DECISIONS, "not text of the form 'code: reason'", "tessiq.decline", "because")
attribute(DECISIONS, r"has tessiq.group 0, but its tessiq.claim is None, not kernel", "tessiq.group", 0)
attribute(DECISIONS, "has tessiq.cluster 0, but its tessiq.claim is None", "tessiq.cluster", 0)
attribute(DECISIONS, "has tessiq.cluster True, not an integer", "tessiq.cluster", True)
attribute(DECISIONS, "has tessiq.effect 'explodes'", "tessiq.effect", "explodes")
attribute(DECISIONS, "has tessiq.library 'blas', which needs", "tessiq.library", "blas")
attribute(DECISIONS, "has tessiq.absorbed 'a', not a list of names", "tessiq.absorbed", "a")


@corrupts(DECISIONS, r"is both claimed \('view'\) and declined \('no-row: none'\)")
def _(graph: Graph, n: Any) -> None:
    n["b"].set_attribute("tessiq.claim", "view")
    n["b"].set_attribute("tessiq.decline", "no-row: none")


@corrupts(DECISIONS, "has tessiq.group 3, but its tessiq.claim is 'view', not kernel")
def _(graph: Graph, n: Any) -> None:
    n["b"].set_attribute("tessiq.claim", "view")
    n["b"].set_attribute("tessiq.group", 3)


@corrupts(DECISIONS, "has the effect 'random' and is claimed as a kernel")
def _(graph: Graph, n: Any) -> None:
    n["b"].set_attribute("tessiq.claim", "kernel")
    n["b"].set_attribute("tessiq.effect", "random")


def by_name(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


@pytest.mark.parametrize(
    ("check", "message", "corrupt"), CORRUPTIONS, ids=[f"{c[:20]}-{i}" for i, (c, _, _) in enumerate(CORRUPTIONS)]
)
def test_corruption_is_found(check: str, message: str, corrupt: Callable[[Graph, Any], object]) -> None:
    graph = parse_graph(TEXT)
    corrupt(graph, by_name(graph))
    problem = find_problem(graph)
    assert problem is not None
    assert problem.check.startswith(check)
    with pytest.raises(Internal, match=message):
        verify(graph)


def test_every_check_is_seen_to_fail() -> None:
    for check in CHECKS:
        assert any(check.name.startswith(name) for name, _, _ in CORRUPTIONS), check.name


def test_the_message_shows_neighbours_and_the_likely_cause() -> None:
    lines = [f"  %v{i} = aten.neg.default(%{f'v{i - 1}' if i else 'x'}) : f32[2]" for i in range(20)]
    graph = parse_graph("\n".join(["graph @main(%x: f32[2]) {", *lines, "  return %v19", "}"]))
    node = by_name(graph)["v10"]
    node.set_attribute("1", Colour.RED)
    with pytest.raises(Internal) as caught:
        verify(graph, when="after the pass 'paint'")
    message = str(caught.value).split("\n")
    assert message[0].startswith("tessiq: graph @main is broken after the pass 'paint': attribute '1' of aten.neg")
    assert [line.split(" = ")[0].strip() for line in message[1:-1]] == (
        [f"%v{i}" for i in range(5, 10)] + ["--> %v10"] + [f"%v{i}" for i in range(11, 16)]
    )
    assert message[-1].startswith("rule broken: attributes are of the closed set; a list, a numpy or torch number")


def test_the_message_about_what_is_returned_shows_the_end_of_the_graph() -> None:
    graph = parse_graph(TEXT)
    graph.set_results([Value("z", ScalarType("int"), None, 0)])
    with pytest.raises(Internal) as caught:
        verify(graph)
    assert "  --> return %z" in str(caught.value)
    assert "      %c = aten.cat.default(%a, %b) {0 = [_, _]} : f32[4, 3]\n" in str(caught.value)


def test_a_good_graph_passes() -> None:
    assert find_problem(parse_graph(TEXT)) is None
    verify(parse_graph(TEXT))
