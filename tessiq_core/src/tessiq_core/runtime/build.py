"""From an imported graph to a recipe: passes, schedule, kernels, plan."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from torch.utils._python_dispatch import _disable_current_modes

from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import Kernel, KernelOperands, LibraryBinding
from tessiq_core.codegen.lower import lower
from tessiq_core.codegen.text import print_kernel
from tessiq_core.decline import Decline
from tessiq_core.errors import External, Internal
from tessiq_core.ir.graph import Graph, Node
from tessiq_core.ir.printer import print_graph
from tessiq_core.passes.decisions import DECLINE, LIBRARY, claim_of
from tessiq_core.passes.manager import PassContext, PassResult, run_pipeline
from tessiq_core.passes.pipeline import COMPILE_PIPELINE
from tessiq_core.passes.schedule import Unit, schedule
from tessiq_core.runtime.describe import counts_of, kernel_reports, unit_reports
from tessiq_core.runtime.imported import ImportedGraph
from tessiq_core.runtime.options import Options
from tessiq_core.runtime.plan_text import plan_text
from tessiq_core.runtime.planner import make_plan
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.recipe_cache import Dependencies
from tessiq_core.runtime.report import Listener, PassReport, Report
from tessiq_core.runtime.target import Target
from tessiq_core.runtime.verify import verifying

DEBUG = "TESSIQ_DEBUG"
"""Environment variable: set to 1, the verifier runs after every pass."""


def build_recipe(imported: ImportedGraph, target: Target, options: Options, listener: Listener | None = None) -> Recipe:
    """Decide everything about the graph and load its kernels. The passes rewrite `imported.graph` in place.

    listener: called with (stage, graph text) for "imported" and after each pass. With one the report has texts too;
              without, no text is made.

    Raises Internal when the compiler claimed a node and then has no kernel for it, External when an emitter or a
    library did not do what it promised.
    """
    clock = _Clock()
    graph = imported.graph
    context = PassContext(
        table=target.table,
        emitter=target.emitter,
        libraries=target.libraries,
        crossings_free=options.adopt,
        patterns=target.patterns,
    )
    text = print_graph(graph) if listener is not None else ""
    if listener is not None:
        listener("imported", text)
    with clock("passes"):
        passes = _run_passes(graph, context, listener)
        units = schedule(graph, target.table)
    with _disable_current_modes():
        kernels, numbers, descriptions = _kernels(units, target, clock)
    with clock("plan"):
        planned = make_plan(graph, units, kernels, numbers, imported.outputs, target.table, adopt=options.adopt)
    report = Report(
        kind=imported.kind,
        home=imported.home,
        target=target.name,
        device=target.device.description,
        emitter="" if target.emitter is None else target.emitter.name,
        counts=counts_of(graph, units),
        declines={node.name: str(node.attribute(DECLINE)) for node in graph.nodes if node.has_attribute(DECLINE)},
        passes=passes,
        units=unit_reports(units, kernels, numbers, planned.moves),
        kernels=kernel_reports(kernels, [] if listener is None else [print_kernel(d) for d in descriptions]),
        symbols=dict(imported.symbols),
        notes=target.notes,
        seconds=clock.seconds,
        imported=text,
        scheduled=print_graph(graph) if listener is not None else "",
        plan=plan_text(planned.plan) if listener is not None else "",
    )
    key = "" if planned.writes_constant else Dependencies.of(imported, target, options).key()
    return Recipe(planned.plan, kernels, dict(imported.constants), target.name, imported.home, key, report)


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def _run_passes(graph: Graph, context: PassContext, listener: Listener | None) -> tuple[PassReport, ...]:
    reports: list[PassReport] = []

    def on_pass(result: PassResult, graph: Graph) -> None:
        text = print_graph(graph) if listener is not None else ""
        if listener is not None:
            listener(result.name, text)
        reports.append(PassReport(result.name, result.changed, result.seconds, text))

    debug = os.environ.get(DEBUG, "") not in ("", "0")
    run_pipeline(graph, COMPILE_PIPELINE, context, verify=debug, on_pass=on_pass)
    return tuple(reports)


def _kernels(
    units: Sequence[Unit], target: Target, clock: _Clock
) -> tuple[tuple[Kernel, ...], dict[int, int], list[KernelDescription]]:
    """Every kernel, the number of each kernel and library unit's, and the descriptions of the
    generated ones, which come first.

    All generated kernels are compiled in one call of the emitter.
    """
    descriptions: list[KernelDescription] = []
    operands: list[KernelOperands] = []
    generated: list[int] = []
    names: set[str] = set()
    with clock("lower"):
        for index, unit in enumerate(units):
            if unit.kind == "kernel":
                description, buffers = _lowered(unit, target)
                descriptions.append(replace(description, name=_unused(description.name, names)))
                operands.append(buffers)
                generated.append(index)
    with clock("compile"):
        kernels = list(_compiled(descriptions, operands, target))
        numbers = {index: number for number, index in enumerate(generated)}
        for index, unit in enumerate(units):
            if unit.kind == "library":
                kernel = _library_kernel(unit.nodes[0], target)
                numbers[index] = len(kernels)
                kernels.append(replace(kernel, name=_unused(kernel.name, names)))
    return tuple(kernels), numbers, descriptions


def _lowered(unit: Unit, target: Target) -> tuple[KernelDescription, KernelOperands]:
    lowered = lower(unit.nodes, target.table)
    members = ", ".join(f"%{node.name}" for node in unit.nodes)
    if isinstance(lowered, Decline):
        raise Internal(f"tessiq: {members} were claimed as one kernel and cannot be lowered: {lowered}")
    refused = None if target.emitter is None else target.emitter.accepts(lowered.description, target.table)
    if target.emitter is None or refused is not None:
        raise Internal(f"tessiq: {members} were claimed as one kernel and no emitter makes it: {refused}")
    return lowered.description, lowered.operands


def _compiled(
    descriptions: Sequence[KernelDescription], operands: Sequence[KernelOperands], target: Target
) -> Sequence[Kernel]:
    if not descriptions or target.emitter is None:
        return ()
    kernels = target.emitter.compile(descriptions, operands, target.table)
    if len(kernels) != len(descriptions):
        raise External(
            f"tessiq: emitter {target.emitter.name!r} returned {len(kernels)} kernels for {len(descriptions)} "
            "descriptions; it must return one for each, in order"
        )
    if target.reference is None or target.reference is target.emitter:
        return kernels
    references = target.reference.compile(descriptions, operands, target.table)
    return [verifying(kernel, reference) for kernel, reference in zip(kernels, references, strict=True)]


def _library_kernel(node: Node, target: Target) -> Kernel:
    name = node.attribute(LIBRARY)
    binding: LibraryBinding | None = next((b for b in target.libraries if b.name == name), None)
    if binding is None or claim_of(node) != "library":
        raise Internal(f"tessiq: %{node.name} is claimed by the library {name!r}, which target {target.name!r} has not")
    return binding.build(node, target.table)


def _unused(name: str, names: set[str]) -> str:
    """`name`, or `name_1`, `name_2`, … where it is taken; a recipe's kernel names are unique."""
    candidate, number = name, 0
    while candidate in names:
        number += 1
        candidate = f"{name}_{number}"
    names.add(candidate)
    return candidate
