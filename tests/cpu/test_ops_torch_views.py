"""Shapes and view offsets equal what PyTorch gives, for many calls drawn with a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.op_torch import node_of_call
from tessiq_core.ops import BoundCall, bind, default_table, result_shapes, view_offsets

TABLE = default_table()
Draw = Callable[[random.Random, torch.Tensor], list[Any]]


def _source(rng: random.Random) -> torch.Tensor:
    """A tensor of rank 1 to 4 that may itself be a permuted, strided or expanded view with an offset."""
    tensor = torch.zeros([rng.randint(1, 5) for _ in range(rng.randint(1, 4))])
    if rng.random() < 0.5:
        tensor = tensor.permute(rng.sample(range(tensor.dim()), tensor.dim()))
    if rng.random() < 0.5:
        dim = rng.randrange(tensor.dim())
        tensor = tensor.narrow(dim, rng.randint(0, tensor.shape[dim] - 1), 1).expand_as(tensor)
    if rng.random() < 0.5:
        tensor = tensor[:, ::2] if tensor.dim() > 1 else tensor[::2]
    return tensor


def _dim(rng: random.Random, tensor: torch.Tensor) -> int:
    return rng.randint(-tensor.dim(), tensor.dim() - 1)


def _slice(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    bound = [None, *range(-7, 8), 2**63 - 1]
    return [_dim(rng, tensor), rng.choice(bound[:-1]), rng.choice(bound), rng.randint(1, 3)]


def _select(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    dim = _dim(rng, tensor)
    return [dim, rng.randint(-tensor.shape[dim], tensor.shape[dim] - 1)]


def _split_with_sizes(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    dim = _dim(rng, tensor)
    cut = rng.randint(0, tensor.shape[dim])
    return [[cut, 0, tensor.shape[dim] - cut], dim]


def _squeeze_dims(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    return [rng.sample(range(tensor.dim()), rng.randint(0, tensor.dim()))]


def _expand(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    return [[rng.randint(1, 3), *(-1 if extent != 1 or rng.random() < 0.5 else 4 for extent in tensor.shape)]]


def _view(rng: random.Random, tensor: torch.Tensor) -> list[Any]:
    inner = rng.choice([extent for extent in range(1, tensor.numel() + 1) if tensor.numel() % extent == 0])
    return [[rng.choice([-1, tensor.numel() // inner]), inner]]


VIEWS: dict[str, Draw] = {
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.split.Tensor": lambda rng, x: [rng.randint(1, 4), _dim(rng, x)],
    "aten.split_with_sizes.default": _split_with_sizes,
    "aten.unbind.int": lambda rng, x: [_dim(rng, x)],
    "aten.permute.default": lambda rng, x: [[d - x.dim() for d in rng.sample(range(x.dim()), x.dim())]],
    "aten.transpose.int": lambda rng, x: [_dim(rng, x), _dim(rng, x)],
    "aten.unsqueeze.default": lambda rng, x: [rng.randint(-x.dim() - 1, x.dim())],
    "aten.squeeze.default": lambda rng, x: [],
    "aten.squeeze.dim": lambda rng, x: [_dim(rng, x)],
    "aten.squeeze.dims": _squeeze_dims,
    "aten.expand.default": _expand,
    "aten.alias.default": lambda rng, x: [],
    "aten.detach.default": lambda rng, x: [],
    "aten.view.default": _view,
    "aten._unsafe_view.default": _view,
    "aten.t.default": lambda rng, x: [],
}


def test_every_movement_spelling_is_drawn() -> None:
    assert set(VIEWS) == {name for row in TABLE if row.category == "movement" for name in row.spellings}


@pytest.mark.parametrize("spelling", VIEWS)
def test_offsets_and_shapes_of_views(spelling: str) -> None:
    rng = random.Random(spelling)
    seen_offsets: set[int] = set()
    for _ in range(120):
        source = _source(rng)
        if spelling == "aten.t.default" and source.dim() > 2:
            source = source.reshape(-1)
        if "view" in spelling:
            source = source.contiguous()
        arguments = VIEWS[spelling](rng, source)
        node, outputs = node_of_call(spelling, [source, *arguments])
        told = f"{spelling} {tuple(source.shape)} {source.stride()} {arguments}"
        real = tuple(output.storage_offset() - source.storage_offset() for output in outputs)
        assert view_offsets(node, TABLE) == real, told
        seen_offsets.update(real)
        bound = bind(node, TABLE)
        assert isinstance(bound, BoundCall)
        assert result_shapes(bound) == tuple(tuple(output.shape) for output in outputs), told
    moves = spelling.split(".")[1] in ("slice", "select", "split", "split_with_sizes", "unbind")
    assert (len(seen_offsets) > 5) == moves


def test_views_of_a_zero_dimensional_tensor() -> None:
    scalar = torch.zeros(())
    calls: list[tuple[str, list[Any]]] = [
        ("aten.view.default", [[1, 1]]),
        ("aten.expand.default", [[2, 3]]),
        ("aten.unsqueeze.default", [-1]),
        ("aten.permute.default", [[]]),
        ("aten.transpose.int", [0, -1]),
        ("aten.t.default", []),
        ("aten.squeeze.dim", [0]),
    ]
    for spelling, arguments in calls:
        node, outputs = node_of_call(spelling, [scalar, *arguments])
        bound = bind(node, TABLE)
        assert isinstance(bound, BoundCall)
        assert result_shapes(bound) == (tuple(outputs[0].shape),), spelling
        assert view_offsets(node, TABLE) == (0,)


REDUCTIONS: dict[str, Draw] = {
    "aten.sum.dim_IntList": lambda rng, x: [rng.choice([None, [], *_squeeze_dims(rng, x)]), rng.random() < 0.5],
    "aten.sum.default": lambda rng, x: [],
    "aten.mean.dim": lambda rng, x: [rng.choice([None, [], *_squeeze_dims(rng, x)]), rng.random() < 0.5],
    "aten.mean.default": lambda rng, x: [],
    "aten.amax.default": lambda rng, x: [*_squeeze_dims(rng, x), rng.random() < 0.5],
    "aten.amin.default": lambda rng, x: [*_squeeze_dims(rng, x), rng.random() < 0.5],
    "aten.any.dim": lambda rng, x: [_dim(rng, x), rng.random() < 0.5],
    "aten.any.dims": lambda rng, x: [rng.choice([None, [], *_squeeze_dims(rng, x)]), rng.random() < 0.5],
    "aten.any.default": lambda rng, x: [],
    "aten.all.dim": lambda rng, x: [_dim(rng, x), rng.random() < 0.5],
    "aten.all.dims": lambda rng, x: [rng.choice([None, [], *_squeeze_dims(rng, x)]), rng.random() < 0.5],
    "aten.all.default": lambda rng, x: [],
}


def test_every_reduction_spelling_is_drawn() -> None:
    assert set(REDUCTIONS) == {name for row in TABLE if row.category == "reduction" for name in row.spellings}


@pytest.mark.parametrize("spelling", REDUCTIONS)
def test_shapes_of_reductions(spelling: str) -> None:
    rng = random.Random(spelling)
    for _ in range(60):
        source = _source(rng)
        arguments = REDUCTIONS[spelling](rng, source)
        node, outputs = node_of_call(spelling, [source, *arguments])
        bound = bind(node, TABLE)
        assert isinstance(bound, BoundCall)
        assert result_shapes(bound) == (tuple(outputs[0].shape),), f"{spelling} {tuple(source.shape)} {arguments}"


def test_shapes_of_products_and_broadcasts() -> None:
    rng = random.Random(7)
    for _ in range(100):
        b, m, n, k = (rng.randint(0, 3) for _ in range(4))
        left, right = torch.zeros(b, m, k), torch.zeros(b, k, n)
        calls: list[tuple[str, list[Any]]] = [
            ("aten.bmm.default", [left, right]),
            ("aten.baddbmm.default", [torch.zeros(rng.choice([1, m]), n), left, right]),
            ("aten.mm.default", [torch.zeros(m, k), torch.zeros(k, n)]),
            ("aten.addmm.default", [torch.zeros(n), torch.zeros(m, k), torch.zeros(k, n)]),
        ]
        full = [rng.randint(0, 4) for _ in range(rng.randint(0, 3))]
        shapes = [[rng.choice([1, extent]) for extent in full][rng.randint(0, len(full)) :] for _ in range(3)]
        a, c, d = (torch.zeros(shape) for shape in shapes)
        calls += [
            ("aten.add.Tensor", [a, c]),
            ("aten.where.self", [a > 0, c, d]),
            ("aten._to_copy.default", [a]),
            ("aten.copy_.default", [torch.zeros(full), a]),
            ("aten.native_dropout.default", [a, 0.5, True]),
        ]
        for spelling, arguments in calls:
            node, outputs = node_of_call(spelling, arguments)
            bound = bind(node, TABLE)
            assert isinstance(bound, BoundCall)
            told = f"{spelling} {[tuple(t.shape) for t in arguments if isinstance(t, torch.Tensor)]}"
            assert result_shapes(bound) == tuple(tuple(output.shape) for output in outputs), told
