"""The lines random programs are made of: templates of torch calls, and what each does to exactness.

A template is Python with `{0}`, `{1}`, … for its operands. The generator runs every line on real tensors before it
keeps it, so a template need not always be valid for its operands.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch

from support.program_pool import Line, Pool, broadcasts

DTYPES = (
    torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8, torch.bool,
)  # fmt: skip


Make = Callable[[Pool], Line | None]


def floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def _name(dtype: torch.dtype) -> str:
    return str(dtype)


def _scalar(choose: random.Random) -> str:
    return choose.choice(("0", "1", "2", "-3", "True", "False", "0.5", "-1.5", "2.0", "0.0", "3.0", "-0.0"))


UNARY_EXACT = (
    "-{0}", "torch.abs({0})", "F.relu({0})", "torch.square({0})", "{0} * {0}", "{0}.clone()", "torch.positive({0})",
    "{0}.contiguous()", "torch.clamp({0}, -1, 2)", "{0}.clamp(min=-1)", "{0}.clamp(max=0.5)", "torch.clamp({0}, 3, 1)",
    "torch.clamp_min({0}, 0)", "F.hardtanh({0})", "F.leaky_relu({0}, 0.5)", "{0} ** 2", "{0} ** 3", "{0} ** 1.0",
    "torch.pow({0}, 0)", "F.threshold({0}, 0.5, 7)", "torch.nan_to_num({0})", "{0}.detach()", "{0} + 0", "{0} * 1.0",
    "{0}.clone(memory_format=torch.contiguous_format)", "torch.rsub({0}, 2)", "torch.rsub({0}, {0}, alpha=2)",
    "F.relu6({0})", "torch.add({0}, 3, alpha=2)", "torch.sub({0}, 0.5, alpha=2)", "{0}.to({0}.dtype, copy=True)",
    "torch.alias_copy({0})", "{0}.lerp({0}, 0.5)",
)  # fmt: skip
UNARY_JUMPS = (
    "torch.logical_not({0})", "torch.isnan({0})", "torch.floor({0})", "torch.ceil({0})", "torch.trunc({0})",
    "torch.sign({0})", "torch.isfinite({0})", "~{0}", "torch.round({0})", "torch.bitwise_not({0})", "{0} == {0}",
    "torch.heaviside({0}, {0})", "torch.isinf({0})", "torch.signbit({0})", "torch.frac({0})",
)  # fmt: skip
UNARY_NEAR = (
    "torch.exp({0})", "torch.log({0})", "torch.erf({0})", "torch.tanh({0})", "torch.sigmoid({0})", "torch.sqrt({0})",
    "torch.rsqrt({0})", "torch.reciprocal({0})", "F.gelu({0})", "F.gelu({0}, approximate='tanh')", "F.silu({0})",
    "torch.sin({0})", "torch.log1p({0})", "torch.expm1({0})", "F.softplus({0})", "F.elu({0})", "{0} ** 0.5",
    "{0} ** -1", "{0} ** 2.5", "{0} ** -0.5", "{0} ** -2", "2.0 ** {0}", "F.mish({0})", "torch.logit({0}, 0.1)",
    "F.hardswish({0})", "{0} / 3", "1 / {0}", "torch.div({0}, 7)", "torch.atan({0})",
)  # fmt: skip
BINARY_EXACT = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "torch.maximum({0}, {1})", "torch.minimum({0}, {1})",
    "torch.add({0}, {1}, alpha=2)", "torch.sub({0}, {1}, alpha=3)", "torch.rsub({0}, {1})",
    "torch.fmax({0}, {1})", "torch.clamp({0}, min={1})", "torch.clamp_max({0}, {1})", "torch.clamp({0}, {1}, {0})",
    "torch.addcmul({0}, {0}, {1}, value=2)",
)  # fmt: skip
BINARY_JUMPS = (
    "{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}", "{0} == {1}", "{0} != {1}", "torch.logical_and({0}, {1})",
    "torch.logical_or({0}, {1})", "torch.logical_xor({0}, {1})", "{0} & {1}", "{0} | {1}", "{0} ^ {1}",
    "torch.remainder({0}, {1}.abs() + 1)", "torch.fmod({0}, {1}.abs() + 1)", "torch.isclose({0}, {0})",
    "torch.div({0}, {1}.abs() + 1, rounding_mode='floor')", "torch.div({0}, {1}.abs() + 1, rounding_mode='trunc')",
)  # fmt: skip
BINARY_NEAR = (
    "{0} / {1}", "torch.true_divide({0}, {1})", "torch.atan2({0}, {1})", "torch.hypot({0}, {1})",
    "torch.div({0}, {1}, rounding_mode=None)", "torch.lerp({0}, {1}, 0.25)", "torch.addcdiv({0}, {0}, {1})",
    "torch.xlogy({0}, {1})",
)  # fmt: skip
SCALAR_EXACT = (
    "{0} + S", "S + {0}", "{0} - S", "S - {0}", "{0} * S", "S * {0}", "torch.mul({0}, S)",
    "torch.where({0} > S, {0}, S)", "torch.maximum({0}, torch.tensor(S))", "{0} + torch.tensor(S)",
    "torch.tensor(S) - {0}", "torch.full_like({0}, S)", "{0}.new_full((3,), S)", "torch.clamp({0}, min=S)",
)  # fmt: skip
SCALAR_JUMPS = ("{0} < S", "S <= {0}", "{0} == S", "{0} != S", "{0} >= S", "S > {0}")


def unary(pool: Pool) -> Line | None:
    kind = pool.choose.random()
    if kind < 0.4:
        return _with(pool, pool.choose.choice(UNARY_EXACT))
    if kind < 0.6:
        return _with(pool, pool.choose.choice(UNARY_JUMPS), jumps=True)
    return _with(pool, pool.choose.choice(UNARY_NEAR), near=True)


def _with(pool: Pool, template: str, near: bool = False, jumps: bool = False, results: int = 1) -> Line | None:
    name = pool.pick()
    return None if name is None else Line(template, (name,), near, jumps, results=results)


def binary(pool: Pool) -> Line | None:
    one = pool.pick()
    other = None if one is None else pool.partner(one)
    if one is None or other is None:
        return None
    pair = (one, other) if pool.choose.random() < 0.5 else (other, one)
    kind = pool.choose.random()
    if kind < 0.5:
        return Line(pool.choose.choice(BINARY_EXACT), pair)
    if kind < 0.8:
        return Line(pool.choose.choice(BINARY_JUMPS), pair, jumps=True)
    return Line(pool.choose.choice(BINARY_NEAR), pair, near=True)


def with_scalar(pool: Pool) -> Line | None:
    jumps = pool.choose.random() < 0.3
    template = pool.choose.choice(SCALAR_JUMPS if jumps else SCALAR_EXACT)
    return _with(pool, template.replace("S", _scalar(pool.choose)), jumps=jumps or "where" in template)


def select_by(pool: Pool) -> Line | None:
    mask = pool.pick(lambda t: t.dtype is torch.bool)
    one = pool.partner(mask) if mask else None
    other = pool.partner(mask) if mask else None
    if mask is None or one is None or other is None:
        return None
    template = pool.choose.choice(
        (
            "torch.where({0}, {1}, {2})",
            "torch.where({0}, {1}, 0.5)",
            "torch.where({0}, 1, {2})",
            "{1}.masked_fill({0}, 0.5)",
            "torch.where({0}, 1.0, 2)",
            "{1}.masked_fill({0}, -3)",
        )
    )
    return Line(template, (mask, one, other))


def cast(pool: Pool) -> Line | None:
    name = pool.pick()
    if name is None:
        return None
    dtype = pool.choose.choice(DTYPES)
    if floating(pool[name]) and not dtype.is_floating_point and dtype is not torch.bool:
        # Out of range the result is whatever the machine makes of it.
        low = 0 if dtype is torch.uint8 else -100
        return Line(f"torch.nan_to_num({{0}}, 0.0).clamp({low}, 100).to({_name(dtype)})", (name,), jumps=True)
    form = pool.choose.choice(("{0}.to(D)", "{0}.to(D, copy=True)", "{0}.type(D)"))
    return Line(form.replace("D", _name(dtype)), (name,), jumps=not dtype.is_floating_point)


def view(pool: Pool) -> Line | None:
    name = pool.pick()
    if name is None:
        return None
    tensor, choose = pool[name], pool.choose
    rank = tensor.dim()
    dim = choose.randrange(-rank, rank) if rank else 0
    other = choose.randrange(rank) if rank else 0
    extent = tensor.shape[dim] if rank else 1
    options = [f"{{0}}.unsqueeze({choose.randrange(rank + 1)})", "{0}.squeeze()", "{0}.reshape(-1)", "{0}.flatten()"]
    options += ["{0}.view(-1)", "{0}.expand(2, *{0}.shape)", "{0}.view_as({0})", "{0}[None]", "{0}[...]"]
    options += ["{0}.unsqueeze(-1).expand(*{0}.shape, 3)"]
    if rank:
        low, step = choose.randrange(-extent - 1, extent + 1), choose.randrange(1, 4)
        order = list(range(rank))
        choose.shuffle(order)
        front = ":, " * (dim % rank)
        options += [
            f"{{0}}.transpose({dim}, {other})", f"{{0}}.permute({', '.join(map(str, order))},)",
            f"{{0}}[{front}{low}::{step}]", f"{{0}}[{front}:{low}]", f"{{0}}[{front}1:-1:{step}]",
            f"{{0}}.flip({dim})", f"{{0}}.roll(1, {dim})", f"{{0}}.squeeze({dim})", f"{{0}}.movedim({dim}, 0)",
            f"{{0}}.repeat({'2, ' * rank})", f"{{0}}.unflatten({dim}, (-1, 1))", f"{{0}}.swapaxes({dim}, {other})",
            "{0}.tile((2,))", "{0}.expand_as({0})", f"{{0}}.repeat_interleave(2, {dim})",
        ]  # fmt: skip
        if extent:
            place = choose.randrange(-extent, extent)
            options += [f"{{0}}.select({dim}, {place})", f"{{0}}[{front}{place}]", f"{{0}}.narrow({dim}, 0, 1)"]
    if rank >= 2:
        options += ["{0}.reshape({0}.shape[0] * {0}.shape[1], *{0}.shape[2:])", "{0}.mT", "{0}.diagonal()"]
        options += ["{0}.reshape(*reversed({0}.shape))", "{0}.view(*{0}.shape[:-1], 1, {0}.shape[-1])", "{0}.tril()"]
        options += ["{0}.transpose(0, 1).contiguous()", "{0}.flatten(0, 1)", "{0}.transpose(0, -1).reshape(-1)"]
        options += ["F.pad({0}, (1, 1))", "{0}.triu(1)", "{0}.unfold(1, 2, 1)"]
    if rank == 2:
        options += ["{0}.t()", "{0}.T"]
    if rank == 4:
        options += ["{0}.contiguous(memory_format=torch.channels_last)", "{0}.to(memory_format=torch.channels_last)"]
    if tensor.numel() >= 4 and tensor.is_contiguous():
        options += ["{0}.as_strided((2, 2), (1, 1))", "{0}.as_strided((2,), (2,), 1)"]
    return Line(choose.choice(options), (name,))


def parts(pool: Pool) -> Line | None:
    name = pool.pick(lambda t: t.dim() > 0 and t.shape[-1] > 0)
    if name is None:
        return None
    dim = pool.choose.randrange(pool[name].dim())
    extent = pool[name].shape[dim]
    if extent == 0:
        return None
    form = pool.choose.randrange(4)
    if form == 0 and extent <= 7:
        return Line(f"{{0}}.unbind({dim})", (name,), many=True, results=extent)
    if form == 1:
        size = pool.choose.randrange(1, extent + 1)
        return Line(f"{{0}}.split({size}, {dim})", (name,), many=True, results=-(-extent // size))
    if form == 2:
        first = pool.choose.randrange(extent + 1)
        return Line(f"{{0}}.split([{first}, {extent - first}], {dim})", (name,), many=True, results=2)
    return Line(f"{{0}}.chunk(2, {dim})", (name,), many=True, results=len(pool[name].chunk(2, dim)))


def reduction(pool: Pool) -> Line | None:
    name = pool.pick()
    if name is None:
        return None
    choose = pool.choose
    rank = pool[name].dim()
    dim = choose.randrange(-rank, rank) if rank else 0
    dims = choose.sample(range(rank), choose.randrange(rank + 1)) if rank else []
    keep = choose.choice((True, False))
    near = choose.random() < 0.7
    if not near:
        exact = [f"{{0}}.amax({dims}, keepdim={keep})", f"{{0}}.amin({dim})", "{0}.amax()", f"{{0}}.any({dim})",
                 f"{{0}}.all({dim}, keepdim={keep})", "{0}.any()", "{0}.all()", f"{{0}}.argmax({dim})",
                 f"torch.count_nonzero({{0}}, {dim})", f"{{0}}.max({dim}).values", f"{{0}}.sort({dim}).values",
                 "{0}.max()", f"{{0}}.argmin({dim}, keepdim={keep})", f"torch.any({{0}}, dim={dims})",
                 f"torch.all({{0}}, dim={dims}, keepdim={keep})"]  # fmt: skip
        return Line(choose.choice(exact), (name,), jumps=True)
    forms = [f"{{0}}.sum({dims}, keepdim={keep})", "{0}.sum()", f"{{0}}.sum({dim})", f"{{0}}.mean({dim}, {keep})",
             "{0}.mean()", f"{{0}}.mean({dims}, keepdim={keep})", f"{{0}}.softmax({dim})", f"{{0}}.log_softmax({dim})",
             f"{{0}}.cumsum({dim})", f"{{0}}.prod({dim})", f"{{0}}.var({dim}, keepdim={keep})",
             f"{{0}}.logsumexp({dim})", f"{{0}}.sum({dim}, dtype=torch.float64)",
             f"{{0}}.sum({dims}, dtype=torch.float32)",
             f"{{0}}.softmax({dim}, dtype=torch.float32)", "{0}.norm()",
             f"torch.var_mean({{0}}, {dim})[1]", "F.layer_norm({0}, {0}.shape[-1:])",
             f"F.normalize({{0}}, dim={dim})", f"{{0}}.std({dim}, correction=0)",
             f"{{0}}.mean({dim}, dtype=torch.float64)"]  # fmt: skip
    return Line(choose.choice(forms), (name,), near=True)


def joined(pool: Pool) -> Line | None:
    one = pool.pick(lambda t: t.dim() > 0)
    if one is None:
        return None
    dim = pool.choose.randrange(pool[one].dim())
    shape = pool[one].shape
    other = pool.pick(
        lambda t: (
            t.dim() == len(shape)
            and all(a == b for i, (a, b) in enumerate(zip(t.shape, shape, strict=True)) if i != dim)
        )
    )
    if other is None:
        return None
    if pool[other].shape == shape and pool.choose.random() < 0.4:
        return Line(f"torch.stack([{{0}}, {{1}}], {pool.choose.randrange(len(shape) + 1)})", (one, other))
    return Line(f"torch.cat([{{0}}, {{1}}, {{0}}], {dim})", (one, other))


def product(pool: Pool) -> Line | None:
    one = pool.pick(lambda t: floating(t) and t.dim() > 0)
    if one is None:
        return None
    a = pool[one]
    other = pool.pick(
        lambda t: t.dtype == a.dtype and t.dim() > 0 and a.shape[-1] == t.shape[-2 if t.dim() > 1 else -1]
    )
    forms = ["torch.matmul({0}, {1})", "{0} @ {1}"]
    if other is None or pool.choose.random() < 0.4:
        other = pool.pick(lambda t: t.dtype == a.dtype and t.dim() > 0 and a.shape[-1] == t.shape[-1])
        forms = [
            "F.linear({0}, {1})",
            "{0} @ {1}.mT",
            "torch.matmul({0}, {1}.transpose(-1, -2))",
            "torch.outer({0}, {1})",
        ]
        if other is not None and pool[other].dim() == 2 and a.dim() == 2:
            rows, columns = a.shape[0], pool[other].shape[0]
            forms += [f"torch.addmm({{0}}.new_ones({columns}), {{0}}, {{1}}.t())",
                      f"F.linear({{0}}, {{1}}, {{1}}.new_full(({columns},), 0.5))",
                      f"torch.addmm({{0}}.new_ones({rows}, 1), {{0}}, {{1}}.t(), beta=2, alpha=0.5)",
                      f"torch.addmm({{0}}.new_ones({rows}, {columns}), {{0}}, {{1}}.t(), beta=0)"]  # fmt: skip
        elif other is not None and pool[other].dim() == 3 and a.dim() == 3:
            forms += ["torch.bmm({0}, {1}.mT)", "torch.baddbmm({0}.new_ones(1), {0}, {1}.mT)",
                      "F.scaled_dot_product_attention({0}, {1}, {1})"]  # fmt: skip
    return None if other is None else Line(pool.choose.choice(forms), (one, other), near=True)


def indexed(pool: Pool) -> Line | None:
    name = pool.pick(lambda t: t.dim() > 0 and t.shape[0] > 0)
    index = pool.pick(lambda t: t.dtype is torch.int64 and t.dim() == 1)
    if name is None or index is None:
        return None
    place = "{1}.remainder({0}.shape[0])"
    form = pool.choose.choice(
        (f"{{0}}[{place}]", f"torch.index_select({{0}}, 0, {place})", "{0}[..., {1}.clamp(0, 0)]")
    )
    return Line(form, (name, index))


def created(pool: Pool) -> Line | None:
    name = pool.pick()
    if name is None:
        return None
    form = pool.choose.choice(
        ("torch.zeros_like({0})", "torch.ones_like({0})", "torch.tensor([1.0, -2.0, 0.5])", "{0}.new_zeros((2, 3))",
         "torch.tensor(3)", "torch.tensor([[1, 2], [3, 4]])", "torch.arange({0}.dim() + 2)", "torch.eye(3)",
         "torch.full((2, 3), 1.5)", "torch.empty_like({0}).fill_(1)", "torch.ones((3,), dtype=torch.float64)",
         "torch.full((), 2)", "torch.arange(7, dtype=torch.float32)", "torch.linspace(0, 1, 3)")
    )  # fmt: skip
    return Line(form, (name,))


def drawn(pool: Pool) -> Line | None:
    return _with(
        pool,
        pool.choose.choice(
            ("torch.rand_like({0})", "F.dropout({0}, 0.5)", "torch.randn(3)",
             "torch.bernoulli(torch.full_like({0}, 0.5))",
             "torch.randint(0, 5, {0}.shape)", "torch.randn_like({0})")
        ),
        near=True,
    )  # fmt: skip


def write(pool: Pool) -> Line | None:
    target = pool.pick()
    if target is None:
        return None
    tensor, choose = pool[target], pool.choose
    value = pool.pick(lambda t: broadcasts(tensor.shape, t.shape) and t.dim() <= tensor.dim())
    forms = ["{0}.add_(1)", "{0}.mul_(2)", "{0}.zero_()", "{0}.fill_(3)", "{0}.neg_()", "{0}.clamp_(0, 1)",
             "{0}.relu_()",
             "{0}.detach().add_(1)", "{0}.square_()", "{0}[...] = 2", "{0}.view(-1).mul_(3)",
             "{0}.reshape(-1).sub_(1)"]  # fmt: skip
    jumps = near = False
    if tensor.dim():
        axis = choose.randrange(tensor.dim())
        front = ":, " * axis
        forms += [f"{{0}}[{front}::2] = 1", f"{{0}}[{front}0].add_(1)", f"{{0}}[{front}-1:].mul_(-1)",
                  f"{{0}}.transpose(0, {axis}).add_(2)", f"{{0}}.unbind({axis})[0].zero_()",
                  f"{{0}}[{front}1:].copy_({{0}}[{front}:-1].clone())"]  # fmt: skip
    if value is not None and choose.random() < 0.7:
        if floating(pool[value]) and not floating(tensor):
            return None  # it converts, out of range perhaps
        forms = ["{0}.copy_({1})", "{0}.add_({1})", "{0}.mul_({1})", "{0}.sub_({1}, alpha=2)", "{0}[...] = {1}",
                 "{0}.masked_fill_({1} > 0, 1)",
                 "{0}.addcmul_({1}, {1})", "{0}.logical_and_({1})", "torch.maximum({0}, {1}, out={0})"]  # fmt: skip
        if tensor.dim():
            forms += ["{0}[:1].add_({1}[:1])", "{0}[0] = {1}[0]", "{0}.t().add_({1}.t())"]
        if floating(tensor):
            forms += ["{0}.div_({1})"]
        form = choose.choice(forms)
        jumps = ">" in form or "logical" in form
        near = "div_" in form
        return Line(form, (target, value), near=near, jumps=jumps, writes=True, results=0)
    if floating(tensor) and choose.random() < 0.2:
        return Line(
            choose.choice(("{0}.exp_()", "{0}.sigmoid_()", "{0}.uniform_()", "{0}.div_(3)")),
            (target,),
            near=True,
            writes=True,
            results=0,
        )
    return Line(choose.choice(forms), (target,), writes=True, results=0)


def convolution(pool: Pool) -> Line | None:
    name = pool.pick(lambda t: floating(t) and t.dim() == 4 and 0 < t.shape[1] <= 7)
    if name is None:
        return None
    channels = pool[name].shape[1]
    return Line(
        pool.choose.choice(
            (f"F.conv2d({{0}}, torch.ones_like({{0}}[0, 0, 0, 0]).expand(2, {channels}, 1, 1).contiguous())",
             f"F.conv2d({{0}}, {{0}}.new_full((3, {channels}, 3, 3), 0.5), {{0}}.new_full((3,), 0.25), padding=1)",
             "F.max_pool2d({0}, 2)", "F.avg_pool2d({0}, 2)", "F.adaptive_avg_pool2d({0}, 1)",
             f"F.batch_norm({{0}}, {{0}}.new_zeros({channels}), {{0}}.new_ones({channels}))",
             f"F.batch_norm({{0}}, {{0}}.new_zeros({channels}), {{0}}.new_ones({channels}), training=True)",
             "F.interpolate({0}, scale_factor=2.0)")
        ),
        (name,),
        near=True,
    )  # fmt: skip


MAKERS: tuple[tuple[Make, int], ...] = (
    (unary, 14), (binary, 14), (with_scalar, 10), (select_by, 6), (cast, 7), (view, 20), (parts, 3), (reduction, 7),
    (joined, 4), (product, 4), (indexed, 2), (created, 4), (drawn, 2), (write, 12), (convolution, 2),
)  # fmt: skip


def draft(pool: Pool) -> Line | None:
    """A line on what the pool has, or None where the chosen kind has no operands there."""
    makers: list[Make] = [maker for maker, _ in MAKERS]
    chosen: Make = pool.choose.choices(makers, [weight for _, weight in MAKERS])[0]
    return chosen(pool)
