"""What was decided about one graph, for `explain`, tests and people. Counts always; texts only while somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Listener: TypeAlias = Callable[[str, str], None]
"""Called while a recipe is built with (stage, graph text): stage is "imported", then the name of each pass."""


@dataclass(frozen=True)
class PassReport:
    """One pass: `seconds` of wall time, and the graph's text after it ("" when no texts were asked for)."""

    name: str
    changed: bool
    seconds: float
    text: str = ""


@dataclass(frozen=True)
class UnitReport:
    """One entry of the schedule.

    kind:   "kernel", "view", "library" or "aten".
    nodes:  names of the nodes it runs, in graph order. ops: their operators.
    kernel: the name of its kernel, "" for views and ATen.
    moves:  names of the values that cross between home and device for it.
    """

    kind: str
    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    kernel: str = ""
    moves: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelReport:
    """One kernel; operands read `%name: type`, words are the texts of its launch words. `source` is what was compiled,
    `description` the kernel description in text form ("" for a library, or when no texts were asked for)."""

    name: str
    origin: str
    members: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: tuple[str, ...]
    source: str = ""
    description: str = ""

    @property
    def extents_known(self) -> bool:
        """Whether every size and stride of its operands was known when it was compiled: then it takes no words."""
        return not self.words


@dataclass(frozen=True)
class Counts:
    """kernels: generated kernels. library_kernels: kernels of library bindings.
    claimed: nodes the target runs, in generated and library kernels. views: nodes that are views resolved at compile
    time. unclaimed: nodes run whole by ATen. sizes: nodes that compute Python numbers. Constants are not counted."""

    kernels: int = 0
    library_kernels: int = 0
    claimed: int = 0
    views: int = 0
    unclaimed: int = 0
    sizes: int = 0


@dataclass(frozen=True)
class Report:
    """Everything decided about one graph.

    kind:     "forward", "backward" or "inference". home, target, device, emitter: as selected ("" without an emitter).
    counts:   always there. declines: why each unclaimed node is, by node name, always there.
    imported: the graph's text as imported; scheduled: after all passes. Empty unless somebody listened.
    seconds:  wall time by stage ("passes", "lower", "compile", "plan").
    notes:    what did not go as asked.
    """

    kind: str
    home: str
    target: str
    device: str
    emitter: str
    counts: Counts
    declines: dict[str, str]
    passes: tuple[PassReport, ...]
    units: tuple[UnitReport, ...]
    kernels: tuple[KernelReport, ...]
    symbols: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    imported: str = ""
    scheduled: str = ""
    plan: str = ""


_collectors: list[list[Report]] = []


@contextmanager
def collecting_reports() -> Iterator[list[Report]]:
    """A list that receives the report, with texts, of every graph compiled in the block, in any thread.

    Inside the block nothing is taken from the recipe cache: a report of a compile that did not happen would be empty.
    """
    reports: list[Report] = []
    _collectors.append(reports)
    try:
        yield reports
    finally:
        # By identity: two lists that are equal are not the same collector.
        _collectors[:] = [c for c in _collectors if c is not reports]


def collecting() -> bool:
    """Whether a block of `collecting_reports` is active."""
    return bool(_collectors)


def publish(report: Report) -> None:
    """Give the report to every active collector."""
    for collector in _collectors:
        collector.append(report)
