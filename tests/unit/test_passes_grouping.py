"""`cluster`, `fuse` and the schedule: goldens show single cases, here are properties, costs and limits."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings

from support.pass_graphs import SQUARE, MapsOnly, chain, diamonds, graphs, layers
from tessiq_core.codegen.any_emitter import AnyEmitter
from tessiq_core.codegen.lower import lower
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.printer import print_graph
from tessiq_core.passes import grouping
from tessiq_core.passes.manager import PassContext, run_pipeline
from tessiq_core.passes.pipeline import COMPILE_PIPELINE
from tessiq_core.passes.schedule import Unit, schedule
from tessiq_core.passes.units import BARRIERS, dependencies, unit_order

CONTEXT = PassContext.for_text()


def numbers(graph: Graph, name: str) -> dict[str, int | None]:
    return {node.name: node.attribute(name) for node in graph.nodes}  # type: ignore[misc]


def compiled(text: str, context: PassContext = CONTEXT, pipeline: str = "mark-supported,cluster,fuse") -> Graph:
    graph = parse_graph(text)
    run_pipeline(graph, pipeline, context)
    return graph


def is_acyclic(graph: Graph, name: str) -> bool:
    depends = dependencies(graph, CONTEXT.table)
    first: dict[object, int] = {}
    units = []
    for position, node in enumerate(depends.nodes):
        number = node.attribute(name)
        units.append(position if number is None else first.setdefault(number, position))
    return unit_order(depends.before, units) is not None


def check_order(graph: Graph, units: list[Unit]) -> None:
    """By definition, not by `dependencies`: every pair of nodes that must not swap did not."""
    place = {node: number for number, unit in enumerate(units) for node in unit.nodes}
    nodes = list(graph.nodes)
    assert sorted(map(nodes.index, place)) == list(range(len(nodes)))
    effects = dict(zip(nodes, dependencies(graph, CONTEXT.table).effects, strict=True))
    for node in nodes:
        for value in node.operands:
            if value.producer is not None:
                assert place[value.producer] <= place[node]
                if place[value.producer] == place[node]:
                    unit = units[place[node]].nodes
                    assert unit.index(value.producer) < unit.index(node)
    for n, node in enumerate(nodes):
        for later in nodes[n + 1 :]:
            barrier = effects[node] in BARRIERS or effects[later] in BARRIERS
            if barrier or effects[node] == effects[later] == "random":
                assert place[node] < place[later]


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_units_are_acyclic_and_the_schedule_keeps_data_and_effects_in_order(graph: Graph) -> None:
    original = list(graph.nodes)
    run_pipeline(graph, "mark-supported,layout-assign,cluster", CONTEXT)
    assert is_acyclic(graph, "tessiq.cluster")
    run_pipeline(graph, "fuse", CONTEXT)
    assert is_acyclic(graph, "tessiq.group")
    assert list(graph.nodes) == original
    check_order(graph, schedule(graph, CONTEXT.table))
    for node in graph.nodes:
        claim = node.attribute("tessiq.claim")
        assert (claim is None) is node.has_attribute("tessiq.decline")
        assert (claim == "kernel") is node.has_attribute("tessiq.group")
        assert (claim is not None) is node.has_attribute("tessiq.cluster")


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_group_is_a_kernel_and_fusing_moves_no_more_bytes(graph: Graph) -> None:
    run_pipeline(graph, "mark-supported,cluster,fuse", CONTEXT)
    for unit in schedule(graph, CONTEXT.table):
        if unit.kind == "kernel":
            together = lower(unit.nodes, CONTEXT.table)
            assert not isinstance(together, Decline)
            apart = [lower([node], CONTEXT.table) for node in unit.nodes]
            moved = sum(grouping.bytes_moved(one.description) for one in apart)  # type: ignore[misc, union-attr]
            assert grouping.bytes_moved(together.description) <= moved  # type: ignore[operator]


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_each_pass_of_the_pipeline_does_nothing_the_second_time(graph: Graph) -> None:
    for context in (CONTEXT, PassContext(emitter=MapsOnly(writes=2), crossings_free=False), PassContext()):
        for name in COMPILE_PIPELINE.split(","):
            results = run_pipeline(graph, f"{name},{name}", context)
            assert not results[1].changed, name
        before = print_graph(graph)
        assert not any(result.changed for result in run_pipeline(graph, COMPILE_PIPELINE, context))
        assert print_graph(graph) == before


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_placing_views_keeps_the_units_acyclic(graph: Graph) -> None:
    context = PassContext(emitter=AnyEmitter(), crossings_free=False)
    run_pipeline(graph, "mark-supported,cluster,fuse", context)
    assert is_acyclic(graph, "tessiq.cluster")
    check_order(graph, schedule(graph, CONTEXT.table))
    for node in graph.nodes:
        if node.attribute("tessiq.claim") == "kernel":
            assert node.has_attribute("tessiq.cluster")


# -- cost ------------------------------------------------------------------------------------------------------------
BIG = {
    "chain": lambda: chain(10_000),
    "chain through ATen": lambda: chain(10_000, other="aten.foo.default", every=5),
    "diamonds": lambda: diamonds(3_300),
    "layers": lambda: layers(100, 100),
    "wide layers": lambda: layers(10, 1000),
}


@pytest.mark.parametrize("shape", BIG)
def test_ten_thousand_nodes_are_clustered_within_two_seconds(shape: str) -> None:
    graph = BIG[shape]()
    for node in graph.nodes:  # what mark-supported would say; asking it takes longer than what is measured
        known = node.op.startswith("aten.foo")
        node.set_attribute("tessiq.decline" if known else "tessiq.claim", "no-row: none" if known else "kernel")
    started = time.process_time()
    run_pipeline(graph, "cluster", CONTEXT, verify=False)
    assert time.process_time() - started < 2
    assert is_acyclic(graph, "tessiq.cluster")


THOUSAND = {"chain": lambda: chain(1000), "diamonds": lambda: diamonds(330), "layers": lambda: layers(2, 500)}


@pytest.mark.parametrize("shape", THOUSAND)
def test_a_thousand_nodes_are_fused_within_two_seconds(shape: str) -> None:
    graph = THOUSAND[shape]()
    run_pipeline(graph, "mark-supported,cluster", CONTEXT, verify=False)
    started = time.process_time()
    run_pipeline(graph, "fuse", CONTEXT, verify=False)
    assert time.process_time() - started < 2
    assert is_acyclic(graph, "tessiq.group")


# -- placement -------------------------------------------------------------------------------------------------------
def placed(text: str) -> dict[str, int | None]:
    context = PassContext(emitter=AnyEmitter(), crossings_free=False)
    return numbers(compiled(text, context, "mark-supported,cluster,cluster"), "tessiq.cluster")


def test_views_between_nodes_of_aten_stay_at_home_where_crossings_cost() -> None:
    text = """graph @main(%p: f32[4, 2]) {
  %u = aten.cumsum.default(%p) {1 = 0} : f32[4, 2]
  %v = aten.permute.default(%u) {1 = [1, 0]} : f32[2, 4; 1, 2]
  %v2 = aten.view.default(%v) {1 = [2, 4]} : f32[2, 4; 1, 2]
  %w = aten.cumsum.default(%v2) {1 = 0} : f32[2, 4]
  return %w
}"""
    assert placed(text) == {"u": None, "v": None, "v2": None, "w": None}


def test_a_compute_node_between_nodes_of_aten_stays_on_the_device() -> None:
    text = """graph @main(%p: f32[4]) {
  %u = aten.cumsum.default(%p) {1 = 0} : f32[4]
  %a = aten.relu.default(%u) : f32[4]
  %w = aten.cumsum.default(%a) {1 = 0} : f32[4]
  return %w
}"""
    assert placed(text)["a"] == 0


def test_a_view_goes_where_fewer_bytes_cross() -> None:
    # A small slice of a big table crosses alone; a broadcast crosses as the row it is made of.
    text = """graph @main(%table: f32[1000, 4], %row: f32[1, 4], %x: f32[500, 4]) {
  %cut = aten.slice.Tensor(%table) {1 = 0, 2 = 0, 3 = 2} : f32[2, 4]
  %a = aten.relu.default(%cut) : f32[2, 4]
  %wide = aten.expand.default(%row) {1 = [500, 4]} : f32[500, 4; 0, 1]
  %b = aten.add.Tensor(%x, %wide) : f32[500, 4]
  return %a, %b
}"""
    assert placed(text) == {"cut": None, "a": 0, "wide": 1, "b": 1}


def test_a_view_only_aten_reads_stays_at_home_though_its_source_crosses() -> None:
    text = """graph @main(%p: f32[4, 4]) {
  %a = aten.relu.default(%p) : f32[4, 4]
  %v = aten.permute.default(%p) {1 = [1, 0]} : f32[4, 4; 1, 4]
  %u = aten.cumsum.default(%v) {1 = 0} : f32[4, 4]
  return %a, %u
}"""
    assert placed(text) == {"a": 0, "v": None, "u": None}


def test_a_view_read_on_both_sides_stays_where_its_source_is() -> None:
    text = """graph @main(%p: f32[4, 4]) {
  %home = aten.permute.default(%p) {1 = [1, 0]} : f32[4, 4; 1, 4]
  %u = aten.cumsum.default(%home) {1 = 0} : f32[4, 4]
  %a = aten.relu.default(%home) : f32[4, 4; 1, 4]
  %there = aten.permute.default(%a) {1 = [1, 0]} : f32[4, 4]
  %w = aten.cumsum.default(%there) {1 = 0} : f32[4, 4]
  %b = aten.exp.default(%there) : f32[4, 4]
  return %u, %w, %b
}"""
    assert placed(text) == {"home": None, "u": None, "a": 0, "there": 0, "w": None, "b": 0}


# -- fusion ----------------------------------------------------------------------------------------------------------
def group_sizes(graph: Graph) -> list[int]:
    return [len(unit.nodes) for unit in schedule(graph, CONTEXT.table) if unit.kind == "kernel"]


def test_a_kernel_has_a_greatest_size_and_the_reason_is_recorded() -> None:
    graph = chain(200)
    run_pipeline(graph, "mark-supported,cluster,fuse", CONTEXT)
    sizes = group_sizes(graph)
    assert max(sizes) <= grouping.MAX_NODES
    assert len(sizes) <= 2 * (200 // grouping.MAX_NODES + 1)
    ends = [b for a, b in pairwise(graph.nodes) if a.attribute("tessiq.group") != b.attribute("tessiq.group")]
    assert all(f"the most is {grouping.MAX_NODES}" in str(node.attribute("tessiq.fuse")) for node in ends)


def test_a_kernel_has_a_greatest_number_of_buffers() -> None:
    graph = Graph()
    total = graph.add_parameter("x", SQUARE)
    for n in range(40):
        other = graph.add_parameter(f"p{n}", SQUARE)
        total = graph.append("aten.add.Tensor", [total, other], [(f"t{n}", SQUARE)]).results[0]
    graph.set_results([total])
    run_pipeline(graph, "mark-supported,cluster,fuse", CONTEXT)
    assert len(group_sizes(graph)) >= 2
    for unit in schedule(graph, CONTEXT.table):
        lowered = lower(unit.nodes, CONTEXT.table)
        assert not isinstance(lowered, Decline)
        assert len(lowered.operands.inputs) + len(lowered.operands.outputs) <= grouping.MAX_BUFFERS
    assert any("buffers" in str(node.attribute("tessiq.fuse")) for node in graph.nodes)


SOFTMAX = """graph @main(%x: f32[64, 128]) {
  %e = aten.exp.default(%x) : f32[64, 128]
  %s = aten.sum.dim_IntList(%e) {1 = [1], 2 = true} : f32[64, 1]
  %d = aten.div.Tensor(%e, %s) : f32[64, 128]
  return %d
}"""


def test_what_the_emitter_refuses_is_not_fused() -> None:
    graph = compiled(SOFTMAX, PassContext(emitter=MapsOnly()))
    assert numbers(graph, "tessiq.group") == {"e": 0, "s": None, "d": 1}
    assert numbers(compiled(SOFTMAX), "tessiq.group") == {"e": 0, "s": 0, "d": 0}


def test_a_merge_the_emitter_refuses_names_the_emitter() -> None:
    text = """graph @main(%x: f32[64]) {
  %a = aten.exp.default(%x) : f32[64]
  %b = aten.relu.default(%a) : f32[64]
  return %a, %b
}"""
    graph = compiled(text, PassContext(emitter=MapsOnly(writes=1)))
    reason = next(node for node in graph.nodes if node.name == "b").attribute("tessiq.fuse")
    assert reason == "not fused with %a: writes: any: this emitter writes at most 1 values"


def test_a_merge_that_moves_more_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = grouping.bytes_moved
    monkeypatch.setattr(grouping, "bytes_moved", lambda kernel: exact(kernel) * len(kernel.members) ** 2)
    graph = compiled(SOFTMAX)
    assert numbers(graph, "tessiq.group") == {"e": 0, "s": 1, "d": 2}
    assert "bytes: one kernel would move" in str(list(graph.nodes)[1].attribute("tessiq.fuse"))


def test_groups_that_read_one_value_are_merged_only_over_one_domain() -> None:
    text = """graph @main(%x: f32[8, 8], %y: f32[4, 8, 8]) {
  %a = aten.exp.default(%x) : f32[8, 8]
  %b = aten.relu.default(%x) : f32[8, 8]
  %c = aten.add.Tensor(%y, %x) : f32[4, 8, 8]
  return %a, %b, %c
}"""
    assert numbers(compiled(text), "tessiq.group") == {"a": 0, "b": 0, "c": 1}


def test_groups_that_share_only_broadcast_rows_and_columns_stay_apart() -> None:
    text = """graph @main(%x: f32[8, 8], %y: f32[8, 8], %row: f32[8], %column: f32[8, 1]) {
  %a = aten.add.Tensor(%x, %row) : f32[8, 8]
  %a2 = aten.mul.Tensor(%a, %column) : f32[8, 8]
  %b = aten.add.Tensor(%y, %row) : f32[8, 8]
  %b2 = aten.mul.Tensor(%b, %column) : f32[8, 8]
  return %a2, %b2
}"""
    graph = compiled(text)
    assert not isinstance(lower(list(graph.nodes), CONTEXT.table), Decline)  # they could be one kernel
    assert numbers(graph, "tessiq.group") == {"a": 0, "a2": 0, "b": 1, "b2": 1}


def test_symbolic_sizes_fuse_by_a_hint() -> None:
    text = """graph @main(%x: f32[s0, s1], %b: f32[s1]) {
  %a = aten.add.Tensor(%x, %b) : f32[s0, s1]
  %g = aten.sigmoid.default(%a) : f32[s0, s1]
  return %g
}"""
    assert numbers(compiled(text), "tessiq.group") == {"a": 0, "g": 0}


def test_a_claim_that_cannot_be_built_is_a_bug() -> None:
    text = """graph @main(%x: f32[4]) {
  %a = aten.cumsum.default(%x) {1 = 0, tessiq.claim = "kernel", tessiq.cluster = 0} : f32[4]
  return %a
}"""
    with pytest.raises(Internal, match=r"%a\) is claimed as a kernel and cannot become one \(no-row"):
        compiled(text, pipeline="fuse")


# -- schedule --------------------------------------------------------------------------------------------------------
def test_a_schedule_names_what_each_unit_is() -> None:
    text = """graph @main(%x: f32[4, 4]) {
  %a = aten.relu.default(%x) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 7} : f32[4, 4]
  %v = aten.t.default(%x) {tessiq.claim = "view", tessiq.cluster = 0} : f32[4, 4; 1, 4]
  %m = aten.mm.default(%a, %v) {tessiq.claim = "library", tessiq.cluster = 0, tessiq.library = "lib"} : f32[4, 4]
  %u = aten.cumsum.default(%m) {1 = 0, tessiq.decline = "no-row: none"} : f32[4, 4]
  %b = aten.exp.default(%a) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 7} : f32[4, 4]
  return %u, %b
}"""
    units = schedule(parse_graph(text), CONTEXT.table)
    assert [(unit.kind, "".join(node.name for node in unit.nodes)) for unit in units] == [
        ("kernel", "ab"),
        ("view", "v"),
        ("library", "m"),
        ("aten", "u"),
    ]


def test_groups_that_wait_for_each_other_are_a_bug() -> None:
    text = """graph @main(%x: f32[4]) {
  %a = aten.relu.default(%x) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 0} : f32[4]
  %u = aten.cumsum.default(%a) {1 = 0, tessiq.decline = "no-row: none"} : f32[4]
  %b = aten.exp.default(%u) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 0} : f32[4]
  return %b
}"""
    with pytest.raises(Internal, match=r"groups \[0\] wait for each other"):
        schedule(parse_graph(text), CONTEXT.table)


def test_a_kernel_without_a_group_is_a_bug() -> None:
    graph = compiled(
        "graph @main(%x: f32[4]) { %a = aten.relu.default(%x) : f32[4] return %a }", pipeline="mark-supported"
    )
    with pytest.raises(Internal, match=r"%a\) is claimed as a kernel and has no tessiq.group"):
        schedule(graph, CONTEXT.table)


def test_a_graph_without_decisions_runs_in_its_own_order() -> None:
    graph = layers(3, 5)
    units = schedule(graph, CONTEXT.table)
    assert [unit.nodes for unit in units] == [(node,) for node in graph.nodes]
    assert {unit.kind for unit in units} == {"aten"}


def names(nodes: tuple[Node, ...]) -> str:
    return " ".join(node.name for node in nodes)


def test_a_group_runs_once_all_it_waits_for_has_run() -> None:
    text = """graph @main(%x: f32[4], %y: f32[4]) {
  %a = aten.relu.default(%x) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 0} : f32[4]
  %u = aten.cumsum.default(%y) {1 = 0, tessiq.decline = "no-row: none"} : f32[4]
  %b = aten.add.Tensor(%a, %u) {tessiq.claim = "kernel", tessiq.cluster = 0, tessiq.group = 0} : f32[4]
  return %b
}"""
    assert [names(unit.nodes) for unit in schedule(parse_graph(text), CONTEXT.table)] == ["u", "a b"]
