"""Taking plugins' passes into the pipelines of `tessiq opt`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tessiq_cli.opt import take_in_passes
from tessiq_core.ir import Graph
from tessiq_core.passes.manager import PASSES, Pass
from tessiq_core.plugins import Answer, PluginManager, TessiqPluginWarning


class Usurper(Pass):
    """A pass with a name that is taken."""

    name = "dce"
    description = "not the one you want"

    def run(self, graph: Graph) -> bool:
        return False


def test_a_name_that_is_taken_stays_with_the_pass_that_has_it():
    own = PASSES["dce"]
    manager: Any = SimpleNamespace(passes=lambda: (Answer("sample", Usurper),))
    with pytest.warns(
        TessiqPluginWarning, match=r"two passes are called 'dce'.*\(plugin sample\); its pass is left out"
    ):
        take_in_passes(cast(PluginManager, manager))
    assert PASSES["dce"] is own
