"""What capture calls: an imported graph and options in, a boxed callable out."""

from __future__ import annotations

from dataclasses import replace

from tessiq_core.plugins import plugin_manager
from tessiq_core.runtime.build import build_recipe
from tessiq_core.runtime.imported import ImportedGraph
from tessiq_core.runtime.options import Options
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.recipe_cache import Dependencies, recipes
from tessiq_core.runtime.report import collecting, publish
from tessiq_core.runtime.runners import AnyRunner, make_runner
from tessiq_core.runtime.target import select_target


def compile_graph(imported: ImportedGraph, options: Options) -> AnyRunner:
    """A callable that takes the graph's inputs in one list, empties it, and returns the outputs in a list.

    The recipe comes from the process's cache where an equal graph was compiled before under the same conditions
    (`tessiq_core.runtime.recipe_cache` lists them), else it is built, which rewrites `imported.graph`.

    Raises NotFound when no target serves the graph's home, and what `select_target` and `build_recipe` raise.
    """
    target = select_target(imported.home, options, plugin_manager())
    if collecting():
        recipe = build_recipe(imported, target, options, listener=_ignore)
        runner, note = make_runner(recipe)
        publish(replace(recipe.report, notes=(*recipe.report.notes, note)) if note else recipe.report)
        return runner

    def build() -> Recipe:
        return build_recipe(imported, target, options)

    runner, _ = make_runner(recipes.get_or_build(Dependencies.of(imported, target, options).key(), build))
    return runner


def _ignore(stage: str, text: str) -> None:
    """A listener that only makes the report carry texts."""
