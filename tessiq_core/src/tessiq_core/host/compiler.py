"""Finding and running the system's C++ compiler."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tessiq_core.decline import Decline
from tessiq_core.errors import External

CANDIDATES = ("g++", "clang++", "c++")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: the program's path, and the first line of what it says of its version."""

    path: str
    version: str

    def run(self, arguments: Sequence[str], what: str) -> None:
        """Run it. Raises External with the whole log when it fails; `what` says what was being compiled."""
        command = [self.path, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise External(
                f"tessiq: {self.path} failed on {what} (exit status {done.returncode}).\n"
                f"command: {' '.join(command)}\n{done.stderr or done.stdout}"
            )


def find_compiler() -> Compiler | Decline:
    """The compiler named by TESSIQ_CXX, else by CXX where that is one, else the first of g++, clang++ and c++ on PATH.

    CXX is not tessiq's: a value that is no program (`ccache g++`) is passed over. `TESSIQ_CXX=none` means there is
    none. The answer is remembered for the same values of these variables.
    """
    return _find(os.environ.get("TESSIQ_CXX", ""), os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.cache
def _find(tessiq_cxx: str, cxx: str, path: str) -> Compiler | Decline:
    if tessiq_cxx == "none":
        return Decline("no-compiler", "TESSIQ_CXX=none says to use no C++ compiler")
    if tessiq_cxx:
        found = shutil.which(tessiq_cxx, path=path)
        if found is None:
            return Decline("no-compiler", f"TESSIQ_CXX names {tessiq_cxx!r}, which is not on PATH")
        return _probe(found)
    for candidate in (cxx, *CANDIDATES) if cxx else CANDIDATES:
        found = shutil.which(candidate, path=path)
        if found is not None:
            return _probe(found)
    return Decline(
        "no-compiler",
        f"no C++ compiler: none of {', '.join(CANDIDATES)} is on PATH; install one (Debian: apt-get install g++), "
        "or name one in TESSIQ_CXX",
    )


def _probe(path: str) -> Compiler | Decline:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        return Decline("no-compiler", f"{path} does not run: {error}")
    if done.returncode != 0 or not done.stdout.strip():
        return Decline("no-compiler", f"{path} --version failed with exit status {done.returncode}")
    return Compiler(path, done.stdout.splitlines()[0].strip())
