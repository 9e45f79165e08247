"""What capture hands to the runtime: one imported graph, its constants, and how its results become the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph

Kind: TypeAlias = Literal["forward", "backward", "inference"]


@dataclass(frozen=True)
class OutputSpec:
    """How the values of `graph.results` become the list the compiled function returns.

    positions: one entry for each output of the traced graph, in order: an index into the graph's results, or None
               where the traced graph returns None (a gradient nobody needs) or a number written in it.
    literals:  (position, number) for outputs that are plain numbers in the traced graph.
    """

    positions: tuple[int | None, ...]
    literals: tuple[tuple[int, bool | int | float], ...] = ()

    def gather(self, results: Sequence[object]) -> list[object]:
        """The outputs, from the values of the graph's results in order.

        Raises Internal when there are fewer or more results than the positions name.
        """
        named = {index for index in self.positions if index is not None}
        if named != set(range(len(results))):
            raise Internal(
                f"tessiq: the output spec names results {sorted(named)}, but the graph returned {len(results)} values"
            )
        outputs: list[object] = [None if index is None else results[index] for index in self.positions]
        for position, number in self.literals:
            outputs[position] = number
        return outputs


@dataclass(frozen=True)
class ImportedGraph:
    """One graph of PyTorch in tessiq's IR, and what the IR cannot hold.

    graph:     the IR. Parameters stand in the order of the call's inputs, one each. Lifted tensors are nodes
               `tessiq.constant` (attribute 0: a name in `constants`; attribute `content`: a hash of the elements).
    constants: by name, the real tensors of `tessiq.constant` nodes, and the graph modules and script objects that a
               `@subgraph(name)` or `@object(name)` label of a node means.
    outputs:   how results become outputs.
    key:       sha256, in hex, of everything in the traced graph a recipe depends on; nothing outside the graph.
    kind:      "forward" and "backward" of a training pair, or "inference".
    home:      the torch device the tensors live on: "cpu", "cuda:0", "tessiq:1". Tensors elsewhere are opaque values.
    symbols:   for people: canonical symbol -> the name PyTorch's tracer gave it.
    """

    graph: Graph
    constants: dict[str, object]
    outputs: OutputSpec
    key: str
    kind: Kind
    home: str = "cpu"
    symbols: dict[str, str] = field(default_factory=dict)
