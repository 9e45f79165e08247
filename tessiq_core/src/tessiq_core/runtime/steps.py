"""Binding the steps of a plan to one call's sizes: each becomes a function of the list of slots."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.ir.types import TensorType
from tessiq_core.runtime.arguments import Arguments, Invoke, Slots, taker
from tessiq_core.runtime.launch import launcher
from tessiq_core.runtime.layouts import Layout, allocator, mismatch, reads_alike, reinterpret, with_layout
from tessiq_core.runtime.liveness import slots_read
from tessiq_core.runtime.operators import fast_call, flatten, nests, resolve
from tessiq_core.runtime.plan import CallStep, KernelStep, Plan, Step, TransferStep, ViewStep
from tessiq_core.runtime.sizes import Sizes

Execute = Callable[[Slots], None]
Settle = Callable[[Any], Any]


class Rule(enum.IntEnum):
    """What is done to a result so that it has the layout its readers were promised. Numbered as in `csrc/steps.h`."""

    NONE = 0
    RESTRIDE = 1
    """What only PyTorch reads: other strides are copied; what has another shape or type goes on as it is."""
    RECORD = 2
    """What is read as memory: the recorded element type and layout, or an error."""
    REQUIRE = 3
    """Memory an operator wrote to, which a copy would not be: an error where it differs."""


class StepBinder:
    """Makes the functions that execute a plan's steps. Operators are looked up once, when it is made."""

    def __init__(
        self, plan: Plan, kernels: Sequence[Kernel], constants: dict[str, object], device: torch.device
    ) -> None:
        self.plan = plan
        self.kernels = kernels
        self.device = device
        self.arguments = Arguments(len(plan.slots), constants)
        self._raw = {slot for step in plan.steps if not isinstance(step, CallStep) for slot in slots_read(step)}
        self._late = {definition.step for definition in plan.late}
        self._invokes: dict[int, Invoke] = {}
        self._nested: set[int] = set()
        for index, step in enumerate(plan.steps):
            if isinstance(step, CallStep):
                operator = resolve(step.op)
                if nests(operator):
                    self._nested.add(index)
                self._invokes[index] = self.arguments.invoke(fast_call(operator), step.arguments, step.keywords)

    def bind(self, index: int, sizes: Sizes) -> Execute:
        """The function that executes step number `index` for these sizes."""
        step: Step = self.plan.steps[index]
        match step:
            case CallStep():
                return self._call(index, step, sizes)
            case ViewStep():
                return _view(step, sizes)
            case KernelStep():
                return self._kernel(step, sizes)
            case TransferStep():
                return self._transfer(step)

    def check_inputs(self, sizes: Sizes) -> Execute | None:
        """A function that gives the inputs whose memory is read directly the layout the plan promises; None where
        there are none. Raises InvalidArgument, naming the input, for one of another element type, shape or device."""
        checks = []
        for slot in self.plan.checked:
            entry = self.plan.slots[slot]
            if isinstance(entry.type, TensorType):
                checks.append((slot, Layout.of(entry.type, sizes), f"input %{entry.name}", slot in self.plan.writes))
        device = self.device
        if not checks:
            return None

        def check(slots: Slots) -> None:
            for slot, layout, who, written in checks:
                value = slots[slot]
                if not isinstance(value, torch.Tensor) or value.device != device:
                    raise mismatch(f"{who} on {device}", value, layout)
                if not layout.matches(value):
                    if written and not reads_alike(value, layout):  # a copy would not be what is written to
                        raise mismatch(f"{who}, which the graph writes to", value, layout)
                    slots[slot] = _corrected(value, layout, who)

        return check

    def settle_results(self, index: int, sizes: Sizes) -> Execute:
        """A function that gives the results of step `index`, after its late symbols are known, their layout."""
        step = self.plan.steps[index]
        assert isinstance(step, CallStep)
        settles = [
            (slot, self._settle(slot, kind, f"result %{self.plan.slots[slot].name} of {step.op}", sizes))
            for slot in step.results
            if slot is not None and isinstance(kind := self.plan.slots[slot].type, TensorType)
        ]

        def settle(slots: Slots) -> None:
            for slot, function in settles:
                if slots[slot] is not None:  # None where nothing reads it any more
                    slots[slot] = function(slots[slot])

        return settle

    # -- calls ---------------------------------------------------------------------------------------------------
    def _call(self, index: int, step: CallStep, sizes: Sizes) -> Execute:
        invoke = self._invokes[index]
        if step.returns == "none":
            return invoke
        settles = [self._settle_call(index, step, number, sizes) for number in range(len(step.results))]
        if step.returns == "many":
            wanted = [
                (number, slot, settle)
                for number, (slot, settle) in enumerate(zip(step.results, settles, strict=True))
                if slot is not None
            ]
            return _call_many(invoke, wanted, index in self._nested)
        slot, settle = step.results[0], settles[0]
        if slot is None:
            return invoke
        expected = step.expected[0]
        if settle is None or expected is None:
            return _call_one(invoke, slot, settle)
        return _call_dense(invoke, slot, Layout.of(expected, sizes), settle, slot in self._raw)

    def rule(self, index: int, number: int) -> tuple[Rule, TensorType | None]:
        """What result `number` of call step `index` needs, and the type it needs it for."""
        step = self.plan.steps[index]
        assert isinstance(step, CallStep)
        slot, expected = step.results[number], step.expected[number]
        if slot is None:
            return Rule.NONE, None
        if expected is not None:
            return self.settling(slot), expected
        kind = self.plan.slots[slot].type
        if slot in self._raw and isinstance(kind, TensorType) and index not in self._late:
            return Rule.REQUIRE, kind
        return Rule.NONE, None

    def settling(self, slot: int) -> Rule:
        """The rule for a value in this slot that may be copied."""
        return Rule.RECORD if slot in self._raw else Rule.RESTRIDE

    def _settle_call(self, index: int, step: CallStep, number: int, sizes: Sizes) -> Settle | None:
        rule, kind = self.rule(index, number)
        slot = step.results[number]
        if kind is None or slot is None:
            return None
        who = f"result %{self.plan.slots[slot].name} of {step.op}"
        return _required(Layout.of(kind, sizes), who) if rule is Rule.REQUIRE else self._settle(slot, kind, who, sizes)

    def _settle(self, slot: int, kind: TensorType, who: str, sizes: Sizes) -> Settle:
        layout = Layout.of(kind, sizes)
        if self.settling(slot) is Rule.RECORD:
            return lambda value: value if layout.matches(value) else _as_recorded(value, layout, who)
        return lambda value: value if value.stride() == layout.strides else _restrided(value, layout)

    # -- kernels and transfers -----------------------------------------------------------------------------------
    def _kernel(self, step: KernelStep, sizes: Sizes) -> Execute:
        kernel = self.kernels[step.kernel]
        launch = launcher(kernel, sizes, self.device)
        allocate = [allocator(Layout.of(operand.type, sizes), self.device) for operand in kernel.outputs]
        take, results = taker(step.inputs), step.outputs
        if len(results) == 1:
            allocate_one, result = allocate[0], results[0]

            def run_one(slots: Slots) -> None:
                output = allocate_one()
                launch(take(slots), (output,))
                slots[result] = output

            return run_one

        def run(slots: Slots) -> None:
            outputs = [make() for make in allocate]
            launch(take(slots), outputs)
            for slot, output in zip(results, outputs, strict=True):
                slots[slot] = output

        return run

    def _transfer(self, step: TransferStep) -> Execute:
        source, result, device = step.source, step.result, self.device

        def run(slots: Slots) -> None:
            tensor = slots[source]
            slots[result] = with_layout(tensor, Layout(tensor.dtype, tuple(tensor.shape), tensor.stride()), device)

        return run


