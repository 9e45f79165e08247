"""Names inside a kernel description: what a stage may be called, and fresh ones."""

from __future__ import annotations

import re
from collections.abc import Container

# Words an operand can be besides a stage: a constant, or an axis index.
_RESERVED = frozenset({"true", "false", "inf", "nan"})
_AXIS = re.compile(r"d(0|[1-9][0-9]*)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def axis_number(name: str) -> int | None:
    """The number of the axis the name spells (`d3` is 3), or None."""
    matched = _AXIS.fullmatch(name)
    return int(matched[1]) if matched else None


def is_stage_name(name: str) -> bool:
    """True for an identifier that the text form reads as a stage, not as an axis or a constant."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED and axis_number(name) is None


def stage_name(stem: str, taken: Container[str]) -> str:
    """A stage name that is free: `stem` with whatever an identifier cannot hold replaced, then `_1`, `_2`, …"""
    base = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    if not is_stage_name(base):
        base = f"{base}_" if _IDENTIFIER.fullmatch(base) else f"v{base}"
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name
