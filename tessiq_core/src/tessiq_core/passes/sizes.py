"""Sizes the passes compare: exact where they are known, with every symbol taken as one number where they are not."""

from __future__ import annotations

from math import prod

from tessiq_core.ir.extent import Extent, Unknown, evaluate, symbols
from tessiq_core.ir.types import TensorType, ValueType

# A decision about traffic needs some number for a size that arrives with the call. Any fixed number keeps decisions
# the same from run to run; 1024 is large enough that terms of higher degree outweigh constants, as they do in use.
HINT = 1024


def hinted(extent: Extent) -> int:
    """The extent as an integer: every symbol, and an unknown extent, counts as HINT."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Unknown):
        return HINT
    return evaluate(extent, dict.fromkeys(symbols(extent), HINT))


def value_bytes(type: ValueType) -> int:
    """Bytes of a tensor's elements, each counted once; 0 for what is not a tensor."""
    if not isinstance(type, TensorType):
        return 0
    return type.element.size * prod(hinted(extent) for extent in type.shape)
