"""Whole small models through torch.compile(backend="tessiq"), against eager: results, gradients, buffers, training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from support.models import GPT, Llama, ResNet, UNet, ViT
from tessiq_core.runtime import collecting_reports

STEPS = 200

FORWARD = {"rtol": 1e-5, "atol": 1e-5}
"""Of results in float32: a kernel may add in another order than eager does."""

DOUBLE = {"rtol": 1e-8, "atol": 1e-10}
"""Of results, gradients and buffers in float64, where a wrong step shows and rounding does not."""

TRAINED = {"rtol": 1e-6, "atol": 1e-8}
"""Of a parameter after 200 steps in float64, which take rounding further."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Dynamo starts empty, and one thread runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.set_num_threads(threads)


def image(channels_last: bool = False, size: int = 32) -> Tensor:
    x = torch.randn(2, 3, size, size)
    return x.to(memory_format=torch.channels_last) if channels_last else x


def tokens() -> Tensor:
    return torch.randint(0, 61, (2, 12))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "resnet": (ResNet, image),
    "resnet-channels-last": (lambda: ResNet(blocks=1).to(memory_format=torch.channels_last), lambda: image(True)),
    "gpt": (GPT, tokens),
    "llama": (Llama, tokens),
    "vit": (ViT, lambda: image(size=16)),
    "unet": (UNet, lambda: image(size=16)),
}


def logits(result: Any) -> Tensor:
    return result[0] if isinstance(result, tuple) else result


CASES = [(name, True) for name in MODELS] + [("resnet", False), ("vit", False)]  # the others do the same in evaluation


@pytest.mark.parametrize(("name", "training"), CASES)
def test_two_steps_of_a_model_are_as_eager_has_them(name: str, training: bool) -> None:
    make, draw = MODELS[name]
    torch.manual_seed(0)
    eager = make().double().train(training)
    model = copy.deepcopy(eager)
    with collecting_reports() as reports:
        run = torch.compile(model, backend="tessiq", fullgraph=True)
        for _ in range(2):  # the second step reads running statistics that the first wrote
            x = draw()
            x = x.double() if x.is_floating_point() else x
            expected, got = logits(eager(x)), logits(run(x))
            torch.testing.assert_close(got, expected, check_stride=True, **DOUBLE)
            expected.square().mean().backward()
            got.square().mean().backward()
    for (parameter_name, one), other in zip(model.named_parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, msg=lambda text, n=parameter_name: f"{n}: {text}", **DOUBLE)
    for one, other in zip(model.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(one, other, **DOUBLE)
    assert sum(len(report.kernels) for report in reports) >= 10  # ATen alone would pass every comparison above


@pytest.mark.parametrize("name", ["resnet-channels-last", "gpt", "llama", "vit", "unet"])
def test_inference_of_a_model_is_as_eager_has_it(name: str) -> None:
    make, draw = MODELS[name]
    torch.manual_seed(0)
    model, x = make().eval(), draw()
    with torch.no_grad():
        expected = logits(model(x))
        got = logits(torch.compile(model, backend="tessiq", fullgraph=True)(x))
    torch.testing.assert_close(got, expected, check_stride=True, **FORWARD)


@pytest.mark.parametrize("name", ["gpt", "llama", "vit"])
def test_a_model_under_bfloat16_autocast(name: str) -> None:
    make, draw = MODELS[name]
    torch.manual_seed(0)
    eager = make()
    model, x = copy.deepcopy(eager), draw()
    run = torch.compile(model, backend="tessiq", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        expected, got = logits(eager(x)), logits(run(x))
    assert got.dtype is expected.dtype
    torch.testing.assert_close(got, expected, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("dynamic", [None, True], ids=["automatic", "dynamic"])
def test_generation_with_a_cache_gives_the_tokens_of_eager(dynamic: bool | None) -> None:
    torch.manual_seed(0)
    model = GPT().eval()
    run = torch.compile(model, backend="tessiq", dynamic=dynamic)

    def generate(step: Callable[..., Any]) -> tuple[Tensor, Tensor]:
        prompt = torch.arange(5)[None]
        out, caches = step(prompt)
        made, scores = [out[:, -1].argmax(-1)], [out[:, -1]]
        for _ in range(8):
            out, caches = step(made[-1][:, None], caches)
            made.append(out[:, -1].argmax(-1))
            scores.append(out[:, -1])
        return torch.stack(made), torch.stack(scores)

    with torch.no_grad():
        expected, expected_scores = generate(model)
        got, scores = generate(run)
    torch.testing.assert_close(scores, expected_scores, **FORWARD)
    assert torch.equal(got, expected)


class MLP(nn.Module):
    """Three layers with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32),
            nn.GELU(),
            nn.BatchNorm1d(32),
            nn.Linear(32, 32),
            nn.SiLU(),
            nn.Dropout(0.1),
            nn.Linear(32, 4),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Transformer(nn.Module):
    """One post-norm encoder layer, dropout on, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x).mean(1))


TRAINERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], Callable[..., torch.optim.Optimizer]]] = {
    "mlp-adamw": (MLP, (8, 16), lambda p: torch.optim.AdamW(p, 1e-2)),
    "mlp-sgd": (MLP, (8, 16), lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True)),
    "transformer-adamw": (Transformer, (4, 6, 16), lambda p: torch.optim.AdamW(p, 1e-3)),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_every_parameter_after_200_steps_is_as_eager_has_it(name: str) -> None:
    make, shape, optimizer = TRAINERS[name]

    def train(compiled: bool) -> nn.Module:
        torch.manual_seed(0)
        model = make().double()
        run = torch.compile(model, backend="tessiq", fullgraph=True) if compiled else model
        steps = optimizer(model.parameters())
        for _ in range(STEPS):
            x, y = torch.randn(shape, dtype=torch.float64), torch.randint(0, 4, shape[:1])
            loss = F.cross_entropy(run(x), y)
            steps.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
        return model

    expected, got = train(False), train(True)
    for (parameter_name, one), other in zip(got.state_dict().items(), expected.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, n=parameter_name: f"{n}: {text}", **TRAINED)


OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "weight_decay": 1e-2}),
    "adam": (torch.optim.Adam, {"lr": 1e-2, "weight_decay": 1e-2}),
    "adam-amsgrad": (torch.optim.Adam, {"lr": 1e-2, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-2}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 1e-2, "momentum": 0.9, "centered": True}),
}
FLAVOURS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_optimizer_takes_the_steps_of_eager(name: str, flavour: str) -> None:
    kind, settings = OPTIMIZERS[name]
    if flavour == "fused" and kind is torch.optim.RMSprop:
        pytest.skip("RMSprop has no fused form")

    def train(compiled: bool) -> list[Tensor]:
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(shape)) for shape in ((4, 3), (5,), ())]
        steps = kind(parameters, **settings, **FLAVOURS[flavour])  # type: ignore[call-arg]
        step = torch.compile(steps.step, backend="tessiq") if compiled else steps.step
        for _ in range(4):
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape)
            step()
        state = [leaf for entry in steps.state.values() for leaf in entry.values() if isinstance(leaf, Tensor)]
        return [parameter.detach() for parameter in parameters] + state

    torch.testing.assert_close(train(True), train(False), rtol=1e-6, atol=1e-7)
