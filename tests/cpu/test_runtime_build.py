"""Building recipes: reports, the one compile call, library kernels, and refusals that are bugs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from support.runtime_targets import Manager, imported, recipe, runner, target
from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import Kernel, KernelOperand, KernelOperands, PythonLaunch
from tessiq_core.decline import Decline
from tessiq_core.errors import External, Internal
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.graph import Node
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.table import OperationTable
from tessiq_core.runtime.build import build_recipe
from tessiq_core.runtime.options import parse_options
from tessiq_core.runtime.report import Counts, collecting, collecting_reports, publish
from tessiq_core.runtime.runner import Runner
from tessiq_core.runtime.verify import compare
from tessiq_cpuref.reference import ReferenceEmitter

GRAPH = """
graph @main(%n: int(s0), %x: f32[s0, 4], %w: f32[4, 4]) {
  %d = operator.mul(%n) {1 = 2} : int(2*s0)
  %r = aten.relu.default(%x) : f32[s0, 4]
  %e = aten.exp.default(%r) : f32[s0, 4]
  %mm = aten.mm.default(%e, %w) : f32[s0, 4]
  %t = aten.permute.default(%mm) {1 = [1, 0]} : f32[4, s0; 1, 4]
  %a = aten.relu.default(%t) : f32[4, s0; 1, 4]
  return %a, %d
}
"""


class Counting(ReferenceEmitter):
    """Counts the calls of `compile`, and can be made to break its promises."""

    def __init__(self, refuse: bool = False, drop: bool = False, spoil: float = 0.0) -> None:
        self.calls: list[list[str]] = []
        self.refuse, self.drop, self.spoil = refuse, drop, spoil
        self.asked = 0

    @property
    def name(self) -> str:
        return "counting"

    @property
    def priority(self) -> int:
        return 5

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        self.asked += 1
        if self.refuse and len(kernel.members) > 1:
            return Decline("changed-its-mind", "it is not made after all")
        return super().accepts(kernel, table)

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        self.calls.append([kernel.name for kernel in kernels])
        made = list(super().compile(kernels, operands, table))[: len(kernels) - self.drop]
        return [self._spoilt(kernel) for kernel in made] if self.spoil else made

    def _spoilt(self, kernel: Kernel) -> Kernel:
        assert isinstance(kernel.launch, PythonLaunch)
        function = kernel.launch.function

        def launch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], words: Sequence[int]) -> None:
            function(inputs, outputs, words)
            outputs[0][(-1,) * outputs[0].dim()] += self.spoil

        return replace(kernel, launch=PythonLaunch(launch))


def test_all_kernels_are_compiled_in_one_call_under_names_that_differ() -> None:
    emitter = Counting()
    made = recipe(GRAPH, manager=Manager(emitters=[emitter]))
    assert len(emitter.calls) == 1
    names = [kernel.name for kernel in made.kernels]
    assert names == ["relu_exp", "relu"] == emitter.calls[0]
    twice = """
    graph @main(%x: f32[4, 4]) {
      %a = aten.relu.default(%x) : f32[4, 4]
      %m = aten.mm.default(%a, %a) : f32[4, 4]
      %b = aten.relu.default(%m) : f32[4, 4]
      return %b
    }
    """
    assert [kernel.name for kernel in recipe(twice).kernels] == ["relu", "relu_1"]


def test_counts_and_declines_are_always_there_and_texts_only_when_somebody_listens() -> None:
    report = recipe(GRAPH).report
    assert report.counts == Counts(kernels=2, claimed=3, views=1, unclaimed=1, sizes=1)
    assert set(report.declines) == {"d", "mm"}
    assert (report.imported, report.scheduled, report.plan) == ("", "", "")
    assert {part.text for part in report.passes} == {""}
    assert {kernel.description for kernel in report.kernels} == {""}

    heard: list[str] = []
    report = recipe(GRAPH, listener=lambda stage, text: heard.append(stage)).report
    assert heard == ["imported", *(part.name for part in report.passes)]
    assert heard[-1] == "fuse"
    assert report.imported.startswith("graph @main(%n: int(s0)")
    assert "tessiq.claim" not in report.imported
    assert 'tessiq.claim = "kernel"' in report.scheduled
    assert report.plan.startswith("plan(")
    assert report.kernels[0].description.startswith("kernel @relu_exp")


def test_the_report_says_what_runs_where() -> None:
    report = recipe(GRAPH, {"adopt": False}).report
    assert [(unit.kind, unit.nodes, unit.kernel, unit.moves) for unit in report.units] == [
        ("aten", ("d",), "", ()),
        ("kernel", ("r", "e"), "relu_exp", ("x",)),
        ("aten", ("mm",), "", ("e",)),
        ("view", ("t",), "", ()),
        ("kernel", ("a",), "relu", ("mm",)),
    ]
    kernel = report.kernels[0]
    assert kernel.members == ("r", "e")
    assert kernel.inputs == ("%x: f32[s0, 4]",)
    assert kernel.outputs == ("%e: f32[s0, 4]",)
    assert not kernel.extents_known
    assert recipe(GRAPH.replace("s0", "3")).report.kernels[0].extents_known


def test_reports_are_published_to_whoever_collects() -> None:
    report = recipe(GRAPH).report
    publish(report)
    with collecting_reports() as outer, collecting_reports() as inner:
        assert collecting()
        publish(report)
    assert not collecting()
    assert outer == inner == [report]


def test_a_claim_the_emitter_takes_back_is_an_internal_error() -> None:
    emitter = Counting()
    graph = imported(GRAPH)
    chosen = target(manager=Manager(emitters=[emitter]))
    build_recipe(imported(GRAPH), chosen, parse_options())
    claims = emitter.asked - 2  # the last two were the build

    class Forgetful(Counting):
        def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
            self.asked += 1
            return Decline("changed-its-mind", "not now") if self.asked > claims else None

    forgetful = target(manager=Manager(emitters=[Forgetful()]))
    with pytest.raises(Internal, match=r"%r, %e were claimed as one kernel and no emitter makes it: .*changed"):
        build_recipe(graph, forgetful, parse_options())


def test_an_emitter_that_returns_too_few_kernels_is_named() -> None:
    with pytest.raises(External, match="emitter 'counting' returned 1 kernels for 2"):
        recipe(GRAPH, manager=Manager(emitters=[Counting(drop=True)]))


class Doubling:
    """A library that claims `mm` and computes twice the product, so that its work can be told from ATen's."""

    name, target, priority = "doubling", "cpuref", 1

    def claim(self, node: Node, table: OperationTable) -> Decline | None:
        return None if node.op == "aten.mm.default" else Decline("not-mm", "only mm")

    def layouts(self, node: Node, table: OperationTable) -> tuple[tuple[Extent, ...] | None, ...]:
        return (None,) * len(node.operands)

    def build(self, node: Node, table: OperationTable) -> Kernel:
        def operand(value: object) -> KernelOperand:
            kind = getattr(value, "type")  # noqa: B009
            assert isinstance(kind, TensorType)
            return KernelOperand(str(getattr(value, "name")), kind)  # noqa: B009

        def launch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], words: Sequence[int]) -> None:
            outputs[0].copy_(2 * (inputs[0] @ inputs[1]))

        return Kernel(
            "relu",
            self.name,
            (node.name,),
            tuple(map(operand, node.operands)),
            (operand(node.results[0]),),
            (),
            PythonLaunch(launch),
        )


