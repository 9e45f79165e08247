"""Plans: which steps a graph becomes, where values cross, and what is released when."""

from __future__ import annotations

import pickle
import textwrap

import pytest
import torch

from support.runtime_targets import no_emitter, recipe, runner
from tessiq_core.errors import Internal
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ops.table import default_table
from tessiq_core.runtime.call_template import call_template
from tessiq_core.runtime.imported import OutputSpec
from tessiq_core.runtime.places import DEVICE, HOME, Places, View
from tessiq_core.runtime.plan import CallStep, KernelStep, Plan, Step, TransferStep
from tessiq_core.runtime.plan_text import plan_text
from tessiq_core.runtime.planner import leaving_together


def plan(
    text: str, *, adopt: bool = True, outputs: OutputSpec | None = None, constants: dict[str, object] | None = None
) -> Plan:
    return recipe(text, {"adopt": adopt}, outputs=outputs, constants=constants).plan


def lines(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


MIXED = """
graph @main(%x: f32[4, 8], %w: f32[8, 4], %unused: f32[1]) {
  %mm = aten.mm.default(%x, %w) : f32[4, 4]
  %r = aten.relu.default(%mm) : f32[4, 4]
  %t = aten.permute.default(%r) {1 = [1, 0]} : f32[4, 4; 1, 4]
  %e = aten.exp.default(%t) : f32[4, 4; 1, 4]
  %mm2 = aten.mm.default(%e, %mm) : f32[4, 4]
  return %mm2, %t
}
"""


def test_an_adopted_home_has_no_transfers_and_frees_what_is_read_no_more() -> None:
    assert plan_text(plan(MIXED)) == lines("""
        plan(%x: f32[4, 8], %w: f32[8, 4], _)
          call %mm = aten.mm.default(%x, %w)  ^ %x, %w
          launch %r: f32[4, 4] = relu(%mm)
          view %t = %r + 0 as [4, 4; 1, 4]  ^ %r
          launch %e: f32[4, 4; 1, 4] = exp(%t)
          call %mm2 = aten.mm.default(%e, %mm)  ^ %e, %mm
          return %mm2, %t
    """)


def test_without_adoption_values_cross_once_and_views_stay_where_their_source_is() -> None:
    assert plan_text(plan(MIXED, adopt=False)) == lines("""
        plan(%x: f32[4, 8], %w: f32[8, 4], _)
          call %mm = aten.mm.default(%x, %w)  ^ %x, %w
          to-device %mm'2 = %mm
          launch %r: f32[4, 4] = relu(%mm'2)  ^ %mm'2
          view %t = %r + 0 as [4, 4; 1, 4]  ^ %r
          launch %e: f32[4, 4; 1, 4] = exp(%t)
          to-home %e'2 = %e  ^ %e
          call %mm2 = aten.mm.default(%e'2, %mm)  ^ %e'2, %mm
          to-home %t'2 = %t  ^ %t
          return %mm2, %t'2
    """)


def test_a_home_value_read_by_two_kernels_crosses_once() -> None:
    made = plan(
        """
        graph @main(%x: f32[4]) {
          %a = aten.relu.default(%x) : f32[4]
          %s, %i = aten.sort.default(%a) {1 = 0} : f32[4], i64[4]
          %b = aten.add.Tensor(%x, %s) : f32[4]
          return %b
        }
        """,
        adopt=False,
    )
    transfers = [(step.node, step.direction) for step in made.steps if isinstance(step, TransferStep)]
    assert transfers == [("x", "to-device"), ("a", "to-home"), ("s", "to-device"), ("b", "to-home")]
    assert sum(isinstance(step, KernelStep) for step in made.steps) == 2


def test_a_view_nobody_reads_makes_no_step() -> None:
    made = plan("""
        graph @main(%x: f32[4, 2]) {
          %a, %b = aten.split.Tensor(%x) {1 = 2} : f32[2, 2], f32[2, 2]
          %c, %i = aten.sort.default(%b) {1 = 0} : f32[2, 2], i64[2, 2]
          return %c
        }
        """)
    assert plan_text(made) == lines("""
        plan(%x: f32[4, 2])
          checked %x
          view %b = %x + 4 as [2, 2; 2, 1]  ^ %x
          call %c, _ = aten.sort.default(%b, 0)  ^ %b
          return %c
    """)


def test_a_view_of_a_view_reads_what_that_one_views() -> None:
    made = plan("""
        graph @main(%x: f32[6, 2]) {
          %a = aten.slice.Tensor(%x) {1 = 0, 2 = 2, 3 = 6} : f32[4, 2]
          %b = aten.permute.default(%a) {1 = [1, 0]} : f32[2, 4; 1, 2]
          %c = aten.select.int(%b) {1 = 0, 2 = 1} : f32[4; 2]
          return %c, %b
        }
        """)
    assert plan_text(made) == lines("""
        plan(%x: f32[6, 2])
          checked %x
          view %c = %x + 5 as [4; 2]
          view %b = %x + 4 as [2, 4; 1, 2]  ^ %x
          return %c, %b
    """)


def test_calls_are_rebuilt_with_positions_keywords_holes_and_lists() -> None:
    made = recipe(
        """
        graph @main(%x: f32[4, 2], %i: i64[3], %n: int(s0)) {
          %a = aten.index.Tensor(%x, %i) {1 = [none, _]} : f32[4, 3]
          %b = aten.cat.default(%x, %x) {0 = [_, _], 1 = 1} : f32[4, 4]
          %c = aten.full.default(%n) {0 = [_, 2], 1 = 0.5, dtype = @dtype(float64)} : f64[s0, 2]
          return %a, %b, %c
        }
        """,
        manager=no_emitter(),
    ).plan
    assert plan_text(made) == lines("""
        plan(%x: f32[4, 2], %i: i64[3], %n: int(s0))
          symbol s0 = input 2
          call %a = aten.index.Tensor(%x, [none, %i])  ^ %i
          call %b = aten.cat.default([%x, %x], 1)  ^ %x
          call %c = aten.full.default([%n, 2], 0.5, dtype=@dtype(float64))  ^ %n
          return %a, %b, %c
    """)


def test_operands_that_leave_a_gap_are_an_internal_error() -> None:
    graph = parse_graph("graph @main(%x: f32[4]) {\n  %a = aten.relu.default(%x) : f32[4]\n  return %a\n}")
    (node,) = graph.nodes
    node.set_attribute("5", 1)
    with pytest.raises(Internal, match=r"%a = aten\.relu\.default: 1 operands .* leave a gap"):
        call_template(node, lambda value: 0)


def test_writes_are_recorded_and_copies_on_the_device_are_stale_after_them() -> None:
    text = """
        graph @main(%x: f32[4], %y: f32[4]) {
          %a = aten.exp.default(%x) : f32[4]
          %c = aten.copy_.default(%x, %y) : f32[4]
          %b = aten.relu.default(%x) : f32[4]
          return %a, %b, %c
        }
        """
    adopted = plan(text)
    assert [adopted.slots[slot].name for slot in adopted.writes] == ["x"]
    (copy,) = [step for step in adopted.steps if isinstance(step, CallStep)]
    assert copy.expected == (None,)  # its result is %x's memory: it must never be copied
    moved = plan(text, adopt=False)
    assert [step.node for step in moved.steps if isinstance(step, TransferStep)] == ["x", "x", "a", "b"]


def test_constants_literals_and_none_are_outputs_too() -> None:
    made = plan(
        """
        graph @main(%x: f32[2]) {
          %k = tessiq.constant() {0 = "k", content = "sha256:0"} : f32[2]
          return %x, %k
        }
        """,
        outputs=OutputSpec((None, 1, None, 0), ((2, 7),)),
        constants={"k": object()},
    )
    assert plan_text(made) == lines("""
        plan(%x: f32[2])
          constant %k = 'k'
          return none, %k, 7, %x
    """)


def test_symbols_come_from_numbers_first_then_axes_then_from_running() -> None:
    made = recipe(
        """
        graph @main(%x: f32[s1, s0], %n: int(s0)) {
          %nz = aten.nonzero.default(%x) : i64[u0, 2]
          %v = aten.permute.default(%nz) {1 = [1, 0]} : i64[2, u0; 1, 2]
          %c = aten.abs.default(%v) : i64[2, u0; 1, 2]
          %w = aten.permute.default(%x) {1 = [1, 0]} : f32[s0, s1; 1, s0]
          return %c, %w
        }
        """,
        manager=no_emitter(),
    ).plan
    assert plan_text(made) == lines("""
        plan(%x: f32[s1, s0], _)
          checked %x
          symbol s0 = input 1
          symbol s1 = input 0 axis 0
          call %nz = aten.nonzero.default(%x)
          symbol u0 = %nz axis 0
          view %v = %nz + 0 as [2, u0; 1, 2]  ^ %nz
          call %c = aten.abs.default(%v)  ^ %v
          view %w = %x + 0 as [s0, s1; 1, s0]  ^ %x
          return %c, %w
    """)
    call = made.steps[0]
    assert isinstance(call, CallStep)
    assert call.expected == (None,)  # its strides are only checked once u0 is known


def test_the_sizes_an_input_is_checked_against_are_told_though_no_step_needs_them() -> None:
    text = """
    graph @main(%x: f32[s1, s0]) {
      %v = aten.slice.Tensor(%x) {1 = 0, 2 = 1, 3 = 2} : f32[1, s0; s0, 1]
      %w = aten.select.int(%v) {1 = 1, 2 = 0} : f32[1; s0]
      %y = aten.select.int(%x) {1 = 1, 2 = 0} : f32[s1; s0]
      %z = aten.select.int(%y) {1 = 0, 2 = 2} : f32[]
      return %z
    }
    """
    assert [binding.name for binding in plan(text).symbols] == ["s1", "s0"]
    x = torch.arange(12.0).view(4, 3)
    assert runner(text)([x])[0].item() == x[2, 0].item()


def test_a_size_that_nothing_tells_is_an_internal_error() -> None:
    with pytest.raises(Internal, match="needs the sizes s0"):
        plan("""
            graph @main(%x: f32[2*s0]) {
              %v = aten.alias.default(%x) : f32[2*s0]
              return %v
            }
            """)


def test_a_plan_is_plain_data() -> None:
    made = plan(MIXED, adopt=False)
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert plan_text(again) == plan_text(made)


def test_a_view_goes_where_its_source_already_is_and_else_where_it_was_placed() -> None:
    graph = parse_graph("""
        graph @main(%x: f32[4]) {
          %a = aten.relu.default(%x) : f32[4]
          %v = aten.alias.default(%a) : f32[4]
          return %v
        }
        """)
    a, v = (node.results[0] for node in graph.nodes)
    for placed in (HOME, DEVICE):
        for wanted in (HOME, DEVICE):
            steps: list[Step] = []
            places = Places(steps)
            places.born(a, DEVICE)
            places.is_view(v, View(a, "v", 0, placed))
            slot = places.slot(v, wanted)
            assert places.slot(v, wanted) == slot
            assert places.slots[slot].on_device == wanted
            crossed = [step.node for step in steps if isinstance(step, TransferStep)]
            assert crossed == ([] if wanted == DEVICE else ["v"] if placed == DEVICE else ["a"])


SHARED = """
graph @main(%x: f32[4, 2]) {
  %a = aten.relu.default(%x) : f32[4, 2]
  %r0 = aten.select.int(%a) {1 = 0, 2 = 1} : f32[2]
  %r1 = aten.diagonal.default(%a) : f32[2; 3]
  %r2 = aten.relu.default(%a) : f32[4, 2]
  %r3 = aten.t.default(%r2) : f32[2, 4; 1, 2]
  return %r0, %r1, %r3
}
"""


def test_results_that_share_memory_cross_together() -> None:
    shared = parse_graph(SHARED)
    assert {value.name for value in leaving_together(shared, default_table())} == {"a"}
    transfers = [step for step in plan(SHARED, adopt=False).steps if isinstance(step, TransferStep)]
    assert [step.node for step in transfers if step.direction == "to-home"] == ["a", "r3"]
