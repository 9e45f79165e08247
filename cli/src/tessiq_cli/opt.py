"""`tessiq opt`: passes on graphs as text. Imports no torch, and no plugin needs it to answer here."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir import parse_graph, print_graph, split_golden
from tessiq_core.ir import verify as verify_graph
from tessiq_core.passes.manager import PASSES, PassContext, register, run_pipeline
from tessiq_core.plugins import PluginManager, plugin_manager
from tessiq_core.plugins.records import warn


def run_opt(file: str, passes: str | None, *, verify: bool) -> None:
    """Read the graph, run the passes, print the graph.

    A golden file's own patterns are what the pass `rewrite` applies; without any, the plugins' patterns are. Raises
    InvalidArgument for malformed text, an unknown pass and a graph that is not valid; OSError for the file.
    """
    source = "<stdin>" if file == "-" else file
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    golden = split_golden(text, source=source)
    pipeline = passes if passes is not None else golden.pipeline
    if pipeline is None:
        raise InvalidArgument(f"tessiq: {source} has no line `// RUN: …`, so say which passes to run: --passes dce,cse")
    manager = plugin_manager()
    take_in_passes(manager)
    context = PassContext.for_text(patterns=golden.patterns or tuple(a.value for a in manager.patterns()))
    rows = manager.operation_rows(with_torch=False)
    if rows:
        context = replace(context, table=context.table.with_rows(rows))
    graph = parse_graph(golden.input, source=source)
    verify_graph(graph, when=f"as {source} gives it")
    run_pipeline(graph, pipeline, context, verify=verify)
    sys.stdout.write(print_graph(graph))


def show_passes() -> None:
    """Print every pass and its description, sorted by name, plugins' passes too."""
    take_in_passes(plugin_manager())
    width = max(map(len, PASSES))
    for name, cls in sorted(PASSES.items()):
        print(f"{name:{width}}  {cls.description}")


def take_in_passes(manager: PluginManager) -> None:
    """Make the plugins' passes available to pipelines. One whose name is taken is left out, with a warning."""
    for answer in manager.passes():
        try:
            register(answer.value)
        except InvalidArgument as error:
            warn(f"{error} (plugin {answer.plugin}); its pass is left out")
