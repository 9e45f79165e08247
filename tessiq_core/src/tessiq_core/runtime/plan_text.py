"""A plan as text: one line a step, for reports, tests and people. Nothing reads it back."""

from __future__ import annotations

from tessiq_core.ir.printer import print_attribute, print_type
from tessiq_core.runtime.plan import CallStep, KernelStep, Plan, SlotRef, Step, Template, TransferStep, ViewStep


def plan_text(plan: Plan) -> str:
    """The plan, line by line, with a newline at the end.

    A value is `%name`; a second slot of the same value, a copy on the other side, is `%name'2`. `^` after a step lists
    what is released.
    """
    names = _names(plan)
    lines = []
    inputs = ", ".join(
        "_" if slot is None else f"{names[slot]}: {print_type(plan.slots[slot].type)}" for slot in plan.inputs
    )
    lines.append(f"plan({inputs})")
    for label, slots in (("checked", plan.checked), ("writes", plan.writes)):
        if slots:
            lines.append(f"  {label} {', '.join(names[slot] for slot in slots)}")
    for slot, name in plan.constants:
        lines.append(f"  constant {names[slot]} = {name!r}")
    for binding in plan.symbols:
        place = f"input {binding.input}" + ("" if binding.axis is None else f" axis {binding.axis}")
        lines.append(f"  symbol {binding.name} = {place}")
    for index, step in enumerate(plan.steps):
        released = f"  ^ {', '.join(names[slot] for slot in step.release)}" if step.release else ""
        lines.append(f"  {_step(step, plan, names)}{released}")
        for late in plan.late:
            if late.step == index:
                place = "" if late.axis is None else f" axis {late.axis}"
                lines.append(f"  symbol {late.name} = {names[late.slot]}{place}")
    literals = dict(plan.literals)
    outputs = [
        str(literals.get(position)).lower() if slot is None else names[slot]
        for position, slot in enumerate(plan.outputs)
    ]
    lines.append(f"  return {', '.join(outputs)}")
    return "\n".join(lines) + "\n"


def _names(plan: Plan) -> list[str]:
    seen: dict[str, int] = {}
    names: list[str] = []
    for slot in plan.slots:
        seen[slot.name] = seen.get(slot.name, 0) + 1
        suffix = f"'{seen[slot.name]}" if seen[slot.name] > 1 else ""
        names.append(f"%{slot.name}{suffix}")
    return names


def _step(step: Step, plan: Plan, names: list[str]) -> str:
    match step:
        case CallStep():
            results = ", ".join("_" if slot is None else names[slot] for slot in step.results)
            arguments = [_template(value, names) for value in step.arguments]
            arguments += [f"{name}={_template(value, names)}" for name, value in step.keywords]
            return f"call {results + ' = ' if results else ''}{step.op}({', '.join(arguments)})"
        case ViewStep():
            layout = f"[{_list(step.shape)}; {_list(step.strides)}]"
            return f"view {names[step.result]} = {names[step.source]} + {step.offset} as {layout}"
        case KernelStep():
            outputs = ", ".join(f"{names[slot]}: {print_type(plan.slots[slot].type)}" for slot in step.outputs)
            return f"launch {outputs} = {step.node}({', '.join(names[slot] for slot in step.inputs)})"
        case TransferStep():
            return f"{step.direction} {names[step.result]} = {names[step.source]}"


def _template(value: Template, names: list[str]) -> str:
    match value:
        case SlotRef():
            return names[value.slot]
        case tuple():
            return f"[{', '.join(_template(item, names) for item in value)}]"
    return print_attribute(value)


def _list(extents: tuple[object, ...]) -> str:
    return ", ".join(str(extent) for extent in extents)
