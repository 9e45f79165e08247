"""The compiler's text half, and `tessiq opt`, work in a process where importing torch raises."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

BLOCK = textwrap.dedent(
    """
    import sys

    class Block:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "numpy", "sympy", "cuda"):
                raise ImportError(f"{name} is blocked in this test")
            return None

    sys.meta_path.insert(0, Block())
    """
)

PARTS = ("ir", "ops", "codegen", "passes", "plugins")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_the_block_blocks() -> None:
    done = run("import torch")
    assert done.returncode != 0
    assert "blocked in this test" in done.stderr


def test_every_module_of_the_text_half_imports_without_torch() -> None:
    done = run(
        textwrap.dedent(
            f"""
            import importlib, pkgutil
            import tessiq_core
            count = 0
            for part in {PARTS!r}:
                package = importlib.import_module("tessiq_core." + part)
                for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                    importlib.import_module(module.name)
                    count += 1
            print(count)
            """
        )
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 20


def test_tessiq_opt_runs_without_torch(tmp_path: Path) -> None:
    file = tmp_path / "graph.ir"
    file.write_text(
        "graph @main(%x: f32[4]) {\n"
        "  %a = aten.relu.default(%x) : f32[4]\n"
        "  %b = aten.relu.default(%x) : f32[4]\n"
        "  %c = aten.add.Tensor(%a, %b) : f32[4]\n"
        "  return %c\n"
        "}\n"
    )
    done = run(
        f"sys.argv = ['tessiq', 'opt', {str(file)!r}, '--passes', 'cse,dce']\nfrom tessiq_cli.main import app\napp()\n"
    )
    assert done.returncode == 0, done.stderr
    assert "%b" not in done.stdout
    assert "aten.add.Tensor(%a, %a)" in done.stdout


def test_the_text_half_of_the_emitters_needs_no_torch() -> None:
    done = run("import tessiq_cpuref.plugin, tessiq_cpuref.cpp.source")
    assert done.returncode == 0, done.stderr
