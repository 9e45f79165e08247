"""Golden files of passes: where they are, and running one."""

from __future__ import annotations

from pathlib import Path

from tessiq_core.ir import Golden, parse_graph, print_graph, split_golden
from tessiq_core.passes import PassContext, run_pipeline

ROOT = Path(__file__).resolve().parents[1] / "golden"


def golden_files() -> list[Path]:
    """Every `tests/golden/<pass>/<name>.ir`."""
    return sorted(ROOT.glob("*/*.ir"))


def read_golden(path: Path) -> Golden:
    """The parts of the file, which must have all of them."""
    golden = split_golden(path.read_text(encoding="utf-8"), source=str(path))
    assert golden.pipeline, f"{path}: the first line must be `// RUN: pipeline`"
    assert golden.expected is not None, f"{path}: the expected graph must follow a line `// -----`"
    return golden


def context_of(golden: Golden) -> PassContext:
    """The context a golden file is run in: text only, with its own patterns."""
    return PassContext.for_text(patterns=golden.patterns)


def run_golden(golden: Golden, source: str) -> str:
    """What the file's pipeline makes of its input."""
    graph = parse_graph(golden.input, source=source)
    assert golden.pipeline is not None
    run_pipeline(graph, golden.pipeline, context_of(golden))
    return print_graph(graph)
