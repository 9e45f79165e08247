"""The core of tessiq: compiler, runtime, plugin framework. Importing it imports neither torch nor a target.

`tessiq_core.explain(function, *inputs)` says what was decided for a function. Compiling needs no import at all:
`torch.compile(model, backend="tessiq")` finds the backend by its entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tessiq_core.errors import (
    External,
    Internal,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    TessiqError,
    Unsupported,
)
from tessiq_core.version import __version__

if TYPE_CHECKING:
    from tessiq_core.profiling import Explanation, explain

__all__ = [
    "Explanation",
    "External",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "ResourceExhausted",
    "TessiqError",
    "Unsupported",
    "__version__",
    "explain",
]


def __getattr__(name: str) -> object:
    # Lazy, so that `tessiq opt` and the passes never import torch.
    if name in ("Explanation", "explain"):
        from tessiq_core import profiling

        return getattr(profiling, name)
    raise AttributeError(f"module 'tessiq_core' has no attribute {name!r}")
