"""The vector math functions and operators an expression may use: the list every emitter implements in full.

Expressions write a plain name (`exp($self)`); an emitter prefixes it as its own overloads need. Arguments and values
are `acc_t`. Functions follow C: a NaN argument gives NaN, domain errors give NaN, poles give infinities.
"""

from __future__ import annotations

from typing import Final

FUNCTIONS: Final[dict[str, tuple[int, str]]] = {
    "exp": (1, "e to the power of the argument"),
    "log": (1, "natural logarithm"),
    "tanh": (1, "hyperbolic tangent"),
    "erf": (1, "error function"),
    "sqrt": (1, "square root, correctly rounded"),
    "rsqrt": (1, "1 / sqrt(x), as the target's eager kernel computes it (on the CPU a square root and a division)"),
    "pow": (2, "first argument to the power of the second"),
    "abs": (1, "absolute value, of integers too; clears the sign of -0.0 and of NaN"),
    "floor": (1, "largest integral value not above the argument"),
    "ceil": (1, "smallest integral value not below the argument"),
    "trunc": (1, "the argument without its fraction"),
    "isnan": (1, "whether the argument is NaN; false for integers"),
}
"""Name -> (number of arguments, what it computes)."""

TYPE_NAMES: Final = ("acc_t", "scalar_t")
"""Casts: `acc_t(x)` to the accumulation type, `scalar_t(x)` rounds to the compute type."""

UNARY_OPERATORS: Final = ("-", "+", "!")
BINARY_OPERATORS: Final[tuple[tuple[str, ...], ...]] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
)
"""Binary operators from the loosest to the tightest binding; `test ? a : b` is looser than all. C's precedence."""
