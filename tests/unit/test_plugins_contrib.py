"""tessiq-ops-contrib's pass and pattern on graphs as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tessiq_core.custom_ops import problems, row_of
from tessiq_core.ir import Graph, parse_graph, print_graph, verify
from tessiq_core.ops.table import default_table
from tessiq_core.passes.manager import PassContext, run_pipeline
from tessiq_ops_contrib_plugin.drop_identity_views import DropIdentityViews
from tessiq_ops_contrib_plugin.operations import OPERATIONS
from tessiq_ops_contrib_plugin.patterns import PATTERNS


def context() -> PassContext:
    table = default_table().with_rows([row_of(operation) for operation in OPERATIONS])
    return replace(PassContext.for_text(patterns=PATTERNS), table=table)


def dropped(text: str) -> tuple[Graph, bool]:
    graph = parse_graph(text)
    verify(graph)
    changed = DropIdentityViews(context()).run(graph)
    verify(graph)
    assert not DropIdentityViews(context()).run(graph), "running it again must change nothing"
    return graph, changed


@pytest.mark.parametrize(
    "node",
    [
        "aten.view.default(%x) {1 = [2, -1]} : f32[2, 3]",
        "aten.alias.default(%x) : f32[2, 3]",
        "aten.detach.default(%x) : f32[2, 3]",
        "aten.expand.default(%x) {1 = [2, 3]} : f32[2, 3]",
        "aten.slice.Tensor(%x) {1 = 0, 2 = 0, 3 = 9223372036854775807} : f32[2, 3]",
        "aten.squeeze.dim(%x) {1 = 0} : f32[2, 3]",
        "view(%x) {1 = [2, 3]} : f32[2, 3]",
    ],
)
def test_a_view_of_the_same_type_is_dropped(node):
    graph, changed = dropped(
        f"graph @main(%x: f32[2, 3]) {{\n  %v = {node}\n  %y = relu(%v) : f32[2, 3]\n  return %y\n}}\n"
    )
    assert changed
    assert print_graph(graph) == "graph @main(%x: f32[2, 3]) {\n  %y = relu(%x) : f32[2, 3]\n  return %y\n}\n"


def test_symbols_and_strides_that_are_equal():
    graph, changed = dropped(
        "graph @main(%s0: int(s0), %x: f32[s0, 3; 1, s0]) {\n"
        "  %v = aten.expand.default(%x, %s0) {1 = [_, 3]} : f32[s0, 3; 1, s0]\n"
        "  %w = aten.alias.default(%v) : f32[s0, 3; 1, s0]\n"
        "  %y = relu(%w) : f32[s0, 3; 1, s0]\n  return %y\n}\n"
    )
    assert changed
    assert [node.op for node in graph.nodes] == ["relu"]


@pytest.mark.parametrize(
    ("parameter", "node", "why"),
    [
        ("f32[3, 3]", "aten.permute.default(%x) {1 = [1, 0]} : f32[3, 3]", "another operation, whatever its type"),
        ("f32[1, 1]", "aten.transpose.int(%x) {1 = 0, 2 = 1} : f32[1, 1]", "another operation, whatever its type"),
        ("f32[2, 3]", "aten.view.default(%x) {1 = [3, 2]} : f32[3, 2]", "another shape"),
        ("f32[1, 3]", "aten.expand.default(%x) {1 = [2, 3]} : f32[2, 3; 0, 1]", "another shape"),
        ("f32[4, 3]", "aten.slice.Tensor(%x) {1 = 0, 2 = 1} : f32[3, 3]", "elements left out"),
        ("f32[1, 3; 3, 1]", "aten.view.default(%x) {1 = [1, 3]} : f32[1, 3; 7, 1]", "other strides"),
        ("f32[?]", "aten.slice.Tensor(%x) {1 = 0, 2 = 1} : f32[?]", "a size nothing is known about"),
        ("f32[2, 3]", "aten.relu.default(%x) : f32[2, 3]", "no view"),
        ("f32[2, 3]", "other.view.default(%x) : f32[2, 3]", "an operation without a row"),
    ],
)
def test_what_is_no_identity_stays(parameter, node, why):
    result = node.rpartition(" : ")[2]
    graph, changed = dropped(
        f"graph @main(%x: {parameter}) {{\n  %v = {node}\n  %y = relu(%v) : {result}\n  return %y\n}}\n"
    )
    assert not changed, why
    assert len(graph) == 2


def test_a_view_that_is_returned_stays():
    graph, changed = dropped(
        "graph @main(%x: f32[2]) {\n  %v = aten.alias.default(%x) : f32[2]\n"
        "  %y = relu(%v) : f32[2]\n  return %v, %y\n}\n"
    )
    assert not changed
    assert len(graph) == 2


def test_the_operations_pass_their_checks():
    for operation in OPERATIONS:
        assert problems(operation) == ()


def rewritten(body: str) -> list[str]:
    graph = parse_graph(f"graph @main(%x: f32[2, 3], %z: f32[2, 3]) {{\n{body}}}\n")
    run_pipeline(graph, "rewrite,dce", context(), verify=True)
    return [node.op for node in graph.nodes]


def test_the_square_of_a_relu_is_found():
    assert rewritten(
        "  %r = aten.relu.default(%x) : f32[2, 3]\n  %y = aten.mul.Tensor(%r, %r) : f32[2, 3]\n  return %y\n"
    ) == ["tessiq_contrib.squared_relu.default"]


def test_the_product_of_two_relus_is_not():
    assert rewritten(
        "  %r = aten.relu.default(%x) : f32[2, 3]\n  %q = aten.relu.default(%z) : f32[2, 3]\n"
        "  %y = aten.mul.Tensor(%r, %q) : f32[2, 3]\n  return %y\n"
    ) == ["aten.relu.default", "aten.relu.default", "aten.mul.Tensor"]
