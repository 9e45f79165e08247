"""A disk cache for compiled binaries: private to the user, atomic, and checked on every read.

An entry is `<key><suffix>` and, beside it, `<key><suffix>.sha256` with the digest of its bytes. A file without a
digest, with another digest, or truncated is not an entry: it is built again. Two writers of one key both succeed, since
each writes a temporary file and renames it into place; the bytes they write compute the same thing.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path


def cache_directory() -> Path:
    """The directory for everything tessiq caches: TESSIQ_CACHE_DIR, else XDG_CACHE_HOME/tessiq, else ~/.cache/tessiq.

    It is created with mode 0700. One that others could write to, that another user owns, or that cannot be created is
    not used, since a cached binary is code: a private temporary directory serves this process, with one warning. So it
    is where no home directory is known, as for a user without a name in a container.
    """
    named = os.environ.get("TESSIQ_CACHE_DIR")
    if not named:
        named = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tessiq")
    return _checked(named, os.getpid())


@functools.cache
def _checked(named: str, process: int) -> Path:
    del process  # part of the key: a forked child makes its own temporary directory
    path = Path(named)
    try:
        path = path.expanduser().absolute()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.getuid():
            problem = f"user {status.st_uid} owns it, not user {os.getuid()}"
        elif stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
            problem = f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o}); chmod 0700 mends that"
        else:
            with tempfile.NamedTemporaryFile(dir=path):
                return path
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory to put in the place of ~
        problem = str(error).rstrip(".")
    temporary = Path(tempfile.mkdtemp(prefix="tessiq-"))
    atexit.register(_remove, temporary, os.getpid())
    warnings.warn(
        f"tessiq: the cache directory {path} is not used: {problem}. Compiled code is kept in {temporary} for this "
        "process only; TESSIQ_CACHE_DIR names another directory.",
        stacklevel=3,
    )
    return temporary


def _remove(temporary: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child runs its parent's exit functions too
        shutil.rmtree(temporary, ignore_errors=True)


class DiskCache:
    """Binaries of one kind, in `directory` (created on first use), with file names ending in `suffix`."""

    def __init__(self, directory: Path, suffix: str) -> None:
        self.directory = directory
        self.suffix = suffix
        self.hits = 0
        self.misses = 0

    def path(self, key: str) -> Path:
        """Where the entry of this key stands, whether or not it exists."""
        return self.directory / f"{key}{self.suffix}"

    def find(self, key: str) -> Path | None:
        """The file of this key when it is there and whole, else None."""
        path = self.path(key)
        try:
            expected = path.with_name(path.name + ".sha256").read_text().strip()
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return None
        return path if found == expected else None

    def get(self, key: str, build: Callable[[Path], None]) -> Path:
        """The file of this key; `build(path)` writes it first where there is none, and may raise what it likes."""
        found = self.find(key)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.directory, prefix="building-", suffix=self.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            build(temporary)
            self._commit(temporary, self.path(key))
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        return self.path(key)

    def _commit(self, temporary: Path, path: Path) -> None:
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
        note = temporary.with_name(temporary.name + ".sha256")
        note.write_text(digest + "\n")
        # The file first: a reader between the two renames sees a digest that does not match, and builds again.
        os.replace(temporary, path)
        os.replace(note, path.with_name(path.name + ".sha256"))
