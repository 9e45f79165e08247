"""The effect of a node beside computing its results."""

from __future__ import annotations

from typing import Final

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.graph import Node
from tessiq_core.ops.table import OperationTable

EFFECTS: Final = ("none", "random", "writes", "ordered")
"""From the weakest to the strongest: the generator's state, an operand's memory, anything else outside the graph."""

EFFECT_ATTRIBUTE: Final = "tessiq.effect"


def effect_of(node: Node, table: OperationTable) -> str:
    """ "none", "random", "writes" or "ordered": the stronger of what the row and the importer say.

    The importer marks operators without a row with `tessiq.effect`; an operator without either has no effect.
    Raises InvalidArgument for a mark that is none of these.
    """
    row = table.row(node.op)
    said = row.effect if row is not None else "none"
    marked = node.attribute(EFFECT_ATTRIBUTE, "none")
    if marked not in EFFECTS:
        raise InvalidArgument(
            f"tessiq: %{node.name}: {EFFECT_ATTRIBUTE} must be one of {', '.join(EFFECTS)}, not {marked!r}"
        )
    return max(said, str(marked), key=EFFECTS.index)
