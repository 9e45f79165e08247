"""The API for packages of operations: describe one, check it, register it with PyTorch, and make it fuse.

Importing this and making a `CustomOperation` imports no torch; `register` does.
"""

from __future__ import annotations

from tessiq_core.custom_ops.checks import problems
from tessiq_core.custom_ops.operation import CustomOperation
from tessiq_core.custom_ops.registration import register
from tessiq_core.custom_ops.rows import row_of

__all__ = ["CustomOperation", "problems", "register", "row_of"]
