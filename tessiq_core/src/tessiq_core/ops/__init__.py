"""Operations: the table of rows, and what follows from a row for one node."""

from __future__ import annotations

from tessiq_core.ops.arguments import Bound, BoundCall, bind
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.movement import view_offsets
from tessiq_core.ops.promotion import compute_type
from tessiq_core.ops.row import CATEGORIES, REQUIRED, Argument, Required, Row
from tessiq_core.ops.shapes import result_shapes
from tessiq_core.ops.sizes import keeps_axes, reduced_axes
from tessiq_core.ops.table import OperationTable, default_table

__all__ = [
    "CATEGORIES",
    "REQUIRED",
    "Argument",
    "Bound",
    "BoundCall",
    "OperationTable",
    "Required",
    "Row",
    "bind",
    "compute_type",
    "default_table",
    "effect_of",
    "keeps_axes",
    "reduced_axes",
    "result_shapes",
    "view_offsets",
]
