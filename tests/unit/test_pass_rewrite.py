"""What `rewrite` refuses in patterns; what it does to graphs is in tests/golden/rewrite."""

from __future__ import annotations

import pytest

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir import RewritePattern, parse_graph, print_graph
from tessiq_core.passes import PassContext, run_pipeline

NEG = "graph @p(%x: f32[?]) { %y = aten.neg.default(%x) : f32[?]  return %y }"
TWO = "graph @p(%x: f32[n]) { %y = aten.neg.default(%x) : f32[n]  %z = aten.exp.default(%y) : f32[n]  return %z }"


def rewrite(text: str, *patterns: RewritePattern) -> str:
    graph = parse_graph(text)
    run_pipeline(graph, "rewrite", PassContext.for_text(patterns=patterns))
    return print_graph(graph)


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (NEG.replace("?", "]"), NEG, r"rewrite pattern 'p', pattern:1:\d+: expected"),
        (NEG, "graph @r(%x: f32[?]) {", r"rewrite pattern 'p', replacement:1:\d+: expected a node or 'return'"),
        (NEG, NEG.replace("%x", "%z"), r"same parameters in the same order, not \['x'\] and \['z'\]"),
        (NEG.replace("return %y", "return %y, %y"), NEG, "must return exactly one value, not 2"),
        ("graph @p(%x: f32[?]) { return %x }", NEG, "the pattern must compute something; it returns a parameter"),
        (NEG.replace("(%x:", "(%w: int, %x:"), NEG.replace("(%x:", "(%w: int, %x:"), "the pattern does not read %w"),
        (NEG.replace("return", "other.op(%x) return"), NEG, "result does not depend on other.op"),
        (NEG.replace("return", "%z = other.op(%x) : int return"), NEG, "result does not depend on other.op"),
        (NEG, TWO, r"the type of %y uses n, which is no extent of a parameter"),
        (NEG.replace("aten.neg.default(%x)", "aten.copy_.default(%x, %x)"), NEG, "has the effect 'writes'"),
        (NEG, NEG.replace("aten.neg.default(%x)", 'a.b(%x) {tessiq.effect = "random"}'), "has the effect 'random'"),
    ],
)
def test_malformed_patterns_are_refused_by_name(pattern: str, replacement: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        rewrite("graph @main() { return }", RewritePattern("p", pattern, replacement))
    assert "rewrite pattern 'p'" in str(caught.value)


def test_patterns_that_never_come_to_rest_are_refused() -> None:
    exp = NEG.replace("neg", "exp")
    there, back = RewritePattern("there", NEG, exp), RewritePattern("back", exp, NEG)
    text = "graph @main(%x: f32[2]) { %y = aten.neg.default(%x) : f32[2]  return %y }"
    assert "aten.exp.default" in rewrite(text, there)
    with pytest.raises(InvalidArgument, match="does not come to rest, because the replacements of 'there', 'back'"):
        rewrite(text, there, back)


def test_a_replacement_that_doubles_itself_is_refused_soon() -> None:
    twice = TWO.replace("aten.exp", "aten.neg")
    text = "graph @main(%x: f32[2]) { %y = aten.neg.default(%x) : f32[2]  return %y }"
    with pytest.raises(InvalidArgument, match="does not come to rest"):
        rewrite(text, RewritePattern("double", NEG.replace("?", "n"), twice))


def test_equal_nodes_of_the_pattern_may_mean_one_node_of_the_graph() -> None:
    pattern = """graph @p(%x: f32[?]) {
      %a = aten.exp.default(%x) : f32[?]
      %b = aten.exp.default(%x) : f32[?]
      %c = aten.add.Tensor(%a, %b) : f32[?]
      return %c
    }"""
    one = """graph @main(%x: f32[2]) {
      %a = aten.exp.default(%x) : f32[2]
      %c = aten.add.Tensor(%a, %a) : f32[2]
      return %c
    }"""
    expected = '%c = other.op(%x) {tessiq.absorbed = ["a"]} : f32[2]'
    other = RewritePattern("p", pattern, "graph @r(%x: f32[?]) { %c = other.op(%x) : f32[?]  return %c }")
    assert expected in rewrite(one, other)


def test_a_parameter_never_means_an_inner_value() -> None:
    pattern = """graph @p(%x: f32[?], %y: f32[?]) {
      %a = aten.exp.default(%x) : f32[?]
      %c = aten.add.Tensor(%a, %y) : f32[?]
      return %c
    }"""
    replacement = "graph @r(%x: f32[?], %y: f32[?]) { %c = other.op(%x, %y) : f32[?]  return %c }"
    text = """graph @main(%x: f32[2]) {
  %a = aten.exp.default(%x) : f32[2]
  %c = aten.add.Tensor(%a, %a) : f32[2]
  return %c
}
"""
    assert rewrite(text, RewritePattern("p", pattern, replacement)) == text


def test_a_multi_result_root_keeps_the_results_nobody_replaces() -> None:
    pattern = """graph @p(%x: f32[?]) {
      %v, %m = aten.var_mean.default(%x) : f32[], f32[]
      return %m
    }"""
    mean = RewritePattern("p", pattern, "graph @r(%x: f32[?]) { %m = aten.mean.default(%x) : f32[]  return %m }")
    text = """graph @main(%x: f32[2]) {{
  %v, %m = aten.var_mean.default(%x) : f32[], f32[]
  return {}
}}
"""
    both = text.format("%v, %m")
    assert rewrite(both, mean) == both
    assert '%m = aten.mean.default(%x) {tessiq.absorbed = ["v"]} : f32[]' in rewrite(text.format("%m"), mean)


def test_true_is_not_one_and_minus_zero_is_not_zero() -> None:
    pattern = NEG.replace("neg.default(%x)", "mul.Tensor(%x) {1 = [1, 0]}")
    other = RewritePattern("p", pattern, NEG)
    text = "graph @main(%x: f32[2]) {{ %y = aten.mul.Tensor(%x) {{1 = {}}} : f32[2]  return %y }}"
    for value, matches in (("[1.0, 0.0]", True), ("[true, 0]", False), ("[1, -0.0]", False), ("[1]", False)):
        assert ("aten.neg" in rewrite(text.format(value), other)) is matches, value
