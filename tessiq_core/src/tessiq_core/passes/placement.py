"""Where views run when handing a value between the home and the device costs a copy.

A kernel or a library call runs on the device. A view runs wherever its source is, and costs nothing there; what
costs is that its result is read elsewhere. Each view is placed by the bytes that cross, not by how many nodes the
device covers. So a cluster of nothing but views between operators at home stays at home: on the device it would cost
a copy there and one back, for no work.
"""

from __future__ import annotations

from tessiq_core.ir.graph import Node, Value
from tessiq_core.ir.types import TensorType
from tessiq_core.passes.decisions import claim_of
from tessiq_core.passes.sizes import value_bytes
from tessiq_core.passes.units import Dependencies


def views_at_home(depends: Dependencies, units: list[int | None]) -> set[int]:
    """Positions of the views in clusters that run at home instead.

    Taking a view out of its cluster keeps the graph of units acyclic: it goes either with everything it reads at
    home, so that a way from its cluster to it would have been a cycle through the cluster before, or with everything
    that reads it at home, where the same holds for a way back.
    """
    computes = {
        node for node, unit in zip(depends.nodes, units, strict=True) if unit is not None and claim_of(node) != "view"
    }
    views = [
        node for node, unit in zip(depends.nodes, units, strict=True) if unit is not None and claim_of(node) == "view"
    ]
    wanted_on_device: set[Node] = set()
    wanted_at_home: set[Node] = set()
    movable = set(views)
    for node in reversed(views):
        for value in node.results:
            if value.is_returned:
                wanted_at_home.add(node)
            for reader in value.readers:
                if reader in computes or reader in wanted_on_device:
                    wanted_on_device.add(node)
                if reader in wanted_at_home or (reader not in computes and reader not in movable):
                    wanted_at_home.add(node)
    on_device = set(computes)
    home: set[int] = set()
    for node in views:
        source = next((v for v in node.operands if isinstance(v.type, TensorType)), None)
        if source is None or _at_home_is_cheaper(
            node, source, computes, movable, on_device, node in wanted_on_device, node in wanted_at_home
        ):
            home.add(depends.position[node])
        else:
            on_device.add(node)
    return home


def _at_home_is_cheaper(
    node: Node,
    source: Value,
    computes: set[Node],
    movable: set[Node],
    on_device: set[Node],
    for_device: bool,
    for_home: bool,
) -> bool:
    moved = sum(value_bytes(value.type) for value in node.results)
    if source.producer is None or source.producer not in on_device:
        if not for_device:
            return True
        crosses_anyway = any(reader in computes for reader in source.readers)
        there = 0 if crosses_anyway else value_bytes(source.type)
        return moved < there + (moved if for_home else 0)
    if for_device or not for_home:
        return False
    crosses_anyway = source.is_returned or any(r not in computes and r not in movable for r in source.readers)
    return (0 if crosses_anyway else value_bytes(source.type)) < moved
