"""One call of a random program, observed, and what differs between two observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from support.program_generator import Program
from support.program_inputs import Made, make

Run = Callable[..., Any]

Call = tuple[Program, int]
"""A program and the seed of the values it is called with."""


@dataclass(frozen=True)
class Route:
    """How programs are run; `options` are tessiq's."""

    name: str
    dynamo: bool = False
    dynamic: bool = False
    grad: bool = False
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One call, observed: named tensors, which of them are near, and facts that must be equal."""

    tensors: dict[str, torch.Tensor | None]
    near: frozenset[str]
    facts: dict[str, object]


def observe(run: Run, program: Program, seed: int, route: Route) -> Seen:
    """Call on new inputs with values of `seed`."""
    grad = route.grad
    made = make(program.inputs, seed)
    leaves, passed = passed_of(program, made, route)
    torch.manual_seed(seed)
    outputs = list(run(*passed))
    tensors: dict[str, torch.Tensor | None] = {f"output {n}": value for n, value in enumerate(outputs)}
    near = {f"output {n}" for n, name in enumerate(program.outputs) if name in program.near}
    facts: dict[str, object] = {"random number after": torch.rand(1).item()}
    facts |= _sharing(outputs, passed, identity=route.dynamo)
    for number, value in enumerate(outputs):
        if value is not None:
            facts[f"output {number} requires a gradient"] = value.requires_grad
    for number, (tensor, name) in enumerate(zip(passed, program.parameters, strict=True)):
        tensors[f"input {number}"] = tensor
        near |= {f"input {number}"} if name in program.near else set()
    if grad:
        tensors |= _gradients(outputs, leaves)
        near |= {name for name in tensors if name.startswith("gradient")}
    else:
        for number, base in enumerate(made.bases):
            tensors[f"memory {number}"] = base
        if any(name.startswith("input") for name in near):
            near |= {name for name in tensors if name.startswith("memory")}
    return Seen(tensors, frozenset(near), facts)


def passed_of(program: Program, made: Made, route: Route) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The leaves of the gradient, and the inputs; a leaf may not be written to, so a copy is passed for it."""
    if not route.grad:
        return made.tensors, made.tensors
    leaves = [tensor.detach().requires_grad_(tensor.is_floating_point()) for tensor in made.tensors]
    return leaves, [leaf.clone() if n in program.written else leaf for n, leaf in enumerate(leaves)]


