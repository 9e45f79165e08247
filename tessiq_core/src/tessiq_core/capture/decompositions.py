"""The operators AOTAutograd takes apart for us. The table starts from none.

An entry is added only where the pieces have rows, kernels and tests, because an operator that stays whole runs as
one ATen call, which is always right and often faster than unfused pieces. What is here:

- the two fused transformer operators that modules choose under `no_grad`: whole, they would hide a layer's matrix
  products and pointwise work from the compiler;
- batch normalization in inference, which is arithmetic a channel and fuses with what surrounds it.

Operators PyTorch composes itself (`linear`, `scaled_dot_product_attention`, `layer_norm`, …) arrive taken apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn import functional as F

aten = torch.ops.aten


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Overload -> function that computes it from other operators; new on each call, as AOTAutograd adds to it."""
    return {
        aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
        aten._native_multi_head_attention.default: multi_head_attention,
        aten._native_batch_norm_legit_no_training.default: batch_norm_inference,
    }


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """`aten._transformer_encoder_layer_fwd`: self-attention and feed-forward, each with its residual and norm.

    `src` is [batch, length, embed_dim], packed or not; the result has the same shape. `mask` is as in
    `masked_softmax`. A nested `src` is left to PyTorch.
    """
    if src.is_nested:
        return NotImplemented  # type: ignore[no-any-return]
    if any(statically_known_true(size == 0) for size in src.shape):  # adds no guard on a symbolic size
        return src.clone()

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    attended = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = (
        multi_head_attention(
            attended, attended, attended, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
            mask, need_weights=False, mask_type=mask_type,
        )[0]
        + src
    )  # fmt: skip
    if not norm_first:
        x = norm(x, norm_weight_1, norm_bias_1)
    hidden = F.linear(norm(x, norm_weight_2, norm_bias_2) if norm_first else x, ffn_weight_1, ffn_bias_1)
    hidden = F.gelu(hidden) if use_gelu else F.relu(hidden)
    x = F.linear(hidden, ffn_weight_2, ffn_bias_2) + x
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`aten._native_multi_head_attention`: projections, attention, output projection.

    query, key, value: [batch, length, embed_dim]; qkv_weight: [3 * embed_dim, embed_dim]. Returns the output,
    [batch, length, embed_dim], and the weights: None unless needed, else [batch, length, length] averaged over the
    heads, or [batch, head, length, length]. A nested `query` is left to PyTorch.
    """
    if query.is_nested or key.is_nested or value.is_nested:
        return NotImplemented  # type: ignore[no-any-return]
    head_dim = embed_dim // num_head
    if query is key and key is value:
        projected = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        projected = tuple(
            F.linear(x, weight, bias)
            for x, weight, bias in zip((query, key, value), qkv_weight.chunk(3, 0), qkv_bias.chunk(3, 0), strict=True)
        )
    q, k, v = (x.view(x.size(0), x.size(1), num_head, head_dim).transpose(1, 2) for x in projected)

    weights: Tensor | None = None
    if mask is None and not need_weights:
        context = F.scaled_dot_product_attention(q, k, v)
    else:
        # Not scaled_dot_product_attention: a row masked everywhere is NaN here, and 0 there.
        scores = torch.matmul(q * (1.0 / math.sqrt(head_dim)), k.transpose(-2, -1))
        weights = masked_softmax(scores, mask, mask_type)
        context = torch.matmul(weights, v)
    output = F.linear(context.transpose(1, 2).reshape(query.size(0), query.size(1), embed_dim), proj_weight, proj_bias)
    if not need_weights:
        return output, None
    assert weights is not None
    return output, weights.sum(1) / num_head if average_attn_weights else weights


def masked_softmax(scores: Tensor, mask: Tensor | None, mask_type: int | None) -> Tensor:
    """Softmax of scores [batch, head, length, length] over the last axis, entries where `mask` is true left out.

    mask_type 0: mask is [length, length]; 1: [batch, length], true where a key is padding; otherwise the shape of
    `scores`. A mask that is no boolean counts as true wherever it is not zero, as ATen's own operator has it.
    """
    if mask is None:
        return torch.softmax(scores, -1)
    mask = mask.to(torch.bool)
    if mask_type == 0:
        mask = mask.view(1, 1, mask.size(0), mask.size(1))
    elif mask_type == 1:
        mask = mask.view(mask.size(0), 1, 1, mask.size(1))
    return torch.softmax(scores.masked_fill(mask, -math.inf), -1)


def batch_norm_inference(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`aten._native_batch_norm_legit_no_training`: (input - mean) * rsqrt(var + eps) * weight + bias, a channel.

    `input` is [batch, channel, …]. Half types are computed in float32 and rounded once, as ATen does. The second
    and third result, statistics of the batch, are empty in inference.
    """
    half = input.dtype in (torch.float16, torch.bfloat16)
    compute = torch.float32 if half else input.dtype
    along_channels = (-1,) + (1,) * (input.dim() - 2)

    def channel(x: Tensor) -> Tensor:
        return x.to(compute).view(along_channels)

    x = input.to(compute) - channel(running_mean)
    x = x * torch.rsqrt(channel(running_var) + eps)
    if weight is not None:
        x = x * channel(weight)
    if bias is not None:
        x = x + channel(bias)
    statistics = running_mean.dtype if half else input.dtype  # float32 parameters of a half input keep float32
    return x.to(input.dtype), input.new_empty((0,), dtype=statistics), input.new_empty((0,), dtype=statistics)
