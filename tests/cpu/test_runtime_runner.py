"""What running a plan does: results, layouts, what it takes and refuses, and what it leaves alone."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from support.runtime_targets import Manager, no_emitter, runner
from tessiq_core.codegen.description import KernelDescription
from tessiq_core.codegen.interfaces import Kernel, KernelOperands, PythonLaunch
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument, NotFound
from tessiq_core.native import load
from tessiq_core.ops.table import OperationTable
from tessiq_core.runtime.imported import OutputSpec
from tessiq_core.runtime.layouts import Layout, with_layout
from tessiq_core.runtime.observer import ObserverCounters, observing
from tessiq_cpuref.reference import ReferenceEmitter


@pytest.fixture(params=["python", "cpp"], autouse=True)
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test, for each runner."""
    if request.param == "cpp" and isinstance(load(), Decline):
        pytest.skip("no compiled module")
    monkeypatch.setenv("TESSIQ_RUNNER", request.param)


ADD_T = """
graph @main(%x: f32[2, 3], %y: f32[3, 2]) {
  %t = aten.permute.default(%x) {1 = [1, 0]} : f32[3, 2; 1, 3]
  %a = aten.add.Tensor(%t, %y) : f32[3, 2]
  return %a, %t
}
"""


@pytest.mark.parametrize("adopt", [True, False])
def test_a_view_is_relative_to_its_source_wherever_that_starts(adopt: bool) -> None:
    run = runner(ADD_T, {"adopt": adopt})
    for offset in (0, 5):
        base = torch.arange(11 + offset, dtype=torch.float32)
        x, y = base[offset : offset + 6].view(2, 3), torch.ones(3, 2)
        added, transposed = run([x, y])
        assert torch.equal(added, x.T + y)
        assert torch.equal(transposed, x.T)
        assert transposed.stride() == (1, 3)


def test_it_empties_the_list_and_frees_inputs_nobody_else_holds() -> None:
    run = runner(
        """
        graph @main(%x: f32[4]) {
          %a = aten.cos.default(%x) : f32[4]
          %b = aten.cat.default(%a) {0 = [_]} : f32[4]
          return %b
        }
        """.replace("%a = aten.sort.default(%x) {1 = 0}", "%a = aten.cos.default(%x)")
    )
    seen: list[bool] = []
    x = torch.ones(4)
    gone = weakref.ref(x)

    class Watch(ObserverCounters):
        def on_step(self, step: Any, seconds: float) -> None:
            seen.append(gone() is None)

    args = [x]
    del x
    with observing(Watch()):
        run(args)
    assert args == []
    assert seen[-1], "the input was still alive at the last step, though only the first one reads it"


def test_numbers_none_and_literals_pass_through() -> None:
    run = runner(
        """
        graph @main(%n: int(s0), %f: float, %x: f32[s0]) {
          %m = operator.mul(%n) {1 = 3} : int(3*s0)
          %y = aten.mul.Tensor(%x, %f) : f32[s0]
          return %m, %y, %n, %f
        }
        """,
        outputs=OutputSpec((0, None, 1, None, 2, 3), ((3, True),)),
    )
    for size in (3, 5, 3):
        outputs = run([size, 0.5, torch.ones(size)])
        assert outputs[:2] == [3 * size, None]
        assert torch.equal(outputs[2], torch.full((size,), 0.5))
        assert outputs[3:] == [True, size, 0.5]


def test_python_numbers_stay_python_numbers_so_promotion_is_right() -> None:
    run = runner(
        """
        graph @main(%x: f16[2], %i: i64[2]) {
          %a = aten.mul.Tensor(%x) {1 = 2.5} : f16[2]
          %b = aten.mul.Tensor(%i) {1 = 2.5} : f32[2]
          %c = aten.rsub.Scalar(%x) {1 = 1} : f16[2]
          return %a, %b, %c
        }
        """,
        manager=no_emitter(),
    )
    x, i = torch.ones(2, dtype=torch.float16), torch.tensor([1, 3])
    a, b, c = run([x, i])
    assert torch.equal(a, x * 2.5)
    assert a.dtype is torch.float16
    assert torch.equal(b, i * 2.5)
    assert torch.equal(c, 1 - x)


