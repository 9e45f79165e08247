"""The decompositions agree with ATen's own operators, and leave nothing whole that should come apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from support.capture import Capture, capture
from support.versions import symbolic_encoder_layer
from tessiq_core.capture.decompositions import batch_norm_inference, decomposition_table, multi_head_attention

torch.set_num_threads(1)
aten = torch.ops.aten
TIGHT = {"rtol": 1e-12, "atol": 1e-13}  # float64: eager's operators and the pieces round differently, no more


def masks(batch: int, heads: int, length: int) -> dict[str, tuple[torch.Tensor | None, int | None]]:
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(batch, heads, length, length, generator=generator) < 0.4
    return {
        "none": (None, None),
        "source": (torch.ones(length, length, dtype=torch.bool).triu(1), 0),
        "padding": (torch.tensor([[False] * length, [False] * (length - 2) + [True] * 2]), 1),
        "full": (drawn, 2),
        "nowhere-left": (torch.ones(batch, heads, length, length, dtype=torch.bool), 2),
        "additive": (torch.zeros(batch, heads, length, length).masked_fill(drawn, float("-inf")), 2),
    }


@pytest.mark.parametrize("mask", [*masks(2, 2, 5)])
@pytest.mark.parametrize("width", [16, 12])  # 8 and 6 a head: ATen takes two different ways
@pytest.mark.parametrize(("gelu", "first"), [*itertools.product([False, True], repeat=2)])
def test_encoder_layer(mask: str, width: int, gelu: bool, first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 2, 24, 0.0, batch_first=True, dtype=torch.float64).eval()
    given, kind = masks(2, 2, 5)[mask]
    arguments: list[Any] = [torch.randn(2, 5, width, dtype=torch.float64), width, 2]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn_like(parameter))
    attention = layer.self_attn
    arguments += [attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias]
    arguments += [gelu, first, 1e-3, layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias]
    arguments += [layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias, given, kind]
    with torch.no_grad():
        expected = aten._transformer_encoder_layer_fwd.default(*arguments)
        got = decomposition_table()[aten._transformer_encoder_layer_fwd.default](*arguments)
    torch.testing.assert_close(got, expected, equal_nan=True, **TIGHT)
    assert got.stride() == expected.stride()


@pytest.mark.parametrize("mask", [*masks(2, 2, 5)])
@pytest.mark.parametrize("width", [16, 12])
@pytest.mark.parametrize(("weights", "average"), [(False, True), (True, True), (True, False)])
def test_multi_head_attention(mask: str, width: int, weights: bool, average: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, width, dtype=torch.float64)
    shapes = ((3 * width, width), (3 * width,), (width, width), (width,))
    parameters = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    given, kind = masks(2, 2, 5)[mask]
    arguments = (x, x, x, width, 2, *parameters, given, weights, average, kind)
    expected = aten._native_multi_head_attention.default(*arguments)
    got = multi_head_attention(*arguments)
    torch.testing.assert_close(got[0], expected[0], equal_nan=True, **TIGHT)
    if weights:
        assert got[1] is not None
        torch.testing.assert_close(got[1], expected[1], equal_nan=True, **TIGHT)
    else:
        assert got[1] is None


def test_attention_over_other_keys() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 5, 16, dtype=torch.float64) for _ in range(3))
    parameters = [torch.randn(shape, dtype=torch.float64) for shape in ((48, 16), (48,), (16, 16), (16,))]
    expected = aten._native_multi_head_attention.default(q, k, v, 16, 2, *parameters)
    got = multi_head_attention(q, k, v, 16, 2, *parameters)
    torch.testing.assert_close(got, expected, **TIGHT)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (3, 4, 5, 6), (2, 4, 3, 2, 2), (0, 4, 5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
def test_batch_norm_inference(shape: tuple[int, ...], dtype: torch.dtype, affine: bool, mixed: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    kept = torch.float32 if mixed and dtype.itemsize == 2 else dtype
    weight, bias = (torch.randn(4).to(kept), torch.randn(4).to(kept)) if affine else (None, None)
    arguments = (x, weight, bias, torch.randn(4).to(kept), torch.rand(4).to(kept) + 0.5, 0.1, 1e-5)
    expected = aten._native_batch_norm_legit_no_training.default(*arguments)
    got = batch_norm_inference(*arguments)
    tolerance = TIGHT if dtype is torch.float64 else {}
    torch.testing.assert_close(got[0], expected[0], **tolerance)
    for ours, theirs in zip(got[1:], expected[1:], strict=True):
        assert ours.shape == theirs.shape == (0,)
        assert ours.dtype == theirs.dtype


def test_batch_norm_inference_keeps_channels_last() -> None:
    x = torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last)
    arguments = (x, None, None, torch.zeros(4), torch.ones(4), 0.1, 1e-5)
    expected = aten._native_batch_norm_legit_no_training.default(*arguments)[0]
    assert batch_norm_inference(*arguments)[0].stride() == expected.stride()


def operators(seen: Capture) -> list[str]:
    return [node.op for imported in seen.imported for node in imported.graph.nodes]


@pytest.mark.parametrize("padding", [False, True])
def test_an_encoder_layer_is_not_one_node(padding: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True).eval()
    mask = torch.tensor([[False, False, False], [False, False, True]]) if padding else None
    with torch.no_grad():
        seen = capture(lambda x: layer(x, src_key_padding_mask=mask), torch.randn(2, 3, 16))
    assert "aten._transformer_encoder_layer_fwd.default" not in operators(seen)
    assert operators(seen).count("aten.addmm.default") == 4
    assert operators(seen).count("aten.native_layer_norm.default") == 2


@symbolic_encoder_layer
def test_an_encoder_layer_keeps_symbolic_sizes() -> None:
    torch._dynamo.reset()
    layer, seen = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True).eval(), Capture()
    with torch.no_grad():
        compiled = torch.compile(layer, backend=seen, dynamic=True)
        for batch, length in ((2, 3), (4, 7), (5, 5), (3, 2)):
            x = torch.randn(batch, length, 16)
            torch.testing.assert_close(compiled(x), layer(x), rtol=1e-5, atol=1e-6)
    assert len(seen.imported) == 1


@pytest.mark.parametrize("grad", [False, True])
def test_batch_norm_in_eval_is_arithmetic(grad: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    model[1].running_mean.uniform_(-1, 1)  # type: ignore[union-attr,operator]
    with torch.set_grad_enabled(grad):
        names = operators(capture(model, torch.randn(2, 2, 5, 5)))
    assert not [name for name in names if "batch_norm" in name and "backward" not in name]
    assert {"aten.sub.Tensor", "aten.rsqrt.default", "aten.relu.default"} <= set(names)


def test_the_table_is_new_each_time_and_short() -> None:
    first = decomposition_table()
    first.clear()
    assert set(decomposition_table()) == {
        aten._transformer_encoder_layer_fwd.default,
        aten._native_multi_head_attention.default,
        aten._native_batch_norm_legit_no_training.default,
    }


@pytest.mark.parametrize(
    ("function", "whole"),
    [
        (lambda x: nn.functional.gelu(x), "aten.gelu.default"),
        (lambda x: torch.softmax(x, -1), "aten._softmax.default"),
        (lambda x: nn.functional.layer_norm(x, (4,)), "aten.native_layer_norm.default"),
        (lambda x: nn.functional.silu(x), "aten.silu.default"),
    ],
)
def test_everything_else_stays_whole(function: Callable[[torch.Tensor], torch.Tensor], whole: str) -> None:
    assert operators(capture(function, torch.randn(2, 4))) == [whole]
