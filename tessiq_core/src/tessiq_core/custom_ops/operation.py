"""`CustomOperation`: everything tessiq needs to know of an operation PyTorch does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessiq_core.ops.row import Row


@dataclass(frozen=True)
class CustomOperation:
    """An elementwise operation: of tensors that broadcast and of numbers, with one tensor as its result.

    schema:        PyTorch's schema with its namespace, `my_ops::soft_clip(Tensor x, float limit=1.0) -> Tensor`.
                   Arguments are Tensor, Scalar, float, int or bool.
    reference:     what it means, in PyTorch operators: called with the schema's arguments, it returns a new tensor of
                   the broadcast shape. It runs wherever no kernel does (on every device, and on fake tensors), and
                   every kernel is compared with it. It may import torch inside, so that the package need not.
    expression:    the kernel: the result in the C subset C++ and CUDA C++ share, over `$argument` names, `scalar_t`
                   and `acc_t`, such as `$x > acc_t(0.5) ? $x : $x * $slope`. A floating constant is always
                   `acc_t(…)`: written bare it is a double and would pull the arithmetic into double precision.
    elements:      names of the element types the expression is right for (`("f16", "bf16", "f32", "f64")`); for
                   others the reference runs.
    backward:      `backward(ctx, gradient)`: the gradients of the schema's arguments, in order, None for what has
                   none, as `torch.library.register_autograd` takes it. None: the operation is not differentiable.
    setup_context: `setup_context(ctx, inputs, output)`: saves what `backward` needs. Needed with `backward`.
    compute:       the type arithmetic happens in: "promote" (PyTorch's promotion) or "float" (integers become the
                   default floating type first).
    result:        the result's element type: "compute" or "bool".
    summary:       one line for people.
    """

    schema: str
    reference: Callable[..., Any]
    expression: str
    elements: tuple[str, ...]
    backward: Callable[..., Any] | None = None
    setup_context: Callable[..., None] | None = None
    compute: str = "promote"
    result: str = "compute"
    summary: str = ""

    @property
    def qualified_name(self) -> str:
        """`namespace::name`, with `.overload` where the schema has one: what people and records call it."""
        return self.schema.partition("(")[0].strip()

    def row(self) -> Row:
        """Its row of the operation table; see `tessiq_core.custom_ops.row_of`."""
        from tessiq_core.custom_ops.rows import row_of

        return row_of(self)

    def register(self) -> None:
        """Make `torch.ops.<namespace>.<name>` callable; see `tessiq_core.custom_ops.register`."""
        from tessiq_core.custom_ops.registration import register

        register(self)
