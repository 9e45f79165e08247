"""Accuracy of the C++ emitter's own float32 functions, over all exponents, against float64."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch

from support.emitters import bits, compile_all, launch
from tessiq_core.codegen import parse_kernels
from tessiq_core.codegen.interfaces import Kernel
from tessiq_cpuref import CppEmitter
from tessiq_cpuref.cpp.flags import cpu_features

pytestmark = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")

# Largest error in units in the last place, with fused multiply-add and without.
LIMITS = {"exp": (1.0, 1.0), "log": (0.85, 0.85), "tanh": (1.32, 1.32), "erf": (1.0, 1.2)}
BRANCHES = (0.3465, 0.625, 0.7071, 1.0, 1.4142, 4.0, 10.0, 88.7, 103.9)
HAS_FMA = "fma" in cpu_features().split() or "aarch64" in cpu_features()


@cache
def kernels() -> dict[str, Kernel]:
    text = "\n".join(
        f"""
        kernel @{name}(d0 < s0) {{
          x = read %x[d0] : f32
          y = {name}(x) in f32 : f32
          write %y[d0] : f32 = y over d0
        }}
        """
        for name in LIMITS
    )
    descriptions = list(parse_kernels(text))
    return dict(zip(LIMITS, compile_all(CppEmitter(), descriptions), strict=True))


@cache
def samples() -> torch.Tensor:
    """Every 997th bit pattern (4.3 million floats, all exponents and signs), and 20,000 around each branch point."""
    spread = torch.arange(-(2**31), 2**31, 997, dtype=torch.int64).to(torch.int32).view(torch.float32)
    dense = [sign * at * (1 + torch.arange(-10000, 10000) * 2e-6) for at in BRANCHES for sign in (1, -1)]
    special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2**-149, -(2**-149), 2**-126])
    return torch.cat([spread, *dense, special])


def run(name: str, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    launch(kernels()[name], [x], [y], {"s0": len(x)})
    return y


@pytest.mark.parametrize("name", LIMITS)
def test_errors_stay_within_their_limits(name: str) -> None:
    x = samples()
    got, exact = run(name, x), getattr(torch, name)(x.double())
    rounded = exact.float()
    assert torch.equal(got.isnan(), rounded.isnan())
    assert torch.equal(got.isinf(), rounded.isinf())
    finite = rounded.isfinite()
    got, exact, x = got[finite], exact[finite], x[finite]
    assert torch.equal(got.signbit(), exact.signbit())
    last_place = torch.exp2(exact.abs().clamp(min=2.0**-126).log2().floor() - 23)
    errors = (got.double() - exact).abs() / last_place
    worst = int(errors.argmax())
    limit = LIMITS[name][0 if HAS_FMA else 1]
    assert errors[worst] <= limit, f"{name}({x[worst].item()!r}): {errors[worst].item():.3f} ulp"


@pytest.mark.parametrize("name", LIMITS)
def test_special_values(name: str) -> None:
    x = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan])
    assert torch.equal(bits(run(name, x)), bits(getattr(torch, name)(x.double()).float()))


@pytest.mark.parametrize("name", LIMITS)
def test_a_value_does_not_depend_on_where_it_stands(name: str) -> None:
    """The body of a vector loop and its tail round alike, which vector libraries do not promise."""
    draw = torch.Generator().manual_seed(4)
    for value in (torch.rand(200, generator=draw) * 8 - 1).tolist():
        results = run(name, torch.full((19,), value))
        assert len(set(bits(results).tolist())) == 1
