"""Checking a kernel at every launch against the reference emitter's kernel for the same description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from tessiq_core.codegen.interfaces import AddressLaunch, Kernel, PythonLaunch
from tessiq_core.errors import External
from tessiq_core.ir.extent import Extent
from tessiq_core.runtime.launch import launcher
from tessiq_core.runtime.sizes import Sizes

# The largest difference allowed, relative to the larger of the reference's element and its root mean square: a few
# hundred roundings, which long sums and chains of functions take, and far below what a wrong kernel gives.
_ROUNDINGS = 512


def verifying(kernel: Kernel, reference: Kernel) -> Kernel:
    """`kernel` with a launch that also runs `reference` on the same inputs and compares every output.

    Integers and booleans must be equal, floating-point elements equal to within rounding, NaN where the reference has
    NaN. A launch raises External that names the kernel, the operand and the worst difference.
    """
    split = len(kernel.words)

    def launch(inputs: Sequence[Any], outputs: Sequence[Any], words: Sequence[int]) -> None:
        expected = [
            torch.empty_strided(output.shape, output.stride(), dtype=output.dtype, device=output.device)
            for output in outputs
        ]
        own, other = words[:split], words[split:-4]
        device = outputs[0].device
        launcher(_fixed(reference, other, words[-2], words[-1]), Sizes({}), device)(inputs, expected)
        launcher(_fixed(kernel, own, words[-4], words[-3]), Sizes({}), device)(inputs, outputs)
        for operand, result, wanted in zip(kernel.outputs, outputs, expected, strict=True):
            compare(kernel.name, operand.value, result, wanted)

    words = (*kernel.words, *reference.words, *_extents(kernel), *_extents(reference))
    return replace(kernel, words=words, launch=PythonLaunch(launch), workspace_bytes=0)


def _extents(kernel: Kernel) -> tuple[Extent, Extent]:
    """What a launch needs of the call's sizes besides its words: iterations and workspace."""
    iterations = kernel.launch.iterations if isinstance(kernel.launch, AddressLaunch) else 0
    return iterations, kernel.workspace_bytes


def compare(kernel: str, value: str, result: torch.Tensor, wanted: torch.Tensor) -> None:
    """Raise External when `result` is not what the reference gave."""
    if not result.dtype.is_floating_point:
        wrong = result != wanted
        if bool(wrong.any()):
            raise _disagreement(kernel, value, result, wanted, wrong)
        return
    tolerance = _ROUNDINGS * torch.finfo(result.dtype).eps
    have, want = result.double(), wanted.double()
    finite = want.isfinite()
    scale = want[finite].square().mean().sqrt() if bool(finite.any()) else torch.zeros((), dtype=torch.float64)
    close = (have - want).abs() <= tolerance * torch.maximum(want.abs(), scale)
    same = (have == want) | (have.isnan() & want.isnan()) | (close & finite)
    if not bool(same.all()):
        raise _disagreement(kernel, value, have, want, ~same)


def _disagreement(kernel: str, value: str, have: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor) -> External:
    difference = (have.double() - want.double()).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    worst = int(difference.where(wrong, -torch.ones((), dtype=torch.float64)).reshape(-1).argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), have.shape)]
    return External(
        f"tessiq: verify: kernel {kernel!r} is wrong in {int(wrong.sum())} of the {wrong.numel()} elements "
        f"of %{value}; the worst difference is {difference.reshape(-1)[worst].item()}, at {index}: "
        f"{have.reshape(-1)[worst].item()} where the reference has {want.reshape(-1)[worst].item()}. "
        "Report it with the output of `tessiq explain`, or choose another emitter (option 'emitter')"
    )


def _fixed(kernel: Kernel, words: Sequence[int], iterations: int, workspace: int) -> Kernel:
    """The kernel for one call: everything it needs of the sizes is a number."""
    launch = kernel.launch
    if isinstance(launch, AddressLaunch):
        launch = replace(launch, iterations=iterations)
    return replace(kernel, words=tuple(words), launch=launch, workspace_bytes=workspace)
