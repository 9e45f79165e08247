"""From an imported graph to something that runs: options, target, recipe, plan, runner, observers, reports."""

from __future__ import annotations

from tessiq_core.runtime.compile import compile_graph
from tessiq_core.runtime.imported import ImportedGraph, OutputSpec
from tessiq_core.runtime.observer import Observer, ObserverCounters, observing
from tessiq_core.runtime.options import Options, parse_options
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.recipe_cache import recipes
from tessiq_core.runtime.report import Report, collecting_reports
from tessiq_core.runtime.runner import Runner

__all__ = [
    "ImportedGraph",
    "Observer",
    "ObserverCounters",
    "Options",
    "OutputSpec",
    "Recipe",
    "Report",
    "Runner",
    "collecting_reports",
    "compile_graph",
    "observing",
    "parse_options",
    "recipes",
]
