"""Shapes and view offsets over symbols; the numbers are compared with PyTorch in tests/cpu."""

from __future__ import annotations

import pytest

from support.op_nodes import node
from tessiq_core.decline import Decline
from tessiq_core.ir import UNKNOWN, parse_extent, symbol
from tessiq_core.ops import BoundCall, bind, default_table, keeps_axes, reduced_axes, result_shapes, view_offsets
from tessiq_core.ops.shapes import broadcast

S0, S1 = symbol("s0"), symbol("s1")
TABLE = default_table()


def shapes(call: str, results: str = "f32[1]", **parameters: str) -> tuple[str | None, ...] | Decline:
    bound = bind(node(call, results, **parameters), TABLE)
    assert isinstance(bound, BoundCall), bound
    found = result_shapes(bound)
    if isinstance(found, Decline):
        return found
    return tuple(None if shape is None else ", ".join(map(str, shape)) for shape in found)


def offsets(call: str, results: str = "f32[1]", **parameters: str) -> tuple[str, ...] | Decline:
    found = view_offsets(node(call, results, **parameters), TABLE)
    return found if isinstance(found, Decline) else tuple(map(str, found))


@pytest.mark.parametrize(
    ("given", "result"),
    [
        ([], ()),
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 3), ()], (2, 3)),
        ([(0, 1), (1, 3)], (0, 3)),
        ([(S0, 3), (S0, 1)], (S0, 3)),
        ([(S0,), (1,)], (S0,)),
        ([(S0,), (4,)], (4,)),
        ([(S0,), (S1,)], (UNKNOWN,)),
        ([(UNKNOWN,), (UNKNOWN,)], (UNKNOWN,)),
        ([(UNKNOWN,), (S0,)], (UNKNOWN,)),
        ([(UNKNOWN,), (1,)], (UNKNOWN,)),
        ([(UNKNOWN,), (4,)], (4,)),
        ([(2,), (3,)], None),
        ([(S0,), (2,), (3,)], None),
    ],
)
def test_broadcast(given: list[tuple[object, ...]], result: object) -> None:
    assert broadcast(given) == result  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "parameters", "result"),
    [
        ("add(%a, %b)", {"a": "f32[s0, 1]", "b": "f32[s1]"}, "s0, s1"),
        ("mul(%a) {1 = 2.0}", {"a": "f32[s0, 3]"}, "s0, 3"),
        ("where(%c, %a, %b)", {"c": "bool[4, 1]", "a": "f32[]", "b": "f32[s0]"}, "4, s0"),
        ("sum(%a) {1 = [-1], 2 = true}", {"a": "f32[s0, s1]"}, "s0, 1"),
        ("sum(%a) {1 = [0]}", {"a": "f32[s0, s1]"}, "s1"),
        ("mm(%a, %b)", {"a": "f32[s0, 4]", "b": "f32[4, s1]"}, "s0, s1"),
        ("bmm(%a, %b)", {"a": "f32[2, s0, 4]", "b": "f32[2, 4, 5]"}, "2, s0, 5"),
        ("addmm(%d, %a, %b)", {"a": "f32[s0, 4]", "b": "f32[4, 5]", "d": "f32[5]"}, "s0, 5"),
        ("clone(%a)", {"a": "f32[s0, 4]"}, "s0, 4"),
        ("permute(%a) {1 = [-1, 0, 1]}", {"a": "f32[s0, s1, 4]"}, "4, s0, s1"),
        ("transpose(%a) {1 = 0, 2 = -1}", {"a": "f32[s0, s1, 4]"}, "4, s1, s0"),
        ("unsqueeze(%a) {1 = -1}", {"a": "f32[s0]"}, "s0, 1"),
        ("squeeze(%a) {1 = 1}", {"a": "f32[s0, 1, 2]"}, "s0, 2"),
        ("squeeze(%a) {1 = 0}", {"a": "f32[s0, 1, 2]"}, None),
        ("view(%a) {1 = [-1, 8]}", {"a": "f32[s0, 4, 2]"}, "s0, 8"),
        ("view(%a) {1 = [-1, 3]}", {"a": "f32[s0]"}, "floordiv(s0, 3), 3"),
        ("view(%a, %n) {1 = [_, 8]}", {"a": "f32[s0, 4, 2]", "n": "int(s0)"}, "s0, 8"),
        ("expand(%a) {1 = [3, -1, 5]}", {"a": "f32[s0, 1]"}, "3, s0, 5"),
        ("slice(%a) {1 = 0, 2 = 0, 3 = 9223372036854775807}", {"a": "f32[s0, 2]"}, "s0, 2"),
        ("slice(%a) {1 = 0, 2 = 1, 3 = 9223372036854775807}", {"a": "f32[s0, 2]"}, None),
        ("select(%a) {1 = 0, 2 = 1}", {"a": "f32[s0, 2]"}, "2"),
        ("convolution(%x, %y) {2 = none, 3 = [1], 4 = [0], 5 = [1], 6 = false, 7 = [0], 8 = 1}", {}, None),
    ],
)
def test_shapes_of_one_result(call: str, parameters: dict[str, str], result: str | None) -> None:
    assert shapes(call, **parameters) == (result,)


