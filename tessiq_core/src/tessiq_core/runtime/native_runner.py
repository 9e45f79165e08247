"""The C++ runner: the same plan, handed to `_C` step by step.

Views, kernels of host addresses, operators with a schema and integer arithmetic on sizes run without the GIL. Other
steps (Python kernels, higher-order operators, Python functions, arguments C++ does not pass) take it one at a time,
and run as the Python runner's steps.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from tessiq_core.codegen.interfaces import AddressLaunch, Kernel, KernelOperand, OperatorLaunch
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.extent import evaluate
from tessiq_core.ir.types import ScalarType, TensorType
from tessiq_core.native import NativeModule
from tessiq_core.runtime.arguments import is_mixed
from tessiq_core.runtime.element_map import dtype_of
from tessiq_core.runtime.layouts import Layout, mismatch
from tessiq_core.runtime.liveness import slots_read, slots_written
from tessiq_core.runtime.observer import flag_address
from tessiq_core.runtime.operators import resolve
from tessiq_core.runtime.plan import CallStep, KernelStep, SlotRef, Step, Template, TransferStep, ViewStep
from tessiq_core.runtime.runner import Runner, Segment, segments_of
from tessiq_core.runtime.size_code import SizeTable
from tessiq_core.runtime.sizes import Sizes
from tessiq_core.runtime.steps import Execute

# In the order of `NumberStep::Function` in csrc/steps.h.
_NUMBER_FUNCTIONS = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    torch.sym_max,
    torch.sym_min,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


def native_runner(python: Runner, native: NativeModule) -> Any | Decline:
    """The C++ runner of the recipe `python` runs, or why its plan needs the Python runner.

    It is called as the Python runner is, has the same results and effects, and hands calls to that one while an
    observer is installed. Its attributes: `recipe`, `python`, and `interpreted`, the names of the nodes whose steps
    take the GIL.
    """
    plan = python.recipe.plan
    if any(isinstance(step, TransferStep) for step in plan.steps):
        return Decline("transfers", "the plan moves values between the home and a device, which the Python runner does")
    if any(slot.on_device for slot in plan.slots):
        return Decline("transfers", "the plan has values in a device's own memory")
    with _disable_current_modes():
        return _Builder(python, native).run()


class _Methods:
    """What C++ calls back for. Every method is called with the GIL."""

    def __init__(self, python: Runner, segments: Sequence[Segment]) -> None:
        self.python = python
        self.segments = segments
        self.tables: list[SizeTable] = []
        self.steps: list[list[int]] = [[] for _ in segments]  # the plan's steps that run here, by segment

    def bind(self, segment: int, symbols: tuple[int, ...]) -> tuple[Execute, ...] | None:
        """The segment's steps that run here, bound to sizes."""
        if not self.steps[segment]:
            return None
        sizes = Sizes(dict(zip(self.segments[segment].names, symbols, strict=True)))
        return tuple(self.python.binder.bind(index, sizes) for index in self.steps[segment])

    def mismatch(self, who: str, value: object, dtype: torch.dtype, shape: list[int], strides: list[int]) -> None:
        """Raises InvalidArgument."""
        raise mismatch(who, value, Layout(dtype, tuple(shape), tuple(strides)))

    def size_fault(self, segment: int, symbols: list[int], number: int) -> None:
        """Raises what evaluating the size raises; InvalidArgument for one that needs more than 64 bits."""
        extent = self.tables[segment].extents[number]
        value = evaluate(extent, dict(zip(self.segments[segment].names, symbols, strict=True)))
        raise InvalidArgument(f"tessiq: the size {extent} is {value} in this call, which needs more than 64 bits")


