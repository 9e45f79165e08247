"""The flags kernels are compiled with, and the CPU they are compiled for."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

FLAGS = (
    "-std=gnu++17",
    "-O3",
    "-fopenmp-simd",
    # Neither errno nor trapping keeps any value from being right; both keep loops from being vectorised.
    "-fno-math-errno",
    "-fno-trapping-math",
    # A fused multiply-add rounds once where eager rounds twice.
    "-ffp-contract=off",
    # Signed overflow wraps, as torch's integers do.
    "-fwrapv",
    "-fPIC",
    "-shared",
)


def flags() -> tuple[str, ...]:
    """The flags every kernel is compiled with, those for this machine's own instructions included."""
    if platform.machine().lower() not in ("x86_64", "amd64", "i686"):
        return (*FLAGS, "-mcpu=native")
    # g++ prefers 256 bits on many CPUs that have 512; measured, the wide ones are 10 to 30 % faster here.
    wide = ("-mprefer-vector-width=512",) if "avx512f" in cpu_features().split() else ()
    return (*FLAGS, "-march=native", *wide)


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """What `-march=native` depends on: the kernel's list of CPU flags, or what `platform` knows elsewhere."""
    fields = _cpuinfo()
    features = fields.get("flags") or fields.get("Features")
    if features is None:
        return f"{platform.machine()} {platform.processor()}"
    return f"{platform.machine()} {fields.get('model name', '')} {features}"


@lru_cache(maxsize=1)
def cpu_model() -> str:
    """The CPU's name for people."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine() or "unknown CPU"


def _cpuinfo() -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    processor = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in processor.splitlines())
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}
