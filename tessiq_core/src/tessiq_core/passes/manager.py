"""Passes by name, and running a pipeline of them with a check after each."""

from __future__ import annotations

import difflib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from tessiq_core.codegen.any_emitter import AnyEmitter
from tessiq_core.codegen.interfaces import Emitter, LibraryBinding
from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir.graph import Graph
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ir.printer import print_graph
from tessiq_core.ir.verifier import verify as verify_graph
from tessiq_core.ops.table import OperationTable, default_table


@dataclass(frozen=True)
class PassContext:
    """What passes may ask about besides the graph.

    table:          meaning of the operations.
    emitter:        the target's emitter; None when the target has none, and then no kernel is claimed.
    libraries:      the target's library bindings.
    crossings_free: the target reads and writes the tensors of the home in place, so that handing a value to ATen and
                    back costs no copy.
    patterns:       what the pass `rewrite` applies, in order.
    """

    table: OperationTable = field(default_factory=default_table)
    emitter: Emitter | None = None
    libraries: Sequence[LibraryBinding] = ()
    crossings_free: bool = True
    patterns: tuple[RewritePattern, ...] = ()

    @classmethod
    def for_text(cls, *, patterns: tuple[RewritePattern, ...] = ()) -> PassContext:
        """For graphs that are only read and printed: the table's own rows, and an emitter that accepts every kernel."""
        return cls(emitter=AnyEmitter(), patterns=patterns)


class Pass(ABC):
    """One rewrite of a graph. A subclass lives in a file of its own and registers with `@register`.

    name:        how a pipeline spells it, in kebab-case.
    description: one line for a person.

    `run` returns True only when the graph's text changed, and running it again at once must return False. The
    docstring of a subclass has three headings: `Assumes:`, `Guarantees:`, `Legal because:`.
    """

    name: ClassVar[str]
    description: ClassVar[str]

    def __init__(self, context: PassContext) -> None:
        self.context = context

    @abstractmethod
    def run(self, graph: Graph) -> bool:
        """Rewrite the graph in place; True when something changed."""


PASSES: dict[str, type[Pass]] = {}
_P = TypeVar("_P", bound=type[Pass])


def register(cls: _P) -> _P:
    """Class decorator: make the pass available to pipelines under its `name`.

    Raises InvalidArgument when another class has that name.
    """
    known = PASSES.get(cls.name)
    if known is not None and known is not cls:
        raise InvalidArgument(
            f"tessiq: two passes are called {cls.name!r}: {known.__module__}.{known.__qualname__} and "
            f"{cls.__module__}.{cls.__qualname__}; rename one"
        )
    PASSES[cls.name] = cls
    return cls


@dataclass(frozen=True)
class PassResult:
    """What one pass of a pipeline did; `seconds` is the wall time of `run` alone."""

    name: str
    changed: bool
    seconds: float


def parse_pipeline(pipeline: str) -> tuple[type[Pass], ...]:
    """The passes a comma-separated pipeline names; an empty text names none.

    Raises InvalidArgument, listing the passes that exist, for a name that is none of them.
    """
    if not pipeline.strip():
        return ()
    return tuple(_pass_called(name.strip(), pipeline) for name in pipeline.split(","))


def _pass_called(name: str, pipeline: str) -> type[Pass]:
    if name in PASSES:
        return PASSES[name]
    close = difflib.get_close_matches(name, PASSES, n=1)
    hint = f", did you mean {close[0]!r}?" if close else "."
    raise InvalidArgument(
        f"tessiq: pipeline {pipeline!r}: there is no pass {name!r}{hint} The passes are {', '.join(sorted(PASSES))}"
    )


def run_pipeline(
    graph: Graph,
    pipeline: str,
    context: PassContext,
    *,
    verify: bool = True,
    on_pass: Callable[[PassResult, Graph], None] | None = None,
) -> list[PassResult]:
    """Run the passes a comma-separated text names on the graph, in place.

    verify:  check the graph before the first pass and after each, and that each pass told the truth about whether it
             changed anything. It prints the graph after every pass, so it is for debugging and tests.
    on_pass: called after each pass with its result and the graph.

    Raises InvalidArgument for an unknown pass, Internal naming the pass that left the graph broken.
    """
    passes = parse_pipeline(pipeline)
    results: list[PassResult] = []
    before = ""
    if verify:
        verify_graph(graph, when=f"before the pipeline {pipeline!r}")
        before = print_graph(graph)
    for cls in passes:
        instance = cls(context)
        start = time.perf_counter()
        changed = instance.run(graph)
        result = PassResult(cls.name, changed, time.perf_counter() - start)
        if verify:
            verify_graph(graph, when=f"after the pass {cls.name!r}")
            after = print_graph(graph)
            _check_truth(cls.name, changed, before, after)
            before = after
        results.append(result)
        if on_pass is not None:
            on_pass(result, graph)
    return results


def _check_truth(name: str, changed: bool, before: str, after: str) -> None:
    if changed and before == after:
        raise Internal(
            f"tessiq: the pass {name!r} reported a change, but the graph prints as before; `run` must return True "
            "only when something changed; this is a bug in the pass"
        )
    if not changed and before != after:
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=1)
        difference = "\n".join(lines)
        raise Internal(
            f"tessiq: the pass {name!r} reported no change, but the graph changed; this is a bug in the pass\n"
            f"{difference}"
        )
