"""PyTorch's operator database through tessiq, against eager: results, gradients, written inputs, strides.

    python tests/support/operator_sweep.py [--dtype float32 ...] [--grad] [--inplace] [--noncontiguous] [--samples 2]
                                           [--ops PATTERN] [--shard 0/2] [--route aot|compile|dynamic]
                                           [--source sample|reference] [--emitter NAME] [--move]

One line a sample that is not as eager has it, then a count of each verdict; exit status 1 where a sample is wrong or
raises and aot_eager, PyTorch's own backend that compiles nothing, gets it right. Verdicts:

    ok       as eager has it
    finer    nearer to float64 than eager's own result, which rounds more often (half types)
    meta     as PyTorch's shape functions have it, whose strides are not those of its own kernels
    eager    eager itself refuses the sample, or gives two different results for it
    theirs   aot_eager is wrong or raises too: a limit of tracing, not of the compiler
    wrong    another value, dtype, shape, strides, or another written input
    raises   an exception eager does not raise

Two samples an operator in four dtypes take about three minutes on one idle core; `tests/cpu/test_operator_sweep.py`
runs a slice.
"""

from __future__ import annotations

import argparse
import collections
import copy
import faulthandler
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.backends.debugging import aot_eager
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from tessiq_core.capture import tessiq

UNINITIALIZED = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})
"""Operators whose values are whatever the memory held."""

SEED = 42
"""Some entries of the database set this seed inside the operator, where tracing sees it once: set before each call."""

TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-5, 1e-5),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-3),
}
"""Relative and absolute tolerance; integers and bools are compared exactly."""


@dataclass(frozen=True)
class Verdict:
    """What became of one sample; `detail` says what differed."""

    op: str
    dtype: torch.dtype
    sample: int
    verdict: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:7} {self.op} {str(self.dtype).removeprefix('torch.')} #{self.sample}: {self.detail}"


@dataclass(frozen=True)
class Settings:
    """How samples are run.

    route: "aot" traces with AOTAutograd alone, "compile" goes through torch.compile, "dynamic" too, with symbolic
           sizes.
    inplace: the in-place variant of the operator instead.
    noncontiguous: inputs strided, from memory with gaps.
    source: "sample" for the database's samples, "reference" for its longer list, with extremal values and broadcasting.
    calls: how often one compiled sample is called.
    """

    grad: bool = False
    inplace: bool = False
    noncontiguous: bool = False
    source: str = "sample"
    route: str = "aot"
    calls: int = 2
    options: tuple[tuple[str, Any], ...] = ()


def _leaves(sample: SampleInput) -> list[Any]:
    leaves: list[Any] = tree_leaves((sample.input, tuple(sample.args), dict(sample.kwargs)))
    return leaves


class Call(torch.nn.Module):
    """One sample as a module of its tensors, returning the tensors of the result."""

    def __init__(self, function: Callable[..., Any], sample: SampleInput) -> None:
        super().__init__()
        self.function = function
        leaves, self.spec = tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.leaves: list[Any] = []
        self.tensors: list[torch.Tensor] = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                same = [number for number, tensor in enumerate(self.tensors) if tensor is leaf]
                self.leaves.append(_Place(same[0] if same else len(self.tensors)))
                self.tensors += [] if same else [leaf]
            else:
                self.leaves.append(leaf)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = [tensors[leaf.number] if isinstance(leaf, _Place) else leaf for leaf in self.leaves]
        first, arguments, keywords = tree_unflatten(filled, self.spec)
        result = self.function(first, *arguments, **keywords)
        return tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))

    def fresh(self) -> list[torch.Tensor]:
        """Copies of the tensors in the same strides."""
        return [copy.deepcopy(tensor.detach()).requires_grad_(tensor.requires_grad) for tensor in self.tensors]


@dataclass(frozen=True)
class _Place:
    number: int


def observe(run: Callable[..., Any], call: Call, settings: Settings) -> list[torch.Tensor | None]:
    """Results, gradients, and inputs after the call, of one call on fresh inputs."""
    inputs = call.fresh()
    passed = inputs
    if settings.inplace and settings.grad:
        passed = [tensor.clone() if tensor.requires_grad else tensor for tensor in inputs]  # leaves may not be written
    torch.manual_seed(SEED)
    results: list[torch.Tensor | None] = list(run(*passed))
    if settings.grad:
        roots = [result for result in results if result is not None and result.requires_grad]
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        if roots and wanted:
            generator = torch.Generator().manual_seed(SEED)
            cotangents = [
                torch.randn(root.shape, generator=generator, dtype=root.dtype).to(root.dtype) for root in roots
            ]
            results += torch.autograd.grad(roots, wanted, cotangents, allow_unused=True)
    return results + list(passed)


def difference(
    got: Sequence[torch.Tensor | None],
    expected: Sequence[torch.Tensor | None],
    factor: float,
    strides: Sequence[list[int]] | None = None,
) -> str:
    """What differs, "" where nothing does. Strides are compared with those of `expected`, the first ones with `strides`
    where given."""
    if len(got) != len(expected):
        return f"{len(got)} results, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if one is None or other is None:
            if one is not other:
                return f"result {number}: one is None"
            continue
        rtol, atol = TOLERANCES.get(other.dtype, (1e-5, 1e-5) if other.is_complex() else (0.0, 0.0))
        try:
            torch.testing.assert_close(
                one.detach(),
                other.detach(),
                rtol=rtol * factor,
                atol=atol * factor,
                equal_nan=True,
            )
        except AssertionError as error:
            return f"result {number}: " + " ".join(str(error).split())
        wanted = strides[number] if strides is not None and number < len(strides) else addressing(other)
        if addressing(one) != wanted:
            return f"result {number}: strides {addressing(one)}, expected {wanted}"
    return ""


