"""Matrix products by PyTorch's own CPU library (oneDNN or a BLAS), written straight into the output's buffer."""

from __future__ import annotations

from tessiq_core.codegen.interfaces import Kernel, KernelOperand, OperatorLaunch
from tessiq_core.codegen.layout import never_overlaps
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Extent, Unknown
from tessiq_core.ir.graph import Node, Value
from tessiq_core.ir.types import TensorType
from tessiq_core.ops.arguments import BoundCall, bind
from tessiq_core.ops.table import OperationTable

ROWS = ("mm", "bmm", "addmm", "baddbmm")
"""Rows it runs: those whose `out=` overload writes an output of any strides in place and allocates nothing for it."""


class AtenOut:
    """Runs matrix products of floating tensors through `aten.NAME.out`. Reads any strides; demands no copy."""

    @property
    def name(self) -> str:
        return "aten-out"

    @property
    def target(self) -> str:
        return "cpuref"

    @property
    def priority(self) -> int:
        return 0

    def claim(self, node: Node, table: OperationTable) -> Decline | None:
        """None for mm, bmm, addmm and baddbmm (default `beta` and `alpha`) in one floating type with known sizes.

        Declines with `no-row` or `argument` (as `bind`), `not-a-product`, `element-type`, `unknown-extent`, or
        `overlapping-output` where the recorded strides may put two elements in one place.
        """
        bound = bind(node, table)
        return bound if isinstance(bound, Decline) else _problem(bound)

    def layouts(self, node: Node, table: OperationTable) -> tuple[tuple[Extent, ...] | None, ...]:
        """None for each operand: the library reads any strides."""
        return (None,) * len(node.operands)

    def build(self, node: Node, table: OperationTable) -> Kernel:
        """The kernel of a node `claim` accepted; a value the node reads twice is one input."""
        bound = bind(node, table)
        if isinstance(bound, Decline) or _problem(bound) is not None:
            raise Internal(f"tessiq: library 'aten-out' was asked to build {node.op} %{node.name}, which it declines")
        values = list(dict.fromkeys(node.operands))
        positions = tuple(values.index(operand) for operand in _operands(bound))
        result = node.results[0]
        return Kernel(
            name=node.name,
            origin=self.name,
            members=(result.name,),
            inputs=tuple(KernelOperand(value.name, _type(value)) for value in values),
            outputs=(KernelOperand(result.name, _type(result)),),
            words=(),
            launch=OperatorLaunch(f"aten.{bound.row.name}.out", positions),
            capturable=False,
        )


def _operands(bound: BoundCall) -> list[Value]:
    return [operand for operand in bound.operands if isinstance(operand, Value)]


def _type(value: Value) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise Internal(f"tessiq: %{value.name} is no tensor")
    return value.type


def _problem(bound: BoundCall) -> Decline | None:
    node = bound.node
    if bound.row.name not in ROWS:
        return Decline("not-a-product", f"aten-out runs {', '.join(ROWS)}, not {bound.row.name}", node.name)
    values = [*bound.operands, *node.results]
    types = [value.type for value in values if isinstance(value, Value) and isinstance(value.type, TensorType)]
    if len(types) != len(values):
        return Decline("element-type", f"an operand or the result of {node.op} is no tensor", node.name)
    result = types[-1]
    if not result.element.is_float or any(type.element != result.element for type in types):
        names = ", ".join(str(type.element) for type in types)
        return Decline("element-type", f"{node.op} needs one floating element type, and has {names}", node.name)
    if any(isinstance(extent, Unknown) for type in types for extent in (*type.shape, *type.layout)):
        return Decline("unknown-extent", f"an operand or the result of {node.op} has a size nobody knows", node.name)
    if not never_overlaps(result.shape, result.layout):
        strides = ", ".join(map(str, result.layout))
        return Decline("overlapping-output", f"%{node.name} is to be written with strides [{strides}]", node.name)
    return None
