"""The operations: schema, reference, expression and backward of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessiq_core.custom_ops import CustomOperation

if TYPE_CHECKING:
    import torch


def _squared_relu(x: torch.Tensor) -> torch.Tensor:
    rectified = x.relu()
    return rectified * rectified


def _save_input(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _squared_relu_backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    # d/dx relu(x)^2 = 2 relu(x). Where x <= 0 the gradient is exactly 0 even if the one that comes in is infinite, and
    # NaN passes, as in autograd of the program written out: so a comparison selects, and no product with 0.
    import torch

    (x,) = ctx.saved_tensors
    selected: torch.Tensor = torch.ops.aten.threshold_backward(2 * (gradient * x), x, 0)
    return selected


SQUARED_RELU = CustomOperation(
    schema="tessiq_contrib::squared_relu(Tensor x) -> Tensor",
    reference=_squared_relu,
    # NaN fails the comparison and stays NaN.
    expression="$x <= 0 ? acc_t(0.0) : $x * $x",
    elements=("f16", "bf16", "f32", "f64"),
    backward=_squared_relu_backward,
    setup_context=_save_input,
    summary="relu(x) squared, the activation of Primer (So et al., 2021, arXiv:2109.08668).",
)

OPERATIONS = (SQUARED_RELU,)
