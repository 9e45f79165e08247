"""Asking the CUDA driver what is there, through ctypes, without creating a context."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Protocol

SUCCESS = 0
ERROR_NO_DEVICE = 100
# CUDA 12.0 is the oldest driver API the builds of torch that tessiq supports run on.
OLDEST_DRIVER = 12000


class Driver(Protocol):
    """The functions of libcuda used here, with the driver's own names and signatures; each returns a CUresult."""

    def cuInit(self, flags: int, /) -> int: ...
    def cuDriverGetVersion(self, version: object, /) -> int: ...
    def cuDeviceGetCount(self, count: object, /) -> int: ...
    def cuDeviceGet(self, device: object, ordinal: int, /) -> int: ...
    def cuDeviceGetName(self, name: object, length: int, device: object, /) -> int: ...
    def cuDeviceTotalMem_v2(self, size: object, device: object, /) -> int: ...
    def cuGetErrorString(self, code: int, text: object, /) -> int: ...


@dataclass(frozen=True)
class Gpu:
    """One GPU; `ordinal` is the driver's number, `memory` is in bytes."""

    ordinal: int
    name: str
    memory: int

    def __str__(self) -> str:
        return f"{self.name}, {self.memory / 2**30:.0f} GiB"


@dataclass(frozen=True)
class NoGpus:
    """Why no GPU can be used, in one sentence."""

    reason: str


def load_driver() -> Driver | NoGpus:
    """libcuda, which the NVIDIA driver installs; NoGpus where it is not there."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError:
        return NoGpus(f"no NVIDIA driver: {name} was not found")


def find_gpus(driver: Driver) -> tuple[Gpu, ...] | NoGpus:
    """Every GPU the driver shows to this process (CUDA_VISIBLE_DEVICES applies), in its order.

    `cuInit` loads the driver and `cuDeviceGet*` read properties: neither creates a context nor allocates memory on a
    GPU. A fork afterwards cannot use CUDA, which is the driver's rule, so this runs only when a hook asks.
    """
    version, count = ctypes.c_int(), ctypes.c_int()
    code = driver.cuInit(0)
    if code == ERROR_NO_DEVICE:
        return NoGpus("the NVIDIA driver is installed and shows no GPU to this process")
    if code != SUCCESS:
        return NoGpus(f"the NVIDIA driver does not start: {_text(driver, code)}")
    code = driver.cuDriverGetVersion(ctypes.byref(version)) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code != SUCCESS:
        return NoGpus(f"the NVIDIA driver does not answer: {_text(driver, code)}")
    if version.value < OLDEST_DRIVER:
        return NoGpus(
            f"the NVIDIA driver supports CUDA {_version(version.value)}; CUDA {_version(OLDEST_DRIVER)} is needed"
        )
    if count.value == 0:
        return NoGpus("the NVIDIA driver is installed and shows no GPU to this process")
    gpus: list[Gpu] = []
    for ordinal in range(count.value):
        device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        code = (
            driver.cuDeviceGet(ctypes.byref(device), ordinal)
            or driver.cuDeviceGetName(name, len(name), device)
            or driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        )
        if code != SUCCESS:
            return NoGpus(f"the NVIDIA driver does not describe GPU {ordinal}: {_text(driver, code)}")
        gpus.append(Gpu(ordinal, name.value.decode(errors="replace"), memory.value))
    return tuple(gpus)


def _text(driver: Driver, code: int) -> str:
    text = ctypes.c_char_p()
    driver.cuGetErrorString(code, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode(errors='replace')} (CUDA error {code})"


def _version(number: int) -> str:
    """The driver's 12040 as people write it, 12.4."""
    return f"{number // 1000}.{number % 1000 // 10}"
