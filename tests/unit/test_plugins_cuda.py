"""tessiq-cuda's discovery, on a stand-in for the driver. The stand-in has only the functions discovery may call: one
that creates a context or allocates would be an AttributeError."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import pytest

from tessiq_cuda.driver import ERROR_NO_DEVICE, Gpu, NoGpus, find_gpus, load_driver
from tessiq_cuda.plugin import discovery


@dataclass
class FakeDriver:
    """Answers as libcuda does; `codes` overrides the CUresult of a function."""

    gpus: tuple[tuple[str, int], ...] = ()
    version: int = 13000
    codes: dict[str, int] = field(default_factory=dict)

    def _code(self, function: str) -> int:
        return self.codes.get(function, 0)

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self._code("cuInit")

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = self.version
        return self._code("cuDriverGetVersion")

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self.gpus)
        return self._code("cuDeviceGetCount")

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal + 100
        return self._code("cuDeviceGet")

    def cuDeviceGetName(self, name: Any, length: int, device: ctypes.c_int) -> int:
        assert length == len(name)
        name.value = self.gpus[device.value - 100][0].encode()
        return self._code("cuDeviceGetName")

    def cuDeviceTotalMem_v2(self, size: Any, device: ctypes.c_int) -> int:
        size._obj.value = self.gpus[device.value - 100][1]
        return self._code("cuDeviceTotalMem_v2")

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = b"system driver mismatch"
        return 0


H200 = ("NVIDIA H200", 140 * 2**30)


def test_the_gpus_in_the_drivers_order():
    assert find_gpus(FakeDriver((H200, ("NVIDIA L4", 2**34)))) == (Gpu(0, *H200), Gpu(1, "NVIDIA L4", 2**34))


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (NoGpus("no NVIDIA driver: libcuda.so.1 was not found"), "no NVIDIA driver: libcuda.so.1 was not found"),
        (FakeDriver(codes={"cuInit": ERROR_NO_DEVICE}), "shows no GPU to this process"),
        (FakeDriver(), "shows no GPU to this process"),
        (FakeDriver((H200,), codes={"cuInit": 803}), "does not start: system driver mismatch (CUDA error 803)"),
        (FakeDriver((H200,), codes={"cuDeviceGetCount": 4}), "does not answer: system driver mismatch (CUDA error 4)"),
        (FakeDriver((H200,), codes={"cuDeviceTotalMem_v2": 999}), "does not describe GPU 0"),
        (FakeDriver((H200,), version=11040), "supports CUDA 11.4; CUDA 12.0 is needed"),
        (FakeDriver((H200,)), "found 1 NVIDIA GPU (NVIDIA H200, 140 GiB); this release compiles for the CPU only"),
        (FakeDriver((H200, H200)), "found 2 NVIDIA GPUs (NVIDIA H200, 140 GiB); this release"),
    ],
)
def test_no_device_is_offered_and_the_reason_says_why(driver, reason):
    answer = discovery(driver)
    assert answer.devices == ()
    assert reason in answer.reason


def test_a_machine_without_the_driver(monkeypatch):
    def missing(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert isinstance(load_driver(), NoGpus)
