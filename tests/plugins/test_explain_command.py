"""`tessiq explain` on a file, with a plugin's rewrite in use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        r = torch.relu(x)
        return r * r + 1

def model():
    return Model()

def inputs():
    return torch.ones(4, 8)
"""


def test_explain(tmp_path: Path):
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    command = [sys.executable, "-m", "tessiq_cli", "explain", str(file)]
    options = ["-o", 'emitter="reference"', "-o", 'rewrites=["contrib.squared-relu"]']
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "squared_relu" in done.stdout
    assert "reference" in done.stdout

    done = subprocess.run([*command, "-o", "emiter=cpp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "emitter" in done.stderr
    assert "Traceback" not in done.stderr
