"""A ResNet residual block: two 3×3 convolutions with batch norm, 64 channels, 56×56, batch 2."""

import torch
from torch import nn


class Residual(nn.Module):
    """x of shape (batch, 64, height, width), float32; returns the same shape."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(y)))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Residual()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, 64, 56, 56, generator=torch.Generator().manual_seed(1)),)
