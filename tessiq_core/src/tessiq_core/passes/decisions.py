"""The attributes in which passes record what they decided, and the few questions asked about them."""

from __future__ import annotations

from collections.abc import Mapping

from tessiq_core.decline import Decline
from tessiq_core.ir.graph import Node

CLAIM = "tessiq.claim"
DECLINE = "tessiq.decline"
LIBRARY = "tessiq.library"
CLUSTER = "tessiq.cluster"
GROUP = "tessiq.group"
FUSE = "tessiq.fuse"

# What has no meaning on a node that is not claimed.
_OF_CLAIMED = (CLAIM, LIBRARY, CLUSTER, GROUP, FUSE)


def claim_of(node: Node) -> str:
    """ "kernel", "view" or "library"; "" where the node is not claimed."""
    claim = node.attribute(CLAIM)
    return claim if isinstance(claim, str) else ""


def number_of(node: Node, name: str) -> int | None:
    """The integer the decision `name` (CLUSTER, GROUP) has on the node, or None."""
    value = node.attribute(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def set_claim(node: Node, claim: str, library: str | None = None) -> bool:
    """Record that the node is claimed; True when that changed something."""
    changed = node.remove_attribute(DECLINE)
    changed |= node.set_attribute(CLAIM, claim)
    if library is not None:
        changed |= node.set_attribute(LIBRARY, library)
    else:
        changed |= node.remove_attribute(LIBRARY)
    if claim != "kernel":
        changed |= node.remove_attribute(GROUP)
        changed |= node.remove_attribute(FUSE)
    return changed


def set_decline(node: Node, decline: Decline) -> bool:
    """Record why the node is not claimed; True when that changed something."""
    changed = node.set_attribute(DECLINE, f"{decline.code}: {decline.reason}")
    for name in _OF_CLAIMED:
        changed |= node.remove_attribute(name)
    return changed


def set_numbers(nodes: Mapping[Node, int | None], name: str) -> bool:
    """Record a number on each node, or none where it is None; True when that changed something."""
    changed = False
    for node, number in nodes.items():
        if number is None:
            changed |= node.remove_attribute(name)
        else:
            changed |= node.set_attribute(name, number)
    return changed
