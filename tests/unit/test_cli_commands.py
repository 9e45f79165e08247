"""The `tessiq` command, run as users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

# The whole command in a process where importing torch, or what only torch needs, fails.
WITHOUT_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "sympy", "cuda"):
            raise AssertionError(f"{name} was imported")
sys.meta_path.insert(0, Refuse())
from tessiq_cli.main import app
app()
"""

GRAPH = """graph @main(%x: f32[2, 3]) {
  %a = aten.mul.Tensor(%x, %x) : f32[2, 3]
  %b = aten.mul.Tensor(%x, %x) : f32[2, 3]
  %c = aten.add.Tensor(%a, %b) : f32[2, 3]
  return %c
}
"""
MERGED = """graph @main(%x: f32[2, 3]) {
  %a = aten.mul.Tensor(%x, %x) : f32[2, 3]
  %c = aten.add.Tensor(%a, %a) : f32[2, 3]
  return %c
}
"""
SQUARED = """graph @main(%x: f32[2, 3]) {
  %v = aten.alias.default(%x) : f32[2, 3]
  %r = aten.relu.default(%v) : f32[2, 3]
  %y = aten.mul.Tensor(%r, %r) : f32[2, 3]
  return %y
}
"""


def tessiq(*arguments: str, text: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TESSIQ_")}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments],
        input=text,
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def succeeds(*arguments: str, text: str = "", **environ: str) -> str:
    done = tessiq(*arguments, text=text, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(*arguments: str, text: str = "", **environ: str) -> str:
    done = tessiq(*arguments, text=text, **environ)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_the_refusal_of_torch_works():
    done = tessiq("explain", __file__)
    assert done.returncode == 2
    code = WITHOUT_TORCH.replace("from tessiq_cli.main import app\napp()", "import torch")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "torch was imported" in done.stderr


def test_version():
    assert succeeds("--version") == f"tessiq {version('tessiq-core')}\n"


def test_opt_from_standard_input():
    assert succeeds("opt", "--passes", "cse,dce", "--verify", text=GRAPH) == MERGED
    assert succeeds("opt", "-", "-p", "", text=GRAPH) == GRAPH


def test_opt_of_a_golden_file_takes_its_input_and_pipeline(tmp_path: Path):
    golden = tmp_path / "cse.tessiq"
    golden.write_text(f"// RUN: cse\n{GRAPH}// -----\ngraph @other() {{\n  return\n}}\n")
    assert succeeds("opt", str(golden)) == MERGED
    assert succeeds("opt", str(golden), "--passes", "dce") == GRAPH


def test_opt_uses_the_plugins_passes_and_rewrites():
    out = succeeds("opt", "-p", "contrib-drop-identity-views,rewrite,dce", "--verify", text=SQUARED)
    assert "tessiq_contrib.squared_relu.default(%x)" in out
    assert "aten.alias" not in out
    message = fails("opt", "-p", "contrib-drop-identity-views", text=SQUARED, TESSIQ_DISABLE_PLUGINS="*")
    assert "there is no pass 'contrib-drop-identity-views'" in message


def test_opt_prefers_the_patterns_of_the_file(tmp_path: Path):
    golden = tmp_path / "rewrite.tessiq"
    golden.write_text(
        "// RUN: rewrite,dce\n// PATTERN own\n"
        "graph @p(%x: f32[?]) {\n  %y = aten.relu.default(%x) : f32[?]\n  return %y\n}\n// REPLACEMENT\n"
        "graph @r(%x: f32[?]) {\n  %y = aten.neg.default(%x) : f32[?]\n  return %y\n}\n"
        f"// INPUT\n{SQUARED}"
    )
    out = succeeds("opt", str(golden))
    assert "aten.neg.default" in out
    assert "squared_relu" not in out


def test_opt_lists_passes_of_plugins_too():
    lines = dict(line.split("  ", 1) for line in succeeds("opt", "--list").splitlines())
    listed = {name.strip() for name in lines}
    assert {"cse", "dce", "rewrite", "contrib-drop-identity-views"} <= listed
    assert all(description.strip() for description in lines.values())


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (("opt", "-p", "dec"), GRAPH, "there is no pass 'dec', did you mean 'dce'?"),
        (("opt",), GRAPH, "<stdin> has no line `// RUN: …`, so say which passes to run"),
        (("opt", "-p", "dce"), "graph @main(%x f32) {}", "<stdin>:1"),
        (("opt", "-p", "dce", "no-such-file"), "", "tessiq: cannot read no-such-file: No such file or directory"),
    ],
)
def test_errors_are_one_paragraph_and_exit_code_2(arguments, text, message):
    stderr = fails(*arguments, text=text)
    assert message in stderr
    assert "\n\n" not in stderr.rstrip("\n")


def test_plugins_as_json():
    report = json.loads(succeeds("plugins", "--json"))
    assert report["api_version"] == [0, 1]
    by_name = {record["name"]: record for record in report["plugins"]}
    assert set(by_name) >= {"cpuref", "cuda", "ops-contrib"}
    assert by_name["ops-contrib"]["distribution"] == "tessiq-ops-contrib"
    assert by_name["ops-contrib"]["version"] == version("tessiq-ops-contrib")
    assert by_name["ops-contrib"]["hooks"] == ["tessiq_custom_ops", "tessiq_rewrite_patterns", "tessiq_passes"]
    assert by_name["cuda"]["note"]
    assert "offers" not in report


def test_plugins_as_tables():
    out = succeeds("plugins", TESSIQ_DISABLE_PLUGINS="cuda")
    (row,) = (line for line in out.splitlines() if line.strip().startswith("cuda"))
    assert [cell.strip() for cell in row.split("│")] == [
        "cuda", "tessiq-cuda", version("tessiq-cuda"), "blocked", "", "disabled by TESSIQ_DISABLE_PLUGINS",
    ]  # fmt: skip
    assert "on offer" not in out
    assert "tessiq_contrib::squared_relu" in succeeds("plugins", "--all")


def test_plugins_reports_one_asked_for_that_is_missing():
    assert "asks for the plugin 'nothing'" in fails("plugins", TESSIQ_PLUGINS="nothing")


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        ("model = 1\n", (), "has no function model()"),
        ("def model(): pass\n", (), "has no function inputs()"),
        ("", ("-o", "verify"), "--option takes NAME=VALUE"),
    ],
)
def test_explain_says_what_the_file_needs(tmp_path: Path, source, arguments, message):
    file = tmp_path / "model.py"
    file.write_text(source)
    assert message in fails("explain", str(file), *arguments)
    assert "cannot read" in fails("explain", str(tmp_path / "missing.py"))
