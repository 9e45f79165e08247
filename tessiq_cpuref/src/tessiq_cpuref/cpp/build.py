"""Source text to loaded shared objects: cache, compiler, dlopen."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from tessiq_core.errors import External
from tessiq_cpuref.cpp.cache import CacheKey, ObjectCache, open_cache, private_cache
from tessiq_cpuref.cpp.flags import OVERRIDE, Compiler, cpu_features, flags

LOG_LINES = 40
"""How much of a compiler's log an error shows."""

_loaded: dict[Path, ctypes.CDLL] = {}
"""Every library of this process, by the path that names its content. Never unloaded: kernels hold addresses in it."""


@lru_cache(maxsize=1)
def package_version() -> str:
    """The version of tessiq-cpuref."""
    return version("tessiq-cpuref")


def cache_key(source: str, compiler: Compiler) -> CacheKey:
    """What the shared object of this text depends on, on this machine."""
    return CacheKey(source, flags(), compiler.version, cpu_features(), package_version())


@dataclass(frozen=True)
class _Job:
    """A compiler at work on unit number `index`."""

    index: int
    process: subprocess.Popen[str]
    source: Path
    output: Path


def build(sources: Sequence[str], compiler: Compiler, cache: ObjectCache | None = None) -> list[ctypes.CDLL]:
    """A loaded library for each text. Texts not in the cache are compiled, all at once, one process each.

    Raises External with the compiler's own log where it fails, and where the system cannot load what it made.
    """
    cache = open_cache() if cache is None else cache
    keys = [cache_key(source, compiler) for source in sources]
    paths = [cache.find(key) for key in keys]
    missing = [index for index, path in enumerate(paths) if path is None]
    if missing:
        with tempfile.TemporaryDirectory(prefix="tessiq-build-") as directory:
            jobs = [_start(index, sources[index], compiler, Path(directory)) for index in missing]
            contents = [_finish(job, compiler) for job in jobs]
        for index, content in zip(missing, contents, strict=True):
            try:
                paths[index] = cache.store(keys[index], content)
            except OSError as error:
                cache = private_cache(cache.directory, error)
                paths[index] = cache.store(keys[index], content)
    return [_load(path) for path in paths if path is not None]


def _start(index: int, source: str, compiler: Compiler, directory: Path) -> _Job:
    text, output = directory / f"unit{index}.cpp", directory / f"unit{index}.so"
    text.write_text(source, encoding="utf-8")
    command = [compiler.path, *flags(), text.name, "-o", output.name]
    process = subprocess.Popen(
        command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return _Job(index, process, text, output)


def _finish(job: _Job, compiler: Compiler) -> bytes:
    log, _ = job.process.communicate()
    if job.process.returncode != 0:
        shown = "\n".join(log.splitlines()[:LOG_LINES])
        raise External(
            f"tessiq: emitter 'cpp': {compiler.path} {' '.join(flags())} failed with status {job.process.returncode}; "
            f"set {OVERRIDE} to another compiler, or use options={{'emitter': 'reference'}}. Its log:\n{shown}"
        )
    return job.output.read_bytes()


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
