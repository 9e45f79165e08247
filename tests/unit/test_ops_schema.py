"""ops.toml: every mistake in a row is an error that names the row and what is allowed."""

from __future__ import annotations

import pytest

from tessiq_core.errors import InvalidArgument
from tessiq_core.ops.row import REQUIRED, Argument
from tessiq_core.ops.schema import ELEMENT_SETS, load_rows
from tessiq_core.ops.signature import parse_signature

GOOD = {
    "category": '"elementwise"',
    "summary": '"Twice."',
    "spellings": '{ "aten.twice.default" = "self, *, alpha=1" }',
    "consumes": '["self"]',
    "expression": '"$self * acc_t(2.0)"',
    "elements": '["floats"]',
}


def toml(name: str = "twice", **changes: str | None) -> str:
    keys = {**GOOD, **changes}
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None)


def test_a_good_row_loads_with_its_sets_expanded() -> None:
    (row,) = load_rows(toml(allows='{ alpha = ["2", "@dtype(f)"] }'))
    assert row.spellings["aten.twice.default"] == (Argument("self"), Argument("alpha", 1, keyword_only=True))
    assert row.elements == ("f16", "bf16", "f32", "f64")
    assert (row.compute, row.result, row.effect, row.operands) == ("promote", "compute", "none", ("self",))
    assert row.allows["alpha"][0] == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"catgory": '"x"'}, ["unknown key 'catgory'", "category"]),
        ({"category": '"elementwize"'}, ["unknown category 'elementwize'", "elementwise"]),
        ({"category": None}, ["'category' is missing"]),
        ({"summary": None}, ["'summary' is missing"]),
        ({"summary": "3"}, ["summary must be a string"]),
        ({"consumes": '"self"'}, ["consumes must be a list of strings"]),
        ({"consumes": '["self", "other"]'}, ["consumes 'other'", "aten.twice.default"]),
        ({"consumes": "[]"}, ["names $self", "not in consumes"]),
        ({"consumes": '["self", "alpha"]'}, ["consumes 'alpha'", "never names $alpha"]),
        ({"expression": '"$self * 2.0"'}, ["floating literal", "acc_t(2.0)"]),
        ({"expression": '"$self * acc_t(2.0f)"'}, ["suffix"]),
        ({"expression": '"sinh($self)"'}, ["unknown function 'sinh'", "tanh"]),
        ({"expression": '"pow($self)"'}, ["pow takes 2 arguments, not 1"]),
        ({"expression": '"$self % 2"'}, ["'%'", "column 7"]),
        ({"expression": '"($self"'}, ["expected ')'"]),
        ({"expression": '"$self $self"'}, ["expected an operator"]),
        ({"expression": '"std::exp($self)"'}, ["column 4"]),
        ({"expression": None}, ["needs an expression"]),
        ({"compute": '"double"'}, ["unknown compute 'double'", "promote"]),
        ({"result": '"int"'}, ["unknown result 'int'"]),
        ({"effect": '"ordered"'}, ["unknown effect 'ordered'", "writes"]),
        ({"elements": '["f80"]'}, ["unknown element type 'f80'", "bf16"]),
        ({"elements": "[]"}, ["elements is empty"]),
        ({"reduction": '"sum"'}, ["unknown reduction 'sum'"]),
        ({"averages": '"yes"'}, ["averages must be true or false"]),
        ({"averages": "true"}, ['averages needs reduction = "sum"']),
        ({"conditions": '["mask"]'}, ["conditions names 'mask'"]),
        ({"allows": '{ self = ["1"] }'}, ["allows names 'self'"]),
        ({"allows": '{ alpha = ["one"] }'}, ["allows.alpha", "one"]),
        ({"allows": '["alpha"]'}, ["allows must be a table"]),
        ({"spellings": "{}"}, ["spellings must be a table"]),
        ({"spellings": '{ "aten.twice.default" = 3 }'}, ["must be a string"]),
        ({"spellings": '{ "aten.twice.default" = "self, self" }'}, ["'self' occurs twice"]),
        ({"spellings": '{ "aten.twice.default" = "self, *, *" }'}, ["second '*'"]),
        ({"spellings": '{ "aten.twice.default" = "self, a=zero" }'}, ["default of 'a'", "zero"]),
        ({"spellings": '{ "aten.twice.default" = "self, 2x" }'}, ["'2x' is not an argument name"]),
    ],
)
def test_a_bad_row_is_refused_by_name(changes: dict[str, str | None], words: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load_rows(toml(**changes), source="mine.toml")
    for word in ["mine.toml", "'twice'", *words]:
        assert word in str(caught.value)


def test_a_spelling_used_twice_names_both_rows() -> None:
    with pytest.raises(InvalidArgument, match=r"'again'.*'aten.twice.default' is already one of row 'twice'"):
        load_rows(toml() + toml("again"))


def test_text_that_is_not_toml_or_not_a_table() -> None:
    with pytest.raises(InvalidArgument, match="not TOML"):
        load_rows("[twice")
    with pytest.raises(InvalidArgument, match=r"expected a table \[twice\]"):
        load_rows("twice = 3")


def test_a_consumed_argument_of_a_reduction_may_be_in_some_overloads_only() -> None:
    row = toml(
        category='"reduction"',
        expression=None,
        reduction='"sum"',
        consumes='["self", "dim"]',
        spellings='{ "aten.twice.dim" = "self, dim", "aten.twice.default" = "self" }',
    )
    assert load_rows(row)[0].operands == ("self",)
    with pytest.raises(InvalidArgument, match="consumes 'axis'"):
        load_rows(row.replace('"self", "dim"]', '"self", "dim", "axis"]'))


def test_signatures() -> None:
    assert parse_signature("") == ()
    assert parse_signature('a, b=[1, 2], *, c="x, y", d=none, e=-0.5') == (
        Argument("a", REQUIRED),
        Argument("b", (1, 2)),
        Argument("c", "x, y", keyword_only=True),
        Argument("d", None, keyword_only=True),
        Argument("e", -0.5, keyword_only=True),
    )


def test_the_sets_hold_what_their_names_say() -> None:
    assert ELEMENT_SETS["numbers"] == (*ELEMENT_SETS["integers"], *ELEMENT_SETS["floats"])
    assert "bool" in ELEMENT_SETS["all"]
    assert "bool" not in ELEMENT_SETS["numbers"]
