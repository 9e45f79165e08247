"""Custom operations as data: the checks, the row. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tessiq_core.custom_ops import CustomOperation, problems, row_of
from tessiq_core.custom_ops.schema import parse_schema
from tessiq_core.errors import InvalidArgument
from tessiq_core.ops.row import REQUIRED, Argument
from tessiq_core.ops.table import default_table

GOOD = CustomOperation(
    schema="my_ops::soft_clip(Tensor x, Tensor bound, *, float slope=0.1, int mode=2) -> Tensor",
    reference=lambda x, bound, slope=0.1, mode=2: x,
    expression="$x <= $bound ? $x : $bound + ($x - $bound) * $slope",
    elements=("f32", "f64"),
    summary="a softer clip",
)


def test_a_good_operation_has_no_problem():
    assert problems(GOOD) == ()


def test_the_row():
    row = row_of(GOOD)
    assert row.name == "my_ops_soft_clip"
    assert row.spellings == {
        "my_ops.soft_clip.default": (
            Argument("x", REQUIRED),
            Argument("bound", REQUIRED),
            Argument("slope", 0.1, keyword_only=True),
            Argument("mode", 2, keyword_only=True),
        )
    }
    assert row.consumes == ("x", "bound", "slope")  # `mode` has a default and is not read
    assert row.reference is GOOD.reference
    table = default_table().with_rows([row])
    assert table.row("my_ops.soft_clip.default") is row
    assert table.fingerprint() != default_table().fingerprint()


def test_an_overload_is_a_part_of_both_names():
    row = row_of(replace(GOOD, schema=GOOD.schema.replace("soft_clip", "soft_clip.by")))
    assert row.name == "my_ops_soft_clip_by"
    assert list(row.spellings) == ["my_ops.soft_clip.by"]


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"schema": "my_ops.soft_clip(Tensor x) -> Tensor"}, "schema", "is not of the form `namespace::name"),
        ({"schema": "my_ops::f(Tensor x) -> (Tensor, Tensor)"}, "schema", "it returns `(Tensor, Tensor)`"),
        ({"schema": "my_ops::f(Tensor x, int[] dims) -> Tensor"}, "schema", "argument `dims` has type `int[]`"),
        ({"schema": "my_ops::f(Tensor(a!) x) -> Tensor"}, "schema", "has type `Tensor(a!)`"),
        ({"schema": "my_ops::f(Tensor x, x) -> Tensor"}, "schema", "argument `x` is not of the form"),
        ({"schema": "my_ops::f(Tensor x, float x=1.0) -> Tensor"}, "schema", "two arguments are called `x`"),
        ({"schema": "my_ops::f(float k) -> Tensor"}, "schema", "it takes no Tensor"),
        (
            {"schema": "my_ops::f(Tensor x, float k=high) -> Tensor"},
            "schema",
            "the default `high`; expected float or int",
        ),
        ({"schema": "my_ops::f(Tensor x, int k=0.5) -> Tensor"}, "schema", "the default `0.5`; expected int"),
        ({"schema": "my_ops::f(Tensor x,, int k) -> Tensor"}, "schema", "the argument `` is not of the form"),
        ({"schema": "my_ops::f(Tensor x, *, *, int k) -> Tensor"}, "schema", "the argument `*` is not of the form"),
        (
            {"schema": "my_ops::f(Tensor x, Tensor y=1) -> Tensor"},
            "schema",
            "argument `y` has the default `1`; expected none",
        ),
        ({"schema": GOOD.schema.replace("my_ops", "aten")}, "namespace", "the namespace `aten` is not yours"),
        ({"reference": None}, "reference", "must be a function, not None"),
        ({"backward": print}, "backward", "`backward` and `setup_context` need each other"),
        ({"elements": ()}, "elements", "names no element type"),
        ({"elements": ("f32", "float")}, "elements", "`float` is not an element type; those that exist are bool"),
        ({"compute": "f32"}, "compute", "`compute` is one of promote, float"),
        ({"result": "first"}, "compute", "`result` one of compute, bool"),
        ({"expression": "$x + $bound + $slop"}, "expression-argument", "reads `$slop`, which is no argument"),
        ({"expression": "$x"}, "expression-argument", "never reads the argument `bound`"),
        ({"expression": "$x + $bound * 0.5"}, "expression", "acc_t(0.5)"),
        ({"expression": "$x + $bound * 1e-3f"}, "expression", "acc_t(1e-3f)"),
        ({"expression": "cosh($x) + $bound"}, "expression", "unknown function 'cosh'"),
        ({"expression": "($x + $bound"}, "expression", "expected ')'"),
        ({"expression": ""}, "expression", "expected an operand"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], code: str, reason: str):
    bad = replace(GOOD, **change)
    (problem,) = problems(bad)
    assert problem.code == code
    assert reason in problem.reason
    with pytest.raises(InvalidArgument) as caught:
        row_of(bad)
    assert str(caught.value).startswith(f"tessiq: custom operation {bad.qualified_name}: ")
    assert reason in str(caught.value)


def test_all_problems_are_told_at_once():
    bad = replace(GOOD, elements=(), expression="$x + $y + $z")
    assert [problem.code for problem in problems(bad)] == ["elements", *["expression-argument"] * 3]


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("-1.5", -1.5), ("1e-3", 1e-3), ("True", True), ("0.0", 0.0)])
def test_defaults_keep_their_type(text, value):
    (_, argument) = parse_schema(f"n::f(Tensor x, Scalar k={text}) -> Tensor").arguments
    assert (argument.default, type(argument.default)) == (value, type(value))


def test_the_definition_leaves_the_namespace_out():
    assert parse_schema("n::f.o(Tensor x) -> Tensor").definition == "f.o(Tensor x) -> Tensor"