def test_lists_holes_keywords_and_several_results() -> None:
    run = runner(
        """
        graph @main(%x: f32[4, 2], %i: i64[3]) {
          %a = aten.index.Tensor(%x, %i) {1 = [none, _]} : f32[4, 3]
          %v, %m = aten.var_mean.correction(%x) {1 = [1], correction = 0, keepdim = true} : f32[4, 1], f32[4, 1]
          %p, %q = aten.unbind.int(%x) {1 = 1} : f32[4; 2], f32[4; 2]
          %c = aten.cat.default(%q, %p) {0 = [_, _]} : f32[8]
          %d, %e = aten._foreach_sub.List(%q, %p, %p, %p) {0 = [_, _], 1 = [_, _]} : f32[4], f32[4]
          %z = aten.full.default() {0 = [2], 1 = 1.5, dtype = @dtype(float64), device = @device(cpu)} : f64[2]
          return %a, %v, %m, %c, %z, %d, %e
        }
        """,
        manager=no_emitter(),
    )
    x, i = torch.randn(4, 2), torch.tensor([1, 0, 1])
    a, v, m, c, z, d, e = run([x, i])
    assert torch.equal(a, x[:, i])
    assert torch.equal(m, x.mean(1, keepdim=True))
    assert torch.allclose(v, x.var(1, correction=0, keepdim=True))
    assert torch.equal(c, torch.cat([x[:, 1], x[:, 0]]))
    assert torch.equal(d, x[:, 1] - x[:, 0])
    assert torch.equal(e, torch.zeros(4))
    assert torch.equal(z, torch.full((2,), 1.5, dtype=torch.float64))


def test_a_list_of_one_result() -> None:
    run = runner("""
        graph @main(%x: f32[2]) {
          %a = aten.split_copy.Tensor(%x) {1 = 2, tessiq.returns = "list"} : f32[2]
          return %a
        }
        """)
    x = torch.randn(2)
    (a,) = run([x])
    assert torch.equal(a, x)


@pytest.mark.parametrize(
    ("strides", "expanded"),
    [((1, 12, 4), False), ((12, 1, 4), False), ((0, 3, 1), True), ((100, 4, 1), False)],
)
def test_a_result_in_other_strides_is_copied_into_the_recorded_ones(strides: tuple[int, ...], expanded: bool) -> None:
    run = runner(
        f"""
        graph @main(%x: f32[4, 4, 3]) {{
          %a = aten.cos.default(%x) : f32[4, 4, 3; {", ".join(map(str, strides))}]
          return %a
        }}
        """,
        manager=no_emitter(),
    )
    x = torch.randn(4, 4, 3)
    if expanded:
        x = x[:1].expand(4, 4, 3).clone()
    (a,) = run([x])
    assert a.stride() == strides
    assert torch.equal(a, x.cos())


@pytest.mark.parametrize(("shape", "strides"), [((1, 3), (7, 1)), ((0, 3), (9, 2))])
def test_strides_that_address_nothing_are_set_without_a_copy(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    same = with_layout(x, Layout(torch.float32, shape, strides))
    assert same.stride() == strides
    assert torch.equal(same, x)
    assert same.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


RELU = """
graph @main(%x: f32[2, 3], %other: f32[2]) {
  %a = aten.relu.default(%x) : f32[2, 3]
  %b = aten.cos.default(%other) : f32[2]
  return %a, %b
}
"""


def test_an_input_in_other_strides_is_read_as_what_it_is() -> None:
    x = torch.randn(3, 2).T
    assert x.stride() == (1, 2)
    a, _ = runner(RELU)([x, torch.ones(2)])
    assert torch.equal(a, x.relu())
    assert a.stride() == (3, 1)


class Raw(ReferenceEmitter):
    """Its kernels refuse memory that does not hold the elements themselves, which a real kernel would misread."""

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        return [self._checking(kernel) for kernel in super().compile(kernels, operands, table)]

    def _checking(self, kernel: Kernel) -> Kernel:
        assert isinstance(kernel.launch, PythonLaunch)
        function = kernel.launch.function

        def launch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], words: Sequence[int]) -> None:
            assert not any(tensor.is_neg() for tensor in inputs)
            function(inputs, outputs, words)

        return replace(kernel, launch=PythonLaunch(launch))