def addressing(tensor: torch.Tensor) -> list[int]:
    """The strides that address something, of a strided tensor: PyTorch itself is not of one mind about the others."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return []
    return [stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True) if extent > 1]


def recorded(call: Call) -> list[list[int]]:
    """Strides of the results by PyTorch's shape functions."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    fakes = [mode.from_tensor(tensor) for tensor in call.fresh()]
    with mode:
        return [addressing(result) for result in call(*fakes)]


def finer(got: Sequence[torch.Tensor | None], expected: Sequence[torch.Tensor | None], call: Call) -> bool:
    """Whether every floating result is at least as near as eager's to what eager computes in float64."""
    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in call.fresh()]
    torch.manual_seed(SEED)
    exact = call(*wide)
    for ours, theirs, value in zip(got, expected, exact, strict=False):
        if ours is None or theirs is None or ours.shape != value.shape or ours.dtype is not theirs.dtype:
            return False
        if not value.numel():
            continue
        if float((ours - value).abs().amax()) > float((theirs - value).abs().amax()):
            return False
    return True


def check(op: OpInfo, dtype: torch.dtype, number: int, sample: SampleInput, settings: Settings) -> Verdict:
    """Run one sample."""
    call = Call(op.inplace_variant if settings.inplace else op, sample)
    factor = 10.0 if settings.grad else 1.0
    try:
        expected = observe(call, call, settings)
        again = difference(observe(call, call, settings), expected, 1.0)
    except Exception as error:  # noqa: BLE001 - whatever eager raises makes it no sample
        return Verdict(op.full_name, dtype, number, "eager", first_line(error))
    if again:
        return Verdict(op.full_name, dtype, number, "eager", again)

    def tried(backend: Callable[..., Any]) -> tuple[str, str]:
        try:
            torch.manual_seed(SEED)
            if settings.route == "aot":
                run = backend(call, call.fresh())
            else:
                torch._dynamo.reset()
                run = torch.compile(call, backend=backend, dynamic=settings.route == "dynamic")
            for _ in range(settings.calls):
                got = observe(run, call, settings)
                differs = difference(got, expected, factor)
                if differs and not difference(got, expected, factor, recorded(call)):
                    return "meta", differs
                if differs and dtype.itemsize == 2 and not settings.grad and finer(got, expected, call):
                    return "finer", differs
                if differs:
                    return "wrong", differs
        except Exception as error:  # noqa: BLE001 - the verdict is the report
            return "raises", first_line(error)
        return "ok", ""

    def ours(gm: Any, inputs: Any) -> Any:
        return tessiq(gm, inputs, options=dict(settings.options))

    verdict, detail = tried(ours)
    if verdict in ("wrong", "raises"):
        reference, why = tried(aot_eager)
        if reference in ("wrong", "raises"):
            verdict, detail = "theirs", f"{reference} {why}"
    return Verdict(op.full_name, dtype, number, verdict, detail)


def first_line(error: Exception) -> str:
    """Type, first and last line of what an exception says."""
    text = str(error).strip() or "no text"
    return f"{type(error).__name__}: {text.splitlines()[0]} … {text.splitlines()[-1]}"[:400]


def sweep(ops: Sequence[OpInfo], dtypes: Sequence[torch.dtype], samples: int, settings: Settings) -> Iterator[Verdict]:
    """The verdict of the first `samples` samples of every operator and dtype it supports."""
    for op in ops:
        if op.name in UNINITIALIZED or (settings.inplace and op.inplace_variant is None):
            continue
        for dtype in dtypes:
            supported = op.supported_backward_dtypes("cpu") if settings.grad else op.supported_dtypes("cpu")
            if dtype not in supported or (settings.grad and not op.supports_autograd):
                continue
            torch.manual_seed(SEED)
            draw = op.reference_inputs if settings.source == "reference" else op.sample_inputs
            for number, sample in enumerate(draw("cpu", dtype, requires_grad=settings.grad)):
                if number >= samples:
                    break
                if settings.noncontiguous:
                    if any(isinstance(t, torch.Tensor) and t.layout is not torch.strided for t in _leaves(sample)):
                        continue  # only strided tensors have gaps
                    sample = sample.noncontiguous()
                yield check(op, dtype, number, sample, settings)


def main() -> int:
    """The command described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", nargs="*", default=["float32"])
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--inplace", action="store_true")
    parser.add_argument("--noncontiguous", action="store_true")
    parser.add_argument("--source", choices=("sample", "reference"), default="sample")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--ops", default="", help="a regular expression")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--route", choices=("aot", "compile", "dynamic"), default="aot")
    parser.add_argument("--emitter")
    parser.add_argument("--move", action="store_true", help="adopt=False: real transfers")
    parser.add_argument("--trace", action="store_true", help="print each operator before it runs")
    given = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    options = {"emitter": given.emitter} if given.emitter else {}
    options |= {"adopt": False} if given.move else {}
    settings = Settings(
        given.grad, given.inplace, given.noncontiguous, given.source, given.route, options=tuple(options.items())
    )
    shard, shards = map(int, given.shard.split("/"))
    chosen = [op for op in op_db if re.search(given.ops, op.full_name)][shard::shards]
    counts: collections.Counter[str] = collections.Counter()
    for op in chosen:
        if given.trace:
            print(f"run     {op.full_name}", file=sys.stderr, flush=True)
        for verdict in sweep([op], [getattr(torch, name) for name in given.dtype], given.samples, settings):
            counts[verdict.verdict] += 1
            if verdict.verdict not in ("ok", "eager", "meta", "finer"):
                print(verdict, flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] or counts["raises"] else 0


if __name__ == "__main__":
    sys.exit(main())
