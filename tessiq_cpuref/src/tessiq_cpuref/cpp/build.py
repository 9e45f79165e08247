"""Source text to loaded shared objects: the disk cache, the compiler, dlopen.

What a cached object depends on, all of it in its key (`ObjectKey`):

- the source text, which holds everything the kernels, their types and the operation table decide;
- the compiler's flags;
- the compiler, by its path and what it says of its version;
- the CPU's features, because of `-march=native`;
- the version of tessiq-cpuref.

The cache itself (where it is, who may write it, how a damaged file is noticed) is `tessiq_core.host.DiskCache`.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from tessiq_core.errors import External
from tessiq_core.host import Compiler, DiskCache, cache_directory
from tessiq_cpuref.cpp.flags import cpu_features, flags

_loaded: dict[Path, ctypes.CDLL] = {}
"""Every library of this process. Never unloaded: kernels hold addresses in it."""


@dataclass(frozen=True)
class ObjectKey:
    """Everything a shared object depends on; the module's docstring says why."""

    source: str
    flags: tuple[str, ...]
    compiler: str
    cpu: str
    version: str

    def digest(self) -> str:
        """64 hexadecimal digits; different for keys that differ in any field."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()


@lru_cache(maxsize=1)
def package_version() -> str:
    """The version of tessiq-cpuref."""
    return version("tessiq-cpuref")


def object_key(source: str, compiler: Compiler) -> ObjectKey:
    """What the shared object of this text depends on, on this machine."""
    return ObjectKey(source, flags(), f"{compiler.path} {compiler.version}", cpu_features(), package_version())


def object_cache() -> DiskCache:
    """The cache of shared objects in the user's cache directory."""
    return DiskCache(cache_directory() / "cpp", ".so")


def build(sources: Sequence[str], compiler: Compiler, cache: DiskCache | None = None) -> list[ctypes.CDLL]:
    """A loaded library for each text. Texts not in the cache are compiled side by side, each in a process of its own.

    Raises External with the compiler's own log where it fails, and where the system cannot load what it made.
    """
    kept = object_cache() if cache is None else cache

    def path_of(source: str) -> Path:
        return kept.get(object_key(source, compiler).digest(), lambda path: _compile(source, compiler, path))

    if len(sources) < 2:
        return [_load(path_of(source)) for source in sources]
    with ThreadPoolExecutor(max_workers=len(sources), thread_name_prefix="tessiq-cpp") as pool:
        return [_load(path) for path in pool.map(path_of, sources)]


def _compile(source: str, compiler: Compiler, output: Path) -> None:
    text = output.with_suffix(".cpp")
    try:
        text.write_text(source, encoding="utf-8")
        compiler.run([*flags(), str(text), "-o", str(output)], "kernels for the CPU (emitter 'cpp')")
    finally:
        text.unlink(missing_ok=True)


def _load(path: Path) -> ctypes.CDLL:
    if path not in _loaded:
        try:
            _loaded[path] = ctypes.CDLL(str(path))
        except OSError as error:
            raise External(
                f"tessiq: emitter 'cpp': the system cannot load {path}: {error}; set TESSIQ_CACHE_DIR to a directory "
                "on a file system that may hold code (not mounted noexec)"
            ) from error
    return _loaded[path]
