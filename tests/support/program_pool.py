"""What random programs are grown in: the tensors so far, and what running one more line does to them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

LARGEST = 4000
"""Most elements a tensor may have: programs are to be many, not large."""

NAMESPACE: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
"""What the text of a line may name besides its operands."""


@dataclass(frozen=True)
class Line:
    """One line of a program, or, while `targets` is not settled, a draft of one.

    targets:  the names it assigns; none for a line that only writes.
    operands: the names its template reads, the first one what it writes to.
    results:  how many values it gives; "many" says that they come as a sequence.
    near:     its floating result is right within rounding only.
    jumps:    a small change of an operand may be a large one of its result, so it must not read what is near.
    writes:   it writes to the memory of its first operand.
    """

    template: str
    operands: tuple[str, ...]
    near: bool = False
    jumps: bool = False
    writes: bool = False
    results: int = 1
    many: bool = False
    targets: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.template.format(*self.operands)
        return f"{', '.join(self.targets)}{',' * self.many} = {text}" if self.targets else text


class Pool:
    """The tensors a program has so far, by name, which of them are near, and a source of choices."""

    def __init__(self, choose: random.Random, tensors: dict[str, torch.Tensor]) -> None:
        self.choose = choose
        self.tensors = tensors
        self.near: set[str] = set()
        self.strided = False
        """Whether a line made a view by as_strided."""

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def pick(self, suits: Callable[[torch.Tensor], bool] = lambda tensor: True) -> str | None:
        """A name, later ones likelier; None where no tensor suits."""
        names = [name for name, tensor in self.tensors.items() if suits(tensor)]
        if not names:
            return None
        return names[max(self.choose.randrange(len(names)) for _ in range(2))]

    def partner(self, name: str) -> str | None:
        """A tensor that broadcasts with the named one."""
        one = self.tensors[name]
        return self.pick(lambda tensor: broadcasts(one.shape, tensor.shape))

    def run(self, line: Line) -> bool:
        """Execute the line; False where it does not suit the tensors, which then lack its results."""
        if any(name not in self.tensors for name in line.operands):
            return False
        inexact = any(name in self.near for name in line.operands)
        if line.jumps and inexact:
            return False
        if line.writes and (self.strided or _repeats(self.tensors[line.operands[0]])):
            return False  # AOTAutograd refuses these
        names = dict(self.tensors)
        try:
            exec(str(line), dict(NAMESPACE), names)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return False
        made = {target: names[target] for target in line.targets}
        for tensor in made.values():
            if not isinstance(tensor, torch.Tensor) or tensor.is_complex() or tensor.numel() > LARGEST:
                return False
        self.tensors.update(made)
        self.strided |= "as_strided" in line.template
        if inexact or line.near:
            self.near.update(target for target, tensor in made.items() if tensor.is_floating_point())
            if line.writes:
                memory = self.tensors[line.operands[0]].untyped_storage().data_ptr()
                shared = {n for n, t in self.tensors.items() if t.untyped_storage().data_ptr() == memory}
                self.near.update(name for name in shared if self.tensors[name].is_floating_point())
        return True


def _repeats(tensor: torch.Tensor) -> bool:
    return any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape, strict=True))


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether an operator takes tensors of these shapes together."""
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))
