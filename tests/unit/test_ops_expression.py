"""The expression language: C's precedence, and nothing an emitter would not know."""

from __future__ import annotations

import pytest

from tessiq_core.errors import InvalidArgument
from tessiq_core.ops.expression import (
    Apply,
    ArgumentRef,
    Binary,
    Cast,
    Conditional,
    Literal,
    Unary,
    argument_names,
    parse_expression,
    walk,
)
from tessiq_core.ops.functions import FUNCTIONS
from tessiq_core.ops.table import default_table

A, B, C = ArgumentRef("a"), ArgumentRef("b"), ArgumentRef("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("$a + $b * $c", Binary("+", A, Binary("*", B, C))),
        ("$a - $b - $c", Binary("-", Binary("-", A, B), C)),
        ("($a - $b) / -$c", Binary("/", Binary("-", A, B), Unary("-", C))),
        ("$a < $b == $c", Binary("==", Binary("<", A, B), C)),
        ("$a || $b && $c", Binary("||", A, Binary("&&", B, C))),
        ("$a | $b ^ $c & $a", Binary("|", A, Binary("^", B, Binary("&", C, A)))),
        ("$a ? $b : $c ? $a : $b", Conditional(A, B, Conditional(C, A, B))),
        ("$a || $b ? $c : $a", Conditional(Binary("||", A, B), C, A)),
        ("pow($a, acc_t(-0.5))", Apply("pow", (A, Cast("acc_t", Literal(-0.5))))),
        ("scalar_t(!$a + acc_t(1))", Cast("scalar_t", Binary("+", Unary("!", A), Cast("acc_t", Literal(1))))),
        ("acc_t(1e-3)", Cast("acc_t", Literal(0.001))),
    ],
)
def test_precedence_is_cs(text: str, tree: object) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "text",
    ["", "$a +", "$a ? $b", "1.5", "acc_t(1.5 + $a)", "scalar_t(1.5)", "exp", "a", "$a ~ $b", "$a >> 2", "exp()", "$1"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="column"):
        parse_expression(text)


def test_argument_names_by_first_occurrence() -> None:
    assert argument_names(parse_expression("$b * $a + $b")) == ("b", "a")


def test_every_row_stays_inside_the_language() -> None:
    used = set()
    for row in default_table():
        if row.expression is not None:
            used |= {part.function for part in walk(parse_expression(row.expression)) if isinstance(part, Apply)}
    assert used <= set(FUNCTIONS)
    assert {"exp", "erf", "tanh", "pow"} <= used
