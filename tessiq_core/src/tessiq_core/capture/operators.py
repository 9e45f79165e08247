"""Names and effects of the things an FX graph calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload

from tessiq_core.errors import NotFound
from tessiq_core.runtime.operators import resolve

PURE_HIGHER_ORDER = frozenset(
    {
        "associative_scan",
        "checkpoint",
        "cond",
        "flex_attention",
        "flex_attention_backward",
        "invoke_subgraph",
        "map_impl",
        "scan",
        "tag_activation_checkpoint",
        "while_loop",
    }
)
"""Higher-order operators that do nothing but what their subgraphs do. Any other one keeps its place in the order."""

ORDERED_OPERATORS = frozenset(
    {
        "aten._assert_async.default",
        "aten._assert_tensor_metadata.default",
        "aten._functional_assert_async.msg",
        "aten._functional_assert_scalar.default",
        "aten.set_.source_Tensor",
        "aten.set_.source_Storage",
        "aten.set_.source_Storage_storage_offset",
        "aten.set_.source_Tensor_storage_offset",
        "aten.set_.default",
        "aten.resize_.default",
        "prims._make_token.default",
        "prims._sink_tokens.default",
    }
)
"""Operators that act outside what their schema declares: they check, or change what memory a tensor has."""

_STRENGTH = ("none", "random", "writes", "ordered")


@functools.lru_cache(maxsize=4096)
def operator_name(target: Callable[..., Any]) -> str | None:
    """The IR's name of what a node calls: `aten.add.Tensor`, `higher_order.cond`, `operator.mul`, `torch.sym_max`.

    None where the runtime would not find the same thing again under a name.
    """
    if isinstance(target, OpOverload):
        name = str(target)
    elif isinstance(target, HigherOrderOperator):
        name = f"higher_order.{target._name}"
    else:
        module = str(getattr(target, "__module__", "")).removeprefix("_")  # `_operator` is `operator`
        name = f"{module}.{getattr(target, '__qualname__', '')}"
    try:
        return name if resolve(name) is target else None
    except NotFound:
        return None


def effect_of(target: Callable[..., Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """ "none", "random", "writes" or "ordered": what calling `target` does beside returning its results.

    Decided by the operator's schema and tags, and for a higher-order operator by what its subgraphs hold.
    """
    if isinstance(target, OpOverload):
        return _overload_effect(target, arguments, keywords)
    if isinstance(target, HigherOrderOperator):
        if target._name not in PURE_HIGHER_ORDER:
            return "ordered"
        inside = max((graph_effect(m) for m in subgraphs((arguments, keywords))), key=_STRENGTH.index, default="none")
        # What a subgraph writes to cannot be told from the outside.
        return "ordered" if inside == "writes" else inside
    return "none" if operator_name(target) is not None else "ordered"


def graph_effect(module: torch.fx.GraphModule) -> str:
    """The strongest effect of the module's nodes."""
    effects = [
        effect_of(node.target, node.args, node.kwargs)
        for node in module.graph.nodes
        if node.op == "call_function" and callable(node.target)
    ]
    return max(effects, key=_STRENGTH.index, default="none")


def subgraphs(structure: object) -> list[torch.fx.GraphModule]:
    """The graph modules named by `get_attr` nodes anywhere in a node's arguments."""
    if isinstance(structure, torch.fx.Node):
        module = attribute_of(structure) if structure.op == "get_attr" else None
        return [module] if isinstance(module, torch.fx.GraphModule) else []
    if isinstance(structure, Mapping):
        structure = tuple(structure.values())
    if isinstance(structure, tuple | list):
        return [module for item in structure for module in subgraphs(item)]
    return []


def attribute_of(node: torch.fx.Node) -> object:
    """What a `get_attr` node reads from the module that owns its graph."""
    found: object = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def _overload_effect(target: OpOverload, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    from torch._higher_order_ops.effects import _get_effect
    from torch.fx.node import _side_effectful_functions

    if str(target) in ORDERED_OPERATORS or target in _side_effectful_functions or _get_effect(target) is not None:
        return "ordered"
    if target._schema.is_mutable:
        return "writes"
    if torch.Tag.nondeterministic_seeded not in target.tags or _drops_nothing(target, arguments, keywords):
        return "none"
    return "random"


def _drops_nothing(target: OpOverload, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """Attention operators are tagged random for their dropout; with `dropout_p` 0 they draw no number."""
    for position, argument in enumerate(target._schema.arguments):
        if argument.name == "dropout_p":
            default = argument.default_value if argument.has_default_value() else None
            given = arguments[position] if position < len(arguments) else keywords.get(argument.name, default)
            return isinstance(given, int | float) and given == 0
    return False