def _view(step: ViewStep, sizes: Sizes) -> Execute:
    source, result = step.source, step.result
    shape, strides, offset = sizes.all(step.shape), sizes.all(step.strides), sizes.one(step.offset)

    def run(slots: Slots) -> None:
        slots[result] = reinterpret(slots[source], shape, strides, offset)

    return run


def _call_dense(invoke: Invoke, slot: int, layout: Layout, settle: Settle, raw: bool) -> Execute:
    """One tensor. The comparison that nearly always holds is made here, without another Python call; of what only
    PyTorch reads, the strides are enough."""
    dtype, shape, strides = layout.dtype, layout.shape, layout.strides

    def run(slots: Slots) -> None:
        result = invoke(slots)
        slots[slot] = result if result.stride() == strides else settle(result)

    def run_raw(slots: Slots) -> None:
        result = invoke(slots)
        right = result.stride() == strides and result.shape == shape and result.dtype is dtype and not result.is_neg()
        slots[slot] = result if right else settle(result)

    return run_raw if raw else run


def _call_one(invoke: Invoke, slot: int, settle: Settle | None) -> Execute:
    def run(slots: Slots) -> None:
        slots[slot] = invoke(slots)

    def run_settled(slots: Slots) -> None:
        assert settle is not None
        slots[slot] = settle(invoke(slots))

    return run if settle is None else run_settled


def _call_many(invoke: Invoke, wanted: list[tuple[int, int, Settle | None]], nested: bool) -> Execute:
    def run(slots: Slots) -> None:
        results = flatten(invoke(slots)) if nested else invoke(slots)
        for number, slot, settle in wanted:
            result = results[number]
            slots[slot] = result if settle is None or result is None else settle(result)

    return run


def _restrided(value: Any, layout: Layout) -> Any:
    """The value in the recorded strides. What has another shape or type than recorded goes on as PyTorch made it:
    nothing reads its memory directly."""
    if isinstance(value, torch.Tensor) and value.shape == layout.shape and value.dtype is layout.dtype:
        return with_layout(value, layout)
    return value


def _as_recorded(value: Any, layout: Layout, who: str) -> torch.Tensor:
    """A result whose memory is read, in the recorded layout and element type. PyTorch's kernels return another element
    type than its shape functions say in a few places (the running statistics of a bfloat16 batch norm)."""
    if isinstance(value, torch.Tensor) and value.shape == layout.shape:
        value = value.to(layout.dtype)
    return _corrected(value, layout, who)


def _corrected(value: Any, layout: Layout, who: str) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and value.shape == layout.shape and 0 in layout.shape:
        # No element can be misread; PyTorch's dropout gives an empty mask of the input's type, recorded as bool.
        return value.new_empty_strided(layout.shape, layout.strides, dtype=layout.dtype)
    if not isinstance(value, torch.Tensor) or value.shape != layout.shape or value.dtype is not layout.dtype:
        raise mismatch(who, value, layout)
    return with_layout(value, layout)


def _required(layout: Layout, who: str) -> Settle:
    """For what must not be copied: the result of an operator that writes is the memory it wrote to."""

    def settle(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not layout.matches(value):
            raise mismatch(who, value, layout)
        return value

    return settle
