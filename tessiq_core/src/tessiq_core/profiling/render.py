"""The text of an explanation: summary, imported graph, what each pass changed, kernels, schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tessiq_core.ir import (
    Attribute,
    Graph,
    Node,
    attribute_key,
    parse_graph,
    print_attribute,
    print_node,
)
from tessiq_core.runtime.report import KernelReport, Report, UnitReport


def render(reports: Sequence[Report]) -> str:
    """One text for all graphs, each under its own heading."""
    if not reports:
        return "tessiq compiled no graph: the function holds no tensor operation, or Dynamo did not capture it."
    lines: list[str] = []
    for number, report in enumerate(reports, start=1):
        heading = f"graph {number} of {len(reports)}: {report.kind}"
        lines += [heading, "=" * len(heading), ""]
        for title, part in (
            ("summary", _summary(report)),
            ("imported", iter(report.imported.splitlines())),
            ("passes", _passes(report)),
            ("kernels", _kernels(report.kernels)),
            ("schedule", _schedule(report)),
        ):
            lines += [title, "-" * len(title), *part, ""]
    return "\n".join(lines)


def _summary(report: Report) -> Iterator[str]:
    counts = report.counts
    yield f"home {report.home}, target {report.target} ({report.device}), emitter {report.emitter or 'none'}"
    yield (
        f"{counts.kernels} generated kernels and {counts.library_kernels} library kernels run {counts.claimed} nodes; "
        f"{counts.views} nodes are views; {counts.unclaimed} nodes run through ATen; {counts.sizes} compute sizes"
    )
    if report.symbols:
        yield "symbols: " + ", ".join(f"{name} = {where}" for name, where in report.symbols.items())
    if report.seconds:
        yield "time: " + ", ".join(f"{stage} {1e3 * seconds:.1f} ms" for stage, seconds in report.seconds.items())
    for note in report.notes:
        yield f"note: {note}"


def _passes(report: Report) -> Iterator[str]:
    before = report.imported
    for result in report.passes:
        yield f"{result.name}: {'changed' if result.changed else 'no change'}, {1e3 * result.seconds:.1f} ms"
        if result.changed and before and result.text:
            yield from (f"  {line}" for line in changes(parse_graph(before), parse_graph(result.text)))
        before = result.text or before


def changes(before: Graph, after: Graph) -> Iterator[str]:
    """What happened between two states of one graph, a line a node: `-` gone, `+` new, `~` with other attributes."""
    old = {node.name: node for node in before.nodes}
    new = {node.name: node for node in after.nodes}
    for name, node in old.items():
        if name not in new:
            yield f"- {print_node(node)}"
    for name, node in new.items():
        was = old.get(name)
        if was is None:
            yield f"+ {print_node(node)}"
            continue
        if was.op != node.op or [v.name for v in was.operands] != [v.name for v in node.operands]:
            yield f"~ {print_node(node)}"
            continue
        set_to = [f"{k} = {print_attribute(v)}" for k, v in node.attributes.items() if _differs(was, k, v)]
        removed = [f"no {k}" for k in was.attributes if not node.has_attribute(k)]
        if set_to or removed:
            yield f"~ %{name}: {', '.join(set_to + removed)}"


def _differs(was: Node, name: str, value: Attribute) -> bool:
    return not was.has_attribute(name) or attribute_key(was.attribute(name)) != attribute_key(value)


def _kernels(kernels: Sequence[KernelReport]) -> Iterator[str]:
    if not kernels:
        yield "none"
    for kernel in kernels:
        known = "extents known" if kernel.extents_known else f"extents from {', '.join(kernel.words)}"
        yield f"{kernel.name} ({kernel.origin}; {known})"
        yield f"  reads  {', '.join(kernel.inputs) or 'nothing'}"
        yield f"  writes {', '.join(kernel.outputs)}"
        yield f"  covers {', '.join(kernel.members)}"
        for line in kernel.description.splitlines():
            yield f"    {line}"


def _schedule(report: Report) -> Iterator[str]:
    rows = [row for unit in report.units for row in _unit(unit, report)]
    name_width = max((len(name) for name, _, _ in rows), default=0)
    op_width = max((len(op) for _, op, _ in rows), default=0)
    for name, op, what in rows:
        yield f"{name:<{name_width}}  {op:<{op_width}}  {what}"


def _unit(unit: UnitReport, report: Report) -> Iterator[tuple[str, str, str]]:
    moves = f"; moves its inputs {', '.join(f'%{name}' for name in unit.moves)}" if unit.moves else ""
    for index, (name, op) in enumerate(zip(unit.nodes, unit.ops, strict=True)):
        last = index == len(unit.nodes) - 1
        if unit.kind == "view":
            what = "view"
        elif unit.kind == "aten":
            what = f"ATen on the home: {report.declines.get(name, 'no reason was recorded')}"
        elif last:
            what = f"launched as {unit.kernel}"
        else:
            what = f"computed inside {unit.kernel}"
        yield f"%{name}", op, what + (moves if last else "")
