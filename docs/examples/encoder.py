"""A transformer encoder block: width 512, 8 heads, feed-forward 2048, batch 2, length 64."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(512, 8, dim_feedforward=2048, dropout=0.0, batch_first=True)


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, 64, 512, generator=torch.Generator().manual_seed(1)),)
