"""The text form of kernel descriptions: `parse_kernel(print_kernel(d)) == d`, exactly.

    kernel @add_relu(d0 < 64, d1 < s0) {
      x = read %x[s0*d0 + d1] : f32
      b = read %b[3 + 2*d1] : f32
      add = add(x, b) in f32 : f32
      m = reduce max(add) over d1 in f32 : f32
      c = le(x, 0.0) in f32 : bool
      write %m[d0] : f32 = m over d0
      members add, m
    }

Reads come first, then stages, then writes, then `members`. An index prints its offset first where it is not 0; a
scalar's index is `[0]`. `over` is left out where there are no axes. `//` starts a comment.
"""

from __future__ import annotations

from tessiq_core.codegen.affine import print_access
from tessiq_core.codegen.description import Axis, Constant, KernelDescription, Map, Operand, Stage
from tessiq_core.codegen.parser import parse_kernel, parse_kernels

__all__ = ["parse_kernel", "parse_kernels", "print_access", "print_kernel", "print_operand", "print_stage"]


def print_kernel(kernel: KernelDescription) -> str:
    """The text of one description, without a newline at its end."""
    domain = ", ".join(f"d{number} < {extent}" for number, extent in enumerate(kernel.domain))
    lines = [f"kernel @{kernel.name}({domain}) {{"]
    for read in kernel.reads:
        lines.append(f"  {read.name} = read %{read.value}[{print_access(read.access)}] : {read.element}")
    lines.extend(f"  {print_stage(stage)}" for stage in kernel.stages)
    for write in kernel.writes:
        index = print_access(write.access)
        lines.append(f"  write %{write.value}[{index}] : {write.element} = {write.stage}{_over(write.axes)}")
    if kernel.members:
        lines.append(f"  members {', '.join(kernel.members)}")
    lines.append("}")
    return "\n".join(lines)


def print_stage(stage: Stage) -> str:
    """One stage's line, without indentation."""
    if isinstance(stage, Map):
        operands = ", ".join(print_operand(operand) for operand in stage.operands)
        return f"{stage.name} = {stage.op}({operands}) in {stage.compute} : {stage.element}"
    return (
        f"{stage.name} = reduce {stage.combine}({stage.operand}){_over(stage.axes)} in {stage.compute} : "
        f"{stage.element}"
    )


def print_operand(operand: Operand) -> str:
    """A stage's name, `d3`, or a constant that reads back as the same type and value."""
    if isinstance(operand, Axis):
        return f"d{operand.number}"
    if isinstance(operand, Constant):
        if isinstance(operand.value, bool):
            return "true" if operand.value else "false"
        return repr(operand.value)
    return operand


def _over(axes: tuple[int, ...]) -> str:
    return f" over {', '.join(f'd{axis}' for axis in axes)}" if axes else ""
