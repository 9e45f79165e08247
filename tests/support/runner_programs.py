"""Small programs whose calls meet everything a runner must handle; each makes its arguments anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional as F

Program = Callable[..., Any]
Arguments = Callable[[], tuple[Any, ...]]


def _some(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _x() -> tuple[Any, ...]:
    return (_some(4, 6),)


def _xy() -> tuple[Any, ...]:
    return _some(4, 6), _some(4, 6, seed=1)


def _image() -> tuple[Any, ...]:
    return (_some(2, 3, 8, 8).contiguous(memory_format=torch.channels_last),)


def _transposed() -> tuple[Any, ...]:
    return (_some(6, 4).t(),)


def _sliced() -> tuple[Any, ...]:
    return (_some(8, 6)[2:6],)


def _in_place(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def _copy_into(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_(y.sin())


def _half_written(x: torch.Tensor) -> torch.Tensor:
    x[1:3].mul_(2)
    return x.sum()


def _view_written(x: torch.Tensor) -> torch.Tensor:
    x.t()[0].zero_()
    return x + 1


def _dropout(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5) + torch.rand(4, 6) + torch.bernoulli(torch.full((4, 6), 0.5))


def _branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def _expert(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(x.unsqueeze(0), x.unsqueeze(0), w.unsqueeze(0)).squeeze(0)


PROGRAMS: Mapping[str, tuple[Program, Arguments]] = {
    # views
    "transpose": (lambda x: x.t(), _x),
    "slice": (lambda x: x[1:3, ::2] * 1.5, _x),
    "select": (lambda x: (x[2], x[:, -1]), _x),
    "view_of_view": (lambda x: x.t()[1:].unsqueeze(0).expand(3, 5, 4), _x),
    "view_of_sliced_input": (lambda x: (x[1:] + 1, x[:, 2:]), _sliced),
    "reshape_copies": (lambda x: x.t().reshape(3, 8), _x),
    "expand": (lambda x: x[:, :1].expand(4, 6) + x, _x),
    "unbind": (lambda x: torch.unbind(x), _x),
    "split": (lambda x: torch.split(x, [1, 3], 0), _x),
    "chunk_sum": (lambda x: sum(torch.chunk(x, 3, 1)), _x),
    "as_strided": (lambda x: torch.as_strided(x, (3, 3), (2, 1), 1) + 1, _x),
    "diagonal": (lambda x: x.diagonal() * 2, _x),
    "narrow_then_mm": (lambda x: x.narrow(0, 1, 2) @ x.t(), _x),
    "input_itself": (lambda x: (x, x + 1), _x),
    "alias_of_output": (lambda x: (lambda y: (y, y.t()))(x.cos().cumsum(0)), _x),
    # numbers, None, lists
    "int_output": (lambda x: (x + 1, x.shape[0], 3), _x),
    "none_output": (lambda x: (None, x * 2), _x),
    "only_none": (lambda x: None, _x),
    "number_arguments": (lambda x, n: x * n + n, lambda: (_some(3), 4)),
    "float_argument": (lambda x, a: torch.add(x, x, alpha=a), lambda: (_some(3), 0.5)),
    "list_argument": (lambda xs: torch.cat(xs), lambda: ([_some(2, 3), _some(1, 3)],)),
    "stack": (lambda x, y: torch.stack([x, y, x], 1), _xy),
    "dictionary": (lambda x: {"a": x.exp(), "b": [x, x.abs()]}, _x),
    "no_inputs": (lambda: torch.arange(5) * 2, lambda: ()),
    # wrapped numbers and promotion
    "int_times_two": (lambda x: x * 2, lambda: (torch.arange(4, dtype=torch.int8),)),
    "int_times_float": (lambda x: x * 2.5, lambda: (torch.arange(4, dtype=torch.int8),)),
    "half_plus_number": (lambda x: x + 1e-3, lambda: (_some(4, dtype=torch.float16),)),
    "number_minus": (lambda x: 1 - x, lambda: (torch.arange(4, dtype=torch.uint8),)),
    "true_divide": (lambda x: x / 3, lambda: (torch.arange(4),)),
    "power": (lambda x: 2**x, _x),
    "where_number": (lambda x: torch.where(x > 0, x, 0.0), _x),
    "remainder_number": (lambda x: torch.remainder(x, 3), lambda: (torch.arange(-4, 4),)),
    "complex": (lambda x: (x + 1j) * x, _x),
    "scalar_tensor": (lambda x: x * torch.tensor(2.0), _x),
    # mutation
    "in_place": (_in_place, _x),
    "copy_into": (_copy_into, _xy),
    "half_written": (_half_written, _x),
    "view_written": (_view_written, _x),
    "written_transposed": (_in_place, _transposed),
    "fill": (lambda x: x.zero_().fill_(3), _x),
    "index_put": (lambda x, i: x.index_put_((i,), torch.ones(6)), lambda: (_some(4, 6), torch.tensor([0, 2]))),
    # random
    "dropout": (_dropout, _x),
    "randn_like": (lambda x: torch.randn_like(x) + torch.randint(0, 5, (4, 6)), _x),
    "normal": (lambda x: torch.normal(x, 1.0), _x),
    # several results
    "var_mean": (lambda x: torch.var_mean(x, 0), _x),
    "sort": (lambda x: torch.sort(x, 1), _x),
    "topk_values": (lambda x: torch.topk(x, 2)[0], _x),
    "max_dim": (lambda x: x.max(1), _x),
    "unique_counts": (lambda x: torch.aminmax(x), _x),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), _x),
    "batch_norm": (
        lambda x, m, v: F.batch_norm(x, m, v, training=True),
        lambda: (_some(4, 6), torch.zeros(6), torch.ones(6)),
    ),
    # lists, optional tensors, labels
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), lambda: (*_image(), _some(4, 3, 3, 3, seed=2))),
    "channels_last": (lambda x: x.relu() + 1, _image),
    "channels_last_pool": (lambda x: F.max_pool2d(x, 2), _image),
    "to_channels_last": (lambda x: (x * 2).contiguous(memory_format=torch.channels_last), lambda: (_some(2, 3, 4, 4),)),
    "to_double": (lambda x: x.to(torch.float64).cumsum(0), _x),
    "zeros_like": (lambda x: torch.zeros_like(x, dtype=torch.int32) + torch.ones(4, 6, device="cpu"), _x),
    "index": (lambda x, i: x[:, i], lambda: (_some(4, 6), torch.tensor([5, 0]))),
    "index_two": (lambda x, i: x[i, i], lambda: (_some(4, 6), torch.tensor([3, 0]))),
    "pad": (lambda x: F.pad(x, (1, 2)), _x),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0), _image),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), lambda: (_some(2, 2, 5, 8),)),
    "foreach": (lambda x, y: torch._foreach_add([x, y], [y, x]), _xy),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), _xy),
    "products": (lambda x, y: (x @ y.t(), _expert(x @ y.t(), y @ x.t())), _xy),
    "string_argument": (lambda x: torch.div(x, 2, rounding_mode="floor"), _x),
    "sum_dims": (lambda x: (x.sum((0, 1)), x.mean(1, keepdim=True), x.amax(0)), _x),
    "nonzero": (lambda x: torch.nonzero(x.relu()), _x),
    # empty and odd
    "empty": (lambda x: (x + 1, x.sum(), x.t()), lambda: (torch.empty(0, 5),)),
    "empty_product": (lambda x: x @ x.t(), lambda: (torch.empty(3, 0),)),
    "rank_zero": (lambda x: x.exp() + 1, lambda: (torch.tensor(1.5),)),
    "one_element_strides": (lambda x: x + 1, lambda: (torch.empty_strided((1, 3), (7, 1)).fill_(2.0),)),
    "non_contiguous": (lambda x: x.sigmoid() * 2, _transposed),
    "negative_view": (lambda x: (x + 1, x.t(), x[1:]), lambda: (torch._neg_view(_some(4, 6)),)),
    "cond": (_branch, _x),
}
