"""The text form: what it looks like, that it is exact, and what its errors say."""

from __future__ import annotations

import math

import pytest

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir import (
    F32,
    HOLE,
    UNKNOWN,
    Attribute,
    Graph,
    Label,
    OpaqueType,
    ScalarType,
    ValueType,
    attribute_key,
    extent,
    opaque_element,
    parse_attribute,
    parse_extent,
    parse_graph,
    parse_type,
    print_attribute,
    print_graph,
    print_type,
    symbol,
    tensor_type,
)

EVERYTHING = """\
graph @main(%x: f32[2, 64], %w: f32[64, 32; 1, 64], %s0: int(s0), %n: int, %t: float, %b: bool, %p: bool[2], %r: f32[], \
%c: opaque(complex64)[2, 3], %q: opaque "sparse_coo f32", %e: bf16[floordiv(s0, 2), mod(s1, 3), max(1, s0), \
min(2*s0*s1 + 1, s1), ?, pow(s0, 20); 3, -s0 + 1, 0, ?, s0*s0, 1]) {
  %mul = aten.mul.Tensor(%x, %x) : f32[2, 64]
  %v, %m = aten.var_mean.correction(%x) {1 = [1], correction = 0, keepdim = true} : f32[2, 1], f32[2, 1]
  %cat = aten.cat.default(%x, %mul) {0 = [_, none, _], 1 = -1} : f32[4, 64]
  %copy = aten._to_copy.default(%x) {dtype = @dtype(float64), tessiq.claim = "kernel"} : f64[2, 64]
  aten._assert_async.msg(%p) {1 = "boom \\"é\\" \\n\\u2028"}
  %odd = other::op(%x) {1 = [-0.0, nan, inf, -inf, 1e-05, 1e+22, 1.0, 1, true], 2 = [[], [[@complex("(1+2j)")]]], 3 = @device(cuda:0), from = "_"} : int
  return %mul, %cat, %mul, %x
}
"""  # noqa: E501


def test_everything_is_written_as_it_was_read() -> None:
    assert print_graph(parse_graph(EVERYTHING)) == EVERYTHING


def test_a_graph_is_read_into_its_parts() -> None:
    graph = parse_graph(EVERYTHING)
    assert [value.name for value in graph.parameters][:3] == ["x", "w", "s0"]
    assert graph.parameters[1].type == tensor_type(F32, (64, 32), (1, 64))
    mul, var_mean, cat, copy, check, odd = graph.nodes
    assert [value.name for value in var_mean.results] == ["v", "m"]
    assert cat.attribute("0") == (HOLE, None, HOLE)
    assert copy.attribute("dtype") == Label("dtype", "float64")
    assert check.results == ()
    assert check.attribute("1") == 'boom "é" \n\u2028'
    assert list(odd.attributes) == ["1", "2", "3", "from"]
    assert [use.index for use in mul.results[0].uses if use.node is None] == [0, 2]


def test_layout_comments_and_packed_strides_do_not_matter() -> None:
    text = """
        // a comment
        graph@main ( %x:f32[2,3;3,1] , %y : f32[ ] ){ // here too
        %a=aten.add.Tensor(%x,%y):f32[2,3] %b = aten.neg.default(
            %a) { } : f32[2, 3]
        return%b }"""
    assert print_graph(parse_graph(text)) == (
        "graph @main(%x: f32[2, 3], %y: f32[]) {\n"
        "  %a = aten.add.Tensor(%x, %y) : f32[2, 3]\n"
        "  %b = aten.neg.default(%a) : f32[2, 3]\n"
        "  return %b\n"
        "}\n"
    )


def test_a_graph_may_be_empty() -> None:
    text = "graph @main() {\n  return\n}\n"
    assert print_graph(parse_graph(text)) == text
    assert print_graph(Graph()) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (1, "1"),
        (True, "true"),
        (-7, "-7"),
        (1e-05, "1e-05"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (-math.nan, "nan"),
        (None, "none"),
        ("", '""'),
        ("_", '"_"'),
        ("\U0001f600\\\t\x7f\u2029\U000e0001", '"\U0001f600\\\\\\t\\u007f\\u2029\\udb40\\udc01"'),
        (Label("layout", "strided"), "@layout(strided)"),
        (Label("complex", "(1+2j)"), '@complex("(1+2j)")'),
        (Label("dtype", ""), '@dtype("")'),
        ((), "[]"),
        (((HOLE, None), (1, (2.0,))), "[[_, none], [1, [2.0]]]"),
    ],
)
def test_attributes(value: Attribute, text: str) -> None:
    assert print_attribute(value) == text
    assert attribute_key(parse_attribute(text)) == attribute_key(value)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (tensor_type(F32, ()), "f32[]"),
        (tensor_type(F32, (0, 2)), "f32[0, 2]"),
        (tensor_type(F32, (3, 0), (1, 1)), "f32[3, 0; 1, 1]"),
        (tensor_type(F32, (UNKNOWN, UNKNOWN), (UNKNOWN, 1)), "f32[?, ?; ?, 1]"),
        (tensor_type(F32, (UNKNOWN, 4)), "f32[?, 4]"),
        (tensor_type(opaque_element("complex64"), (2,)), "opaque(complex64)[2]"),
        (ScalarType("int", symbol("s0")), "int(s0)"),
        (ScalarType("int", UNKNOWN), "int(?)"),
        (ScalarType("int", 4), "int(4)"),
        (ScalarType("bool"), "bool"),
        (OpaqueType("subgraph\n"), 'opaque "subgraph\\n"'),
    ],
)
def test_types(type: ValueType, text: str) -> None:
    assert print_type(type) == text
    assert parse_type(text) == type


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("s1*s0*2 + 1 - 1", "2*s0*s1"),
        ("-(s0 - 3)", "-s0 + 3"),
        ("s0 - (-s0)", "2*s0"),
        ("2 + 3*4", "14"),
        ("floordiv(4*s0 + 2, 2)", "2*s0 + 1"),
        ("floordiv(7, 2)", "3"),
        ("floordiv(-7, 2)", "-4"),
        ("floordiv(1, 0)", "floordiv(1, 0)"),
        ("pow(2, -1)", "pow(2, -1)"),
        ("pow(s0, 2)", "s0*s0"),
        ("max(s1, 3, max(s0, 5))", "max(5, s0, s1)"),
        ("min(s0, s0)", "s0"),
        ("? + s0", "?"),
        ("0*?", "0"),
        ("mod(4*s0, 2)", "0"),
        ("max(1, s0)*floordiv(s0, 3)", "floordiv(s0, 3)*max(1, s0)"),
    ],
)
def test_extents(text: str, canonical: str) -> None:
    assert str(parse_extent(text)) == canonical
    assert parse_extent(canonical) == parse_extent(text)


