"""Small whole models: a residual network, transformers of three families, a U-Net, an MLP."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Cache = tuple[Tensor, Tensor]


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut, projected where the shape changes."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.shortcut = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(hidden))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    """ResNet-18 with its stages narrowed: [batch, 3, height, width] to [batch, 10]."""

    def __init__(self, width: int = 8, blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        stages: list[nn.Module] = []
        have = width
        for stage in range(4):
            out = width * 2**stage
            for block in range(blocks):
                stages.append(BasicBlock(have, out, 2 if stage and block == 0 else 1))
                have = out
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(have, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1), 1))


class GPTBlock(nn.Module):
    """GPT-2's block: pre-norm, one matrix for q, k and v, tanh GELU; keys and values of earlier calls in a cache."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).split(width, dim=-1)
        )
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        scores = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
        past = k.shape[2] - length
        mask = torch.ones(length, k.shape[2], dtype=torch.bool, device=x.device).tril(past)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        attended = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + F.dropout(self.proj(attended), self.dropout, self.training)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), (k, v)


class GPT(nn.Module):
    """Tokens [batch, length] to logits [batch, length, vocabulary], the embedding tied to the head."""

    def __init__(self, vocabulary: int = 61, width: int = 32, layers: int = 2, heads: int = 4, dropout: float = 0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, caches: list[Cache] | None = None) -> tuple[Tensor, list[Cache]]:
        past = caches[0][0].shape[2] if caches else 0
        x = self.tokens(tokens) + self.places(torch.arange(past, past + tokens.shape[1], device=tokens.device))
        kept: list[Cache] = []
        for number, block in enumerate(self.blocks):
            x, cache = block(x, caches[number] if caches else None)
            kept.append(cache)
        return self.norm(x) @ self.tokens.weight.t(), kept


class RMSNorm(nn.Module):
    """Computed in float32 at least, whatever the input's type."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * self.weight


def rotary(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Rotate halves of [batch, heads, length, size] by angles that grow with the position."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angles = positions[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaBlock(nn.Module):
    """RMSNorm, rotary grouped-query attention through SDPA, SwiGLU."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        positions = torch.arange(length, device=x.device)
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(y).view(batch, length, 2 * self.groups, self.size).transpose(1, 2).chunk(2, 1)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (rotary(k, positions), v))
        attended = F.scaled_dot_product_attention(rotary(q, positions), k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Tokens [batch, length] to logits [batch, length, vocabulary]."""

    def __init__(self, vocabulary: int = 61, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(LlamaBlock(width, 4, 2) for _ in range(layers)))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens))))


class ViT(nn.Module):
    """Patches, a class token, learned places, PyTorch's own encoder: [batch, 3, 16, 16] to [batch, 10]."""

    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class UNet(nn.Module):
    """Two levels down and up: transposed convolution, then interpolation, each beside its skip; group norm and SiLU."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.enter, self.down1 = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.down2 = nn.Conv2d(2 * width, 4 * width, 3, 2, 1)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1)
        self.merge2, self.merge1 = (
            nn.Conv2d(4 * width, 2 * width, 3, padding=1),
            nn.Conv2d(3 * width, width, 3, padding=1),
        )
        self.norms = nn.ModuleList(nn.GroupNorm(4, size) for size in (width, 2 * width, 4 * width, 2 * width, width))
        self.leave = nn.Conv2d(width, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = F.silu(self.norms[0](self.enter(x)))
        b = F.silu(self.norms[1](self.down1(a)))
        c = F.silu(self.norms[2](self.down2(b)))
        d = F.silu(self.norms[3](self.merge2(torch.cat([self.up2(c), b], 1))))
        e = F.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.leave(F.silu(self.norms[4](self.merge1(torch.cat([e, a], 1)))))
