"""The Python runner: executes a plan step by step. Readable and observable; the reference for any other runner."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tessiq_core.errors import InvalidArgument
from tessiq_core.runtime.arguments import Slots
from tessiq_core.runtime.observer import Observer, installed
from tessiq_core.runtime.plan import KernelStep, LateSymbol, Step, TransferStep
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.sizes import Sizes
from tessiq_core.runtime.steps import Execute, StepBinder

# Below autograd, and below the key that counts versions and tracks views: AOTAutograd does both for the whole graph.
_BelowAutograd = torch._C._AutoDispatchBelowADInplaceOrView

Entry = tuple[Execute, tuple[int, ...], "Step | None"]

BOUND_SIZES = 64
"""How many sets of sizes a runner keeps steps bound for; the oldest goes first."""


@dataclass
class Segment:
    """Steps that need the same symbols: [start, stop), and what is known after them."""

    start: int
    stop: int
    names: tuple[str, ...]
    late: tuple[LateSymbol, ...] = ()
    final_release: tuple[int, ...] = ()
    bound: dict[tuple[int, ...], list[Entry]] = field(default_factory=dict)


class Runner:
    """Runs a recipe in Python: `runner(args)` takes a list, empties it, and returns the list of outputs.

    Inputs stand as the graph's parameters do: tensors, and Python numbers for symbolic sizes. Outputs have exactly
    the recorded sizes and strides. Operators are looked up when the runner is made; what depends on sizes is worked
    out once for each set of sizes. Thread-safe. It holds the recipe and nothing of the graph it came from.

    binder: makes its steps. slots: what a call starts with: constants, and behind the plan's slots the binder's.

    A call raises InvalidArgument, naming the operand, when memory a kernel would read has another element type or
    shape than the plan says; an exception of an operator passes through as it is.
    """

    _boxed_call = True  # AOTAutograd then hands over the only reference to inputs it no longer needs

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        plan = recipe.plan
        self.binder = StepBinder(plan, recipe.kernels, dict(recipe.constants), torch.device(recipe.home))
        self._loads = [(number, slot) for number, slot in enumerate(plan.inputs) if slot is not None]
        self._arity = len(plan.inputs)
        self.slots: Slots = [*(None for _ in plan.slots), *self.binder.arguments.pool]
        for slot, name in plan.constants:
            self.slots[slot] = recipe.constants[name]
        self._outputs: list[Any] = [None] * len(plan.outputs)
        for position, number in plan.literals:
            self._outputs[position] = number
        self._gather = [(position, slot) for position, slot in enumerate(plan.outputs) if slot is not None]
        self._segments = segments_of(recipe)

    def __call__(self, args: list[Any]) -> list[Any]:
        if len(args) != self._arity:
            raise InvalidArgument(f"tessiq: the compiled graph takes {self._arity} inputs, got {len(args)}")
        slots = self.slots.copy()
        for number, slot in self._loads:
            slots[slot] = args[number]
        values = tuple(
            args[binding.input] if binding.axis is None else args[binding.input].shape[binding.axis]
            for binding in self.recipe.plan.symbols
        )
        args.clear()
        observers = installed()
        grad = torch.is_grad_enabled()
        if grad:
            torch._C._set_grad_enabled(False)
        try:
            with _BelowAutograd():
                for segment in self._segments:
                    entries = segment.bound.get(values)
                    if entries is None:
                        entries = self._bind(segment, values)
                    if observers:
                        self._run_observed(entries, slots, observers)
                    else:
                        for execute, release, _ in entries:
                            execute(slots)
                            for slot in release:
                                slots[slot] = None
                    if segment.late:
                        values += _read(segment, slots)
        finally:
            if grad:
                torch._C._set_grad_enabled(True)
        outputs = self._outputs.copy()
        for position, slot in self._gather:
            outputs[position] = slots[slot]
        return outputs

    def _run_observed(self, entries: Sequence[Entry], slots: Slots, observers: Sequence[Observer]) -> None:
        for execute, release, step in entries:
            start = time.perf_counter()
            execute(slots)
            seconds = time.perf_counter() - start
            if step is not None:
                for observer in observers:
                    self._tell(observer, step, slots, seconds)
            for slot in release:
                slots[slot] = None

    def _tell(self, observer: Observer, step: Step, slots: Slots, seconds: float) -> None:
        if isinstance(step, KernelStep):
            observer.on_launch(step, self.recipe.kernels[step.kernel])
        elif isinstance(step, TransferStep):
            observer.on_transfer(step, slots[step.result].numel() * slots[step.result].element_size())
        observer.on_step(step, seconds)

    def _bind(self, segment: Segment, values: tuple[int, ...]) -> list[Entry]:
        """The segment's steps for these values of its symbols."""
        sizes = Sizes(dict(zip(segment.names, values, strict=True)))
        steps = self.recipe.plan.steps
        entries: list[Entry] = []
        if segment.start == 0:
            check = self.binder.check_inputs(sizes)
            if check is not None:
                entries.append((check, (), None))
        else:
            entries.append((self.binder.settle_results(segment.start - 1, sizes), (), None))
        for index in range(segment.start, segment.stop):
            release = steps[index].release
            if segment.late and index == segment.stop - 1:
                release = ()  # its results are still read for the late symbols
            entries.append((self.binder.bind(index, sizes), release, steps[index]))
        if len(segment.bound) >= BOUND_SIZES:
            segment.bound.pop(next(iter(segment.bound)), None)
        segment.bound[values] = entries
        return entries


def segments_of(recipe: Recipe) -> list[Segment]:
    """The plan cut after every step that tells late symbols; mostly there is none, and one segment."""
    plan = recipe.plan
    names = tuple(binding.name for binding in plan.symbols)
    segments: list[Segment] = []
    start = 0
    for stop in sorted({definition.step + 1 for definition in plan.late}):
        late = tuple(definition for definition in plan.late if definition.step == stop - 1)
        segments.append(Segment(start, stop, names, late, plan.steps[stop - 1].release))
        names += tuple(definition.name for definition in late)
        start = stop
    segments.append(Segment(start, len(plan.steps), names))
    return segments


def _read(segment: Segment, slots: Slots) -> tuple[int, ...]:
    """The values of the symbols the segment's last step told; what it released is released now."""
    values = tuple(
        slots[late.slot] if late.axis is None else slots[late.slot].shape[late.axis] for late in segment.late
    )
    for slot in segment.final_release:
        slots[slot] = None
    return values
