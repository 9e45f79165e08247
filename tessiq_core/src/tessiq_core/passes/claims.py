"""How a node is claimed: as a view, by a library, or as a kernel; else why not.

`claim` is what `mark-supported` and `layout-assign` ask about a node. The kernel question is `lower` and then the
emitter's `accepts`, which are the functions that build the kernel, so a claim and its build cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import LibraryBinding
from tessiq_core.codegen.layout import never_overlaps
from tessiq_core.codegen.lower import lower
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import Unknown
from tessiq_core.ir.graph import Node
from tessiq_core.ir.types import OpaqueType, ScalarType, TensorType
from tessiq_core.ops.effects import effect_of
from tessiq_core.ops.movement import view_offsets
from tessiq_core.ops.row import Row
from tessiq_core.passes.manager import PassContext

CONSTANT = "tessiq.constant"


@dataclass(frozen=True)
class Claim:
    """The target runs the node: as "view", "library" (then `library` names the binding) or "kernel"."""

    kind: str
    library: str | None = None


def claim(node: Node, context: PassContext) -> Claim | Decline:
    """Who runs this node, or the refusal that says most about it."""
    passed = _passed_over(node, context)
    if passed is not None:
        return passed
    row = context.table.row(node.op)
    view = _view(node, context) if row is not None and row.category == "movement" else None
    if view is None and row is not None and row.category == "movement":
        return Claim("view")
    libraries: list[Decline] = []
    for binding in by_priority(context.libraries):
        refused = binding.claim(node, context.table) or overlapping(node)
        if refused is None:
            return Claim("library", binding.name)
        libraries.append(Decline(refused.code, f"{binding.name}: {refused.reason}", node.name))
    kernel = kernel_of((node,), context)
    if isinstance(kernel, KernelDescription):
        return Claim("kernel")
    return _most_telling(row, view, libraries, kernel)


def kernel_of(nodes: Sequence[Node], context: PassContext) -> KernelDescription | Decline:
    """The description of one kernel that computes these nodes, in graph order, if the emitter will build it."""
    lowered = lower(nodes, context.table)
    if isinstance(lowered, Decline):
        return lowered
    if context.emitter is None:
        return Decline("no-emitter", "the target has no emitter, and this needs a generated kernel", nodes[0].name)
    refused = context.emitter.accepts(lowered.description, context.table)
    if refused is not None:
        return Decline(refused.code, f"{context.emitter.name}: {refused.reason}", nodes[0].name)
    return lowered.description


def overlapping(node: Node) -> Decline | None:
    """Why the results as recorded cannot be written, where two of their elements may be at one address.

    A packed value needs no proof, whatever its extents are.
    """
    for value in node.results:
        type = value.type
        if isinstance(type, TensorType) and type.strides is not None and not never_overlaps(type.shape, type.strides):
            strides = ", ".join(map(str, type.strides))
            return Decline(
                "layout",
                f"%{value.name} is recorded with strides [{strides}], in which elements may share memory",
                node.name,
            )
    return None


def by_priority(libraries: Sequence[LibraryBinding]) -> list[LibraryBinding]:
    """The order bindings are asked in: the highest priority first, then by name."""
    return sorted(libraries, key=lambda binding: (-binding.priority, binding.name))


def _passed_over(node: Node, context: PassContext) -> Decline | None:
    """Nodes that no target runs, whatever their operation."""
    if node.op == CONSTANT:
        return Decline("constant", "a constant of the graph is there before the call", node.name)
    effect = effect_of(node, context.table)
    if effect != "none":
        return Decline("effect", f"{node.op} has the effect {effect!r} and runs whole, in its place", node.name)
    if not node.results:
        return Decline("no-result", f"{node.op} returns nothing a kernel could write", node.name)
    if all(isinstance(value.type, ScalarType) for value in node.results):
        return Decline("host-scalar", "the result is a Python number, computed on the host", node.name)
    for value in (*node.results, *node.operands):
        if isinstance(value.type, OpaqueType):
            return Decline("opaque-type", f"%{value.name} is opaque ({value.type.name})", node.name)
    for value in (*node.results, *node.operands):
        if isinstance(value.type, TensorType) and value.type.element.is_opaque:
            return Decline("opaque-type", f"%{value.name} has elements of type {value.type.element.name}", node.name)
    return None


def _view(node: Node, context: PassContext) -> Decline | None:
    """None where every result is its source's memory seen through known strides and a known offset."""
    source = next((value.type for value in node.operands if isinstance(value.type, TensorType)), None)
    if source is None:
        return Decline("no-source", f"{node.op} reads no tensor whose memory its result could be", node.name)
    for value in node.results:
        if not isinstance(value.type, TensorType):
            return Decline("result-type", f"%{value.name} is not a tensor", node.name)
        if value.type.element != source.element:
            return Decline(
                "element-type", f"%{value.name} reads {source.element} elements as {value.type.element}", node.name
            )
    offsets = view_offsets(node, context.table)
    if isinstance(offsets, Decline):
        return offsets
    for value, offset in zip(node.results, offsets, strict=True):
        assert isinstance(value.type, TensorType)
        if any(isinstance(extent, Unknown) for extent in (*value.type.shape, *value.type.layout, offset)):
            return Decline(
                "unknown-extent",
                f"the size, strides or offset of %{value.name} are not known before the call",
                node.name,
            )
    return None


def _most_telling(row: Row | None, view: Decline | None, libraries: list[Decline], kernel: Decline) -> Decline:
    """Of the refusals, the one from whoever would be expected to run the node."""
    if view is not None:
        return view
    if row is not None and row.category in ("matmul", "convolution", "normalization", "attention"):
        if not libraries and kernel.code not in ("argument", "element-type"):
            return Decline("no-library", f"no library of the target runs {row.name}", kernel.node)
        return libraries[0] if libraries else kernel
    return kernel
