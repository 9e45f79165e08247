"""Running pipelines: names, checks after each pass, and what a pass must have."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tessiq_core.passes
from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir import Graph, parse_graph, print_graph
from tessiq_core.passes import PASSES, Pass, PassContext, PassResult, parse_pipeline, register, run_pipeline

TEXT = """\
graph @main(%x: f32[2]) {
  %a = aten.exp.default(%x) : f32[2]
  %b = aten.exp.default(%x) : f32[2]
  %c = aten.add.Tensor(%a, %b) : f32[2]
  return %c
}
"""


@pytest.fixture
def context() -> PassContext:
    return PassContext.for_text()


@pytest.fixture
def graph() -> Graph:
    return parse_graph(TEXT)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessiq_core.passes.manager.PASSES", dict(PASSES))


def test_a_pipeline_runs_in_order_and_reports(graph: Graph, context: PassContext) -> None:
    seen: list[tuple[str, bool, int]] = []

    def on_pass(result: PassResult, graph: Graph) -> None:
        seen.append((result.name, result.changed, len(graph)))

    results = run_pipeline(graph, " dce, cse ,dce", context, on_pass=on_pass)
    assert seen == [("dce", False, 3), ("cse", True, 2), ("dce", False, 2)]
    assert [(result.name, result.changed) for result in results] == [(name, changed) for name, changed, _ in seen]
    assert all(result.seconds >= 0 for result in results)


def test_an_empty_pipeline_does_nothing(graph: Graph, context: PassContext) -> None:
    assert run_pipeline(graph, " ", context) == []
    assert print_graph(graph) == TEXT


def test_an_unknown_pass_is_refused_before_any_runs(graph: Graph, context: PassContext) -> None:
    with pytest.raises(InvalidArgument, match=r"no pass 'csse', did you mean 'cse'\? The passes are .*cse, dce"):
        run_pipeline(graph, "cse,csse", context)
    assert print_graph(graph) == TEXT
    with pytest.raises(InvalidArgument, match=r"no pass 'zzzzzz'\. The passes are "):
        parse_pipeline("zzzzzz")
    with pytest.raises(InvalidArgument, match="no pass ''"):
        parse_pipeline("dce,,cse")


@pytest.mark.usefixtures("temporary")
def test_the_pass_that_broke_the_graph_is_named(graph: Graph, context: PassContext) -> None:
    @register
    class Break(Pass):
        name = "break"
        description = "in this test"

        def run(self, graph: Graph) -> bool:
            next(graph.nodes).set_attribute("1", [1])  # type: ignore[arg-type]
            return True

    with pytest.raises(Internal, match=r"broken after the pass 'break': attribute '1' of aten\.exp\.default is \[1\]"):
        run_pipeline(graph, "cse,break,dce", context)
    run_pipeline(graph, "dce", context, verify=False)
    with pytest.raises(Internal, match="broken before the pipeline 'dce'"):
        run_pipeline(graph, "dce", context)


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("changes", [False, True])
def test_a_pass_that_lies_about_changed_is_caught(changes: bool, graph: Graph, context: PassContext) -> None:
    @register
    class Lie(Pass):
        name = "lie"
        description = "in this test"

        def run(self, graph: Graph) -> bool:
            if changes:
                next(graph.nodes).set_attribute("tessiq.claim", "view")
            return not changes

    message = "reported no change, but the graph changed" if changes else "reported a change, but the graph prints"
    with pytest.raises(Internal, match=f"the pass 'lie' {message}"):
        run_pipeline(graph, "lie", context)
    assert [r.changed for r in run_pipeline(parse_graph(TEXT), "lie", context, verify=False)] == [not changes]


@pytest.mark.usefixtures("temporary")
def test_two_passes_cannot_have_one_name() -> None:
    class Other(Pass):
        name = "dce"
        description = "in this test"

        def run(self, graph: Graph) -> bool:
            return False

    with pytest.raises(InvalidArgument, match=r"two passes are called 'dce': tessiq_core\.passes\.dce\.Dead"):
        register(Other)
    assert register(PASSES["dce"]) is PASSES["dce"]


# Plugins' passes, where another test loaded some, answer for themselves.
OURS = sorted(name for name, cls in PASSES.items() if cls.__module__.startswith("tessiq_core."))


@pytest.mark.parametrize("name", OURS)
def test_a_pass_says_what_it_assumes_guarantees_and_why_it_is_legal(name: str) -> None:
    cls = PASSES[name]
    assert cls.__module__ == f"tessiq_core.passes.{name.replace('-', '_')}"
    text = cls.__doc__ or ""
    places = [text.find(heading) for heading in ("Assumes:", "Guarantees:", "Legal because:")]
    assert -1 not in places
    assert places == sorted(places)
    assert "\n" not in cls.description
    assert cls.description[0].islower()
    assert not cls.description.endswith(".")


def test_importing_the_package_registers_every_pass_there_is() -> None:
    before = set(PASSES)
    for module in pkgutil.iter_modules(tessiq_core.passes.__path__):
        importlib.import_module(f"tessiq_core.passes.{module.name}")
    assert set(PASSES) == before
    assert {"dce", "cse", "rewrite"} <= before