def _gradients(
    outputs: Sequence[torch.Tensor | None], leaves: Sequence[torch.Tensor]
) -> dict[str, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(1)
    roots = [value for value in outputs if value is not None and value.requires_grad]
    wanted = {n: leaf for n, leaf in enumerate(leaves) if leaf.requires_grad}
    if not roots or not wanted:
        return {}
    cotangents = [(torch.randint(-8, 9, root.shape, generator=generator) / 8).to(root.dtype) for root in roots]
    found = torch.autograd.grad(roots, list(wanted.values()), cotangents, allow_unused=True)
    return {f"gradient {number}": value for number, value in zip(wanted, found, strict=True)}


def _sharing(
    outputs: Sequence[torch.Tensor | None], inputs: Sequence[torch.Tensor], identity: bool
) -> dict[str, object]:
    """Which outputs are the same object as, or have memory in common with, which inputs and earlier outputs."""
    facts: dict[str, object] = {}
    named = [(f"input {n}", value) for n, value in enumerate(inputs)]
    for number, output in enumerate(outputs):
        name = f"output {number}"
        if output is None:
            continue
        for other, value in named:
            if value.numel() and output.numel():
                shared = value.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()
                distance = (output.data_ptr() - value.data_ptr()) if shared else None
                facts[f"distance of {name} from {other}"] = distance
            if identity:  # AOTAutograd alone makes a new tensor of every view it returns
                facts[f"{name} is {other}"] = value is output
        named.append((name, output))
    return facts


def difference(got: Seen, expected: Seen, call: Call, route: Route) -> str:
    """What differs between two observations of a call, "" where nothing does."""
    for fact, value in expected.facts.items():
        if got.facts.get(fact) != value:
            return f"{fact}: {got.facts.get(fact)}, expected {value}"
    for name, other in expected.tensors.items():
        one = got.tensors.get(name)
        if one is None or other is None:
            if one is not other:
                return f"{name}: one is None"
            continue
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{name}: {one.dtype} {list(one.shape)}, expected {other.dtype} {list(other.shape)}"
        if steps_of(one) != steps_of(other) and not name.startswith("gradient"):  # `_checked` sees to those
            if steps_of(one) != recorded_strides(call, route).get(name):
                return f"{name}: strides {one.stride()}, expected {other.stride()}"
        one, other = one.detach(), other.detach()
        if torch.equal(
            one.nan_to_num(7e3) if one.is_floating_point() else one,
            other.nan_to_num(7e3) if other.is_floating_point() else other,
        ) and bool((one.isnan() == other.isnan()).all()):
            continue
        if name in expected.near:
            off = (one.to(torch.float64) - other.to(torch.float64)).abs()
            same = (one == other) | (one.isnan() & other.isnan())
            allowed = _spread(call, expected, route)[name]
            right = same | (off <= allowed) | ~allowed.isfinite()
            if bool(right.all()):
                continue
            return f"{name}: {_first_difference(one, other, ~right)}"
        return f"{name}: {_first_difference(one, other, ~((one == other) | (one.isnan() & other.isnan())))}"
    return ""


def steps_of(tensor: torch.Tensor) -> list[int]:
    """The strides that address something; of the others PyTorch's tracing records what eager does not have."""
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for extent, stride in axes if extent > 1] if tensor.numel() else []


def recorded_strides(call: Call, route: Route) -> dict[str, list[int]]:
    """The strides outputs have in PyTorch's tracing: where they are not what eager has, tessiq follows tracing."""
    program, seed = call
    with FakeTensorMode(allow_non_fake_inputs=True):
        outputs = program.function("<fake>")(*passed_of(program, make(program.inputs, seed), route)[1])
    return {f"output {number}": steps_of(value) for number, value in enumerate(outputs) if value is not None}


def _first_difference(one: torch.Tensor, other: torch.Tensor, differs: torch.Tensor) -> str:
    one, other = one.clone(), other.clone()
    place = tuple(int(index) for index in differs.nonzero()[0])
    return (
        f"at {place} {one[place].item()}, expected {other[place].item()} ({int(differs.sum())} of {one.numel()} differ)"
    )


def _spread(call: Call, expected: Seen, route: Route) -> dict[str, torch.Tensor]:
    """For each near tensor how far off it may be: some times what disturbances of the last places make of it."""
    disturbed = call[0].function("<disturbed>", disturbed=True)
    most = {
        name: _rounding(value.detach())
        for name, value in expected.tensors.items()
        if value is not None and name in expected.near and value.is_floating_point()
    }
    for name in expected.near:
        value = expected.tensors[name]
        if value is not None and name not in most:
            most[name] = torch.zeros(value.shape, dtype=torch.float64)
    for _ in range(4):
        try:
            seen = observe(disturbed, call[0], call[1], route)
        except RuntimeError:
            break  # disturbing a value that is then written in place can make autograd refuse the program
        for name in most:
            value, plain = seen.tensors[name], expected.tensors[name]
            if value is not None and plain is not None:
                off = (value.detach().to(torch.float64) - plain.detach().to(torch.float64)).abs()
                most[name] = torch.maximum(most[name], 16 * off)
    return most


def _rounding(value: torch.Tensor) -> torch.Tensor:
    """Some units of the last place, and of the smallest number of the type."""
    limits = torch.finfo(value.dtype)
    return 8 * limits.eps * (value.abs().to(torch.float64) + limits.smallest_normal)
