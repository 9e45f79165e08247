"""The values tracing records on FX nodes, and those it leaves out."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator
from torch.fx.node import map_arg

from tessiq_core.capture.operators import attribute_of


def record_missing(module: torch.fx.GraphModule) -> None:
    """Record `meta["val"]` on the higher-order calls of `module` that have none, by running them on fake tensors.

    Where a random operator is computed again in the backward pass (a checkpoint with dropout), the partitioner calls it
    through `run_and_save_rng_state` and `run_with_rng_state` and records only the values of their readers. A node whose
    arguments have no recorded value, or no fake one, stays as it is.
    """
    for node in module.graph.nodes:
        if "val" in node.meta or not isinstance(node.target, HigherOrderOperator):
            continue
        if any("val" not in read.meta for read in node.all_input_nodes if read.op != "get_attr"):
            continue
        fake = detect_fake_mode([read.meta.get("val") for read in node.all_input_nodes])
        if fake is None:
            continue
        arguments, keywords = map_arg((node.args, node.kwargs), _recorded)
        with fake, torch.no_grad():
            node.meta["val"] = node.target(*arguments, **keywords)


def _recorded(node: torch.fx.Node) -> Any:
    return attribute_of(node) if node.op == "get_attr" else node.meta["val"]
