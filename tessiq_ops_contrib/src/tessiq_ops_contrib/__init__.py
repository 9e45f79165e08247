"""Custom operations for tessiq. Importing this package makes `torch.ops.tessiq_contrib.*` usable, compiled or not.

What plugins see is in `tessiq_ops_contrib_plugin`, a package of its own: listing plugins and rewriting graphs as text
must not import torch, and importing a module imports the package it is in.
"""

from __future__ import annotations

from tessiq_core.custom_ops import register
from tessiq_ops_contrib_plugin.operations import OPERATIONS

__all__ = ["OPERATIONS"]

for _operation in OPERATIONS:
    register(_operation)
