"""A map stage as one C expression: the row's text with operands, types and functions put in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tessiq_core.codegen.description import Axis, Constant, Map, Operand
from tessiq_core.decline import Decline
from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir.types import BOOL, I64, ElementType
from tessiq_core.ops.expression import Apply, parse_expression, walk
from tessiq_core.ops.row import Row
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp import math
from tessiq_cpuref.cpp.elements import accumulation, constant, convert

Typed = tuple[str, ElementType]
"""C text that binds like a name, and the element type of its value."""


def row_of(stage: Map, table: OperationTable) -> Row:
    """The row a map applies. Raises Internal where there is none, which `expression_problem` declines."""
    row = table.row(stage.op)
    if row is None:
        raise Internal(f"tessiq: stage {stage.name} applies {stage.op!r}, which is no row of the operation table")
    return row


def expression_problem(stage: Map, table: OperationTable) -> Decline | None:
    """Why this map has no C text: no row, no expression, or a function that does not exist for its types."""
    row = table.row(stage.op)
    if row is None:
        return Decline("no-row", f"no row of the operation table means {stage.op}", stage.name)
    if row.expression is None:
        return Decline("no-expression", f"row {row.name} has no expression to make C++ of", stage.name)
    try:
        used = list(function_calls(stage, row))
    except InvalidArgument as error:
        return Decline("expression", str(error), stage.name)
    for function, element in used:
        if function not in math.functions(element):
            return Decline("function", f"{row.name} calls {function}, which {element} does not have here", stage.name)
    return None


def function_calls(stage: Map, row: Row) -> Iterator[tuple[str, ElementType]]:
    """The functions the map calls, each with the accumulation type of its arguments."""
    element = accumulation(stage.compute)
    for node in walk(parse_expression(row.expression or "")):
        if isinstance(node, Apply):
            yield node.function, element


def map_text(stage: Map, row: Row, values: Mapping[str, Typed]) -> str:
    """C text of the stage's value, of type `stage.element`; `values` gives the C name and type of earlier stages.

    Every operand is converted to `stage.compute`, widened to its accumulation type, put into the row's expression, and
    the value rounded to `stage.compute` and then to `stage.element`.
    """
    wide = accumulation(stage.compute)
    texts = {
        name: _operand(operand, stage, row, name, values)
        for name, operand in zip(row.operands, stage.operands, strict=True)
    }
    text = re.sub(r"\s+", " ", (row.expression or "").strip())
    text = re.sub(r"\bacc_t\b", wide.name, text)
    text = re.sub(r"\bscalar_t\b", stage.compute.name, text)
    for function in {function for function, _ in function_calls(stage, row)}:
        text = re.sub(rf"(?<![\w$]){function}(?=\s*\()", f"{math.PREFIX}{function}", text)
    text = re.sub(r"\$([A-Za-z_]\w*)", lambda found: texts[found[1]], text)
    if row.result == "bool":
        return text if stage.element == BOOL else convert(f"bool({text})", BOOL, stage.element)
    if stage.element == stage.compute == wide and not wide.is_integer:
        return text
    rounded = text if stage.compute == wide and wide.is_float else f"{stage.compute.name}({text})"
    if stage.element == stage.compute:
        return rounded
    return convert(rounded if rounded is not text else f"({text})", stage.compute, stage.element)


def _operand(operand: Operand, stage: Map, row: Row, name: str, values: Mapping[str, Typed]) -> str:
    if isinstance(operand, Constant):
        return _constant(operand, stage, row, name)
    text, element = (f"d{operand.number}", I64) if isinstance(operand, Axis) else values[operand]
    if name in row.conditions:
        return convert(text, element, BOOL)
    return convert(convert(text, element, stage.compute), stage.compute, accumulation(stage.compute))


def _constant(operand: Constant, stage: Map, row: Row, name: str) -> str:
    """As eager: a number enters arithmetic unrounded, in `acc_t`, and a comparison in the compute type."""
    if name in row.conditions:
        return constant(operand.value, BOOL)
    wide = accumulation(stage.compute)
    if row.result == "bool":
        return convert(constant(operand.value, stage.compute), stage.compute, wide)
    return constant(operand.value, wide)