def test_the_negative_bit_is_resolved_before_a_kernel_reads_memory() -> None:
    x = torch._neg_view(torch.randn(2, 3))
    assert x.is_neg()
    a, _ = runner(RELU, manager=Manager(emitters=[Raw()]))([x, torch.ones(2)])
    assert torch.equal(a, x.relu())
    run = runner(
        """
        graph @main(%z: opaque(complex64)[3]) {
          %i = aten.imag.default(%z) : f32[3; 2]
          %a = aten.relu.default(%i) : f32[3]
          return %a
        }
        """,
        manager=Manager(emitters=[Raw()]),
    )
    z = torch.randn(3, dtype=torch.complex64).conj()
    assert torch.equal(run([z])[0], z.imag.relu())


@pytest.mark.parametrize(
    ("x", "got"),
    [
        (torch.ones(2, 4), r"got torch.float32 of shape \[2, 4\]"),
        (torch.ones(2, 3, dtype=torch.float64), "got torch.float64"),
        (torch.ones(2, 3, device="meta"), r"got torch.float32 of shape \[2, 3\]"),
        (3, "got int 3"),
    ],
)
def test_memory_a_kernel_would_misread_is_an_error_that_names_the_operand(x: object, got: str) -> None:
    with pytest.raises(InvalidArgument, match=f"input %x.*expected torch.float32 of shape .2, 3.*{got}"):
        runner(RELU)([x, torch.ones(2)])


def test_what_only_pytorch_reads_may_have_any_layout() -> None:
    _, b = runner(RELU)([torch.ones(2, 3), torch.ones(4)[::2]])
    assert torch.equal(b, torch.ones(2).cos())


def test_a_wrong_number_of_inputs_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="takes 2 inputs, got 1"):
        runner(RELU)([torch.ones(2, 3)])


def test_a_result_of_pytorch_that_a_kernel_would_misread_is_an_error() -> None:
    run = runner("""
        graph @main(%x: f32[4]) {
          %u = aten.cos.default(%x) : f32[5]
          %a = aten.relu.default(%u) : f32[5]
          return %a
        }
        """)
    with pytest.raises(InvalidArgument, match=r"result %u of aten.cos.default: expected .* \[5\].* got .* \[4\]"):
        run([torch.ones(4)])


WRITES = """
graph @main(%x: f32[2, 2], %y: f32[2, 2]) {
  %a = aten.add.Tensor(%x, %y) : f32[2, 2]
  %c = aten.copy_.default(%x, %a) : f32[2, 2]
  %b = aten.relu.default(%x) : f32[2, 2]
  return %b
}
"""


@pytest.mark.parametrize("adopt", [True, False])
def test_a_written_input_is_written_and_what_reads_it_later_sees_that(adopt: bool) -> None:
    run = runner(WRITES, {"adopt": adopt})
    x, y = torch.full((2, 2), -1.0), torch.full((2, 2), 3.0)
    (b,) = run([x, y])
    assert torch.equal(x, torch.full((2, 2), 2.0))
    assert torch.equal(b, torch.full((2, 2), 2.0))


def test_a_written_input_in_other_strides_is_refused_rather_than_copied() -> None:
    with pytest.raises(InvalidArgument, match="input %x, which the graph writes to: expected"):
        runner(WRITES)([torch.ones(2, 2).T, torch.ones(2, 2)])


def test_versions_are_left_to_whoever_called() -> None:
    x = torch.ones(2, 2)
    version = x._version
    runner(WRITES)([x, torch.ones(2, 2)])
    assert x._version == version


def test_it_runs_below_autograd_and_restores_grad_mode() -> None:
    run = runner(RELU)
    x = torch.ones(2, 3, requires_grad=True)
    outputs = run([x, torch.ones(2, requires_grad=True)])
    assert not any(output.requires_grad for output in outputs)
    assert torch.is_grad_enabled()
    with pytest.raises(InvalidArgument):
        run([torch.ones(1), torch.ones(2)])
    assert torch.is_grad_enabled()
    with torch.inference_mode():
        a, _ = run([torch.ones(2, 3), torch.ones(2)])
        assert torch.equal(a, torch.ones(2, 3))
    inference = a
    assert torch.equal(run([inference, torch.ones(2)])[0], torch.ones(2, 3))


