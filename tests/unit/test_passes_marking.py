"""`mark-supported` and `layout-assign` with libraries and emitters of a target."""

from __future__ import annotations

import pytest

from support.pass_graphs import Library, MapsOnly
from tessiq_core.codegen.any_emitter import AnyEmitter
from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.printer import print_graph
from tessiq_core.passes.manager import PassContext, run_pipeline


def marked(text: str, context: PassContext, pipeline: str = "mark-supported") -> dict[str, Node]:
    graph = parse_graph(text)
    run_pipeline(graph, pipeline, context)
    return {node.name: node for node in graph.nodes}


LINEAR = """graph @main(%x: f32[4, 8], %w: f32[16, 8]) {
  %t = aten.t.default(%w) : f32[8, 16; 1, 8]
  %mm = aten.mm.default(%x, %t) : f32[4, 16]
  %r = aten.relu.default(%mm) : f32[4, 16]
  %s = aten.sum.dim_IntList(%r) {1 = [1]} : f32[4]
  return %s
}"""


def test_without_an_emitter_every_kernel_is_declined_and_views_and_libraries_are_not() -> None:
    nodes = marked(LINEAR, PassContext(libraries=(Library(),)))
    assert nodes["t"].attribute("tessiq.claim") == "view"
    assert nodes["mm"].attribute("tessiq.claim") == "library"
    assert nodes["mm"].attribute("tessiq.library") == "lib"
    for name in ("r", "s"):
        assert str(nodes[name].attribute("tessiq.decline")).startswith("no-emitter: ")


def test_what_the_emitter_refuses_is_declined_in_its_name() -> None:
    nodes = marked(LINEAR, PassContext(emitter=MapsOnly()))
    assert nodes["r"].attribute("tessiq.claim") == "kernel"
    assert nodes["s"].attribute("tessiq.decline") == "reduce: any: this emitter has no reductions yet"
    assert nodes["mm"].attribute("tessiq.decline") == "no-library: no library of the target runs mm"


def test_the_library_with_the_highest_priority_then_the_first_name_claims() -> None:
    libraries = (Library("a", priority=0), Library("z", priority=1), Library("b", priority=1))
    assert marked(LINEAR, PassContext(libraries=libraries))["mm"].attribute("tessiq.library") == "b"
    assert marked(LINEAR, PassContext(libraries=libraries[:2]))["mm"].attribute("tessiq.library") == "z"


def test_a_library_that_declines_a_matrix_product_is_quoted() -> None:
    nodes = marked(LINEAR, PassContext(libraries=(Library(op="aten.bmm.default"),)))
    assert nodes["mm"].attribute("tessiq.decline") == "not-mine: lib: lib runs aten.bmm.default only"


def test_a_library_is_asked_before_the_emitter_but_not_about_views_and_effects() -> None:
    text = """graph @main(%x: f32[4], %y: f32[4]) {
  %r = aten.relu.default(%x) : f32[4]
  %v = aten.view.default(%x) {1 = [4]} : f32[4]
  %c = aten.copy_.default(%x, %y) : f32[4]
  return %r, %v
}"""

    class Greedy(Library):
        def claim(self, node: Node, table: object) -> None:  # type: ignore[override]
            return None

    nodes = marked(text, PassContext(emitter=AnyEmitter(), libraries=(Greedy(),)))
    assert [nodes[n].attribute("tessiq.claim") for n in "rvc"] == ["library", "view", None]
    assert str(nodes["c"].attribute("tessiq.decline")).startswith("effect: ")


def test_a_library_does_not_get_a_result_whose_elements_share_memory() -> None:
    text = """graph @main(%x: f32[4, 8], %t: f32[8, 16]) {
  %mm = aten.mm.default(%x, %t) : f32[4, 16; 0, 1]
  return %mm
}"""
    nodes = marked(text, PassContext(libraries=(Library(),)))
    assert str(nodes["mm"].attribute("tessiq.decline")).startswith("layout: lib: %mm is recorded with strides [0, 1]")


