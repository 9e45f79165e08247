"""Which slots a step reads and fills, and after which step each slot is read no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tessiq_core.runtime.plan import CallStep, KernelStep, SlotRef, Step, Template, TransferStep, ViewStep


def slots_read(step: Step) -> tuple[int, ...]:
    """The slots a step reads."""
    match step:
        case CallStep():
            return tuple(_references((*step.arguments, *(value for _, value in step.keywords))))
        case ViewStep() | TransferStep():
            return (step.source,)
        case KernelStep():
            return step.inputs


def slots_written(step: Step) -> tuple[int, ...]:
    """The slots a step fills."""
    match step:
        case CallStep():
            return tuple(slot for slot in step.results if slot is not None)
        case ViewStep() | TransferStep():
            return (step.result,)
        case KernelStep():
            return step.outputs


def _references(template: Template) -> list[int]:
    if isinstance(template, SlotRef):
        return [template.slot]
    if isinstance(template, tuple):
        return [slot for item in template for slot in _references(item)]
    return []


def with_releases(steps: Sequence[Step], returned: set[int]) -> list[Step]:
    """Each step with the slots that no later step reads and that are not returned, so that their memory is freed."""
    seen = set(returned)
    reversed_steps: list[Step] = []
    for step in reversed(steps):
        last = tuple(slot for slot in dict.fromkeys((*slots_read(step), *slots_written(step))) if slot not in seen)
        seen.update(last)
        reversed_steps.append(replace(step, release=last))
    return reversed_steps[::-1]
