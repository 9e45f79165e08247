"""What `fuse` makes of reductions written out, with the C++ emitter: how many kernels, and the values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tessiq_core import explain
from tessiq_cpuref import CppEmitter

pytestmark = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def column_softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(0))
    return e / e.sum(0)


def layer_norm(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mean = x.mean(1, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).mean(1, keepdim=True) + 1e-5)
    return centred * rstd, mean, rstd


def surrounded(x: torch.Tensor) -> torch.Tensor:
    return torch.relu((x * 2 + 1).sum(1))


def both_ways(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(0), x.sum(1)


def scaled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.relu(x)
    return y, y.any(1)


@pytest.mark.parametrize(
    ("function", "kernels"),
    [(softmax, 1), (column_softmax, 1), (layer_norm, 1), (surrounded, 1), (both_ways, 2), (scaled, 1)],
)
def test_reductions_written_out_are_few_kernels(function: Callable[..., object], kernels: int) -> None:
    x = torch.randn(40, 300, generator=torch.Generator().manual_seed(0))
    torch._dynamo.reset()
    with torch.no_grad():
        explanation = explain(function, x)
        assert explanation.counts.kernels == kernels
        assert explanation.counts.unclaimed == 0
        got = torch.compile(function, backend="tessiq", dynamic=False)(x)
        torch.testing.assert_close(got, function(x))


@pytest.mark.parametrize("function", [softmax, column_softmax, surrounded, both_ways, scaled])
def test_over_symbolic_sizes_too(function: Callable[..., object]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="tessiq", dynamic=True)
    with torch.no_grad():
        for shape in ((40, 300), (3, 1025), (1030, 2)):
            x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
            torch.testing.assert_close(compiled(x), function(x))