def test_shapes_of_several_results() -> None:
    both = "f32[2], f32[2]"
    assert shapes("split(%a) {1 = 4, 2 = -1}", both, a="f32[s0, 6]") == ("s0, 4", "s0, 2")
    assert shapes("split_with_sizes(%a) {1 = [1, 5], 2 = 1}", both, a="f32[s0, 6]") == ("s0, 1", "s0, 5")
    assert shapes("unbind(%a) {1 = 1}", both, a="f32[s0, 2]") == ("s0", "s0")
    assert shapes("native_dropout(%a) {1 = 0.5, 2 = true}", "f32[2], bool[2]", a="f32[s0]") == ("s0", "s0")


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        ("add(%a, %b)", {"a": "f32[2]", "b": "f32[3]"}),
        ("mm(%a, %b)", {"a": "f32[2, 3]", "b": "f32[4, 5]"}),
        ("bmm(%a, %b)", {"a": "f32[2, 3, 4]", "b": "f32[3, 4, 5]"}),
        ("bmm(%a, %b)", {"a": "f32[2, 3, 4]", "b": "f32[4, 5]"}),
    ],
)
def test_shapes_that_cannot_belong_together(call: str, parameters: dict[str, str]) -> None:
    found = shapes(call, **parameters)
    assert isinstance(found, Decline)
    assert found.code == "shape"


def test_reduced_axes_and_keepdim() -> None:
    def read(call: str) -> tuple[tuple[int, ...] | None, bool]:
        bound = bind(node(call, a="f32[2, 3, 4]"), TABLE)
        assert isinstance(bound, BoundCall)
        return reduced_axes(bound), keeps_axes(bound)

    assert read("sum(%a) {1 = [-1, 0], 2 = true}") == ((0, 2), True)
    assert read("aten.sum.default(%a)") == ((0, 1, 2), False)
    assert read("aten.sum.dim_IntList(%a) {1 = none}") == ((0, 1, 2), False)
    assert read("amax(%a)") == ((0, 1, 2), False)
    assert read("any(%a) {1 = 1}") == ((1,), False)
    assert read("aten.any.dims(%a) {1 = []}") == ((), False)
    assert read("sum(%a) {1 = [3]}") == (None, False)
    assert read("sum(%a) {1 = [0, -3]}") == (None, False)


@pytest.mark.parametrize(
    ("call", "parameters", "result"),
    [
        ("view(%a) {1 = [8]}", {"a": "f32[s0, 2]"}, "0"),
        ("permute(%a) {1 = [1, 0]}", {"a": "f32[s0, 2]"}, "0"),
        ("slice(%a) {1 = 1, 2 = 3}", {"a": "f32[4, s0]"}, "3"),
        ("slice(%a) {1 = 0, 2 = 3}", {"a": "f32[s0, s1]"}, "3*s1"),
        ("slice(%a) {1 = 0, 2 = -2}", {"a": "f32[s0, 5]"}, "5*max(0, s0 - 2)"),
        ("slice(%a) {1 = 0, 2 = 9}", {"a": "f32[4, 5; 10, 2]"}, "40"),
        ("slice(%a) {1 = 1, 2 = none}", {"a": "f32[4, s0]"}, "0"),
        ("select(%a) {1 = 0, 2 = -1}", {"a": "f32[s0, 5]"}, "5*s0 - 5"),
        ("select(%a) {1 = -1, 2 = 2}", {"a": "f32[s0, 5; 1, s0]"}, "2*s0"),
    ],
)
def test_offsets(call: str, parameters: dict[str, str], result: str) -> None:
    parse_extent(result)  # an offset is an extent of the text form
    assert offsets(call, **parameters) == (result,)


def test_offsets_of_several_results() -> None:
    three = "f32[2], f32[2], f32[2]"
    assert offsets("split(%a) {1 = 2, 2 = 1}", three, a="f32[s0, 6]") == ("0", "2", "4")
    assert offsets("split(%a, %n) {1 = _, 2 = 0}", three, a="f32[3*s0, 6]", n="int(s0)") == ("0", "6*s0", "12*s0")
    assert offsets("split_with_sizes(%a) {1 = [1, 2, 3], 2 = -1}", three, a="f32[s0, 6]") == ("0", "1", "3")
    assert offsets("unbind(%a) {1 = 0}", three, a="f32[3, s0]") == ("0", "s0", "2*s0")


@pytest.mark.parametrize(
    ("call", "parameters", "code"),
    [
        ("slice(%a, %n) {1 = 0, 2 = _}", {"a": "f32[s0, 5]", "n": "int(s0)"}, "offset"),
        ("select(%a, %n) {1 = 0, 2 = _}", {"a": "f32[s0, 5]", "n": "int"}, "offset"),
        ("slice(%a) {1 = 0, 2 = 1}", {"a": "f32[4, ?]"}, "offset"),
        ("slice(%a) {1 = 2, 2 = 1}", {"a": "f32[4, 5]"}, "offset"),
        ("split_with_sizes(%a) {1 = [1, 2]}", {"a": "f32[3]"}, "offset"),
        ("add(%x, %y)", {}, "category"),
        ("aten.narrow.default(%x)", {}, "no-row"),
        ("expand(%x) {1 = [2, 3], implicit = 7}", {}, "argument"),
    ],
)
def test_offsets_that_are_not_known(call: str, parameters: dict[str, str], code: str) -> None:
    found = offsets(call, **parameters)
    assert isinstance(found, Decline)
    assert found.code == code