def graph_of(line: str, *, result: str = "%x") -> str:
    return f"graph @main(%x: f32[2], %y: f32[2]) {{\n  {line}\n  return {result}\n}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r":1:1: expected 'graph', got the end of the text"),
        ("grph @main() {}", r":1:1: expected 'graph', got grph"),
        ("graph @main(%x f32[2])", r":1:16: expected ':' before the parameter's type, got f32"),
        ("graph @main(%x: f23[2])", r":1:17: expected a type: one of bool, .*did you mean f32\?\), got f23"),
        ("graph @main(%x: f32)", r":1:20: expected '\[' and the shape after f32, got \)"),
        ("graph @main(%x: f32[2; 1, 2])", r":1:24: expected 1 strides, one an extent, got 2"),
        ("graph @main(%x: float(3))", r":1:22: expected '\)' after the parameters, got \("),
        ("graph @main(%x: f32[foo(2)])", r":1:21: expected a function of extents \(floordiv, .*\), got foo"),
        ("graph @main(%x: f32[mod(2)])", r":1:21: expected two arguments of mod, got 1"),
        ("graph @main(%x: int, %x: int)", r":1:22: expected a new value, got %x, which is already defined"),
        (graph_of("%a = aten.neg.default(%z) : f32[2]"), r":2:25: expected a value defined before this line, got %z"),
        (graph_of("%a = f(%a) : f32[2]"), r":2:10: expected a value defined before this line, got %a"),
        (graph_of("%a, %a = f(%x) : f32[2], f32[2]"), r":2:7: expected a new value, got %a"),
        (graph_of("%x = f(%x) : f32[2]"), r":2:3: expected a new value, got %x"),
        (graph_of("%a, %b = f(%x) : f32[2]"), r":2:20: expected 2 types, one a result, got 1"),
        (graph_of("%a = f(%x)"), r":3:3: expected ':' before the results' types, got return"),
        (graph_of("%a = f(%x} : f32[2]"), r":2:12: expected '\)' after the operands, got }"),
        (graph_of("f(%x) {1 = foo}"), r":2:14: expected an attribute .*, got foo"),
        (graph_of("f(%x) {1 = -true}"), r":2:14: expected an attribute .*, got -"),
        (graph_of("f(%x) {1 = 1, 1 = 2}"), r":2:17: expected an attribute not given yet, got 1"),
        (graph_of('f(%x) {1 = "a'), r":2:14: expected a JSON string closed on the same line, got \"a"),
        (graph_of(r'f(%x) {1 = "\q"}'), r":2:14: expected a valid JSON string"),
        (graph_of("f(%x) {1 = @dtype(})"), r":2:21: expected the label's name, in quotes where it is not plain, got }"),
        (graph_of("f(%x)", result="%yy"), r":3:10: .* got %yy; did you mean %y\?"),
        (graph_of("f(%x)") + "more", r":5:1: expected nothing more, got more"),
        (graph_of("f(%x) {1 = [_, _]}"), r":2:3: f has 1 operand, but .* leave 1 positions and 2 holes"),
        (graph_of("f(%x) {tessiq.group = 1}"), r":2:3: f has tessiq.group 1, but its tessiq.claim is None"),
        ("graph @main() {", r":1:16: expected a node or 'return', got the end of the text"),
        ("graph @main() { }", r":1:17: expected a node or 'return', got }"),
    ],
)
def test_errors_say_where_what_was_expected_and_what_came(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^tessiq: file\.ir" + message):
        parse_graph(text, source="file.ir")


def test_errors_show_the_line_with_a_caret() -> None:
    text = "graph @main(%x: f32[2]) {\n\t%y = f(%x}\n  return %x\n}"
    with pytest.raises(InvalidArgument) as caught:
        parse_graph(text)
    assert str(caught.value).split("\n")[1:] == ["  \t%y = f(%x}", "  \t         ^"]


@pytest.mark.parametrize("text", ["s0 +", "", "2 s0", "max()", "-", "(s0", "s0.5"])
def test_malformed_extents_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="expected"):
        parse_extent(text)


def test_extents_check_their_arguments() -> None:
    with pytest.raises(InvalidArgument, match="takes two arguments, not 1"):
        extent.call("floordiv", symbol("s0"))
    with pytest.raises(InvalidArgument, match="takes at least one argument, not 0"):
        extent.call("max")
    with pytest.raises(InvalidArgument, match=r"floordiv\(s0, s1\) is floordiv\(3, 0\) in this call"):
        extent.evaluate(extent.call("floordiv", symbol("s0"), symbol("s1")), {"s0": 3, "s1": 0})
    with pytest.raises(InvalidArgument, match="one stride an axis: 2 extents, but 1 strides"):
        tensor_type(F32, (2, 3), (1,))
