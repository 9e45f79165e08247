"""The examples: right to 1e-5 of float64, with at least the kernels and claims the checked-in table states.

ATen is always right, so a right result alone proves nothing: the table does. A compiler that claims nothing fails it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from support.examples import checks
from tessiq_core.codegen.interfaces import AddressLaunch, Kernel
from tessiq_core.decline import Decline
from tessiq_core.host import find_compiler
from tessiq_core.passes import mark_supported
from tessiq_core.runtime import recipes
from tessiq_core.runtime.observer import ObserverCounters, observing
from tessiq_core.runtime.plan import KernelStep

LIMIT = 1e-5
STATED = checks.stated_counts()


def shortfalls(outcome) -> list[str]:  # type: ignore[no-untyped-def]
    """How the outcome falls behind the table: fewer kernels or claimed nodes, or more nodes left to ATen."""
    stated = STATED[outcome.name][outcome.phase.value]
    found = checks.counts_of(outcome)
    worse = [k for k in ("kernels", "library_kernels", "claimed", "views") if found[k] < stated[k]]
    worse += [k for k in ("unclaimed",) if found[k] > stated[k]]
    return [f"{k}: {found[k]}, the table says {stated[k]}" for k in worse]


def test_the_table_covers_every_example_and_phase() -> None:
    assert sorted(STATED) == sorted(checks.EXAMPLES)
    for phases in STATED.values():
        assert sorted(phases) == sorted(phase.value for phase in checks.Phase)
        assert all(counts["kernels"] > 0 for counts in phases.values())


@pytest.mark.parametrize("name", checks.EXAMPLES)
@pytest.mark.parametrize("options", [{}, {"adopt": False}, {"verify": True}], ids=["adopted", "moved", "verified"])
def test_example(name: str, options: dict[str, object]) -> None:
    if isinstance(find_compiler(), Decline):
        pytest.skip("no C++ compiler: the table is for the C++ emitter")
    for outcome in checks.run_example(name, options):
        assert outcome.error <= LIMIT, f"{outcome.phase}: {outcome.worst} is off by {outcome.error}"
        assert shortfalls(outcome) == []
        assert {kernel.origin for report in outcome.explanation.reports for kernel in report.kernels} <= {
            "cpp",
            "aten-out",
        }


@pytest.mark.parametrize("name", checks.EXAMPLES)
def test_example_by_the_reference_emitter(name: str) -> None:
    for outcome in checks.run_example(name, {"emitter": "reference"}):
        assert outcome.error <= LIMIT, f"{outcome.phase}: {outcome.worst} is off by {outcome.error}"
        counts, stated = checks.counts_of(outcome), STATED[name][outcome.phase.value]
        assert counts["claimed"] >= stated["claimed"]  # it takes reductions too


@pytest.fixture
def own_recipes() -> Iterator[None]:
    """A test that changes the compiler: nothing comes from the recipe cache, and nothing of it stays there."""
    recipes.clear()
    yield
    recipes.clear()


@pytest.mark.usefixtures("own_recipes")
def test_a_compiler_that_claims_nothing_is_right_and_fails_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mark_supported, "claim", lambda node, context: Decline("nothing", "this compiler claims nothing")
    )
    for name in checks.EXAMPLES:
        for outcome in checks.run_example(name):
            assert outcome.error <= LIMIT
            assert any(line.startswith("kernels: 0") for line in shortfalls(outcome))
            assert any(line.startswith("unclaimed") for line in shortfalls(outcome))


def test_generated_machine_code_runs_at_every_call() -> None:
    if isinstance(find_compiler(), Decline):
        pytest.skip("no C++ compiler")

    class AddressLaunches(ObserverCounters):
        def on_launch(self, step: KernelStep, kernel: Kernel) -> None:
            if isinstance(kernel.launch, AddressLaunch):
                super().on_launch(step, kernel)

    launches = AddressLaunches()
    module = checks.load("mlp")
    torch._dynamo.reset()
    compiled = torch.compile(module.model().eval(), backend="tessiq")
    with torch.no_grad():
        compiled(*module.inputs())
        with observing(launches):
            compiled(*module.inputs())
            compiled(*module.inputs())
    assert launches.launches == {"gelu": 2, "gelu_1": 2}
