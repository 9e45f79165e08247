"""`RewritePattern`: a graph rewrite as data. Plugins construct these; the pass `rewrite` applies them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RewritePattern:
    """Replace what `pattern` computes by what `replacement` computes.

    name:        identifies it in options and reports, such as `contrib.gelu-tanh`; unique among the patterns in use.
    pattern:     a graph in the IR's text form with one result. Parameters stand for any value, a parameter that is
                 read twice for the same value twice; attributes are arguments that must be equal. Types mean
                 nothing here but that they must be written; `?` is a good extent.
    replacement: a graph with the same parameters, in the same order and by the same names, and one result. Its root
                 node computes the original's result and takes over its type; a replacement may also return a
                 parameter. Types of inner nodes are used as written, so they must be exact.
    """

    name: str
    pattern: str
    replacement: str
