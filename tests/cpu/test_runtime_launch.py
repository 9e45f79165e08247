"""Launching kernels by address: which buffers, words and ranges arrive, and on which threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch

from tessiq_core.codegen.interfaces import AddressLaunch, Kernel, KernelOperand, PythonLaunch
from tessiq_core.ir.extent import Extent, mul, symbol
from tessiq_core.ir.types import F32, tensor_type
from tessiq_core.runtime import launch as launching
from tessiq_core.runtime.launch import launcher
from tessiq_core.runtime.sizes import Sizes

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
CPU = torch.device("cpu")


@dataclass
class Calls:
    """A C function that records its arguments: the addresses in `buffers`, the words, the range and the thread."""

    buffers: int
    words: int
    seen: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.function = FUNCTION(self._call)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def _call(self, buffers: int, words: int, begin: int, end: int) -> None:
        pointers = (ctypes.c_void_p * self.buffers).from_address(buffers)
        numbers = (ctypes.c_int64 * self.words).from_address(words) if self.words else ()
        self.seen.append((tuple(pointers), tuple(numbers), (begin, end), threading.get_ident()))

    def kernel(
        self, iterations: Extent, grain: int = 1, words: tuple[Extent, ...] = (), workspace: Extent = 0
    ) -> Kernel:
        operand = KernelOperand("x", tensor_type(F32, (4,)))
        launch = AddressLaunch(self.address, iterations, grain)
        return Kernel("k", "test", ("y",), (operand,), (operand,), words, launch, workspace)


@pytest.fixture
def no_native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launch as where there is no compiled module."""
    monkeypatch.setattr(launching, "_native", lambda: None)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def test_inputs_come_before_outputs_and_words_are_evaluated() -> None:
    calls = Calls(buffers=2, words=2)
    n = symbol("s0")
    run = launcher(calls.kernel(mul(2, n), 100, (n, mul(-3, n))), Sizes({"s0": 5}), CPU)
    x, y = torch.zeros(4), torch.zeros(4)
    run([x], [y])
    run([y], [x])
    assert [call[:3] for call in calls.seen] == [
        ((x.data_ptr(), y.data_ptr()), (5, -15), (0, 10)),
        ((y.data_ptr(), x.data_ptr()), (5, -15), (0, 10)),
    ]


def test_a_view_is_passed_by_the_address_of_its_own_start() -> None:
    calls = Calls(buffers=2, words=0)
    base = torch.zeros(8)
    launcher(calls.kernel(1), Sizes({}), CPU)([base[3:7]], [base])
    assert calls.seen[0][0] == (base.data_ptr() + 12, base.data_ptr())


def test_a_workspace_is_the_last_buffer() -> None:
    calls = Calls(buffers=3, words=0)
    launcher(calls.kernel(1, workspace=symbol("s0")), Sizes({"s0": 64}), CPU)([torch.zeros(4)], [torch.zeros(4)])
    assert calls.seen[0][0][2] != 0

    sizes: list[int] = []
    python = Kernel(
        "p", "test", (), (), (), (), PythonLaunch(lambda inputs, outputs, words: sizes.append(len(outputs[-1]))), 32
    )
    launcher(python, Sizes({}), CPU)([], [])
    assert sizes == [32]


@pytest.mark.usefixtures("no_native")
def test_without_the_compiled_module_only_large_ranges_are_split() -> None:
    calls = Calls(buffers=2, words=1)
    tensors = ([torch.zeros(4)], [torch.zeros(4)])
    launcher(calls.kernel(100, 10, (7,)), Sizes({}), CPU)(*tensors)
    assert [call[2] for call in calls.seen] == [(0, 100)]
    before = threading.active_count()
    launcher(calls.kernel(1001, 10, (7,)), Sizes({}), CPU)(*tensors)
    assert sorted(call[2] for call in calls.seen[1:]) == [(0, 500), (500, 1001)]
    assert {call[1] for call in calls.seen} == {(7,)}
    assert len({call[3] for call in calls.seen[1:]}) == 2
    assert threading.active_count() == before, "a launch left a thread behind"


@pytest.mark.usefixtures("no_native")
def test_the_number_of_threads_is_read_at_each_launch() -> None:
    calls = Calls(buffers=2, words=0)
    run = launcher(calls.kernel(1000), Sizes({}), CPU)
    torch.set_num_threads(1)
    run([torch.zeros(4)], [torch.zeros(4)])
    assert [call[2] for call in calls.seen] == [(0, 1000)]
    torch.set_num_threads(2)
    run([torch.zeros(4)], [torch.zeros(4)])
    assert len(calls.seen) == 3


def test_the_compiled_module_gets_what_is_worth_splitting(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int, int]] = []

    class Native:
        def launch(self, kernel: int, buffers: int, words: int, iterations: int, grain: int) -> None:
            (word,) = (ctypes.c_int64 * 1).from_address(words)
            seen.append((kernel, word, iterations, grain))

    monkeypatch.setattr(launching, "_native", Native)
    calls = Calls(buffers=2, words=1)
    tensors = ([torch.zeros(4)], [torch.zeros(4)])
    launcher(calls.kernel(19, 10, (3,)), Sizes({}), CPU)(*tensors)
    assert seen == []
    launcher(calls.kernel(20, 10, (3,)), Sizes({}), CPU)(*tensors)
    assert seen == [(calls.address, 3, 20, 10)]
    assert len(calls.seen) == 1
