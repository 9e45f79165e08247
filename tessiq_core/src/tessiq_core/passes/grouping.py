"""Groups of nodes that become one generated kernel, and what decides whether two of them are merged."""

from __future__ import annotations

from dataclasses import dataclass

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.traffic import bytes_moved
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Node
from tessiq_core.ir.types import TensorType
from tessiq_core.passes.claims import kernel_of
from tessiq_core.passes.manager import PassContext
from tessiq_core.passes.sizes import hinted
from tessiq_core.passes.units import Dependencies, UnitGraph

# The most nodes of one kernel. Compilers take more than linear time for one function, and past this length nearly all
# the bytes a merge can save are saved: a chain of 64 moves a 64th of what its nodes move one by one.
MAX_NODES = 64

# The most buffers of one kernel. Each costs a pointer and its strides in registers for the whole loop; past about two
# dozen they spill, and what spills moves more bytes than the merge saves.
MAX_BUFFERS = 24

# Edges all cycle checks together may walk, for each node and edge of the graph; see `UnitGraph`.
WALK_FACTOR = 32


@dataclass
class Group:
    """Nodes in graph order, their kernel, the bytes one launch moves, and where they are in the graph."""

    positions: list[int]
    description: KernelDescription
    bytes: int


class Grouping:
    """Starts with every given node in a group of its own; `merge` joins two where that is legal and saves bytes."""

    def __init__(self, depends: Dependencies, positions: list[int], context: PassContext) -> None:
        """A group for each of the positions.

        Raises Internal where a node has no kernel: it was claimed, and what is claimed must be built.
        """
        self._depends = depends
        self._context = context
        size = len(depends.nodes) + sum(len(sources) for sources in depends.before)
        self._units = UnitGraph(depends.before, range(len(depends.nodes)), budget=WALK_FACTOR * size)
        self._groups: dict[int, Group] = {}
        # A refusal holds as long as neither group has grown, so it is kept by both groups' names and sizes.
        self._refused: dict[tuple[int, int, int, int], Decline] = {}
        for position in positions:
            described = kernel_of((depends.nodes[position],), context)
            if isinstance(described, Decline):
                node = depends.nodes[position]
                raise Internal(
                    f"tessiq: {node.op} (%{node.name}) is claimed as a kernel and cannot become one "
                    f"({described.code}: {described.reason}); mark-supported must ask what the build asks"
                )
            self._groups[position] = Group([position], described, hinted(bytes_moved(described)))

    def find(self, position: int) -> int:
        """The name of the group the node at `position` is in."""
        return self._units.find(position)

    def group(self, position: int) -> Group:
        """The group the node at `position` is in."""
        return self._groups[self.find(position)]

    def nodes(self, position: int) -> tuple[Node, ...]:
        """The nodes of that group, in graph order."""
        return tuple(self._depends.nodes[p] for p in self.group(position).positions)

    def refusal(self, a: int, b: int) -> Decline | None:
        """Why the groups of two nodes, as they are now, were not merged; None where that was not tried."""
        return self._refused.get(self._key(a, b))

    def merge(self, a: int, b: int, *, must_save: bool = False) -> bool:
        """Make the groups of two nodes one kernel; False, with the reason kept, where that cannot be or costs bytes.

        must_save: refuse also where the bytes moved stay the same.
        """
        key = self._key(a, b)
        if key in self._refused:
            return False
        merged = self._merged(self.group(a), self.group(b), must_save)
        if isinstance(merged, Group) and not self._units.merge(a, b):
            merged = Decline("budget", "the graph is too entangled to look for cycles within the time allowed")
        if isinstance(merged, Decline):
            self._refused[key] = merged
            return False
        for name in key[::2]:
            del self._groups[name]
        self._groups[self.find(a)] = merged
        return True

    def _key(self, a: int, b: int) -> tuple[int, int, int, int]:
        a, b = sorted((self.find(a), self.find(b)))
        return (a, len(self._groups[a].positions), b, len(self._groups[b].positions))

    def _merged(self, a: Group, b: Group, must_save: bool) -> Group | Decline:
        positions = sorted((*a.positions, *b.positions))
        if len(positions) > MAX_NODES:
            return Decline("size", f"one kernel would compute {len(positions)} nodes; the most is {MAX_NODES}")
        if not self._units.can_merge(a.positions[0], b.positions[0]):
            if self._units.exhausted:
                return Decline("budget", "the graph is too entangled to look for cycles within the time allowed")
            return Decline("cycle", "a node outside would have to run between them")
        nodes = [self._depends.nodes[p] for p in positions]
        buffers = _buffers(nodes)  # much cheaper to count than to describe a kernel
        if buffers > MAX_BUFFERS:
            return Decline("size", f"one kernel would use {buffers} buffers; the most is {MAX_BUFFERS}")
        described = kernel_of(nodes, self._context)
        if isinstance(described, Decline):
            return described
        moved = hinted(bytes_moved(described))
        if moved > a.bytes + b.bytes or (must_save and moved == a.bytes + b.bytes):
            return Decline("bytes", f"one kernel would move {moved} bytes, the two move {a.bytes + b.bytes}")
        return Group(positions, described, moved)


def _buffers(nodes: list[Node]) -> int:
    """The values one kernel of these nodes would read and write."""
    inside = set(nodes)
    reads = {
        value
        for node in nodes
        for value in node.operands
        if isinstance(value.type, TensorType) and value.producer not in inside
    }
    written = sum(
        value.is_returned or any(use.node not in inside for use in value.uses)
        for node in nodes
        for value in node.results
    )
    return len(reads) + max(written, 1)
