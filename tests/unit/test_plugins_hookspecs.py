"""Every hook is documented, implemented by one of our packages, and exercised by a test."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from tessiq_core.plugins import hookspecs, load_plugins
from tessiq_core.plugins.hookspecs import HOOKS

ROOT = Path(__file__).parents[2]
SECTIONS = ("When it is called:", "Arguments:", "Returns:", "Raises:", "Who may implement it:", "Since: API version ")


def test_the_list_is_every_hook_in_the_order_of_the_file():
    source = inspect.getsource(hookspecs)
    assert tuple(re.findall(r"^@hookspec\ndef (\w+)\(", source, re.MULTILINE)) == HOOKS


@pytest.mark.parametrize("hook", HOOKS)
def test_documented(hook):
    function = getattr(hookspecs, hook)
    text = inspect.getdoc(function) or ""
    positions = [text.find(section) for section in SECTIONS]
    assert -1 not in positions, f"{hook} lacks {SECTIONS[positions.index(-1)]!r}"
    assert positions == sorted(positions)
    returns = text[positions[2] : positions[3]]
    assert re.search(r"\bNone\b.* means that|\bNone, or an empty list, means\b", returns), (
        f"{hook}: what does None mean?"
    )
    for name in inspect.signature(function).parameters:
        assert f"{name}:" in text[positions[1] : positions[2]], f"{hook}: argument {name} is not documented"
    assert re.search(r"Since: API version \d+\.\d+\.", text)


@pytest.mark.parametrize("hook", HOOKS)
def test_the_page_has_the_exact_signature(hook):
    signature = inspect.signature(getattr(hookspecs, hook))
    written = f"`{hook}{str(signature).replace(chr(39), '')}`".replace("|", "\\|")
    assert written in (ROOT / "docs" / "plugins.md").read_text()


def test_each_hook_is_implemented_by_one_of_ours():
    manager = load_plugins(environ={"TESSIQ_PLUGINS": "cpuref,cuda,ops-contrib"})
    implemented = {hook for record in manager.records for hook in record.hooks}
    assert implemented == set(HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_is_exercised_by_a_distribution(hook):
    # The sample distribution's answers are read back one by one in tests/plugins/test_distributions.py.
    sample = (ROOT / "tests" / "plugins" / "dists" / "working" / "sample_plugin.py").read_text()
    assert f"@hookimpl\ndef {hook}(" in sample
    assert f'"{hook}"' in (ROOT / "tests" / "plugins" / "test_distributions.py").read_text()
