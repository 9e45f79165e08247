"""Shared objects kept on disk, in a directory only the user can write.

What a cached object depends on, all of it in its key (`CacheKey`):

- the source text, which holds everything the kernels, their types and the operation table decide;
- the compiler's flags;
- the compiler, as it answers `--version`;
- the CPU's features, because of `-march=native`;
- the version of tessiq-cpuref.

Layout: `KEY.index` holds the SHA-256 of an object, `objects/SHA-256.so` is that object. Both are written to a temporary
name and renamed, the object first, so a reader sees either nothing or a whole entry. A file whose content does not have
the hash its name says (truncated, overwritten, foreign) is ignored and built again.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

from tessiq_core.decline import Decline

DIRECTORY_VARIABLE = "TESSIQ_CACHE_DIR"


@dataclass(frozen=True)
class CacheKey:
    """Everything a shared object depends on; the module's docstring says why."""

    source: str
    flags: tuple[str, ...]
    compiler: str
    cpu: str
    version: str

    def digest(self) -> str:
        """64 hexadecimal digits; different for keys that differ in any field."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()


class ObjectCache:
    """The cache in one directory, which exists and is trusted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: CacheKey) -> Path | None:
        """The shared object of this key, its content verified; None where there is none or it was tampered with."""
        try:
            digest = (self.directory / f"{key.digest()}.index").read_text(encoding="ascii").strip()
            path = self._object(digest)
            content = path.read_bytes()
        except (OSError, UnicodeDecodeError):
            return None
        return path if hashlib.sha256(content).hexdigest() == digest else None

    def store(self, key: CacheKey, content: bytes) -> Path:
        """Keep a shared object; where it lies now. Raises OSError when the directory cannot be written."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._object(digest)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write(path, content)
        _write(self.directory / f"{key.digest()}.index", digest.encode("ascii"))
        return path

    def _object(self, digest: str) -> Path:
        return self.directory / "objects" / f"{digest}.so"


def _write(path: Path, content: bytes) -> None:
    """Write atomically: a reader sees the old file or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def default_directory() -> Path:
    """`$TESSIQ_CACHE_DIR`, else `tessiq` in `$XDG_CACHE_HOME`, else `~/.cache/tessiq`."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "tessiq" if base else Path.home() / ".cache" / "tessiq"


def open_cache(directory: Path | None = None) -> ObjectCache:
    """The cache in `directory` (the default one where None), made with mode 0700 where it does not exist.

    A directory somebody else could write code into is refused with a warning, and one of this process alone is used.
    """
    wanted = default_directory() if directory is None else directory
    problem = _problem(wanted)
    if problem is None:
        return ObjectCache(wanted)
    return _instead(wanted, problem.reason)


def private_cache(wanted: Path, error: OSError) -> ObjectCache:
    """The cache of this process alone, with a warning that `wanted` cannot be written."""
    return _instead(wanted, f"cannot be written: {error}")


def _instead(wanted: Path, reason: str) -> ObjectCache:
    warnings.warn(
        f"tessiq: the kernel cache {wanted} is not used: it {reason}. Kernels are compiled anew in every process; "
        f"set {DIRECTORY_VARIABLE} to a directory of your own with mode 0700",
        RuntimeWarning,
        stacklevel=3,
    )
    return ObjectCache(private_directory())


def _problem(directory: Path) -> Decline | None:
    """Why the directory cannot be trusted or made, or None."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
    except OSError as error:
        return Decline("cache-directory", f"cannot be made: {error}")
    if not stat.S_ISDIR(found.st_mode):
        return Decline("cache-directory", "is no directory")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return Decline("cache-directory", f"belongs to user {found.st_uid}, not to {os.getuid()}")
    if found.st_mode & stat.S_IWOTH:
        return Decline("cache-directory", f"has mode {stat.S_IMODE(found.st_mode):04o}, so that everybody may write it")
    return None


@lru_cache(maxsize=1)
def private_directory() -> Path:
    """A directory of this process alone, removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="tessiq-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
