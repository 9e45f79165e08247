"""Finding and building `_C`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Protocol, cast

from tessiq_core.decline import Decline
from tessiq_core.errors import External
from tessiq_core.host import Compiler, DiskCache, cache_directory, find_compiler

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fopenmp", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
_LOCK = threading.Lock()


class NativeModule(Protocol):
    """What `_C` offers. Its own docstrings describe each function."""

    def launch(self, kernel: int, buffers: int, words: int, iterations: int, grain: int) -> None:
        """Run the host kernel at address `kernel` over [0, iterations) on ATen's threads, without the GIL."""

    def evaluate(self, code: list[int], symbols: list[int]) -> list[int]:
        """The table of sizes the program `code` makes of its symbols' values (`csrc/sizes.h`)."""

    def PlanBuilder(self, slots: int, device: Any) -> Any:
        """Collects the steps of a plan with that many slots on a torch device; `csrc/builder.h` has its methods."""


def sources() -> Path:
    """The directory of the C++ sources: inside the installed package, or beside `src` in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "csrc"
    return installed if installed.is_dir() else package.parent.parent / "csrc"


def load() -> NativeModule | Decline:
    """The compiled module, or why there is none. `TESSIQ_NATIVE=off` means none; answers are kept for the process."""
    with _LOCK:
        return _load(os.environ.get("TESSIQ_NATIVE", "auto"), os.environ.get("TESSIQ_CXX", ""))


@functools.cache
def _load(setting: str, _compiler: str) -> NativeModule | Decline:
    if setting == "off":
        return Decline("native-off", "TESSIQ_NATIVE=off says not to use the compiled module")
    bundled = _bundled()
    if bundled is not None:
        return _import(bundled)
    compiler = find_compiler()
    if isinstance(compiler, Decline):
        return compiler
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.is_file():
        return Decline("no-python-headers", f"{header} is missing; install Python's development headers")
    cache = DiskCache(cache_directory() / "native", ".so")
    try:
        return _import(cache.get(cache_key(compiler), lambda path: _build(compiler, path)))
    except External as error:
        return Decline("native-build", str(error))


def cache_key(compiler: Compiler, *, torch_version: str | None = None, flags: tuple[str, ...] = FLAGS) -> str:
    """The key of a cached `_C`; see the package's docstring for what is in it."""
    import torch

    digest = hashlib.sha256()
    for part in (
        torch_version or torch.__version__,
        str(torch.compiled_with_cxx11_abi()),
        sysconfig.get_config_var("SOABI") or sys.version,
        compiler.path,
        compiler.version,
        *flags,
    ):
        digest.update(part.encode() + b"\0")
    for file in sorted(sources().iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _bundled() -> Path | None:
    import torch

    minor = ".".join(torch.__version__.split(".")[:2])
    tag = sysconfig.get_config_var("SOABI") or "none"
    path = Path(__file__).resolve().parent / "bundled" / f"torch{minor}" / f"_C.{tag}.so"
    return path if path.is_file() else None


def _build(compiler: Compiler, output: Path) -> None:
    import torch

    root = Path(torch.__file__).resolve().parent
    started = time.monotonic()
    print(f"tessiq: building its compiled module for torch {torch.__version__} (once) …", file=sys.stderr, flush=True)
    headers = (root / "include", root / "include/torch/csrc/api/include", sysconfig.get_paths()["include"])
    include = [f"-isystem{path}" for path in headers]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    with tempfile.TemporaryDirectory(prefix="tessiq-native-") as folder:
        # One translation unit: torch's headers, which are nearly all the work, are then read once.
        unit = Path(folder) / "module.cpp"
        unit.write_text("".join(f'#include "{file}"\n' for file in sorted(sources().glob("*.cpp"))))
        objects = [str(Path(folder) / "module.o")]
        compiler.run([*FLAGS, abi, *include, "-c", str(unit), "-o", objects[0]], "tessiq_core._C")
        # Linked without -fopenmp: the OpenMP runtime must be the one torch has loaded, whatever its file is called.
        # at::parallel_for is a template over it, and a second runtime would bring a second pool of threads.
        libraries = [f"-L{root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]
        compiler.run(["-shared", *objects, "-o", str(output), *libraries], "tessiq_core._C")
    print(f"tessiq: built in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _import(path: Path) -> NativeModule | Decline:
    import torch  # noqa: F401  the module links against the libraries this import loads

    spec = importlib.util.spec_from_file_location("tessiq_core._C", path)
    if spec is None or spec.loader is None:
        return Decline("native-load", f"{path} is not an extension module")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        return Decline("native-load", f"{path} does not load: {error}")
    sys.modules["tessiq_core._C"] = module
    return cast(NativeModule, module)
