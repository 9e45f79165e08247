"""What a user imports: the public names of tessiq.

`torch.compile(model, backend="tessiq")` needs no import. This package re-exports `explain` and the exceptions;
importing it registers nothing with PyTorch today.
"""

from tessiq_core import (
    Explanation,
    External,
    Internal,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    TessiqError,
    Unsupported,
    __version__,
    explain,
)

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
