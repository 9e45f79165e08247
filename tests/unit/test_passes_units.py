"""Merging units against a brute-force definition of a cycle."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessiq_core.errors import Internal
from tessiq_core.ir.graph import Graph
from tessiq_core.ir.types import F32, tensor_type
from tessiq_core.ops.table import default_table
from tessiq_core.passes.units import UnitGraph, dependencies, unit_order

TYPE = tensor_type(F32, (4,))


@st.composite
def dags(draw: st.DrawFn) -> list[list[int]]:
    """For each node the smaller ones it waits for."""
    size = draw(st.integers(1, 14))
    return [sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else [] for n in range(size)]


def closes_cycle(before: list[list[int]], unit_of: list[int]) -> bool:
    """By definition: remove units nothing in the rest is waited for, until none is left or none can go."""
    units = set(unit_of)
    edges = {(unit_of[s], unit_of[n]) for n, sources in enumerate(before) for s in sources if unit_of[s] != unit_of[n]}
    while units:
        free = {u for u in units if not any(a in units and b == u for a, b in edges)}
        if not free:
            return True
        units -= free
    return False


@settings(max_examples=300, deadline=None)
@given(dags(), st.data())
def test_a_merge_is_kept_exactly_when_no_cycle_closes(before: list[list[int]], data: st.DataObject) -> None:
    size = len(before)
    units = UnitGraph(before, range(size))
    unit_of = list(range(size))
    node = st.integers(0, size - 1)
    for a, b in data.draw(st.lists(st.tuples(node, node), max_size=20)):
        proposed = [unit_of[a] if unit == unit_of[b] else unit for unit in unit_of]
        legal = not closes_cycle(before, proposed)
        assert units.can_merge(a, b) is legal
        assert units.merge(a, b) is legal
        if legal:
            unit_of = proposed
        now = [units.find(n) for n in range(size)]
        assert [now.index(u) for u in now] == [unit_of.index(u) for u in unit_of]
        assert (unit_order(before, now) is None) is closes_cycle(before, unit_of)


def test_the_direct_edge_is_no_path_and_the_way_round_is() -> None:
    before: list[list[int]] = [[], [0], [0, 1]]
    assert not UnitGraph(before, range(3)).merge(0, 2)
    assert UnitGraph(before, range(3)).merge(0, 1)


def test_units_that_start_in_a_cycle_are_a_bug() -> None:
    with pytest.raises(Internal, match="wait for each other"):
        UnitGraph([[], [0], [1]], [0, 1, 0])


def test_a_spent_budget_refuses_and_changes_nothing() -> None:
    # Walking from 0 to 3 must look at both branches.
    before: list[list[int]] = [[], [0], [0], [1, 2]]
    units = UnitGraph(before, range(4), budget=1)
    assert not units.merge(1, 2)
    assert units.exhausted
    assert [units.find(n) for n in range(4)] == [0, 1, 2, 3]


def test_inserting_at_one_place_many_times_keeps_the_order() -> None:
    # 0 is merged with each later node in turn, and what lies between moves before it: more often than labels halve.
    size = 200
    before: list[list[int]] = [[]]
    for n in range(1, size, 2):
        before += [[], [0, n]]  # a free node, and a reader of it and of 0
    units = UnitGraph(before, range(len(before)))
    for n in range(2, len(before), 2):
        assert units.merge(0, n)
    assert unit_order(before, [units.find(n) for n in range(len(before))]) is not None


@pytest.mark.parametrize("hub_first", [True, False])
def test_growing_a_unit_with_many_side_branches_takes_few_steps(hub_first: bool) -> None:
    # A chain of which every link has an unclaimed reader, and every link reads an unclaimed node.
    links = 3000
    before: list[list[int]] = []
    for link in range(links):
        at = len(before)
        before.append([])
        before.append([at, at - 2] if link else [at])
        before.append([at + 1])
    units = UnitGraph(before, range(len(before)))
    started = time.process_time()
    chain = [3 * link + 1 for link in range(links)]
    pairs = list(pairwise(chain))
    for a, b in pairs if hub_first else reversed(pairs):
        assert units.merge(a, b)
    assert units.steps < 40 * links
    assert time.process_time() - started < 2


def effects_graph() -> Graph:
    graph = Graph()
    x = graph.add_parameter("x", TYPE)
    a = graph.append("aten.relu.default", [x], [("a", TYPE)])
    graph.append("aten.foo.default", [], [("r", TYPE)], {"tessiq.effect": "random"})
    graph.append("aten.copy_.default", [x, a.results[0]], [("w", TYPE)])
    graph.append("aten.relu.default", [x], [("b", TYPE)])
    graph.append("aten.foo.default", [], [("q", TYPE)], {"tessiq.effect": "random"})
    graph.append("aten.bar.default", [], [("o", TYPE)], {"tessiq.effect": "ordered"})
    return graph


def test_effects_are_dependencies() -> None:
    depends = dependencies(effects_graph(), default_table())
    assert [node.name for node in depends.nodes] == ["a", "r", "w", "b", "q", "o"]
    assert [set(sources) for sources in depends.before] == [set(), set(), {0, 1}, {2}, {1, 2}, {2, 3, 4}]
