"""The checked-in polynomial coefficients are what the script that derives them writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "fit_math.py"


def test_the_coefficients_are_the_scripts() -> None:
    pytest.importorskip("mpmath", reason="the script needs mpmath, which comes with torch's sympy")
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
