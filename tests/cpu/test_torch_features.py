"""What programs do around a compiled function: random numbers, modes, hooks, transforms, threads, odd tensors."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tessiq_core.runtime import Report, collecting_reports


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Dynamo starts empty."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="tessiq", **more)


def same(got: Any, expected: Any, exact: bool = False) -> None:
    tolerance = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(got, expected, equal_nan=True, **tolerance)


def fresh_copy(x: Any) -> Any:
    return x.clone() if isinstance(x, Tensor) and x.layout is not torch.strided else copy.deepcopy(x)


def agree(function: Callable[..., Any], *inputs: Any, exact: bool = False, calls: int = 2, **more: Any) -> list[Report]:
    """Results and inputs after the call are eager's; both start from one seed. Returns the reports."""
    run = compiled(function, **more)
    with collecting_reports() as reports:
        for call in range(calls):
            eager_inputs, our_inputs = [fresh_copy(x) for x in inputs], [fresh_copy(x) for x in inputs]
            torch.manual_seed(call)
            expected = function(*eager_inputs)
            torch.manual_seed(call)
            got = run(*our_inputs)
            same(got, expected, exact)
            same(our_inputs, eager_inputs, exact)
    return list(reports)


def on_aten(reports: list[Report]) -> set[str]:
    """Names of the nodes left to PyTorch."""
    return {name for report in reports for name in report.declines}


# -- random numbers ---------------------------------------------------------------------------------------------------
def test_random_numbers_are_eagers_bit_for_bit_and_the_generator_ends_where_eagers_does() -> None:
    def draws(x: Tensor) -> tuple[Tensor, ...]:
        a = F.dropout(x, 0.3)
        b = torch.rand_like(a) + torch.randn(3, 1)
        c = torch.bernoulli(torch.sigmoid(b))
        return a, b, c, F.dropout(c * 2, 0.5), torch.randperm(7), torch.randint(0, 9, (4,))

    x = torch.randn(3, 5)
    run = compiled(draws)
    for seed in range(3):
        torch.manual_seed(seed)
        expected, after = draws(x), torch.rand(1)
        torch.manual_seed(seed)
        same(run(x), expected, exact=True)
        assert torch.equal(torch.rand(1), after)


def test_dropout_in_training_has_one_mask_in_both_directions() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Dropout1d(0.5), nn.Linear(8, 2)).double()
    other = copy.deepcopy(model)
    run = compiled(other)
    for seed in range(3):
        x = torch.randn(4, 6, dtype=torch.float64)
        torch.manual_seed(seed)
        model(x).sum().backward()
        torch.manual_seed(seed)
        run(x).sum().backward()
    for one, two in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-12, atol=1e-12)


# -- state ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_are_written_exactly_once_a_step(momentum: float | None) -> None:
    eager = nn.BatchNorm2d(3, momentum=momentum)
    other = copy.deepcopy(eager)
    run = compiled(other)
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5)
        same(run(x), eager(x))
        same(dict(other.named_buffers()), dict(eager.named_buffers()))
    assert int(other.num_batches_tracked) == 3


def test_a_module_that_counts_and_keeps_a_moving_average() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.count += 1
            self.mean.lerp_(x.mean(0), 0.25)
            return x - self.mean * self.count

    eager, other = Counter(), Counter()
    run = compiled(other, dynamic=False)
    for _ in range(4):
        x = torch.randn(3, 4)
        same(run(x), eager(x))
    same(dict(other.named_buffers()), dict(eager.named_buffers()))
    assert other.calls == eager.calls == 4


def test_writes_through_views_and_overlapping_arguments() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        row = x[1]
        row.mul_(2)
        x[:, ::2].add_(y[:, ::2])
        y.t().copy_(x.t() + 1)
        return x.sum() + row.sum()

    agree(function, torch.randn(3, 4), torch.randn(3, 4))
    run = compiled(lambda a, b: a.add_(1).sum() + b.mul_(2).sum())
    base, other = torch.arange(6.0), torch.arange(6.0)
    got = run(base[:4], base[2:])
    expected = other[:4].add_(1).sum() + other[2:].mul_(2).sum()
    same(got, expected)
    same(base, other)


# -- control flow and graph breaks ------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules_run_where_dynamo_leaves_them(kind: type[nn.Module]) -> None:
    module = kind(4, 5, num_layers=2, batch_first=True)
    x = torch.randn(2, 3, 4)

    def function(x: Tensor) -> Tensor:
        return module(torch.tanh(x) * 2)[0].relu() + 1

    agree(function, x)
    (got,) = torch.autograd.grad(compiled(function)(x).sum(), [module.weight_ih_l0])  # type: ignore[list-item]
    (expected,) = torch.autograd.grad(function(x).sum(), [module.weight_ih_l0])  # type: ignore[list-item]
    same(got, expected)


def test_cond_runs_the_branch_its_predicate_names() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        return torch.cond(y.sum() > 0, lambda a: a.sin() + 1, lambda a: a.cos() - 1, (y,)) * 3

    run = compiled(function)
    for x in (torch.ones(4), -torch.ones(4)):
        same(run(x), function(x))


def test_cond_with_gradients() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda a: (a * a).exp(), lambda a: a.sigmoid(), (x * 2,)).sum()

    run = compiled(function)
    for start in (1.0, -1.0):
        x = torch.full((3,), start, requires_grad=True)
        same(torch.autograd.grad(run(x), [x]), torch.autograd.grad(function(x), [x]))


def test_while_loop_and_data_dependent_python() -> None:
    def loop(x: Tensor) -> tuple[Tensor, ...]:
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2 + 1), (torch.tensor(0), x))

    agree(loop, torch.randn(3))

    def branches(x: Tensor) -> Tensor:
        y = x.exp()
        if y.sum().item() > 4:
            y = y * 2
        return y[y > 1].sum() + torch.nonzero(y > 1).sum()

    for x in (torch.zeros(3), torch.ones(3)):
        agree(branches, x)


def test_scans() -> None:
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.scan import scan

    agree(lambda x: associative_scan(lambda a, b: a * b + 1, x.sin(), 0, combine_mode="generic") * 2, torch.randn(5, 3))
    agree(lambda x: scan(lambda h, y: (h * 0.5 + y, (h + y).exp()), torch.zeros(3), x.sin()), torch.randn(5, 3))


def test_a_data_dependent_size_inside_one_graph() -> None:
    def function(x: Tensor) -> Tensor:
        positive = x[x > 0]
        return (positive * 2 + 1).relu() / positive.shape[0]

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        run = compiled(function, fullgraph=True)
        for count in (5, 9, 2):
            x = torch.linspace(-1, 1, count)
            same(run(x), function(x))


def test_recursion_and_generators() -> None:
    def depth(x: Tensor, n: int) -> Tensor:
        return x if n == 0 else depth(x.sin() + n, n - 1) * 2

    agree(lambda x: depth(x, 5), torch.randn(4))
    agree(lambda x: sum(piece.exp().sum() for piece in x.split(2)), torch.randn(5))


def test_a_compiled_function_called_by_another() -> None:
    inner = compiled(lambda x: x.exp() * 2)
    agree(lambda x: inner(x).sin() + inner(x + 1), torch.randn(3))


# -- gradients --------------------------------------------------------------------------------------------------------
class Doubled(torch.autograd.Function):
    """x * x, with a gradient of 7 so that it shows which one was used."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * x.sign() * 7


def test_a_custom_autograd_function_keeps_its_gradient() -> None:
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    y = compiled(lambda x: Doubled.apply(x.clone()).sin() + x)(x)
    (gradient,) = torch.autograd.grad(y.sum(), [x])
    same(y, (x * x).sin() + x)
    same(gradient, (x * x).cos() * x.sign() * 7 + 1)


NOISES: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.25),
    "rand-like": lambda x: x * torch.rand_like(x),
    "bernoulli": lambda x: x * torch.bernoulli(torch.sigmoid(x)),
    "two-streams": lambda x: F.dropout(x, 0.5) + torch.randn_like(x).sin() * x,
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("noise", NOISES)
def test_a_checkpointed_block_draws_the_same_numbers_in_both_directions(noise: str, dynamic: bool) -> None:
    up, down = nn.Linear(8, 16).double(), nn.Linear(16, 8).double()

    def function(x: Tensor) -> Tensor:
        for _ in range(2):
            x = checkpoint(lambda y: down(NOISES[noise](F.gelu(up(y)))), x, use_reentrant=False)
        return x.square().sum()

    leaves = [*up.parameters(), *down.parameters()]
    run = compiled(function, dynamic=dynamic)
    for size in (3, 5):
        x = torch.randn(size, 8, dtype=torch.float64, requires_grad=True)
        torch.manual_seed(1)
        expected, after = torch.autograd.grad(function(x), [x, *leaves]), torch.rand(1)
        torch.manual_seed(1)
        got = torch.autograd.grad(run(x), [x, *leaves])
        assert torch.equal(torch.rand(1), after)
        for one, two in zip(got, expected, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


def test_hooks_see_what_eager_shows_them() -> None:
    def gradients(run_compiled: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        seen: list[Tensor] = []
        model[1].register_forward_hook(lambda module, inputs, output: output * 2)
        model[0].weight.register_hook(lambda gradient: gradient * 3)
        model.register_full_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0].clone()))
        run = compiled(model) if run_compiled else model
        x = torch.randn(5, 3, requires_grad=True)
        y = run(x)
        y.register_hook(lambda gradient: seen.append(gradient.clone()))
        y.square().sum().backward()
        assert x.grad is not None
        return [y.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None), *seen]

    same(gradients(True), gradients(False))


def test_gradients_through_a_detached_part_a_frozen_one_and_no_grad_inside() -> None:
    frozen = nn.Linear(3, 3).requires_grad_(False)

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            scale = x.abs().amax()
        return (frozen(x) / scale).tanh(), x.detach() * 2

    x = torch.randn(2, 3, requires_grad=True)
    y, z = compiled(function)(x)
    expected, other = function(x)
    assert y.requires_grad
    assert not z.requires_grad
    same(torch.autograd.grad(y.sum(), [x]), torch.autograd.grad(expected.sum(), [x]))
    same(z, other)


def test_a_second_backward_and_a_retained_graph() -> None:
    x = torch.randn(4, requires_grad=True)
    y = compiled(lambda x: (x.sin() * x).exp().sum())(x)
    first = torch.autograd.grad(y, [x], retain_graph=True)
    same(torch.autograd.grad(y, [x]), first, exact=True)


def test_a_backward_pass_inside_a_compiled_function_is_not_itself_compiled() -> None:
    from torch._dynamo.utils import get_compilation_metrics

    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 1))
    other = copy.deepcopy(model)

    def step(model: nn.Module, x: Tensor) -> Tensor:
        loss = model(x).square().sum()
        loss.backward()  # Dynamo cuts here, and watches what the call calls
        return loss.detach() * 2

    run = compiled(step)
    before = len(get_compilation_metrics())
    for _ in range(3):
        x = torch.randn(2, 4)
        same(run(model, x), step(other, x))
    same([p.grad for p in model.parameters()], [p.grad for p in other.parameters()])
    traced = {str(metrics.co_filename) for metrics in get_compilation_metrics()[before:]}
    assert not {name for name in traced if "tessiq_core" in name}


def test_compiled_autograd() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 1))
    x = torch.randn(3, 4)

    def step(x: Tensor) -> Tensor:
        loss = model(x).square().sum()
        loss.backward()
        return loss.detach()

    with torch._dynamo.config.patch(compiled_autograd=True):
        got = compiled(step)(x)
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    same(got, step(x))
    same(gradients, [p.grad for p in model.parameters()])


# -- modes ------------------------------------------------------------------------------------------------------------
def test_one_function_with_gradients_without_and_in_inference_mode() -> None:
    weight = torch.randn(3, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        return (x * weight).sin() + 1

    run, x = compiled(function), torch.randn(2, 3)
    expected = function(x).detach()
    assert run(x).requires_grad
    with torch.no_grad():
        assert not run(x).requires_grad
        same(run(x), expected)
    with torch.inference_mode():
        got = run(x.clone())
        assert got.is_inference()
        same(got, expected)
    same(run(x).detach(), expected)


def test_autocast_outside_and_inside() -> None:
    layer = nn.Linear(8, 8)

    def inside(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
            with torch.autocast("cpu", enabled=False):
                z = layer(y.float())
            return F.softmax(y, -1) + z

    x = torch.randn(3, 8)
    for function in (inside, lambda x: F.gelu(layer(x)) @ x.t()):
        with torch.autocast("cpu", torch.bfloat16, enabled=function is not inside):
            expected, got = function(x), compiled(function)(x)
        assert got.dtype is expected.dtype
        torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)


def test_the_default_dtype_in_force_at_the_call() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.ones(3) * 0.1 + x.to(torch.get_default_dtype())

    run, x = compiled(function), torch.arange(3)
    same(run(x), function(x))
    torch.set_default_dtype(torch.float64)
    try:
        assert run(x).dtype is torch.float64
        same(run(x), function(x))
    finally:
        torch.set_default_dtype(torch.float32)


# -- transforms -------------------------------------------------------------------------------------------------------
TRANSFORMED: dict[str, Callable[..., Any]] = {
    "vmap": lambda x: torch.func.vmap(lambda row: row.softmax(-1) @ row)(x),
    "vmap-random": lambda x: torch.func.vmap(lambda row: F.dropout(row, 0.5), randomness="different")(x),
    "grad": lambda x: torch.func.grad(lambda y: (y.sin() * y).sum())(x),
    "grad-of-grad": lambda x: torch.func.grad(lambda y: torch.func.grad(lambda z: z.exp().prod())(y).sum())(x[0]),
    "jacrev": lambda x: torch.func.jacrev(lambda y: y.tanh() * y.sum())(x[0]),
    "jvp": lambda x: torch.func.jvp(lambda y: y.sigmoid() * 2, (x,), (x.cos(),)),
    "hessian": lambda x: torch.func.hessian(lambda y: (y**3).sum())(x[0]),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_function_transforms(name: str) -> None:
    agree(TRANSFORMED[name], torch.randn(3, 4))


def test_per_sample_gradients_of_a_module() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def function(x: Tensor) -> dict[str, Tensor]:
        def loss(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
            return torch.func.functional_call(model, parameters, (row,)).square().sum()

        return torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)

    agree(function, torch.randn(5, 3))


# -- tensors of other kinds -------------------------------------------------------------------------------------------
def test_complex_nodes_go_to_pytorch_and_the_others_stay() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.fft.rfft(x * 2)
        w = z * torch.exp(1j * torch.angle(z)).conj()
        return torch.fft.irfft(w, n=x.shape[-1]).relu() + 1, w.abs().sqrt()

    reports = agree(function, torch.randn(3, 8))
    assert sum(len(report.kernels) for report in reports) >= 2
    agree(lambda z: (z.conj() * z).real.relu(), torch.randn(4, dtype=torch.complex64))
    agree(lambda z: z.imag.sin() + z.conj().imag, torch.randn(4, dtype=torch.complex64))


def test_sparse_tensors_made_inside() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.sparse.mm(x.to_sparse(), y).relu() + 1

    agree(function, torch.eye(3) * 2, torch.randn(3, 4))


def test_sparse_arguments() -> None:
    agree(lambda s, y: torch.sparse.mm(s, y * 2) + 1, torch.eye(3).to_sparse_csr(), torch.randn(3, 4))
    agree(lambda s, y: (s @ y).relu() * 2, torch.eye(3).to_sparse(), torch.randn(3, 4))


def test_quantized_tensors_made_inside() -> None:
    def function(x: Tensor) -> Tensor:
        q = torch.quantize_per_tensor(x * 2, 0.1, 10, torch.quint8)
        return q.dequantize().relu() + 1

    agree(function, torch.randn(3, 4))


def test_jagged_tensors_and_tensor_subclasses() -> None:
    def function(a: Tensor, b: Tensor) -> Tensor:
        nested = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
        return (nested.sin() * 2).values()

    agree(function, torch.randn(2, 3), torch.randn(4, 3))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16, torch.complex128, torch.float16, torch.int8])
def test_other_element_types(dtype: torch.dtype) -> None:
    agree(lambda x: (x.to(dtype).clone(), (x * 2).to(dtype).to(torch.float32) + 1), torch.rand(3, 4) * 5, exact=True)


def test_nothing_zero_sizes_and_zero_dimensions() -> None:
    agree(lambda x: (x.sin() * 2, x.sum(0) + 1, x.reshape(-1).exp()), torch.randn(0, 3))
    agree(lambda x: (x.sin() * 2, x.sum() + 1, x[None].exp(), x + torch.ones(2)), torch.tensor(2.0))
    agree(lambda x: (None, x, 3, (x * 2,), {"a": x.exp()}), torch.randn(2))
    agree(lambda x: x, torch.randn(2))
    agree(lambda x: (x + 1, x.t(), x.view(-1)[1:]), torch.randn(2, 3))


def test_conjugate_negative_and_expanded_arguments() -> None:
    agree(lambda z: z.conj().imag * 2, torch.randn(3, dtype=torch.complex64))
    x = torch.randn(3, 1)
    same(compiled(lambda x: x.exp() + 1)(x.expand(3, 4)), x.expand(3, 4).exp() + 1)
    z = torch.randn(3, dtype=torch.complex64)
    same(compiled(lambda y: y * 2 + 1)(z.conj().imag), -z.imag * 2 + 1)


# -- attention and embedding ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "both"])
def test_multi_head_attention_with_masks(mask: str, training: bool) -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x = torch.randn(2, 4, 8)
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1) if mask in ("causal", "both") else None
    padding = torch.tensor([[False] * 4, [False, False, True, True]]) if mask in ("padding", "both") else None

    def function(x: Tensor) -> Any:
        return module(x, x, x, key_padding_mask=padding, attn_mask=causal)

    agree(function, x)
    with torch.no_grad():
        agree(function, x)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_with_a_score_function() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def causal(score: Tensor, batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.where(q >= k, score * 0.5, -float("inf"))

    agree(lambda q, k, v: flex_attention(q * 2, k, v, score_mod=causal) + 1, *torch.randn(3, 1, 2, 128, 16))


def test_embeddings_their_padding_and_gradients() -> None:
    table, bag = nn.Embedding(9, 4, padding_idx=0), nn.EmbeddingBag(9, 4, mode="mean")

    def function(index: Tensor) -> Tensor:
        return table(index).tanh() + bag(index)[:, None]

    index = torch.tensor([[0, 3, 3], [8, 0, 1]])
    agree(function, index)
    weights = [table.weight, bag.weight]
    got = torch.autograd.grad(compiled(function)(index).sum(), weights)
    same(got, torch.autograd.grad(function(index).sum(), weights))


# -- threads ----------------------------------------------------------------------------------------------------------
def test_two_threads_call_one_compiled_model() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    run = compiled(model)
    inputs = [torch.randn(8, 16) for _ in range(2)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        run(inputs[0])
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with torch.no_grad():
                for _ in range(200):
                    same(run(inputs[number]), expected[number])
            y = run(inputs[number])
            y.sum().backward()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_two_threads_compile_at_once() -> None:
    x = torch.randn(4)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            run = compiled(lambda x: (x * number).sin() + number)
            for _ in range(3):
                same(run(x), (x * number).sin() + number)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- symbolic sizes ---------------------------------------------------------------------------------------------------
def test_symbolic_sizes_in_arithmetic_and_results() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        n = x.shape[0]
        z = torch.cat([x, y]).view(-1) * n
        return z.reshape(x.shape[1], -1).softmax(-1), torch.arange(n) / n, n * 2, x.new_full((n, n + 1), n / 3.0)

    run = compiled(function, dynamic=True)
    for a, b in ((3, 5), (4, 6), (7, 1), (1, 1), (2, 0)):
        x, y = torch.randn(a, 4), torch.randn(b, 4)
        same(run(x, y), function(x, y))


def test_symbolic_training() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    run = compiled(model, dynamic=True)
    for size in (3, 5, 8):
        x = torch.randn(size, 4, requires_grad=True)
        leaves = [x, *model.parameters()]
        got = torch.autograd.grad(run(x).square().sum(), leaves)
        same(got, torch.autograd.grad(model(x).square().sum(), leaves))
