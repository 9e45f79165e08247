"""The pass `layout-assign`: the strides of everything that is stored."""

from __future__ import annotations

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import LibraryBinding
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir.extent import Extent, provably_equal
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.types import TensorType, tensor_type
from tessiq_core.ops.effects import effect_of
from tessiq_core.passes.claims import kernel_of, overlapping
from tessiq_core.passes.decisions import LIBRARY, claim_of, set_claim, set_decline
from tessiq_core.passes.manager import Pass, register
from tessiq_core.passes.units import BARRIERS

COPY = "tessiq.copy"

# A copy is shared by readers that want the same strides of the same value and have no barrier between them.
_CopyKey = tuple[Value, tuple[Extent, ...], int]


@register
class LayoutAssign(Pass):
    """Keep the recorded strides of every stored value, and copy where a library cannot read them.

    Assumes: `mark-supported` has run.

    Guarantees: the type of every value that was there is unchanged, so results and values saved for a backward pass
    have exactly the strides PyTorch recorded. Every operand of a library node has the strides its binding demands:
    where it had not, the node now reads a `tessiq.copy`, claimed as a kernel, which readers with the same demand
    share. No claimed node writes a layout in which two elements may lie at one address: such a node, and a library
    node whose copy no kernel can make, is declined with code `layout`.

    Legal because: a copy has the elements of what it copies, wherever it stands between the value and its reader, as
    long as nothing writes to the value in between. It stands directly before its first reader, and is not shared
    across a node that writes or is ordered.
    """

    name = "layout-assign"
    description = "keep recorded strides; insert copies where a library demands others"

    def run(self, graph: Graph) -> bool:
        changed = False
        copies: dict[_CopyKey, Value] = {}
        epoch = 0
        for node in graph.nodes:
            if effect_of(node, self.context.table) in BARRIERS:
                epoch += 1
            if node.op == COPY and node.results and isinstance(node.results[0].type, TensorType):
                copies[(node.operands[0], node.results[0].type.layout, epoch)] = node.results[0]
            if claim_of(node) in ("kernel", "library"):
                unwritable = overlapping(node)
                if unwritable is not None:
                    changed |= set_decline(node, unwritable)
                elif claim_of(node) == "library":
                    changed |= self._meet_demands(graph, node, copies, epoch)
        return changed

    def _meet_demands(self, graph: Graph, node: Node, copies: dict[_CopyKey, Value], epoch: int) -> bool:
        demands = self._binding(node).layouts(node, self.context.table)
        if len(demands) != len(node.operands):
            raise Internal(
                f"tessiq: binding {node.attribute(LIBRARY)!r} gave {len(demands)} layouts for the "
                f"{len(node.operands)} operands of {node.op}; it must give one, or None, for each"
            )
        wanted: list[tuple[int, _CopyKey]] = []
        made: list[_CopyKey] = []
        for index, (value, demand) in enumerate(zip(node.operands, demands, strict=True)):
            if demand is None or not isinstance(value.type, TensorType) or _met(value.type, demand):
                continue
            key = (value, tuple(demand), epoch)
            wanted.append((index, key))
            if key not in copies:
                copied = self._copy(graph, node, value, tuple(demand))
                if isinstance(copied, Decline):
                    for other in made:
                        producer = copies.pop(other).producer
                        assert producer is not None
                        graph.erase(producer)
                    return set_decline(node, copied)
                copies[key] = copied
                made.append(key)
        for index, key in wanted:
            node.set_operand(index, copies[key])
        return bool(wanted)

    def _copy(self, graph: Graph, reader: Node, value: Value, strides: tuple[Extent, ...]) -> Value | Decline:
        assert isinstance(value.type, TensorType)
        type = tensor_type(value.type.element, value.type.shape, strides)
        name = graph.unused_name(f"{value.name}_copy")
        node = graph.insert_before(reader, COPY, [value], [(name, type)])
        kernel = kernel_of((node,), self.context)
        if isinstance(kernel, KernelDescription):
            set_claim(node, "kernel")
            return node.results[0]
        graph.erase(node)
        return Decline(
            "layout",
            f"the library reads %{value.name} in other strides, and no kernel copies it: {kernel.reason}",
        )

    def _binding(self, node: Node) -> LibraryBinding:
        name = node.attribute(LIBRARY)
        for binding in self.context.libraries:
            if binding.name == name:
                return binding
        known = ", ".join(sorted(binding.name for binding in self.context.libraries)) or "none"
        raise InvalidArgument(
            f"tessiq: %{node.name} is claimed by the library {name!r}, which this pipeline does not have "
            f"(it has: {known}); run mark-supported with the same target"
        )


def _met(type: TensorType, strides: tuple[Extent, ...]) -> bool:
    """Whether the layout is the demanded one; the stride of an axis of extent 1 does not matter."""
    return all(
        extent == 1 or provably_equal(have, want)
        for extent, have, want in zip(type.shape, type.layout, strides, strict=True)
    )