def test_random_operators_draw_in_program_order() -> None:
    run = runner("""
        graph @main(%x: f32[3]) {
          %a = aten.rand.default() {0 = [3], tessiq.effect = "random"} : f32[3]
          %b = aten.bernoulli.default(%x) {tessiq.effect = "random"} : f32[3]
          %c = aten.randn.default() {0 = [3], tessiq.effect = "random"} : f32[3]
          return %c, %b, %a
        }
        """)
    torch.manual_seed(7)
    wanted = [torch.rand(3), torch.bernoulli(torch.full((3,), 0.5)), torch.randn(3)]
    torch.manual_seed(7)
    c, b, a = run([torch.full((3,), 0.5)])
    assert all(torch.equal(have, want) for have, want in zip([a, b, c], wanted, strict=True))


def test_a_generator_is_an_argument_like_any_other() -> None:
    generator = torch.Generator().manual_seed(3)
    run = runner(
        """
        graph @main() {
          %a = aten.rand.generator() {0 = [3], generator = @object(g), tessiq.effect = "random"} : f32[3]
          return %a
        }
        """,
        constants={"g": generator},
    )
    wanted = torch.rand(3, generator=torch.Generator().manual_seed(3))
    assert torch.equal(run([])[0], wanted)


def test_subgraphs_of_higher_order_operators_are_constants() -> None:
    def branch(factor: float) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.output((graph.call_function(torch.ops.aten.mul.Tensor, (x, factor)),))
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    run = runner(
        """
        graph @main(%p: bool[], %x: f32[2]) {
          %c = higher_order.cond(%p, %x) {1 = @subgraph(t), 2 = @subgraph(f), 3 = [_], tessiq.returns = "list"} : f32[2]
          %r = aten.relu.default(%c) : f32[2]
          return %r
        }
        """,
        constants={"t": branch(2.0), "f": branch(3.0)},
    )
    assert torch.equal(run([torch.tensor(True), torch.ones(2)])[0], torch.full((2,), 2.0))
    assert torch.equal(run([torch.tensor(False), torch.ones(2)])[0], torch.full((2,), 3.0))


def test_an_exception_of_an_operator_keeps_its_type() -> None:
    with torch.library._scoped_library("test_runtime_errors", "FRAGMENT") as library:
        library.define("look_up(Tensor x) -> Tensor")

        def look_up(x: torch.Tensor) -> torch.Tensor:
            raise KeyError("not there")

        library.impl("look_up", look_up, "CompositeExplicitAutograd")
        run = runner("""
            graph @main(%x: f32[2]) {
              %a = test_runtime_errors.look_up.default(%x) : f32[2]
              return %a
            }
            """)
        with pytest.raises(KeyError, match="not there"):
            run([torch.ones(2)])


def test_an_operator_that_is_not_registered_is_named() -> None:
    with pytest.raises(NotFound, match=r"'nobody\.has_this\.default' is not registered"):
        runner("graph @main(%x: f32[2]) {\n  %a = nobody.has_this.default(%x) : f32[2]\n  return %a\n}")


LATE = """
graph @main(%x: f32[s0]) {
  %nz = aten.nonzero.default(%x) : i64[u0, 1]
  %v = aten.permute.default(%nz) {1 = [1, 0]} : i64[1, u0; 1, 1]
  %n = aten.neg.default(%v) : i64[1, u0]
  return %n, %nz
}
"""


@pytest.mark.parametrize("adopt", [True, False])
def test_sizes_that_only_running_tells(adopt: bool) -> None:
    run = runner(LATE, {"adopt": adopt})
    for values in ([1.0, 0.0, 2.0], [0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 2.0]):
        x = torch.tensor(values)
        negated, found = run([x])
        assert torch.equal(negated, -x.nonzero().T)
        assert torch.equal(found, x.nonzero())
        assert found.stride() == (1, 1)


def test_one_plan_serves_every_size() -> None:
    run = runner("""
        graph @main(%s: int(s0), %x: f32[s0, 3], %y: f32[3]) {
          %a = aten.add.Tensor(%x, %y) : f32[s0, 3]
          %t = aten.permute.default(%a) {1 = [1, 0]} : f32[3, s0; 1, 3]
          %r = aten.relu.default(%t) : f32[3, s0; 1, 3]
          return %r
        }
        """)
    for size in (1, 4, 0, 4, 9):
        x, y = torch.randn(size, 3), torch.randn(3)
        (r,) = run([size, x, y])
        assert torch.equal(r, (x + y).T.relu())
        assert r.stride() == (1, 3)