def test_a_library_runs_the_nodes_it_claims() -> None:
    manager = Manager(libraries=[Doubling()])
    made = recipe(GRAPH, manager=manager)
    assert made.report.counts == Counts(kernels=2, library_kernels=1, claimed=4, views=1, sizes=1)
    assert [kernel.name for kernel in made.kernels] == ["relu_exp", "relu", "relu_1"]
    x, w = torch.randn(3, 4), torch.randn(4, 4)
    a, d = Runner(made)([3, x, w])
    assert torch.allclose(a, (2 * (x.relu().exp() @ w)).T.relu())
    assert d == 6


def test_verify_names_the_kernel_and_the_worst_difference() -> None:
    args = (3, torch.randn(3, 4), torch.randn(4, 4))
    good = runner(GRAPH, {"verify": True}, manager=Manager(emitters=[Counting(), ReferenceEmitter()]))
    good(list(args))
    bad = runner(GRAPH, {"verify": True}, manager=Manager(emitters=[Counting(spoil=0.5), ReferenceEmitter()]))
    with pytest.raises(External, match=r"kernel 'relu_exp' is wrong in 1 of the 12 elements of %e; .* is 0\.5"):
        bad(list(args))
    unchecked = runner(GRAPH, manager=Manager(emitters=[Counting(spoil=0.5), ReferenceEmitter()]))
    unchecked(list(args))


def test_comparing_allows_rounding_and_nothing_else() -> None:
    wanted = torch.tensor([1.0, float("nan"), float("inf"), -0.0])
    compare("k", "v", wanted * (1 + 1e-6), wanted)
    for wrong in (
        [1.01, float("nan"), float("inf"), 0.0],
        [1.0, 0.0, float("inf"), 0.0],
        [1.0, float("nan"), 3.0, 0.0],
    ):
        with pytest.raises(External, match="wrong in 1 of the 4"):
            compare("k", "v", torch.tensor(wrong), wanted)
    with pytest.raises(External):
        compare("k", "v", torch.tensor([1, 2]), torch.tensor([1, 3]))
    compare("k", "v", torch.tensor([]), torch.tensor([]))


def test_a_recipe_outlives_everything_it_was_made_from() -> None:
    graph = imported(GRAPH)
    recorded = weakref.WeakSet([graph.graph]) if hasattr(graph.graph, "__weakref__") else None
    made = build_recipe(graph, target(), parse_options())
    del graph
    gc.collect()
    assert recorded is None or not list(recorded), "the recipe keeps the graph it was made from"
    x, w = torch.randn(5, 4), torch.randn(4, 4)
    a, _ = Runner(made)([5, x, w])
    assert torch.allclose(a, (x.relu().exp() @ w).T.relu())


def test_debug_checks_the_graph_after_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def run_pipeline(graph: object, pipeline: str, context: object, *, verify: bool, on_pass: object) -> None:
        seen.append(verify)
        raise KeyError("enough")

    monkeypatch.setattr("tessiq_core.runtime.build.run_pipeline", run_pipeline)
    for value in ("", "0", "1"):
        monkeypatch.setenv("TESSIQ_DEBUG", value)
        with pytest.raises(KeyError):
            recipe(GRAPH)
    assert seen == [False, False, True]
