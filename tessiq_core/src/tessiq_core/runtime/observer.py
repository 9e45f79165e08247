"""One interface a runner calls at each step, launch and transfer; with nobody observing it costs one branch a call."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.runtime.plan import CallStep, KernelStep, Step, TransferStep, ViewStep


class Observer(Protocol):
    """What a runner tells while it runs. Called from the thread that runs the plan; an exception ends the call."""

    def on_step(self, step: Step, seconds: float) -> None:
        """After each step; `seconds` is the host's wall time in it."""

    def on_launch(self, step: KernelStep, kernel: Kernel) -> None:
        """After the launch of a kernel, before `on_step`."""

    def on_transfer(self, step: TransferStep, size: int) -> None:
        """After a transfer of `size` bytes, before `on_step`."""


@dataclass
class ObserverCounters:
    """An observer that counts.

    steps:     by kind: "call", "view", "kernel", "transfer".
    calls:     operators run whole, by name. launches: kernels, by name.
    transfers: by direction. transferred: bytes, by direction. seconds: host wall time in steps.
    """

    steps: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    transfers: Counter[str] = field(default_factory=Counter)
    transferred: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def on_step(self, step: Step, seconds: float) -> None:
        self.seconds += seconds
        self.steps[step_kind(step)] += 1
        if isinstance(step, CallStep):
            self.calls[step.op] += 1

    def on_launch(self, step: KernelStep, kernel: Kernel) -> None:
        self.launches[kernel.name] += 1

    def on_transfer(self, step: TransferStep, size: int) -> None:
        self.transfers[step.direction] += 1
        self.transferred[step.direction] += size


def step_kind(step: Step) -> str:
    """ "call", "view", "kernel" or "transfer"."""
    match step:
        case CallStep():
            return "call"
        case ViewStep():
            return "view"
        case KernelStep():
            return "kernel"
        case TransferStep():
            return "transfer"


_installed: tuple[Observer, ...] = ()
_observing = ctypes.c_int64(0)


def installed() -> tuple[Observer, ...]:
    """The observers every runner in the process now calls; empty most of the time."""
    return _installed


def flag_address() -> int:
    """The address of a 64-bit integer that is not 0 while observers are installed, for runners that are not Python."""
    return ctypes.addressof(_observing)


def _install(observers: tuple[Observer, ...]) -> None:
    global _installed
    _installed = observers
    _observing.value = len(observers)


@contextmanager
def observing(observer: Observer) -> Iterator[Observer]:
    """Install `observer` for the block, in every thread: a backward pass may run on another than its forward did."""
    _install((*_installed, observer))
    try:
        yield observer
    finally:
        _install(tuple(o for o in _installed if o is not observer))
