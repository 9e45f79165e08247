"""The passes. Importing this package registers all of them; `run_pipeline` runs them by name."""

from __future__ import annotations

from tessiq_core.passes import cluster, cse, dce, fuse, layout_assign, mark_supported, rewrite
from tessiq_core.passes.manager import PASSES, Pass, PassContext, PassResult, parse_pipeline, register, run_pipeline

__all__ = [
    "PASSES",
    "Pass",
    "PassContext",
    "PassResult",
    "cluster",
    "cse",
    "dce",
    "fuse",
    "layout_assign",
    "mark_supported",
    "parse_pipeline",
    "register",
    "rewrite",
    "run_pipeline",
]
