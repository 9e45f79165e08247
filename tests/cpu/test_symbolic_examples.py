"""Symbolic sizes: one compile of the MLP and the encoder serves five sizes, in eval and in training."""

from __future__ import annotations

import copy

import pytest
import torch
from torch._dynamo.utils import counters

from support.examples import checks
from support.versions import symbolic_encoder_layer
from tessiq_core.runtime.report import collecting_reports

SIZES = {"mlp": [(2,), (3,), (7,), (32,), (65,)], "encoder": [(2, 5), (3, 7), (2, 64), (5, 33), (4, 16)]}
WIDTH = {"mlp": 64, "encoder": 512}


CASES = [
    pytest.param(
        name,
        phase,
        marks=symbolic_encoder_layer if (name, phase) == ("encoder", checks.Phase.EVAL) else (),
        id=f"{name}-{phase.value}",
    )
    for name in SIZES
    for phase in checks.Phase
]


@pytest.mark.parametrize(("name", "phase"), CASES)
def test_five_sizes_on_one_symbolic_compile(name: str, phase: object) -> None:
    torch._dynamo.reset()
    counters.clear()
    model = checks.load(name).model().train(phase is checks.Phase.TRAINING)
    wide = copy.deepcopy(model).double()
    compiled = torch.compile(model, backend="tessiq", dynamic=True)
    with collecting_reports() as reports:
        for number, sizes in enumerate(SIZES[name]):
            x = torch.randn(*sizes, WIDTH[name], generator=torch.Generator().manual_seed(number))
            model.zero_grad()
            wide.zero_grad()
            wanted, got = checks.results_of(wide, (x.double(),), phase), checks.results_of(compiled, (x,), phase)
            errors = checks.relative_errors(got, wanted)
            assert max(errors.values()) <= 1e-5, (sizes, errors)
            assert all(got[key].stride() == wanted[key].stride() for key in wanted)
    assert counters["stats"]["unique_graphs"] == 1
    assert len(reports) == (2 if phase is checks.Phase.TRAINING else 1)
    for report in reports:
        assert report.symbols
        # Every kernel but those over parameters alone takes its sizes from the call.
        assert any(kernel.words for kernel in report.kernels)
    stated = checks.stated_counts()[name][phase.value]
    assert sum(report.counts.kernels for report in reports) >= stated["kernels"] - 2