def test_a_view_must_not_change_the_element_type() -> None:
    text = """graph @main(%x: f32[4]) {
  %v = aten.alias.default(%x) : i32[4]
  return %v
}"""
    decline = str(marked(text, PassContext.for_text())["v"].attribute("tessiq.decline"))
    assert decline == "element-type: %v reads f32 elements as i32"


TWO_READERS = """graph @main(%x: f32[4, 8], %w: f32[16, 8], %y: f32[16, 8]) {{
  %t = aten.t.default(%w) : f32[8, 16; 1, 8]
  %a = aten.mm.default(%x, %t) : f32[4, 16]
  {between}
  %b = aten.mm.default(%x, %t) : f32[4, 16]
  return %a, %b
}}"""


def layouts(between: str = "", context: PassContext | None = None) -> Graph:
    graph = parse_graph(TWO_READERS.format(between=between))
    context = context or PassContext(emitter=AnyEmitter(), libraries=(Library(),))
    results = run_pipeline(graph, "mark-supported,layout-assign,layout-assign", context)
    assert not results[-1].changed
    return graph


def test_a_demand_that_is_not_met_gets_one_copy_for_all_readers() -> None:
    nodes = {node.name: node for node in layouts().nodes}
    copies = [node for node in nodes.values() if node.op == "tessiq.copy"]
    assert len(copies) == 1
    assert copies[0].attribute("tessiq.claim") == "kernel"
    assert copies[0].operands[0].name == "t"
    assert copies[0].results[0].type.strides is None  # type: ignore[union-attr]
    assert [v.name for v in nodes["a"].operands] == ["x", "t_copy"]
    assert [v.name for v in nodes["b"].operands] == ["x", "t_copy"]


def test_a_copy_is_not_shared_across_a_write() -> None:
    graph = layouts("%w2 = aten.copy_.default(%w, %y) : f32[16, 8]")
    order = [node.name for node in graph.nodes]
    assert order == ["t", "t_copy", "a", "w2", "t_copy_1", "b"]


def test_a_library_that_reads_any_layout_gets_no_copy() -> None:
    context = PassContext(emitter=AnyEmitter(), libraries=(Library(demand=lambda type: None),))
    assert all(node.op != "tessiq.copy" for node in layouts(context=context).nodes)


def test_where_no_kernel_makes_the_copy_the_node_is_declined_and_nothing_is_left_behind() -> None:
    graph = layouts(context=PassContext(libraries=(Library(),)))
    assert "tessiq.copy" not in print_graph(graph)
    for name in ("a", "b"):
        node = next(node for node in graph.nodes if node.name == name)
        assert str(node.attribute("tessiq.decline")).startswith("layout: the library reads %t in other strides")
        assert [v.name for v in node.operands] == ["x", "t"]


def test_copies_for_other_operands_go_when_one_cannot_be_made() -> None:
    # The first operand can be copied into the demanded strides, the second overlaps in them.
    context = PassContext(
        emitter=AnyEmitter(), libraries=(Library(demand=lambda type: (1, 4) if type.shape[0] == 4 else (0, 1)),)
    )
    assert [node.name for node in layouts(context=context).nodes] == ["t", "a", "b"]


def test_an_axis_of_extent_one_may_have_any_stride() -> None:
    text = """graph @main(%x: f32[1, 8; 99, 1], %t: f32[8, 16]) {
  %mm = aten.mm.default(%x, %t) : f32[1, 16]
  return %mm
}"""
    nodes = marked(text, PassContext(emitter=AnyEmitter(), libraries=(Library(),)), "mark-supported,layout-assign")
    assert list(nodes) == ["mm"]


def test_a_binding_that_is_not_there_or_answers_short_is_named() -> None:
    graph = parse_graph(LINEAR)
    run_pipeline(graph, "mark-supported", PassContext(libraries=(Library("gone"),)))
    with pytest.raises(InvalidArgument, match=r"claimed by the library 'gone'.*it has: none"):
        run_pipeline(graph, "layout-assign", PassContext())

    class Short(Library):
        def layouts(self, node: Node, table: object) -> tuple[None, ...]:  # type: ignore[override]
            return (None,)

    with pytest.raises(Internal, match="gave 1 layouts for the 2 operands"):
        run_pipeline(graph, "layout-assign", PassContext(libraries=(Short("gone"),)))
