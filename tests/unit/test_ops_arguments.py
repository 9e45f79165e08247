"""Binding: operands and attributes meet the schema's arguments, and unconsumed ones must be harmless."""

from __future__ import annotations

import pytest

from support.op_nodes import node
from tessiq_core.decline import Decline
from tessiq_core.ir import Label, Value
from tessiq_core.ops import BoundCall, OperationTable, bind, default_table
from tessiq_core.ops.schema import load_rows

TABLE = default_table()


def bound(call: str, results: str = "f32[2, 3]", **parameters: str) -> dict[str, object]:
    """What each argument is bound to; a value by its name with %."""
    found = bind(node(call, results, **parameters), TABLE)
    assert isinstance(found, BoundCall), found

    def show(item: object) -> object:
        if isinstance(item, tuple):
            return tuple(map(show, item))
        return f"%{item.name}" if isinstance(item, Value) else item

    return {name: show(item) for name, item in found.arguments.items()}


def declined(call: str, results: str = "f32[2, 3]", table: OperationTable = TABLE, **parameters: str) -> Decline:
    found = bind(node(call, results, **parameters), table)
    assert isinstance(found, Decline), found
    assert found.node == "r0"
    return found


def test_operands_then_defaults() -> None:
    assert bound("aten.add.Tensor(%x, %y)") == {"self": "%x", "other": "%y", "alpha": 1}


def test_a_number_keeps_its_position() -> None:
    assert bound("aten.sub.Tensor(%x) {0 = 1.0}") == {"self": 1.0, "other": "%x", "alpha": 1}
    assert bound("aten.sub.Tensor(%x) {1 = 1.0}") == {"self": "%x", "other": 1.0, "alpha": 1}


def test_a_short_name_has_the_first_spellings_signature() -> None:
    assert bound("add(%x, %y)") == bound("aten.add.Tensor(%x, %y)")
    assert "dim" in bound("sum(%x) {1 = [0]}", "f32[3]")


def test_keywords_may_name_positional_arguments_and_holes() -> None:
    assert bound("aten.add.Tensor(%x, %y) {other = _}") == {"self": "%x", "other": "%y", "alpha": 1}
    # holes in order: numbered attributes first, keywords by name after them
    got = bound("aten.where.self(%y, %x, %c) {0 = _, other = _, self = _}", c="bool[2, 3]", y="bool[2, 3]")
    assert got == {"condition": "%y", "other": "%x", "self": "%c"}


def test_a_list_with_holes_becomes_a_tuple_with_values() -> None:
    got = bound("aten.view.default(%x, %n) {1 = [_, 3]}", "f32[?, 3]", n="int(s0)", s="f32[s0]")
    assert got["size"] == ("%n", 3)


def test_decisions_are_no_arguments() -> None:
    assert bound('aten.add.Tensor(%x, %y) {tessiq.claim = "kernel"}')["alpha"] == 1


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("aten.add.Tensor(%x, %y) {alpha = 2}", "'alpha' is 2"),
        ("aten.sub.Scalar(%x) {1 = 1.0, 2 = 0.5}", "'alpha' is 0.5"),
        ('aten.div.Tensor_mode(%x, %y) {rounding_mode = "floor"}', "'rounding_mode' is \"floor\""),
        ('aten.gelu.default(%x) {approximate = "tanh"}', "'approximate' is \"tanh\""),
        ('aten.gelu_backward.default(%x, %y) {approximate = "tanh"}', "'approximate' is \"tanh\""),
        ("aten.sum.dim_IntList(%x) {1 = [0], dtype = @dtype(float64)}", "'dtype' is @dtype(float64)"),
        ("aten.mean.default(%x) {dtype = @dtype(float64)}", "'dtype' is @dtype(float64)"),
        ("aten.addmm.default(%x, %x, %y) {beta = 0}", "'beta' is 0"),
        ("aten.baddbmm.default(%x, %x, %y) {alpha = 2.0}", "'alpha' is 2.0"),
        ("aten._to_copy.default(%x) {device = @device(meta)}", "'device' is @device(meta)"),
        ("aten._to_copy.default(%x) {pin_memory = true}", "'pin_memory' is true"),
        ("aten._to_copy.default(%x) {layout = @layout(sparse_coo)}", "'layout' is @layout(sparse_coo)"),
        ("aten.add.Tensor(%x, %y) {alpha = true}", "'alpha' is true"),
    ],
)
def test_an_argument_nobody_consumes_must_be_its_default(call: str, argument: str) -> None:
    found = declined(call)
    assert found.code == "argument"
    assert f"argument {argument}" in found.reason


