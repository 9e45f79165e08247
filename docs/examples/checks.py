"""Runs an example through tessiq and compares it with eager in float64; shared by the demonstration and the tests."""

from __future__ import annotations

import copy
import enum
import importlib.util
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tessiq_core import Explanation, explain

FOLDER = Path(__file__).resolve().parent
EXAMPLES = ("mlp", "encoder", "encoder_written_out", "residual")


class Phase(enum.Enum):
    """EVAL: eval mode under no_grad, outputs. TRAINING: training mode, outputs and every gradient of one step."""

    EVAL = "eval"
    TRAINING = "training"


@dataclass(frozen=True)
class Outcome:
    """`error` is the greatest relative error over the compared tensors, and `worst` the name of the one it is in."""

    name: str
    phase: Phase
    explanation: Explanation
    error: float
    worst: str


def load(name: str) -> ModuleType:
    """The example's module, from its file."""
    spec = importlib.util.spec_from_file_location(f"tessiq_example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stated_counts() -> dict[str, dict[str, dict[str, int]]]:
    """The table of `counts.toml`: example, then phase, then kernels, library_kernels, claimed, views, unclaimed."""
    with (FOLDER / "counts.toml").open("rb") as file:
        return tomllib.load(file)


def least_kernels(name: str, phase: Phase) -> int:
    return stated_counts()[name][phase.value]["kernels"]


def run_example(name: str, options: Mapping[str, object] | None = None) -> Iterator[Outcome]:
    """Both phases of one example, through the backend as a user calls it."""
    module = load(name)
    for phase in Phase:
        model, inputs = module.model(), module.inputs()
        model.train(phase is Phase.TRAINING)
        wanted = _results(copy.deepcopy(model).double(), tuple(t.double() for t in inputs), phase)
        compiled = torch.compile(copy.deepcopy(model), backend="tessiq", options=dict(options or {}))
        got = _results(compiled, inputs, phase)
        with torch.set_grad_enabled(phase is Phase.TRAINING):
            explanation = explain(model, *inputs, options=options, backward=phase is Phase.TRAINING)
        error, worst = max((relative_error(got[key], wanted[key]), key) for key in wanted)
        yield Outcome(name, phase, explanation, error, worst)


def relative_error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Greatest difference over greatest magnitude; infinite where shapes differ or a NaN stands in one of them only."""
    if got.shape != wanted.shape or not torch.equal(got.isnan(), wanted.isnan()):
        return float("inf")
    scale = wanted.abs().max().clamp(min=1e-12)
    return float((got.double() - wanted).abs().max() / scale)


def _results(model: Any, inputs: tuple[torch.Tensor, ...], phase: Phase) -> dict[str, torch.Tensor]:
    if phase is Phase.EVAL:
        with torch.no_grad():
            return {"output": model(*inputs)}
    leaves = tuple(t.clone().requires_grad_() for t in inputs)
    output = model(*leaves)
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    (output * weights).sum().backward()
    results = {"output": output.detach()}
    results |= {f"gradient of input {i}": t.grad for i, t in enumerate(leaves) if t.grad is not None}
    # torch.compile wraps a module; names then carry a prefix.
    named = {k.removeprefix("_orig_mod."): p.grad for k, p in model.named_parameters()}
    results |= {f"gradient of {name}": grad for name, grad in named.items() if grad is not None}
    return results
