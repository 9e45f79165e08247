"""Rewrites: programs that spell an operation of this package out."""

from __future__ import annotations

from tessiq_core.ir.pattern import RewritePattern

# Bit-exact: the product rounds once either way, relu rounds nothing, and zeros of both signs, infinities and NaN go
# the same way through the expression.
SQUARED_RELU = RewritePattern(
    name="contrib.squared-relu",
    pattern="""
        graph @pattern(%x: f32[?]) {
          %relu = aten.relu.default(%x) : f32[?]
          %mul = aten.mul.Tensor(%relu, %relu) : f32[?]
          return %mul
        }
    """,
    replacement="""
        graph @replacement(%x: f32[?]) {
          %squared_relu = tessiq_contrib.squared_relu.default(%x) : f32[?]
          return %squared_relu
        }
    """,
)

PATTERNS = (SQUARED_RELU,)
