"""Inputs of random programs: described as data, made anew for each run, in every layout a tensor can have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

LAYOUTS = ("packed", "transposed", "sliced", "expanded", "offset", "channels_last", "odd-ones")

_SPECIAL_FLOATS = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 65504.0, 1e-7)


@dataclass(frozen=True)
class Input:
    """One input.

    layout:  one of LAYOUTS. "sliced" has gaps and a storage offset, "expanded" strides of 0 on the axes in `axes`,
             "offset" begins one element into its memory, "odd-ones" has meaningless strides on axes of extent 1.
    special: infinities, NaNs, zeros of both signs and extreme integers among the values.
    alias:   the number of an earlier input whose memory it shares, read through "transposed" or as it is.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    layout: str = "packed"
    axes: tuple[int, ...] = ()
    special: bool = False
    alias: int | None = None

    def resized(self, extents: dict[int, int]) -> Input:
        """The same input with other extents; those that `extents` does not name stay."""
        return replace(self, shape=tuple(extents.get(extent, extent) for extent in self.shape))


@dataclass(frozen=True)
class Made:
    """The tensors of one run, and all the memory they are in: what lies between their elements is compared too."""

    tensors: list[torch.Tensor]
    bases: list[torch.Tensor]


def make(inputs: Sequence[Input], seed: int) -> Made:
    """The inputs with values of `seed`; equal seeds give equal values."""
    generator = torch.Generator().manual_seed(seed)
    tensors: list[torch.Tensor] = []
    bases: list[torch.Tensor] = []
    for item in inputs:
        if item.alias is not None:
            source = tensors[item.alias]
            tensors.append(
                source.permute(tuple(reversed(range(source.dim())))) if item.layout == "transposed" else source
            )
            continue
        base, tensor = _laid_out(item, generator)
        tensors.append(tensor)
        bases.append(base)
    return Made(tensors, bases)


def _laid_out(item: Input, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    shape = item.shape
    match item.layout:
        case "transposed":
            base = _values(item, tuple(reversed(shape)), generator)
            return base, base.permute(tuple(reversed(range(len(shape)))))
        case "sliced":
            base = _values(item, tuple(2 * extent + 1 for extent in shape), generator)
            return base, base[tuple(slice(1, None, 2) for _ in shape)]
        case "expanded":
            base = _values(item, tuple(1 if axis in item.axes else n for axis, n in enumerate(shape)), generator)
            return base, base.expand(shape)
        case "offset":
            base = _values(item, (math.prod(shape) + 1,), generator)
            return base, base[1:].view(shape)
        case "channels_last":
            base = _values(item, (shape[0], shape[2], shape[3], shape[1]), generator)
            return base, base.permute(0, 3, 1, 2)
        case "odd-ones":
            base = _values(item, shape, generator)
            strides = [5 if extent == 1 else stride for extent, stride in zip(shape, base.stride(), strict=True)]
            return base, base.as_strided(shape, strides)
        case _:
            base = _values(item, shape, generator)
            return base, base.view(shape)


def _values(item: Input, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    dtype = item.dtype
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(torch.bool)
    if dtype.is_floating_point:
        # Multiples of 1/8 below 4: sums and products of a few are exact in every floating type but the narrowest.
        values = torch.randint(-32, 33, shape, generator=generator).to(torch.float64) / 8
        if item.special:
            chosen = torch.tensor(_SPECIAL_FLOATS, dtype=torch.float64)
            picks = chosen[torch.randint(0, len(chosen), shape, generator=generator)]
            values = torch.where(torch.rand(shape, generator=generator) < 0.3, picks, values)
        return values.to(dtype)
    low = 0 if dtype is torch.uint8 else -4
    values = torch.randint(low, 6, shape, generator=generator)
    if item.special:
        limits = torch.iinfo(dtype)
        extreme = torch.tensor((limits.min, limits.max, 0, limits.max // 2 + 1))
        picks = extreme[torch.randint(0, 4, shape, generator=generator)]
        values = torch.where(torch.rand(shape, generator=generator) < 0.2, picks, values)
    return values.to(dtype)
