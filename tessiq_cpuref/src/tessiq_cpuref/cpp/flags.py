"""The C++ compiler of this machine, its flags, and what identifies both."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from tessiq_core.decline import Decline

CANDIDATES = ("g++", "clang++", "c++")
OVERRIDE = "TESSIQ_CXX"

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


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its path, and what `--version` prints."""

    path: str
    version: str


def flags() -> tuple[str, ...]:
    """The flags every kernel is compiled with, those for this machine's own instructions included."""
    native = "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"
    return (*FLAGS, native)


def find_compiler() -> Compiler | Decline:
    """`$TESSIQ_CXX` alone where it is set (`none`: no compiler), else `$CXX`, g++, clang++ or c++, the first found.

    Declines with code `no-compiler`. What a path answers to `--version` is asked once a process.
    """
    override = os.environ.get(OVERRIDE)
    if override == "none":
        return Decline("no-compiler", f"{OVERRIDE}=none says to use no C++ compiler")
    names = (override,) if override else tuple(filter(None, (os.environ.get("CXX"), *CANDIDATES)))
    problems: list[str] = []
    for name in names:
        path = shutil.which(name)
        if path is None:
            problems.append(f"{name} was not found")
            continue
        version = _version(path)
        if version is not None:
            return Compiler(path, version)
        problems.append(f"{path} --version failed")
    return Decline("no-compiler", f"{'; '.join(problems)}; install g++ or clang++, or name a compiler in {OVERRIDE}")


@cache
def _version(path: str) -> str | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """What `-march=native` depends on: the kernel's list of CPU flags, or what `platform` knows elsewhere."""
    fields = _cpuinfo()
    features = fields.get("flags") or fields.get("Features")
    model = fields.get("model name", "")
    if features is None:
        return f"{platform.machine()} {platform.processor()}"
    return f"{platform.machine()} {model} {features}"


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
    first = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}
