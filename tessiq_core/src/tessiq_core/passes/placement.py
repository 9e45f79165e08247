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
    readers = _Readers(computes, views)
    on_device = set(computes)
    home: set[int] = set()
    for node in views:
        source = next((value for value in node.operands if isinstance(value.type, TensorType)), None)
        if source is None or _cheaper_at_home(node, source, source.producer in on_device, readers):
            home.add(depends.position[node])
        else:
            on_device.add(node)
    return home


class _Readers:
    """On which side values are read: by nodes that compute on the device, and by the home, which gets the results.

    A view hands the question on: it is wanted where something that is no view reads it, or a view of it.
    """

    def __init__(self, computes: set[Node], views: list[Node]) -> None:
        self._computes = computes
        self._views = set(views)
        self._on_device: set[Node] = set()
        self._at_home: set[Node] = set()
        for node in reversed(views):
            for value in node.results:
                if self.computed_on(value) or any(reader in self._on_device for reader in value.readers):
                    self._on_device.add(node)
                if self.wanted_back(value) or any(reader in self._at_home for reader in value.readers):
                    self._at_home.add(node)

    def computed_on(self, value: Value) -> bool:
        """Whether a node on the device computes from the value itself."""
        return any(reader in self._computes for reader in value.readers)

    def wanted_back(self, value: Value) -> bool:
        """Whether the value itself is returned, or read by a node at home that is no view."""
        return value.is_returned or any(
            reader not in self._computes and reader not in self._views for reader in value.readers
        )

    def on_device(self, view: Node) -> bool:
        return view in self._on_device

    def at_home(self, view: Node) -> bool:
        return view in self._at_home


def _cheaper_at_home(node: Node, source: Value, source_on_device: bool, readers: _Readers) -> bool:
    """Compare the bytes that cross with the view at home and on the device; a tie leaves it in its cluster."""
    moved = sum(value_bytes(value.type) for value in node.results)
    if source_on_device:
        if readers.on_device(node) or not readers.at_home(node):
            return False
        back = 0 if readers.wanted_back(source) else value_bytes(source.type)
        return back < moved
    if not readers.on_device(node):
        return True
    there = 0 if readers.computed_on(source) else value_bytes(source.type)
    return moved < there + (moved if readers.at_home(node) else 0)
