"""`explain`: compile a function for real on given inputs and say what was decided for each graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tessiq_core.errors import InvalidArgument
from tessiq_core.runtime.report import Counts, Report, collecting_reports


@dataclass(frozen=True)
class Explanation:
    """What was decided, one report a graph, in the order they were compiled. `str()` gives the text people read."""

    reports: tuple[Report, ...]

    @property
    def counts(self) -> Counts:
        """The counts of all graphs added up."""
        all_counts = [report.counts for report in self.reports]
        return Counts(
            kernels=sum(c.kernels for c in all_counts),
            library_kernels=sum(c.library_kernels for c in all_counts),
            claimed=sum(c.claimed for c in all_counts),
            views=sum(c.views for c in all_counts),
            unclaimed=sum(c.unclaimed for c in all_counts),
            sizes=sum(c.sizes for c in all_counts),
        )

    def __str__(self) -> str:
        from tessiq_core.profiling.render import render

        return render(self.reports)


def explain(
    function: Callable[..., Any],
    *inputs: Any,
    options: Mapping[str, object] | None = None,
    backward: bool = False,
    dynamic: bool | None = None,
) -> Explanation:
    """Compile `function` (a module or a callable) with tessiq, run it once on `inputs`, and report.

    inputs:   passed to the function as they are, so whatever a call does to them or to the module's buffers happens.
    options:  as in `torch.compile(..., backend="tessiq", options=options)`.
    backward: also run a backward pass from the sum of the floating outputs; no `.grad` is touched. Needs a function
              whose outputs require gradients.
    dynamic:  as in `torch.compile`.

    Nothing is taken from the recipe cache. Raises what compiling or running raises, and InvalidArgument where
    `backward` is asked for and no output requires gradients.
    """
    import torch

    from tessiq_core.capture import tessiq

    def backend(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        # A function of its own: Dynamo would take a graph it compiled earlier for an equal backend.
        return tessiq(module, example_inputs, options=options)

    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    with collecting_reports() as reports:
        result = compiled(*inputs)
        if backward:
            _backward(function, inputs, result)
    return Explanation(tuple(reports))


def _backward(function: Callable[..., Any], inputs: tuple[Any, ...], result: Any) -> None:
    import torch

    outputs = [t for t in _tensors(result) if t.requires_grad]
    if not outputs:
        raise InvalidArgument(
            "tessiq: explain(backward=True) expected an output that requires gradients, and there is none; "
            "pass inputs or a module with requires_grad, outside torch.no_grad()"
        )
    leaves = [t for t in _tensors(inputs) if t.requires_grad]
    if isinstance(function, torch.nn.Module):
        leaves += [p for p in function.parameters() if p.requires_grad]
    total = torch.stack([t.sum().to(torch.float64) for t in outputs]).sum()
    torch.autograd.grad(total, leaves, allow_unused=True)


def _tensors(value: Any) -> Iterator[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf
