"""Through torch.compile: layouts across graph breaks and in training, the cache, reports, and what a recipe keeps."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tessiq_core.capture import tessiq
from tessiq_core.capture.backend import trace
from tessiq_core.capture.importer import import_module
from tessiq_core.errors import InvalidArgument
from tessiq_core.runtime import ObserverCounters, collecting_reports, compile_graph, observing, recipes
from tessiq_core.runtime.imported import Kind
from tessiq_core.runtime.options import Options
from tessiq_core.runtime.runner import Runner

HOMES = [pytest.param(True, id="cpu"), pytest.param(False, id="cpu-without-adoption")]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Dynamo and the recipe cache start empty."""
    torch._dynamo.reset()
    recipes.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], adopt: bool = True, **more: Any) -> Callable[..., Any]:
    # A backend of its own, so that no graph compiled with other options is taken.
    def backend(module: Any, inputs: Any) -> Any:
        return tessiq(module, inputs, options={"adopt": adopt})

    return torch.compile(function, backend=backend, **more)


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.relu() * 2 + 1


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.sigmoid().transpose(1, 3)


def expanded(x: torch.Tensor) -> torch.Tensor:
    return x[:, :, :1, :1].exp().expand(x.shape)


def permuted_product(x: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, x.transpose(2, 3)).permute(2, 0, 3, 1) * 3


FUNCTIONS = [channels_last, transposed, expanded, permuted_product]


@pytest.mark.parametrize("adopt", HOMES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_outputs_have_the_strides_of_eager(function: Callable[..., Any], adopt: bool) -> None:
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    wanted = function(x)
    got = compiled(function, adopt)(x)
    assert got.stride() == wanted.stride()
    assert torch.allclose(got, wanted)


@pytest.mark.parametrize("adopt", HOMES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_strides_hold_across_a_graph_break_and_in_training(function: Callable[..., Any], adopt: bool) -> None:
    seen: list[tuple[int, ...]] = []

    def broken(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        between = function(x * weight)
        torch._dynamo.graph_break()
        seen.append(between.stride())
        return (between.tanh() * between).square()

    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    results = []
    for run in (broken, compiled(broken, adopt)):
        weight = torch.full((3, 1, 1), 0.5, requires_grad=True)
        source = x.clone(memory_format=torch.preserve_format).requires_grad_()
        out = run(source, weight)
        out.sum().backward()
        results.append((out, source.grad, weight.grad))
    for wanted, got in zip(*results, strict=True):
        assert got.stride() == wanted.stride()
        assert torch.allclose(got, wanted, atol=1e-5)
    assert len(set(seen)) == 1


@pytest.mark.parametrize("adopt", HOMES)
def test_a_module_trains_as_in_eager_and_runs_what_it_claims(adopt: bool) -> None:
    def model() -> torch.nn.Module:
        torch.manual_seed(1)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(8 * 36, 4), torch.nn.GELU(), torch.nn.Dropout(0.25),
        )  # fmt: skip

    x = torch.randn(5, 3, 6, 6)
    states = []
    for use in (False, True):
        module = model()
        run = compiled(module, adopt) if use else module
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
        torch.manual_seed(2)
        with observing(ObserverCounters()) as counters:
            for _ in range(5):
                optimizer.zero_grad()
                run(x).square().mean().backward()
                optimizer.step()
        states.append({name: value.clone() for name, value in module.state_dict().items()})
    assert isinstance(counters, ObserverCounters)
    assert counters.steps["kernel"] > 0
    assert bool(counters.steps["transfer"]) != adopt
    for name, value in states[0].items():
        assert torch.allclose(states[1][name], value, atol=1e-5), name


@pytest.mark.parametrize("adopt", HOMES)
def test_mutated_inputs_and_buffers(adopt: bool) -> None:
    def step(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(x.relu())
        return total * 2

    run = compiled(step, adopt)
    total, wanted = torch.zeros(4), torch.zeros(4)
    for _ in range(3):
        x = torch.randn(4)
        before = total._version
        got = run(x, total)
        assert torch.equal(got, step(x, wanted))
        assert torch.equal(total, wanted)
        assert total._version == before + 1, "AOTAutograd counts the write; the runner must not count it again"


def test_a_view_of_an_input_stays_one() -> None:
    def half(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[1:], x[1:].exp()

    x = torch.randn(4, 4)
    view, _ = compiled(half)(x)
    assert view._base is x
    view.zero_()
    assert torch.equal(x[1:], torch.zeros(3, 4))


def test_one_compile_serves_symbolic_sizes() -> None:
    compiles: list[int] = []

    def backend(module: Any, inputs: Any) -> Any:
        compiles.append(1)
        return tessiq(module, inputs)

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.T @ x).softmax(-1) + x.shape[0]

    run = torch.compile(f, backend=backend, dynamic=True)
    for size in (2, 3, 7, 64, 33):
        x = torch.randn(size, size + 1)
        assert torch.allclose(run(x), f(x), atol=1e-5)
    assert len(compiles) == 1


def test_equal_graphs_share_a_recipe_and_other_constants_do_not() -> None:
    def adding(constant: float) -> Callable[[torch.Tensor], torch.Tensor]:
        def f(x: torch.Tensor) -> torch.Tensor:
            return x + torch.tensor([constant, 2.0])

        return f

    x = torch.zeros(2)
    hits = recipes.hits
    assert torch.equal(compiled(adding(1.0))(x), torch.tensor([1.0, 2.0]))
    torch._dynamo.reset()
    assert torch.equal(compiled(adding(1.0))(x), torch.tensor([1.0, 2.0]))
    assert recipes.hits == hits + 1
    torch._dynamo.reset()
    assert torch.equal(compiled(adding(3.0))(x), torch.tensor([3.0, 2.0]))
    assert recipes.hits == hits + 1


def test_reports_come_with_texts_and_past_the_cache() -> None:
    x = torch.randn(3)
    compiled(lambda x: x.relu() + 1)(x)
    torch._dynamo.reset()
    with collecting_reports() as reports:
        compiled(lambda x: x.relu() + 1)(x)
    (report,) = reports
    assert report.kind == "inference"
    assert report.counts.kernels == 1
    assert "aten.relu" in report.imported
    assert report.kernels[0].source


def test_an_unknown_option_is_refused_on_the_first_call() -> None:
    run = torch.compile(lambda x: x + 1, backend="tessiq", options={"adpot": True})
    with pytest.raises(Exception, match="there is no option 'adpot'; did you mean 'adopt'") as caught:
        run(torch.ones(2))
    chain: BaseException | None = caught.value
    while chain is not None and not isinstance(chain, InvalidArgument):
        chain = chain.__cause__ or chain.__context__ or getattr(chain, "inner_exception", None)
    assert isinstance(chain, InvalidArgument)


def _run_once(backend: Callable[..., Any], x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    linear = torch.nn.Linear(4, 4)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
        result = torch.compile(lambda x: linear(x).relu().sum(-1), backend=backend)(x)
    assert isinstance(result, torch.Tensor)
    return result


def test_a_recipe_outlives_graph_module_and_fx() -> None:
    """Everything the recipe was made from is deleted and collected; then it runs."""
    runners: list[Runner] = []
    gone: list[weakref.ref[Any]] = []

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        def compiler(traced: torch.fx.GraphModule, kind: Kind) -> Any:
            imported = import_module(traced, kind)
            gone.extend(weakref.ref(item) for item in (traced, traced.graph, next(iter(traced.graph.nodes))))
            gone.extend(weakref.ref(n.meta["val"]) for n in traced.graph.nodes if torch.is_tensor(n.meta.get("val")))
            runners.append(compile_graph(imported, Options()))
            return runners[-1]

        gone.append(weakref.ref(module))
        return trace(module, inputs, compiler)

    x, weight, bias = torch.randn(3, 4), torch.randn(4, 4), torch.randn(4)
    wanted = _run_once(backend, x, weight, bias)
    torch._dynamo.reset()
    gc.collect()
    assert len(gone) > 8
    assert [ref() for ref in gone if ref() is not None] == []
    (runner,) = runners
    kept = {tuple(t.shape): t for t in (weight, bias, x)}
    shapes = [slot.type.shape for slot in runner.recipe.plan.slots[:3]]  # type: ignore[union-attr]
    (again,) = runner([kept[shape] for shape in shapes])  # type: ignore[index]
    assert torch.equal(again, wanted)
