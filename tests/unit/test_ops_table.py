"""The table: lookup, collisions, fingerprint; effects of nodes; the generated page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from support.op_nodes import node
from tessiq_core.errors import InvalidArgument
from tessiq_core.ops import Argument, OperationTable, Row, default_table, effect_of
from tessiq_core.ops.coverage import coverage_page, default_page, main

TABLE = default_table()
TWICE = Row(
    name="twice",
    category="elementwise",
    spellings={"mine.twice.default": (Argument("x"),)},
    consumes=("x",),
    expression="$x + $x",
    elements=("f32",),
    origin="mine",
)


def test_rows_by_spelling_and_by_name() -> None:
    row = TABLE.row("aten.add.Tensor")
    assert row is not None
    assert row is TABLE.row("add") is TABLE.row("aten.add.Scalar")
    assert TABLE.row("aten.sinh.default") is None
    assert "aten.add.Tensor" in TABLE
    assert len(list(TABLE)) == len(TABLE) >= 60
    assert default_table() is TABLE


def test_a_plugins_rows_join() -> None:
    table = TABLE.with_rows([TWICE])
    assert table.row("mine.twice.default") is TWICE
    assert TABLE.row("twice") is None


@pytest.mark.parametrize("taken", ["add", "aten.add.Tensor"])
def test_a_spelling_that_is_taken_is_refused_naming_both(taken: str) -> None:
    changed = {"name": taken} if taken == "add" else {"spellings": {taken: (Argument("x"),)}}
    with pytest.raises(InvalidArgument, match=rf"of mine: '{taken}' already means row 'add' of tessiq"):
        TABLE.with_rows([dataclasses.replace(TWICE, **changed)])


def test_a_malformed_row_of_a_plugin_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"operation of mine, row 'twice'.*acc_t"):
        TABLE.with_rows([dataclasses.replace(TWICE, expression="$x * 2.0")])


@pytest.mark.parametrize(
    "change",
    [
        {"name": "double"},
        {"category": "copy"},
        {"spellings": {"mine.twice.default": (Argument("x"), Argument("y", 1))}},
        {"spellings": {"mine.twice.default": (Argument("x"), Argument("y", 1.0))}},
        {"spellings": {"mine.twice.other": (Argument("x"),)}},
        {"expression": "$x * acc_t(2)"},
        {"compute": "float"},
        {"result": "first"},
        {"elements": ("f64",)},
        {"effect": "random"},
        {"conditions": ("x",)},
        {"consumes": ()},
        {"allows": {"y": (1,)}},
        {"averages": True},
        {"reduction": "sum"},
        {"origin": "theirs"},
    ],
)
def test_the_fingerprint_hears_of_every_part_of_a_row(change: dict[str, object]) -> None:
    changed = dataclasses.replace(TWICE, **change)  # type: ignore[arg-type]
    fingerprints = {OperationTable([row]).fingerprint() for row in (TWICE, changed)}
    if "spellings" in change:
        fingerprints.add(
            OperationTable(
                [dataclasses.replace(TWICE, spellings={"mine.twice.default": (Argument("x"), Argument("y", True))})]
            ).fingerprint()
        )
        assert len(fingerprints) == 3
    else:
        assert len(fingerprints) == 2
    assert OperationTable([TWICE]).fingerprint() == OperationTable([dataclasses.replace(TWICE)]).fingerprint()


@pytest.mark.parametrize(
    ("call", "effect"),
    [
        ("aten.add.Tensor(%x, %y)", "none"),
        ("aten.sinh.default(%x)", "none"),
        ("aten.native_dropout.default(%x) {1 = 0.5, 2 = true}", "random"),
        ("aten.copy_.default(%x, %y)", "writes"),
        ('aten.sinh_.default(%x) {tessiq.effect = "writes"}', "writes"),
        ('aten.rand.default(%x) {tessiq.effect = "random"}', "random"),
        ('aten.copy_.default(%x, %y) {tessiq.effect = "ordered"}', "ordered"),
        ('aten.copy_.default(%x, %y) {tessiq.effect = "none"}', "writes"),
    ],
)
def test_effects(call: str, effect: str) -> None:
    assert effect_of(node(call), TABLE) == effect


def test_an_unknown_effect_is_refused() -> None:
    loud = node("aten.sinh.default(%x)")
    loud.set_attribute("tessiq.effect", "loud")
    with pytest.raises(InvalidArgument, match=r"%r0: tessiq\.effect must be one of none, random, writes, ordered"):
        effect_of(loud, TABLE)


def test_the_page_in_docs_is_what_the_table_gives() -> None:
    assert default_page().read_text(encoding="utf-8") == coverage_page(TABLE), (
        "docs/operations.md is out of date: run python -m tessiq_core.ops.coverage"
    )


def test_check_fails_on_an_outdated_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "operations.md"
    assert main(["--check", str(page)]) == 1
    assert "python -m tessiq_core.ops.coverage" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main(["--check", str(page)]) == 0
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert main(["--check", str(page)]) == 1


def test_the_page_changes_with_a_row() -> None:
    assert coverage_page(TABLE.with_rows([TWICE])) != coverage_page(TABLE)
    assert "`mine.twice.default(x)`" in coverage_page(TABLE.with_rows([TWICE]))
