"""Helpers for tests of emitters on the CPU: allocate, launch, compare, and values worth trying."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence

import torch

from tessiq_core.codegen import (
    AddressLaunch,
    KernelDescription,
    KernelOperand,
    KernelOperands,
    OperatorLaunch,
    PythonLaunch,
    parse_kernel,
)
from tessiq_core.codegen.interfaces import Emitter, Kernel
from tessiq_core.ir.extent import UNKNOWN, evaluate
from tessiq_core.ir.types import ElementType, TensorType
from tessiq_core.ops.table import OperationTable, default_table
from tessiq_core.runtime.element_map import dtype_of
from tessiq_core.runtime.operators import resolve

torch.set_num_threads(1)


def buffers_of(kernel: KernelDescription) -> KernelOperands:
    """The buffers of a kernel written by hand; nothing is known of their shapes."""
    reads = {read.value: read.element for read in kernel.reads}
    return KernelOperands(
        tuple(KernelOperand(value, TensorType(element, (UNKNOWN,))) for value, element in reads.items()),
        tuple(KernelOperand(write.value, TensorType(write.element, (UNKNOWN,))) for write in kernel.writes),
    )


def compile_all(
    emitter: Emitter, kernels: Sequence[KernelDescription], table: OperationTable | None = None
) -> list[Kernel]:
    """The kernels compiled in one call, each asserted to be accepted first."""
    rows = table or default_table()
    for kernel in kernels:
        assert emitter.accepts(kernel, rows) is None, (kernel.name, emitter.accepts(kernel, rows))
    return list(emitter.compile(kernels, [buffers_of(kernel) for kernel in kernels], rows))


def compile_text(emitter: Emitter, text: str) -> Kernel:
    """One kernel, from its text form."""
    return compile_all(emitter, [parse_kernel(text)])[0]


def iterations(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> int:
    assert isinstance(kernel.launch, AddressLaunch)
    return evaluate(kernel.launch.iterations, sizes or {})


def launch(
    kernel: Kernel,
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    sizes: Mapping[str, int] | None = None,
    pieces: Sequence[tuple[int, int]] | None = None,
) -> None:
    """Run a kernel on tensors, whole or (a C function) piece by piece; `sizes` gives its symbols."""
    words = [evaluate(word, sizes or {}) for word in kernel.words]
    if isinstance(kernel.launch, PythonLaunch):
        kernel.launch.function(inputs, outputs, words)
        return
    if isinstance(kernel.launch, OperatorLaunch):
        with torch.no_grad():
            resolve(kernel.launch.op)(*(inputs[number] for number in kernel.launch.inputs), out=outputs[0])
        return
    tensors = [*inputs, *outputs]
    buffers = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
    array = (ctypes.c_int64 * max(len(words), 1))(*words)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        kernel.launch.address
    )
    for begin, end in pieces if pieces is not None else [(0, iterations(kernel, sizes))]:
        function(ctypes.addressof(buffers), ctypes.addressof(array), begin, end)


def filled(element: ElementType, *shape: int) -> torch.Tensor:
    """A tensor whose every element is wrong, so that one never written is noticed."""
    return torch.full(shape, True if element.kind == "bool" else 77, dtype=dtype_of(element))


def special_values(element: ElementType) -> torch.Tensor:
    """Values where implementations differ: zeros, infinities, NaN, denormals, limits; and a few ordinary ones."""
    dtype = dtype_of(element)
    if element.kind == "bool":
        return torch.tensor([False, True])
    if element.is_integer:
        info = torch.iinfo(dtype)
        values = {0, 1, 2, 3, 7, 100, -1, -2, -100, info.min, info.min + 1, info.max, info.max - 1}
        return torch.tensor(sorted(v for v in values if info.min <= v <= info.max), dtype=dtype)
    limits = torch.finfo(dtype)
    tiny = [limits.smallest_normal, limits.smallest_normal / 2, limits.smallest_normal * limits.eps]
    ordinary = [0.5, 1.0, 1.5, 2.0, 3.3, 20.0, 100.0, 1e-3]
    positive = [0.0, *tiny, *ordinary, limits.max, math.inf]
    return torch.tensor([*positive, *(-value for value in positive), math.nan], dtype=dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bit patterns, every NaN made the same."""
    if not tensor.is_floating_point():
        return tensor
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return torch.where(tensor.isnan(), torch.full_like(tensor, math.nan), tensor).view(integers)


def assert_same_bits(got: torch.Tensor, expected: torch.Tensor, what: str = "") -> None:
    """Equal in every bit, -0.0 told from 0.0, NaN equal to NaN."""
    assert got.dtype == expected.dtype, (what, got.dtype, expected.dtype)
    assert got.shape == expected.shape, (what, got.shape, expected.shape)
    different = bits(got.contiguous()) != bits(expected.contiguous())
    if bool(different.any()):
        where = different.nonzero()[0].tolist()
        raise AssertionError(
            f"{what}: {int(different.sum())} of {got.numel()} elements differ, first at {where}: "
            f"got {got[tuple(where)].item()!r}, expected {expected[tuple(where)].item()!r}"
        )
