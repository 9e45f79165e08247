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
        # Dynamo keeps per-code-object state, and would make a second example's sizes symbolic because they differ.
        torch._dynamo.reset()
        model, inputs = module.model(), module.inputs()
        model.train(phase is Phase.TRAINING)
        wanted = results_of(copy.deepcopy(model).double(), tuple(t.double() for t in inputs), phase)
        compiled = torch.compile(copy.deepcopy(model), backend="tessiq", options=dict(options or {}))
        got = results_of(compiled, inputs, phase)
        torch._dynamo.reset()
        with torch.set_grad_enabled(phase is Phase.TRAINING):
            explanation = explain(model, *inputs, options=options, backward=phase is Phase.TRAINING)
        error, worst = max((error, key) for key, error in relative_errors(got, wanted).items())
        yield Outcome(name, phase, explanation, error, worst)


def relative_errors(got: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """For each tensor the norm of the difference over the norm of the wanted one, by name.

    A gradient that is zero but for rounding (a key's bias under softmax) has no scale of its own: no tensor's norm
    counts as less than a thousandth of the greatest. Infinite where shapes differ or only one of the two has a NaN.
    """
    floor = 1e-3 * max(float(t.norm()) for t in wanted.values())
    errors: dict[str, float] = {}
    for name, want in wanted.items():
        have = got[name]
        if have.shape != want.shape or not torch.equal(have.isnan(), want.isnan()):
            errors[name] = float("inf")
        else:
            errors[name] = float((have.double() - want).norm()) / max(float(want.norm()), floor)
    return errors


def results_of(model: Any, inputs: tuple[torch.Tensor, ...], phase: Phase) -> dict[str, torch.Tensor]:
    """The output, and in training every gradient of one step from it by fixed random weights, by name."""
    if phase is Phase.EVAL:
        with torch.no_grad():
            return {"output": model(*inputs)}
    leaves = tuple(t.clone().requires_grad_() for t in inputs)
    output = model(*leaves)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (output * weights.to(output.dtype)).sum().backward()
    results = {"output": output.detach()}
    results |= {f"gradient of input {i}": t.grad for i, t in enumerate(leaves) if t.grad is not None}
    # torch.compile wraps a module; names then carry a prefix.
    named = {k.removeprefix("_orig_mod."): p.grad for k, p in model.named_parameters()}
    results |= {f"gradient of {name}": grad for name, grad in named.items() if grad is not None}
    return results


def counts_of(outcome: Outcome) -> dict[str, int]:
    """What `counts.toml` records of an outcome, summed over its graphs."""
    counts = outcome.explanation.counts
    return {
        "kernels": counts.kernels,
        "library_kernels": counts.library_kernels,
        "claimed": counts.claimed,
        "views": counts.views,
        "unclaimed": counts.unclaimed,
    }


def write_counts() -> None:
    """Measure every example and write the table anew."""
    lines = [
        "# What is decided for each example on the CPU: generated kernels, library kernels, nodes claimed by either,",
        "# views, and nodes left to ATen. Written by `python docs/examples/checks.py`; fewer kernels or claimed nodes,",
        "# or more unclaimed ones, fail the tests.",
    ]
    for name in EXAMPLES:
        for outcome in run_example(name):
            lines += ["", f"[{name}.{outcome.phase.value}]"]
            lines += [f"{key} = {value}" for key, value in counts_of(outcome).items()]
    (FOLDER / "counts.toml").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_counts()
