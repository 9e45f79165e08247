"""`python -m tessiq_cli` is `tessiq`."""

from __future__ import annotations

from tessiq_cli.main import app

app()