def test_an_operand_in_an_unconsumed_argument_is_named() -> None:
    found = declined("aten.add.Tensor(%x, %y, %n) {alpha = _}", n="float")
    assert "'alpha' is %n" in found.reason


@pytest.mark.parametrize(
    "call",
    [
        "aten.add.Tensor(%x, %y) {alpha = 1}",
        "aten.add.Tensor(%x, %y) {alpha = 1.0}",
        "aten.div.Tensor_mode(%x, %y) {rounding_mode = none}",
        'aten.gelu.default(%x) {approximate = "none"}',
        "aten._to_copy.default(%x) {device = @device(cpu), layout = @layout(strided), pin_memory = false}",
        "aten._to_copy.default(%x) {dtype = @dtype(float64), non_blocking = true}",
        "aten.clone.default(%x) {memory_format = @memory_format(contiguous_format)}",
    ],
)
def test_harmless_arguments_bind(call: str) -> None:
    assert isinstance(bind(node(call), TABLE), BoundCall)


def test_the_home_decides_which_device_is_harmless() -> None:
    call = "aten._to_copy.default(%x) {device = @device(cpu)}"
    table = TABLE.for_home("cuda:0")
    assert "'device' is @device(cpu)" in declined(call, table=table).reason
    assert isinstance(bind(node(call.replace("cpu", "cuda:0")), table), BoundCall)
    assert table.fingerprint() != TABLE.fingerprint()
    assert table.for_home("cpu").fingerprint() == TABLE.fingerprint()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("aten.add.Tensor(%x)", "'other' is missing"),
        ("aten.neg.default(%x, %y)", "argument 1 of aten.neg.default is one too many"),
        ("aten.neg.default(%x) {1 = 1}", "argument 1 of aten.neg.default is one too many"),
        ("aten.add.Tensor(%x, %y) {beta = 1}", "no argument 'beta'"),
        ("aten.add.Tensor(%x, %y) {other = 1}", "'other' of aten.add.Tensor is passed twice"),
        ("aten.clamp.default(%x) {1 = 0}", "'max' is none"),
        ("aten.clamp.default(%x) {max = 0}", "'min' is none"),
    ],
)
def test_a_call_that_does_not_fit_is_declined(call: str, words: str) -> None:
    found = declined(call)
    assert found.code == "argument"
    assert words in found.reason


def test_no_row() -> None:
    found = declined("aten.sinh.default(%x)")
    assert found.code == "no-row"
    assert "aten.sinh.default" in found.reason


def test_an_allowed_label_is_compared_by_kind_and_name() -> None:
    rows = load_rows(
        '[hold]\ncategory = "copy"\nsummary = "."\nelements = ["all"]\nconsumes = ["self"]\nexpression = "$self"\n'
        'spellings."aten.hold.default" = "self, *, where"\nallows.where = ["@layout(strided)"]\n'
    )
    table = OperationTable(rows)
    assert isinstance(bind(node("hold(%x) {where = @layout(strided)}"), table), BoundCall)
    assert "@device(strided)" in declined("hold(%x) {where = @device(strided)}", table=table).reason
    assert rows[0].allows["where"] == (Label("layout", "strided"),)
