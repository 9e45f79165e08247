"""What one operation means to the compiler: one row of `ops.toml`, or a row a plugin registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    expression: elementwise only: the value in the C subset C++ and CUDA C++ share, over `$argument` names,
                `scalar_t` and `acc_t`; every floating constant is `acc_t(…)`.
    compute:    the element type arithmetic happens in, of which `acc_t` is the accumulation type:
                "promote" (PyTorch's promotion of the operands), "float" (promotion, integers to the default float),
                or "result" (the result's own type, as a cast does).
    result:     the result's element type: "compute", "bool", "first" (the first operand's) or "recorded" (the graph's).
    elements:   names of the element types the compute type may be.
    reduction:  reduction only: what combines two elements: sum, prod, max, min, any, all.
    effect:     "none", "random" or "writes" (to an operand). Nodes with an effect never merge and never vanish.
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
