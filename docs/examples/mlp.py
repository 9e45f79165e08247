"""A multi-layer perceptron with GELU: three linear layers, 64 → 256 → 256 → 10, batch 32."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(32, 64, generator=torch.Generator().manual_seed(1)),)
