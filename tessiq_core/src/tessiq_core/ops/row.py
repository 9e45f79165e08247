"""What one operation means to the compiler: one row of `ops.toml`, or a row a plugin registers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tessiq_core.ir.attributes import Attribute


@dataclass(frozen=True)
class Required:
    """The default of an argument that has none."""


REQUIRED = Required()


@dataclass(frozen=True)
class Argument:
    """One argument of an operator's schema. `default` is REQUIRED where the caller must pass it."""

    name: str
    default: Attribute | Required = REQUIRED
    keyword_only: bool = False


CATEGORIES = ("elementwise", "reduction", "movement", "matmul", "convolution", "normalization", "copy", "fill")


@dataclass(frozen=True)
class Row:
    """One operation.

    name:       the short spelling that hand-written IR and kernel descriptions use (`add`).
    category:   one of CATEGORIES; decides the shape rule and what a pass may do with the node.
    spellings:  every operator name that means this row (`aten.add.Tensor`), with that overload's arguments.
    consumes:   names of the arguments a kernel reads, in the order of the expression's operands. A node that passes
                any other argument with a value that is not its default is declined with the argument's name.
    expression: elementwise and copy only: the value in the C subset C++ and CUDA C++ share, over `$argument` names,
                `scalar_t` and `acc_t`; every floating constant is `acc_t(…)`. `ops.expression` parses it,
                `ops.functions` lists what it may call. A row without one is never a generated kernel.
    compute:    the element type arithmetic happens in, of which `acc_t` is the accumulation type:
                "promote" (PyTorch's promotion of the operands), "float" (promotion, integers to the default float),
                or "result" (the result's own type, as a cast does).
    result:     the result's element type: "compute", "bool", "first" (the first operand's) or "recorded" (the graph's).
    elements:   names of the element types the compute type may be.
    reduction:  reduction only: what combines two elements: sum, prod, max, min, any, all.
    effect:     "none", "random" or "writes" (to an operand). Nodes with an effect never merge and never vanish.
    summary:    one sentence for the coverage page.
    origin:     the distribution the row comes from.
    reference:  a plugin's callable that computes the operation with PyTorch; None for rows of ops.toml.
    conditions: consumed arguments that are only tested for truth (`where`'s condition); they do not take part in
                promotion.
    allows:     for arguments not consumed, the values beside the default that change nothing here, such as a device
                label equal to the home (written `@device(home)`).
    averages:   reduction only: the combined value is divided by the number of elements combined (`mean`).
    """

    name: str
    category: str
    spellings: Mapping[str, tuple[Argument, ...]]
    consumes: tuple[str, ...] = ()
    expression: str | None = None
    compute: str = "promote"
    result: str = "compute"
    elements: tuple[str, ...] = ()
    reduction: str | None = None
    effect: str = "none"
    summary: str = ""
    origin: str = "tessiq"
    reference: object = field(default=None, compare=False)
    conditions: tuple[str, ...] = ()
    allows: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    averages: bool = False

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The consumed arguments a map or reduce stage has as operands, in the order of `consumes`.

        With an expression: those it names (all of `consumes` for an elementwise row; `self` without `dtype` for a
        copy). A reduction or movement row has one: the first. The rest of `consumes` (`dim`, `size`, …) shapes the
        result and is read from the bound call.
        """
        if self.expression is not None:
            named = set(re.findall(r"\$([A-Za-z_][A-Za-z0-9_]*)", self.expression))
            return tuple(name for name in self.consumes if name in named)
        return self.consumes[:1] if self.category in ("reduction", "movement") else self.consumes
