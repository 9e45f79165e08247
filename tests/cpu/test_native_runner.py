"""The C++ runner and the Python one give identical results, strides and side effects; and what the C++ one adds."""

from __future__ import annotations

import gc
import os
import resource
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

from support.examples import checks
from support.runner_programs import PROGRAMS
from support.runtime_targets import no_emitter, recipe, runner
from tessiq_core import native
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.extent import add, call, evaluate, mul, symbol
from tessiq_core.runtime.observer import ObserverCounters, observing
from tessiq_core.runtime.report import collecting_reports
from tessiq_core.runtime.runner import Runner
from tessiq_core.runtime.runners import make_runner
from tessiq_core.runtime.size_code import SizeTable

KINDS = ("python", "cpp")


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found = native.load()
    if isinstance(found, Decline):
        pytest.skip(f"the compiled module cannot be had here: {found}")
    monkeypatch.setenv("TESSIQ_RUNNER", "cpp")
    yield
    torch._dynamo.reset()


def described(values: Any) -> list[Any]:
    """Everything that may be compared of a tree of outputs: structure, numbers, and each tensor's bits and layout."""
    leaves, tree = tree_flatten(values)
    found: list[Any] = [str(tree)]
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            shown = leaf.detach()
            found.append((leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.requires_grad, shown.tolist().__repr__()))
        else:
            found.append((type(leaf), leaf))
    return found


