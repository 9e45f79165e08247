"""The encoder block with attention written out: scores, scale, softmax and values as separate operations."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    """Self-attention over x of shape (batch, length, width), float32; returns the same shape."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Post-norm encoder block, as `nn.TransformerEncoderLayer` computes it."""

    def __init__(self, width: int = 512, heads: int = 8, feedforward: int = 2048) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, feedforward), nn.Linear(feedforward, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(torch.relu(self.up(x))))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Block()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, 64, 512, generator=torch.Generator().manual_seed(1)),)
