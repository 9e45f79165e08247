"""The examples of `docs/examples`, and the module that runs them, imported from its file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"


def _load() -> ModuleType:
    if "tessiq_example_checks" not in sys.modules:
        spec = importlib.util.spec_from_file_location("tessiq_example_checks", FOLDER / "checks.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return sys.modules["tessiq_example_checks"]


checks = _load()