def test_observers_are_told_of_every_step_and_gone_after_the_block() -> None:
    run = runner(ADD_T, {"adopt": False})
    args = (torch.ones(2, 3), torch.ones(3, 2))
    with observing(ObserverCounters()) as counters, observing(ObserverCounters()) as second:
        run(list(args))
    run(list(args))
    assert isinstance(counters, ObserverCounters)
    assert isinstance(second, ObserverCounters)
    assert counters.steps == second.steps
    assert counters.steps["kernel"] == 1
    assert dict(counters.launches) == {"add": 1}
    assert counters.steps["transfer"] == sum(counters.transfers.values())
    assert counters.transfers["to-device"] == 2
    assert counters.transferred["to-device"] == 2 * 6 * 4
    assert counters.seconds > 0


def test_many_threads_may_run_one_plan() -> None:
    run = runner(ADD_T)
    failures: list[object] = []

    def work(seed: int) -> None:
        for number in range(50):
            x, y = torch.full((2, 3), float(seed)), torch.full((3, 2), float(number))
            added, _ = run([x, y])
            if not torch.equal(added, torch.full((3, 2), float(seed + number))):
                failures.append((seed, number))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_nothing_is_kept_alive_by_a_runner() -> None:
    run = runner(RELU)
    x = torch.ones(2, 3)
    gone = weakref.ref(x)
    outputs = run([x, torch.ones(2)])
    kept = weakref.ref(outputs[0])
    del x, outputs
    gc.collect()
    assert gone() is None
    assert kept() is None


def test_channels_last_and_expanded_results_keep_their_strides() -> None:
    run = runner("""
        graph @main(%x: f32[2, 3, 4, 4; 48, 1, 12, 3], %b: f32[3, 1, 1]) {
          %a = aten.add.Tensor(%x, %b) : f32[2, 3, 4, 4; 48, 1, 12, 3]
          %e = aten.expand.default(%b) {1 = [2, 3, 4, 4]} : f32[2, 3, 4, 4; 0, 1, 0, 0]
          return %a, %e
        }
        """)
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    b = torch.randn(3, 1, 1)
    a, e = run([x, b])
    assert a.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(a, x + b)
    assert e.stride() == (0, 1, 0, 0)
    assert torch.equal(e, b.expand(2, 3, 4, 4))


def test_an_expanded_value_crosses_as_it_is() -> None:
    run = runner(
        """
        graph @main(%b: f32[3, 1]) {
          %e = aten.expand.default(%b) {1 = [3, 4]} : f32[3, 4; 1, 0]
          %r = aten.relu.default(%e) : f32[3, 4]
          return %r, %e
        }
        """,
        {"adopt": False},
        manager=Manager(),
    )
    b = torch.randn(3, 1)
    r, e = run([b])
    assert torch.equal(r, b.expand(3, 4).relu())
    assert e.stride() == (1, 0)
    assert torch.equal(e, b.expand(3, 4))


@pytest.mark.parametrize("strides", [(1, 1), (9, 4)])
def test_an_empty_input_may_have_any_element_type(strides: tuple[int, int]) -> None:
    text = """
    graph @main(%m: bool[1, 0]) {
      %a = aten.logical_not.default(%m) : bool[1, 0]
      return %a
    }
    """
    (a,) = runner(text)([torch.empty_strided((1, 0), strides, dtype=torch.float64)])
    assert a.dtype is torch.bool
    assert a.shape == (1, 0)


def test_results_that_share_memory_share_it_after_they_have_crossed() -> None:
    text = """
    graph @main(%x: f32[4, 2]) {
      %a = aten.relu.default(%x) : f32[4, 2]
      %t = aten.t.default(%a) : f32[2, 4; 1, 2]
      %row = aten.select.int(%a) {1 = 0, 2 = 1} : f32[2]
      %corner = aten.diagonal.default(%t) : f32[2; 3]
      return %t, %row, %corner
    }
    """
    x = torch.arange(8.0).view(4, 2)
    for adopt in (True, False):
        t, row, corner = runner(text, {"adopt": adopt})([x])
        t.fill_(-1)
        assert row.tolist() == [-1, -1]
        assert corner.tolist() == [-1, -1]