def outcome(kind: str, program: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> list[Any]:
    """What two calls of the compiled program return and leave behind."""
    torch._dynamo.reset()
    os.environ["TESSIQ_RUNNER"] = kind  # restored by the fixture
    compiled = torch.compile(program, backend="tessiq", **options)
    leaves = [leaf for leaf in tree_flatten(arguments)[0] if isinstance(leaf, torch.Tensor)]
    found: list[Any] = []
    torch.manual_seed(11)
    for _ in range(2):
        versions = [leaf._version for leaf in leaves]
        outputs = compiled(*arguments)
        found.append(described(outputs))
        found.append([leaf._version - version for leaf, version in zip(leaves, versions, strict=True)])
        found.append(described(leaves))
        aliases = [leaf for leaf in tree_flatten(outputs)[0] if isinstance(leaf, torch.Tensor)]
        found.append(
            [[a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for b in leaves] for a in aliases]
        )
    found.append(torch.rand(1).item())  # the generator's state
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_in_both(name: str) -> None:
    program, arguments = PROGRAMS[name]
    python, cpp = (outcome(kind, program, arguments()) for kind in KINDS)
    assert python == cpp


@pytest.mark.parametrize("name", ["in_place", "chunk_sum", "dropout", "layer_norm", "products", "index"])
def test_a_program_with_symbolic_sizes_does_the_same_in_both(name: str) -> None:
    program, arguments = PROGRAMS[name]
    python, cpp = (outcome(kind, program, arguments(), dynamic=True) for kind in KINDS)
    assert python == cpp


@pytest.mark.parametrize("name", checks.EXAMPLES)
def test_an_example_does_the_same_in_both(name: str) -> None:
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for kind in KINDS:
        os.environ["TESSIQ_RUNNER"] = kind
        for phase in checks.Phase:
            torch._dynamo.reset()
            module = checks.load(name)
            torch.manual_seed(5)
            model = module.model().train(phase is checks.Phase.TRAINING)
            results = checks.results_of(torch.compile(model, backend="tessiq"), module.inputs(), phase)
            found[kind].append(described(results))
    assert found["python"] == found["cpp"]


def test_the_examples_take_no_step_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def record(recipe: Any) -> Any:
        made.append(make_runner(recipe))
        return made[-1]

    monkeypatch.setattr("tessiq_core.runtime.compile.make_runner", record)
    for name in checks.EXAMPLES:
        for phase in checks.Phase:
            torch._dynamo.reset()
            module = checks.load(name)
            model = module.model().train(phase is checks.Phase.TRAINING)
            checks.results_of(torch.compile(model, backend="tessiq"), module.inputs(), phase)
    assert len(made) >= len(checks.EXAMPLES) * 3
    for run, note in made:
        assert note == ""
        assert type(run).__name__ == "PlanRunner"
        assert run.interpreted == ()


SLEEP = """
graph @main(%x: f32[700, 700]) {
  %a = aten.mm.default(%x, %x) : f32[700, 700]
  %b = aten.mm.default(%a, %x) : f32[700, 700]
  %c = aten.mm.default(%b, %x) : f32[700, 700]
  return %c
}
"""


def test_steps_hold_no_gil() -> None:
    run = runner(SLEEP, manager=no_emitter())
    counts, done = 0, threading.Event()

    def work() -> None:
        x = torch.zeros(700, 700)
        for _ in range(5):
            run([x])
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    longest, last = 0.0, time.perf_counter()
    while not done.is_set():
        now = time.perf_counter()
        longest, last, counts = max(longest, now - last), now, counts + 1
    thread.join()
    assert counts > 1000
    assert longest < 0.5


def test_two_threads_run_one_runner() -> None:
    run = runner(
        """
        graph @main(%x: f32[s0, 3]) {
          %t = aten.permute.default(%x) {1 = [1, 0]} : f32[3, s0; 1, 3]
          %m = aten.mm.default(%t, %x) : f32[3, 3]
          return %m
        }
        """
    )
    failures: list[object] = []

    def work(seed: int) -> None:
        for number in range(200):
            x = torch.randn(2 + (number * seed) % 90, 3)
            if not torch.allclose(run([x])[0], x.t() @ x, atol=1e-4):
                failures.append((seed, number))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_memory_does_not_grow() -> None:
    run = runner(
        """
        graph @main(%x: f32[64, 64], %n: int(s0)) {
          %t = aten.permute.default(%x) {1 = [1, 0]} : f32[64, 64; 1, 64]
          %a = aten.add.Tensor(%t, %x) : f32[64, 64; 1, 64]
          %s, %i = aten.sort.default(%a) : f32[64, 64], i64[64, 64]
          return %a, %n
        }
        """
    )
    x = torch.ones(64, 64)
    for number in range(2000):
        run([x, number])
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(10000):
        run([x, number])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KiB


@pytest.mark.parametrize("error", [KeyError, ValueError, ZeroDivisionError, NotImplementedError])
def test_an_exception_keeps_its_type(error: type[Exception]) -> None:
    with torch.library._scoped_library("test_native_errors", "FRAGMENT") as library:
        library.define("fail(Tensor x) -> Tensor")

        def fail(x: torch.Tensor) -> torch.Tensor:
            raise error("as it is")

        library.impl("fail", fail, "CompositeExplicitAutograd")
        run = runner("graph @main(%x: f32[2]) {\n  %a = test_native_errors.fail.default(%x) : f32[2]\n  return %a\n}")
        assert run.interpreted == ()
        with pytest.raises(error, match="as it is"):
            run([torch.ones(2)])


def test_an_exception_of_an_operator_is_pytorchs() -> None:
    run = runner(
        "graph @main(%x: f32[2], %i: i64[1]) {\n"
        "  %a = aten.index_select.default(%x, %i) {1 = 0} : f32[1]\n  return %a\n}",
        manager=no_emitter(),
    )
    with pytest.raises(IndexError):
        run([torch.ones(2), torch.tensor([9])])


def test_observers_are_told_by_the_python_runner() -> None:
    run = runner(SLEEP.replace("700", "3"), manager=no_emitter())
    counters = ObserverCounters()
    x = torch.eye(3)
    with observing(counters):
        assert torch.equal(run([x])[0], x)
    assert counters.calls == {"aten.mm.default": 3}
    run([x])
    assert counters.steps == {"call": 3}


def test_sizes_are_python_integers() -> None:
    s, t = symbol("s"), symbol("t")
    extents = [
        7,
        add(mul(2, mul(s, t)), -3),
        call("floordiv", s, t),
        call("mod", s, t),
        call("max", s, t, 4),
        call("min", mul(s, s), t),
        call("pow", s, call("max", t, 0)),
    ]
    for values in ((5, 3), (-5, 3), (5, -3), (-7, -2), (0, 1), (1, 9)):
        table = SizeTable(["s", "t"])
        start, count = table.all(extents)
        assert (start, count) == (0, len(extents))
        wanted = [evaluate(extent, {"s": values[0], "t": values[1]}) for extent in extents]
        assert native.load().evaluate(table.code(), list(values)) == wanted  # type: ignore[union-attr]


def test_a_size_that_is_no_integer_says_so() -> None:
    run = runner(
        """
        graph @main(%x: f32[s0], %n: int(s1)) {
          %v = aten.slice.Tensor(%x) {1 = 0, 2 = 0, 3 = 9223372036854775807, 4 = 1} : f32[s0]
          %z = aten.new_zeros.default(%x) {1 = [2]} : f32[floordiv(4, s1)]
          return %v, %z
        }
        """,
        manager=no_emitter(),
    )
    assert run([torch.ones(3), 2])[1].shape == (2,)
    with pytest.raises(InvalidArgument, match=r"floordiv\(4, s1\)"):
        run([torch.ones(3), 0])


def test_integers_on_sizes_run_natively() -> None:
    run = runner(
        """
        graph @main(%n: int(s0), %m: int(s1)) {
          %a = operator.add(%n, %m) : int
          %b = operator.floordiv(%a) {1 = -4} : int
          %c = operator.mod(%b, %n) : int
          %d = torch.sym_max(%c, %m) : int
          %e = operator.lt(%d, %n) : bool
          %f = operator.truediv(%n, %m) : float
          return %a, %b, %c, %d, %e, %f
        }
        """
    )
    assert run.interpreted == ("f",)
    assert run([7, -2]) == [5, -2, 5, 5, True, -3.5]
    assert [type(value) for value in run([7, -2])] == [int, int, int, int, bool, float]


ADD = "graph @main(%x: f32[2]) {\n  %a = aten.add.Tensor(%x, %x) : f32[2]\n  return %a\n}"


def test_which_runner_runs_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recipe(SLEEP)
    assert type(make_runner(made)[0]).__name__ == "PlanRunner"
    monkeypatch.setenv("TESSIQ_RUNNER", "python")
    run, note = make_runner(made)
    assert isinstance(run, Runner)
    assert note.endswith("TESSIQ_RUNNER=python")
    monkeypatch.setenv("TESSIQ_RUNNER", "fast")
    with pytest.raises(InvalidArgument, match="expected auto, cpp or python, got 'fast'"):
        make_runner(made)
    monkeypatch.setenv("TESSIQ_RUNNER", "auto")
    run, note = make_runner(recipe(ADD, {"adopt": False}))
    assert isinstance(run, Runner)
    assert "moves values" in note
    monkeypatch.setenv("TESSIQ_NATIVE", "off")
    run, note = make_runner(made)
    assert isinstance(run, Runner)
    assert "TESSIQ_NATIVE=off" in note
    with collecting_reports() as reports:
        torch._dynamo.reset()
        torch.compile(lambda x: x + 1, backend="tessiq")(torch.ones(2))
    assert any("the Python runner runs the plan" in text for text in reports[0].notes)


def test_overhead_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("graph @main(%x: f32[2]) {\n  return %x\n}")
    x = torch.ones(2)

    def spent(function: Callable[[list[Any]], list[Any]]) -> float:
        start = time.perf_counter()
        for _ in range(2000):
            function([x])
        return (time.perf_counter() - start) / 2000 * 1e6

    with capsys.disabled():
        print(f"\nan empty call: C++ {spent(run):.2f} µs, Python {spent(run.python):.2f} µs")


def test_a_number_does_not_promote_a_tensor_without_axes() -> None:
    run = runner(
        """
        graph @main(%x: i8[], %y: f16[], %n: int, %f: float) {
          %a = aten.mul.Tensor(%x) {1 = 2} : i8[]
          %b = aten.mul.Tensor(%x, %n) : i8[]
          %c = aten.add.Tensor(%y) {1 = 1.5} : f16[]
          %d = aten.add.Tensor(%y, %f) : f16[]
          %e = aten.mul.Tensor(%x, %f) : f32[]
          return %a, %b, %c, %d, %e
        }
        """,
        manager=no_emitter(),
    )
    assert run.interpreted == ()
    x, y = torch.tensor(3, dtype=torch.int8), torch.tensor(0.5, dtype=torch.float16)
    wanted = [x * 2, x * 4, y + 1.5, y + 2.5, x * 2.5]
    outputs = run([x, y, 4, 2.5])
    assert [value.dtype for value in outputs] == [value.dtype for value in wanted]
    assert outputs == wanted
    assert described(run.python([x, y, 4, 2.5])) == described(outputs)


def test_it_is_freed_and_so_is_what_it_holds() -> None:
    kept = torch.ones(3)
    run = runner(
        """
        graph @main(%x: f32[3]) {
          %k = tessiq.constant() {0 = "k", content = "sha256:00"} : f32[3]
          %a = aten.add.Tensor(%x, %k) : f32[3]
          return %a
        }
        """,
        constants={"k": kept},
        manager=no_emitter(),
    )
    assert torch.equal(run([torch.ones(3)])[0], torch.full((3,), 2.0))
    gone = [weakref.ref(run), weakref.ref(kept), weakref.ref(run.python)]
    del run, kept
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]
