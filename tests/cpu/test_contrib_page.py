"""The operation that docs/plugins.md shows works as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tessiq_core.custom_ops import problems, register, row_of
from tessiq_core.ops.table import default_table
from tessiq_core.plugins import load_plugins

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace


def test_the_operation_is_right(shown):
    operation = shown["SOFT_CLIP"]
    assert problems(operation) == ()
    assert default_table().with_rows([row_of(operation)]).row("my_ops.soft_clip.default") is not None
    register(operation)
    x = torch.tensor([-1.0, 1.0, 3.0, float("nan")])
    expected = torch.tensor([-1.0, 1.0, 2.0, float("nan")])
    torch.testing.assert_close(torch.ops.my_ops.soft_clip(x, 0.5), expected, equal_nan=True)


def test_the_module_is_a_plugin(shown):
    class Point:
        name, value, dist = "my-ops", "my_ops_plugin", None

        @staticmethod
        def load() -> Any:
            return type("my_ops_plugin", (), {k: staticmethod(v) if callable(v) else v for k, v in shown.items()})

    manager = load_plugins([Point()], {"TESSIQ_STRICT_PLUGINS": "1"})  # type: ignore[list-item]
    assert [row.name for row in manager.operation_rows(with_torch=False)] == ["my_ops_soft_clip"]
