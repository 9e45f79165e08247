"""Checks that a graph is what every pass may assume. Each check is a row of `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph, Node, Use, Value
from tessiq_core.ir.printer import print_node, print_return
from tessiq_core.ir.wellformed import (
    attribute_problem,
    call_form_problem,
    decision_problem,
    name_problem,
    type_problem,
)

NEIGHBOURS = 5  # nodes shown before and after the one in question


@dataclass(frozen=True)
class Problem:
    """What is wrong with a graph. `node` is None for the parameters and the returned values."""

    check: str
    message: str
    likely_cause: str
    node: Node | None


Found = Iterator[tuple[str, Node | None]]


def verify(graph: Graph, *, when: str = "") -> None:
    """Raise Internal, with the node, its neighbours and the likely cause, when the graph breaks a rule.

    `when` says for the message what ran last, as in "after the pass 'cse'".
    """
    problem = find_problem(graph)
    if problem is not None:
        raise Internal(
            f"tessiq: graph @{graph.name} is broken{' ' if when else ''}{when}: {problem.message}\n"
            f"{neighbourhood(graph, problem.node)}\n"
            f"rule broken: {problem.check}; {problem.likely_cause}"
        )


def find_problem(graph: Graph) -> Problem | None:
    """The first rule of `CHECKS` that the graph breaks, or None. A later check assumes that the earlier ones passed."""
    for check in CHECKS:
        for message, node in check.find(graph):
            return Problem(check.name, message, check.likely_cause, node)
    return None


def neighbourhood(graph: Graph, node: Node | None) -> str:
    """The node marked by an arrow, with its neighbours; the end of the graph where `node` is None.

    Follows the links one by one, because the list itself may be what is broken.
    """
    before: list[str] = []
    current = graph._last if node is None else node._previous
    while current is not None and len(before) < NEIGHBOURS:
        before.insert(0, f"      {print_node(current)}")
        current = current._previous
    if node is None:
        return "\n".join([*before, f"  --> {print_return(graph)}"])
    after: list[str] = []
    current = node._next
    while current is not None and len(after) < NEIGHBOURS:
        after.append(f"      {print_node(current)}")
        current = current._next
    return "\n".join([*before, f"  --> {print_node(node)}", *after])


# -- the checks ----------------------------------------------------------------------------------------------------


def _node_list(graph: Graph) -> Found:
    count, previous, current = 0, None, graph._first
    while current is not None:
        count += 1
        if current.graph is not graph:
            yield f"{current.op} is in the list but belongs to no graph or to another", current
        if current._previous is not previous:
            yield f"the link back from {current.op} does not lead to the node before it", current
        if graph._numbered and previous is not None and previous._order >= current._order:
            yield f"the order numbers do not increase at {current.op}", current
        if count > graph._count:
            yield f"the list is longer than the {graph._count} nodes the graph counts", current
            return
        previous, current = current, current._next
    if count != graph._count:
        yield f"the list has {count} nodes, the graph counts {graph._count}", previous
    if graph._last is not previous:
        yield "the graph's last node is not where the list ends", previous


def _producers(graph: Graph) -> Found:
    for index, value in enumerate(graph.parameters):
        if value.producer is not None or value.index != index:
            yield f"parameter {index}, %{value.name}, says it is number {value.index} of {value.producer}", None
    for node in graph.nodes:
        for index, value in enumerate(node.results):
            if value.producer is not node or value.index != index:
                message = f"result {index} of {node.op}, %{value.name}, says it is number {value.index}"
                yield f"{message} of {value.producer}", node


def _names(graph: Graph) -> Found:
    seen: set[str] = set()
    if reason := name_problem("graph", graph.name):
        yield reason, None
    for value in graph.values():
        if reason := name_problem("value", value.name):
            yield reason, value.producer
        if value.name in seen:
            yield f"two values are called %{value.name}", value.producer
        seen.add(value.name)
    for node in graph.nodes:
        if reason := name_problem("operation", node.op):
            yield reason, node
    if seen != graph._names:
        wrong = ", ".join(sorted(f"%{name}" for name in seen ^ graph._names))
        yield f"the graph's table of names is wrong about {wrong}", None


def _definitions(graph: Graph) -> Found:
    defined: set[Value] = set(graph.parameters)
    everything = set(graph.values())
    for node in graph.nodes:
        for index, operand in enumerate(node.operands):
            if operand not in defined:
                how = "before it is defined" if operand in everything else "which is not defined in this graph"
                yield f"operand {index} of {node.op} reads %{operand.name} {how}", node
        defined.update(node.results)


def _returned(graph: Graph) -> Found:
    everything = set(graph.values())
    for index, value in enumerate(graph.results):
        if value not in everything:
            yield f"result {index} of the graph, %{value.name}, is not defined in this graph", None


def _uses(graph: Graph) -> Found:
    read: dict[Value, set[Use]] = {value: set() for value in graph.values()}
    for node in graph.nodes:
        for index, operand in enumerate(node.operands):
            read[operand].add(Use(node, index))
    for index, value in enumerate(graph.results):
        read[value].add(Use(None, index))
    for value, expected in read.items():
        listed = set(value.uses)
        for use in expected - listed:
            yield f"the use list of %{value.name} leaves out {_reader(use)}, which reads it", use.node
        for use in listed - expected:
            yield f"the use list of %{value.name} names {_reader(use)}, which does not read it", value.producer


def _reader(use: Use) -> str:
    return f"operand {use.index} of {use.node.op}" if use.node is not None else f"result {use.index} of the graph"


def _types(graph: Graph) -> Found:
    for value in graph.values():
        if reason := type_problem(value.type):
            yield f"the type of %{value.name} {reason}", value.producer


def _attributes(graph: Graph) -> Found:
    for node in graph.nodes:
        for name, attribute in node.attributes.items():
            if reason := attribute_problem(name, attribute):
                yield f"attribute {name!r} of {node.op} {reason}", node


def _call_forms(graph: Graph) -> Found:
    for node in graph.nodes:
        if reason := call_form_problem(node):
            yield reason, node


def _decisions(graph: Graph) -> Found:
    for node in graph.nodes:
        if reason := decision_problem(node):
            yield reason, node


@dataclass(frozen=True)
class Check:
    """One rule: its name as a statement, what yields its violations, and what usually breaks it."""

    name: str
    find: Callable[[Graph], Found]
    likely_cause: str


CHECKS: tuple[Check, ...] = (
    Check("the node list is linked both ways and counted", _node_list, "nodes were linked without Graph's methods"),
    Check(
        "results point back to their producers",
        _producers,
        "a value was moved between nodes or a results tuple was reordered; make new values instead",
    ),
    Check(
        "names are unique and can be written",
        _names,
        "a name was assigned directly; use Graph.rename with Graph.unused_name",
    ),
    Check(
        "operands are defined before they are read",
        _definitions,
        "a node was inserted or moved above what it reads, or it still reads an erased node's result",
    ),
    Check(
        "returned values are defined in this graph",
        _returned,
        "a returned value's node was erased, or the value is another graph's; use Graph.replace_uses before erasing",
    ),
    Check(
        "use lists are exact",
        _uses,
        "an operand was changed without Node.set_operand, Graph.replace_uses or Graph.set_results",
    ),
    Check(
        "types are of the closed set, in canonical form",
        _types,
        "a TensorType was built without tensor_type(), or an Expression by hand",
    ),
    Check(
        "attributes are of the closed set",
        _attributes,
        "a list, a numpy or torch number, a dtype or an enum was stored; convert it to a tuple, a number or a Label",
    ),
    Check(
        "operands match the places the attributes leave for them",
        _call_forms,
        "an operand was added or dropped without its `_`, or an attribute number leaves a positional argument unfilled",
    ),
    Check(
        "decisions are consistent",
        _decisions,
        "a pass set a decision and left an older one that contradicts it; remove that first",
    ),
)
