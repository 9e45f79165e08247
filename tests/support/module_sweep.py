"""PyTorch's module database through torch.compile and tessiq, against eager.

    python tests/support/module_sweep.py [--ops PATTERN] [--shard 0/2] [--samples 3] [--dtype float32] [--dynamic]

Each module runs two steps, in training and in evaluation: results, gradients of inputs and parameters, and the buffers
afterwards (running statistics are written exactly once a step) are compared. Verdicts, lines and exit status are those
of `support.operator_sweep`. About three minutes for the whole database on one idle core.
"""

from __future__ import annotations

import argparse
import collections
import copy
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo.backends.debugging import aot_eager
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils._pytree import tree_leaves, tree_map

from support.operator_sweep import SEED, Verdict, difference, first_line
from tessiq_core.capture import tessiq

STEPS = 2


def observe(module: torch.nn.Module, run: Callable[..., Any], given: Any) -> list[torch.Tensor | None]:
    """Results, gradients of inputs and parameters, and buffers, of each of `STEPS` calls."""
    seen: list[torch.Tensor | None] = []
    torch.manual_seed(SEED)
    for _ in range(STEPS):
        arguments, keywords = tree_map(_fresh, (tuple(given.args), given.kwargs))
        results = [leaf for leaf in tree_leaves(run(*arguments, **keywords)) if isinstance(leaf, torch.Tensor)]
        roots = [result for result in results if result.requires_grad and result.is_floating_point()]
        wanted = [t for t in [*tree_leaves((arguments, keywords)), *module.parameters()] if _wants_gradient(t)]
        seen += results
        if roots and wanted:
            cotangents = [torch.linspace(-1, 1, root.numel(), dtype=root.dtype).reshape(root.shape) for root in roots]
            seen += torch.autograd.grad(roots, wanted, cotangents, allow_unused=True)
        seen += [buffer.clone() for buffer in module.buffers()]
    return seen


def _fresh(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return copy.deepcopy(leaf.detach()).requires_grad_(leaf.requires_grad)


def _wants_gradient(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def check(
    info: ModuleInfo, dtype: torch.dtype, number: int, sample: ModuleInput, training: bool, dynamic: bool
) -> Verdict:
    """Run one sample of one module."""
    name = f"{info.name}{'.train' if training else '.eval'}"
    made = sample.constructor_input

    def build() -> torch.nn.Module:
        torch.manual_seed(SEED)
        module: torch.nn.Module = info.module_cls(*made.args, **made.kwargs)
        return module.to(dtype).train(training)

    try:
        module = build()
        expected = observe(module, module, sample.forward_input)
    except Exception as error:  # noqa: BLE001 - whatever eager raises makes it no sample
        return Verdict(name, dtype, number, "eager", first_line(error))

    def tried(backend: Callable[..., Any]) -> tuple[str, str]:
        torch._dynamo.reset()
        try:
            module = build()
            run = torch.compile(module, backend=backend, dynamic=dynamic)
            differs = difference(observe(module, run, sample.forward_input), expected, 10.0)
        except Exception as error:  # noqa: BLE001 - the verdict is the report
            return "raises", first_line(error)
        return ("wrong", differs) if differs else ("ok", "")

    verdict, detail = tried(tessiq)
    if verdict != "ok":
        reference, why = tried(aot_eager)
        if reference != "ok":
            verdict, detail = "theirs", f"{reference} {why}"
    return Verdict(name, dtype, number, verdict, detail)


def sweep(infos: Sequence[ModuleInfo], dtype: torch.dtype, samples: int, dynamic: bool = False) -> Iterator[Verdict]:
    """The verdict of the first `samples` samples of every module, in training and in evaluation."""
    for info in infos:
        for training in (True, False):
            torch.manual_seed(SEED)
            drawn = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for number, sample in enumerate(drawn[:samples]):
                yield check(info, dtype, number, sample, training, dynamic)


def main() -> int:
    """The command described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--ops", default="", help="a regular expression")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--dynamic", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    shard, shards = map(int, given.shard.split("/"))
    chosen = [info for info in module_db if re.search(given.ops, info.name)][shard::shards]
    counts: collections.Counter[str] = collections.Counter()
    for verdict in sweep(chosen, getattr(torch, given.dtype), given.samples, given.dynamic):
        counts[verdict.verdict] += 1
        if verdict.verdict != "ok":
            print(verdict, flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] or counts["raises"] else 0


if __name__ == "__main__":
    sys.exit(main())
