"""`Recipe`: everything decided about one graph, made once. It holds names and never a pointer into FX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.runtime.plan import Plan
from tessiq_core.runtime.report import Report


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a runner needs, and what a report says.

    plan:      plain data; step `KernelStep.kernel` counts in `kernels`.
    kernels:   loaded, in the order of the plan's numbers.
    constants: by name: lifted tensors, subgraph modules of higher-order operators, script objects.
    target:    the target's name. home: the torch device (`cpu`, `cuda:0`) its tensors live on.
    key:       of the recipe cache; "" for one that must not be kept.
    """

    plan: Plan
    kernels: tuple[Kernel, ...]
    constants: Mapping[str, object]
    target: str
    home: str
    key: str
    report: Report
    _versions: tuple[tuple[str, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_versions", self._constant_versions())

    def constants_unchanged(self) -> bool:
        """Whether every constant still has the content its key was computed from: none was written in place since."""
        return self._versions == self._constant_versions()

    def _constant_versions(self) -> tuple[tuple[str, int], ...]:
        # An inference tensor has no version; nothing outside inference mode may write to it.
        return tuple(
            (name, value._version)
            for name, value in sorted(self.constants.items())
            if isinstance(value, torch.Tensor) and not value.is_inference()
        )
