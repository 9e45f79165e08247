"""Every golden file of a pass does what it says, twice over."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from support.goldens import ROOT, context_of, golden_files, read_golden, run_golden
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir import parse_graph, print_graph, split_golden
from tessiq_core.passes import PASSES, run_pipeline

FILES = golden_files()


@pytest.fixture(params=FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def path(request: pytest.FixtureRequest) -> Path:
    return request.param  # type: ignore[no-any-return]


def test_the_pipeline_gives_what_is_expected(path: Path) -> None:
    golden = read_golden(path)
    assert golden.expected is not None
    expected = print_graph(parse_graph(golden.expected, source=str(path)))
    actual = run_golden(golden, str(path))
    if actual != expected:
        difference = "\n".join(
            difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="")
        )
        pytest.fail(
            f"{path.relative_to(ROOT)}: repeat with\n"
            f"  tessiq opt {path} --passes {golden.pipeline}\n{difference}\n\nactual:\n{actual}",
            pytrace=False,
        )


def test_the_pipeline_changes_nothing_the_second_time(path: Path) -> None:
    golden = read_golden(path)
    graph = parse_graph(run_golden(golden, str(path)), source=f"{path}, after the first run")
    assert golden.pipeline is not None
    again = run_pipeline(graph, golden.pipeline, context_of(golden))
    assert [result.name for result in again if result.changed] == []


def test_input_and_expected_round_trip(path: Path) -> None:
    golden = read_golden(path)
    for text in (golden.input, golden.expected):
        assert text is not None
        once = print_graph(parse_graph(text, source=str(path)))
        assert print_graph(parse_graph(once)) == once


def test_the_folder_names_the_pass_and_a_refusal_says_so(path: Path) -> None:
    golden = read_golden(path)
    assert golden.pipeline is not None
    # `pipeline` holds runs of several passes that no single one of them is the point of.
    assert path.parent.name in ("pipeline", *(name.strip() for name in golden.pipeline.split(",")))
    # In passes that only remove or replace, a refusal leaves the graph alone.
    if path.parent.name in ("dce", "cse", "rewrite") and "declines" in path.stem:
        assert golden.expected is not None
        assert print_graph(parse_graph(golden.expected)) == print_graph(parse_graph(golden.input))


@pytest.mark.parametrize("name", sorted(n for n, cls in PASSES.items() if cls.__module__.startswith("tessiq_core.")))
def test_every_pass_has_goldens_where_it_acts_and_where_it_declines(name: str) -> None:
    found = [path.stem for path in FILES if path.parent.name == name]
    assert any("declines" not in stem for stem in found), f"no golden in tests/golden/{name}"
    assert any("declines" in stem for stem in found), f"no golden with `declines` in its name in tests/golden/{name}"


def test_splitting_keeps_the_files_line_numbers() -> None:
    golden = split_golden("// RUN: dce\n// why\ngraph @main() {\n  return\n}\n// -----\ngraph @main() {\n  oops\n}\n")
    assert golden.pipeline == "dce"
    assert golden.patterns == ()
    assert print_graph(parse_graph(golden.input)) == "graph @main() {\n  return\n}\n"
    with pytest.raises(InvalidArgument, match=r"f:9:1: expected '\(' before the operands, got }"):
        parse_graph(golden.expected or "", source="f")


def test_splitting_a_plain_graph_and_one_with_patterns() -> None:
    assert split_golden("graph @main() { return }").pipeline is None
    golden = split_golden("// RUN: rewrite\n// PATTERN a.b\nP\n// REPLACEMENT\nR\n// INPUT\nI\n// -----\nE\n")
    assert [(p.name, p.pattern.strip(), p.replacement.strip()) for p in golden.patterns] == [("a.b", "P", "R")]
    assert (golden.input.strip(), (golden.expected or "").strip()) == ("I", "E")


@pytest.mark.parametrize(
    "text",
    [
        "// -----\n// RUN: dce\n",
        "// RUN: dce\n// -----\nE\n// -----\nE\n",
        "// RUN: rewrite\n// PATTERN a\nP\n// INPUT\nI\n",
        "// RUN: rewrite\ngraph\n// PATTERN a\nP\n// REPLACEMENT\nR\n// INPUT\nI\n",
    ],
)
def test_markers_out_of_order_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"file\.ir: expected the lines"):
        split_golden(text, source="file.ir")
