"""Launching kernels from Python: addresses through ctypes or the compiled module, operators and functions directly."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tessiq_core.codegen.interfaces import AddressLaunch, Kernel, OperatorLaunch
from tessiq_core.decline import Decline
from tessiq_core.native import NativeModule, load
from tessiq_core.runtime.operators import resolve
from tessiq_core.runtime.sizes import Sizes

log = logging.getLogger(__name__)

Launcher = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], None]

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

_data_ptr = torch.Tensor.data_ptr

# Starting and joining a Python thread costs about 100 µs, some ten times what ATen's pool costs a range. A grain is
# worth ATen's cost, so a range must be this many grains to be worth a Python thread.
_GRAINS_A_PYTHON_THREAD = 16


def launcher(kernel: Kernel, sizes: Sizes, device: torch.device) -> Launcher:
    """A function `f(inputs, outputs)` that launches the kernel for these sizes; the words are computed here, once.

    Tensors must have the layout the kernel's operands say. A kernel with a workspace gets a tensor of that many bytes
    as its last output (a Python function), or its pointer as the last buffer (an address).
    """
    words = sizes.all(kernel.words)
    scratch = sizes.one(kernel.workspace_bytes)
    launch = kernel.launch
    if isinstance(launch, AddressLaunch):
        buffers = len(kernel.inputs) + len(kernel.outputs) + bool(scratch)
        run = _address_launcher(launch, words, sizes.one(launch.iterations), buffers)
    elif isinstance(launch, OperatorLaunch):
        run = _operator_launcher(launch)
    else:
        function = launch.function

        def run(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            function(inputs, outputs, words)

    if not scratch:
        return run

    def run_with_scratch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        run(inputs, (*outputs, torch.empty(scratch, dtype=torch.uint8, device=device)))

    return run_with_scratch


def _operator_launcher(launch: OperatorLaunch) -> Launcher:
    operator, take = resolve(launch.op), launch.inputs

    def run(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            operator(*[inputs[number] for number in take], out=outputs[0])

    return run


def _address_launcher(launch: AddressLaunch, words: tuple[int, ...], iterations: int, buffers: int) -> Launcher:
    # The words are one array for every launch; the buffers' addresses are a new one each time, because two threads
    # may run one plan. Closures keep the arrays they pass alive.
    words_array = (ctypes.c_int64 * len(words))(*words)
    array_type = ctypes.c_void_p * buffers
    address, grain = launch.address, max(launch.grain, 1)
    function = _PROTOTYPE(address)
    native = _native() if iterations >= 2 * grain else None

    def run(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        function(array_type(*map(_data_ptr, inputs), *map(_data_ptr, outputs)), words_array, 0, iterations)

    def run_native(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        pointers = array_type(*map(_data_ptr, inputs), *map(_data_ptr, outputs))
        assert native is not None
        native.launch(address, ctypes.addressof(pointers), ctypes.addressof(words_array), iterations, grain)

    def run_threaded(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        ranges = min(torch.get_num_threads(), iterations // (grain * _GRAINS_A_PYTHON_THREAD))
        pointers = array_type(*map(_data_ptr, inputs), *map(_data_ptr, outputs))
        _run_in_threads(function, pointers, words_array, iterations, max(ranges, 1))

    if native is not None:
        return run_native
    return run_threaded if iterations >= 2 * grain * _GRAINS_A_PYTHON_THREAD else run


def _run_in_threads(
    function: Callable[..., None], buffers: object, words: object, iterations: int, ranges: int
) -> None:
    """Split [0, iterations) over threads that end with the launch; ctypes lets go of the GIL while a kernel runs."""
    bounds = [iterations * number // ranges for number in range(ranges + 1)]
    others = [
        threading.Thread(target=function, args=(buffers, words, bounds[i], bounds[i + 1]), name="tessiq-launch")
        for i in range(1, ranges)
    ]
    for thread in others:
        thread.start()
    function(buffers, words, bounds[0], bounds[1])
    for thread in others:
        thread.join()


def _native() -> NativeModule | None:
    """The compiled module, which splits a range over ATen's threads; None where there is none."""
    module = load()
    if isinstance(module, Decline):
        log.info("tessiq: kernels are launched from Python threads: %s", module.reason)
        return None
    return module
