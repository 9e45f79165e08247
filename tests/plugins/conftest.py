"""Builds and installs the sample distributions in `dists/`, each into a folder of its own, and runs Python on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DISTS = Path(__file__).parent / "dists"
OURS = "cpuref,cuda,ops-contrib"


@dataclass(frozen=True)
class Samples:
    """The installed sample distributions; `path_of` installs one the first time it is asked for."""

    root: Path

    def path_of(self, name: str) -> Path:
        target = self.root / name
        if not target.exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            offline = ["--no-index", "--no-build-isolation", "--no-deps", "--target", str(target)]
            subprocess.run([*pip, *offline, str(DISTS / name)], check=True, capture_output=True, text=True)
        return target

    def run(self, *names: str, code: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run `code` in a process that sees these samples, and of our own plugins those that `environ` allows."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TESSIQ_")}
        path = os.pathsep.join(str(self.path_of(name)) for name in names)
        settings = {"PYTHONPATH": path, "TESSIQ_DISABLE_PLUGINS": OURS, **(environ or {})}
        return subprocess.run(
            [sys.executable, "-c", code], env={**inherited, **settings}, capture_output=True, text=True, check=False
        )


Inspect = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def inspect(samples: Samples) -> Inspect:
    """`tessiq plugins --json --all` in a process that sees the named samples; records by distribution under `by`."""

    def run(*names: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
        code = "import sys; sys.argv = ['tessiq', 'plugins', '--json', '--all']; from tessiq_cli.main import app; app()"
        done = samples.run(*names, code=code, environ=environ)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        report["by"] = {record["distribution"]: record for record in report["plugins"]}
        return report

    return run