class _Builder:
    def __init__(self, python: Runner, native: NativeModule) -> None:
        self.python = python
        self.plan = python.recipe.plan
        self.kernels = python.recipe.kernels
        self.device = torch.device(python.recipe.home)
        self.native = native.PlanBuilder(len(self.plan.slots), self.device)
        self.segments = segments_of(python.recipe)
        self.methods = _Methods(python, self.segments)
        self.table = SizeTable(())

    def run(self) -> Any:
        plan, recipe = self.plan, self.python.recipe
        for slot, name in plan.constants:
            self.native.constant(slot, recipe.constants[name])
        for number, segment in enumerate(self.segments):
            self._segment(number, segment)
        literals: list[object] = [None] * len(plan.outputs)
        for position, value in plan.literals:
            literals[position] = value
        return self.native.runner(
            inputs=[-1 if slot is None else slot for slot in plan.inputs],
            symbols=[(binding.input, -1 if binding.axis is None else binding.axis) for binding in plan.symbols],
            outputs=[-1 if slot is None else slot for slot in plan.outputs],
            literals=literals,
            methods=self.methods,
            base=self.python.slots,
            observing=flag_address(),
            recipe=recipe,
            interpreted=tuple(plan.steps[index].node for steps in self.methods.steps for index in steps),
            python=self.python,
        )

    def _segment(self, number: int, segment: Segment) -> None:
        self.table = SizeTable(segment.names)
        self.methods.tables.append(self.table)
        if number == 0:
            self._checks()
        else:
            self._late_results(segment.start - 1)
        for index in range(segment.start, segment.stop):
            step = self.plan.steps[index]
            if not self._step(index, step):
                here = self.methods.steps[number]
                self.native.host(len(here), list(slots_read(step)), list(slots_written(step)))
                here.append(index)
            if not (segment.late and index == segment.stop - 1):  # its results are still read for the late symbols
                self.native.release(step.release)
        late = [(symbol.slot, -1 if symbol.axis is None else symbol.axis) for symbol in segment.late]
        self.native.end_segment(self.table.code(), late, segment.final_release)

    def _checks(self) -> None:
        checks = [
            (slot, self._type(kind), slot in self.plan.writes, f"input %{self.plan.slots[slot].name}")
            for slot in self.plan.checked
            if isinstance(kind := self.plan.slots[slot].type, TensorType)
        ]
        if checks:
            self.native.check(checks)

    def _late_results(self, index: int) -> None:
        step = self.plan.steps[index]
        assert isinstance(step, CallStep)
        self.native.settle(
            [
                (slot, self.python.binder.settling(slot), self._type(kind), self._who(slot, step))
                for slot in step.results
                if slot is not None and isinstance(kind := self.plan.slots[slot].type, TensorType)
            ]
        )

    def _type(self, kind: TensorType) -> tuple[torch.dtype, tuple[int, int], tuple[int, int]]:
        return dtype_of(kind.element), self.table.all(kind.shape), self.table.all(kind.layout)

    def _who(self, slot: int, step: CallStep) -> str:
        return f"result %{self.plan.slots[slot].name} of {step.op}"

    # -- steps; False where the Python runner's step is to run -----------------------------------------------------
    def _step(self, index: int, step: Step) -> bool:
        match step:
            case ViewStep():
                shape, strides = self.table.all(step.shape), self.table.all(step.strides)
                self.native.view(step.source, step.result, shape, strides, self.table.one(step.offset))
                return True
            case KernelStep():
                return self._kernel(step, self.kernels[step.kernel])
            case CallStep():
                return self._number(step) or self._call(index, step)
            case TransferStep():
                return False

    def _kernel(self, step: KernelStep, kernel: Kernel) -> bool:
        launch = kernel.launch
        outputs = self._outputs(step, kernel.outputs)
        if isinstance(launch, OperatorLaunch):
            found = resolve(launch.op)
            if not isinstance(found, OpOverload) or kernel.workspace_bytes != 0:
                return False
            schema = found._schema
            arguments = [("slot", step.inputs[number]) for number in launch.inputs]
            self.native.allocate(outputs)
            refused = self.native.call(
                schema.name, schema.overload_name, arguments, {"out": ("slot", step.outputs[0])}, []
            )
            return refused is None
        if not isinstance(launch, AddressLaunch) or self.device.type != "cpu":
            return False
        self.native.kernel(
            launch.address,
            max(launch.grain, 1),
            self.table.one(launch.iterations),
            self.table.one(kernel.workspace_bytes),
            self.table.all(kernel.words),
            step.inputs,
            outputs,
        )
        return True

    def _outputs(self, step: KernelStep, operands: Sequence[KernelOperand]) -> list[tuple[int, Any]]:
        return [(slot, self._type(operand.type)) for slot, operand in zip(step.outputs, operands, strict=True)]

    def _number(self, step: CallStep) -> bool:
        function = resolve(step.op)
        number = next((n for n, known in enumerate(_NUMBER_FUNCTIONS) if known is function), None)
        operands = [self._integer(argument) for argument in step.arguments]
        (result,) = step.results if len(step.results) == 1 else (None,)
        if number is None or result is None or step.keywords or len(operands) != 2:
            return False
        left, right = operands
        if left is None or right is None:
            return False
        self.native.number(number, left, right, result)
        return True

    def _integer(self, argument: Template) -> tuple[int, int] | None:
        """(slot, 0) or (-1, number); None for what is no integer of 64 bits."""
        if isinstance(argument, SlotRef):
            kind = self.plan.slots[argument.slot].type
            return (argument.slot, 0) if isinstance(kind, ScalarType) and kind.kind == "int" else None
        return (-1, argument) if type(argument) is int and -(2**63) <= argument < 2**63 else None

    def _call(self, index: int, step: CallStep) -> bool:
        found = resolve(step.op)
        if not isinstance(found, OpOverload):
            return False
        arguments = [self._argument(value) for value in step.arguments]
        keywords = {name: self._argument(value) for name, value in step.keywords}
        results = []
        for number, slot in enumerate(step.results):
            if slot is not None:
                rule, kind = self.python.binder.rule(index, number)
                layout = None if kind is None else self._type(kind)
                results.append((number, (slot, rule, layout, self._who(slot, step))))
        schema = found._schema
        return self.native.call(schema.name, schema.overload_name, arguments, keywords, results) is None

    def _argument(self, value: Template) -> tuple[str, object]:
        if isinstance(value, SlotRef):
            return ("slot", value.slot)
        if isinstance(value, tuple) and is_mixed(value):
            return ("list", [self._argument(item) for item in value])
        return ("constant", self.python.binder.arguments.constant(value))
