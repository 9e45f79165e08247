"""Nodes made from real PyTorch calls: the operator runs, and the node records what it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tessiq_core.ir import (
    ELEMENT_TYPES,
    HOLE,
    Attribute,
    ElementType,
    Graph,
    Label,
    Node,
    TensorType,
    Value,
    tensor_type,
)
from tessiq_core.runtime.element_map import dtype_of

DTYPES: dict[str, torch.dtype] = {name: dtype_of(element) for name, element in ELEMENT_TYPES.items()}
ELEMENTS: dict[torch.dtype, ElementType] = {dtype: ELEMENT_TYPES[name] for name, dtype in DTYPES.items()}


def overload(spelling: str) -> Any:
    """The torch operator a spelling names; AttributeError where torch has none."""
    namespace, name, overload_name = spelling.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload_name)


def type_of(tensor: torch.Tensor) -> TensorType:
    """The type of a strided tensor."""
    return tensor_type(ELEMENTS[tensor.dtype], tuple(tensor.shape), tensor.stride())


def node_of_call(
    spelling: str, arguments: Sequence[Any], keywords: Mapping[str, Any] | None = None
) -> tuple[Node, list[torch.Tensor]]:
    """Run the operator; the node that stands for the call, and the tensors it gave."""
    keywords = keywords or {}
    given = overload(spelling)(*arguments, **keywords)
    outputs = list(given) if isinstance(given, tuple | list) else [given]
    graph = Graph()
    operands: list[Value] = []
    attributes: dict[str, Attribute] = {}
    inside: list[Value] = []

    def parameter(tensor: torch.Tensor) -> Value:
        return graph.add_parameter(graph.unused_name("p"), type_of(tensor))

    def attribute(argument: Any) -> Attribute:
        if isinstance(argument, torch.Tensor):
            inside.append(parameter(argument))
            return HOLE
        if isinstance(argument, tuple | list):
            return tuple(attribute(item) for item in argument)
        for kind, wanted in (("dtype", torch.dtype), ("layout", torch.layout), ("memory_format", torch.memory_format)):
            if isinstance(argument, wanted):
                return Label(kind, str(argument).removeprefix("torch."))
        return argument  # type: ignore[no-any-return]

    for index, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor):
            operands.append(parameter(argument))
        else:
            attributes[str(index)] = attribute(argument)
    for name, argument in keywords.items():
        attributes[name] = attribute(argument)
    results = [(f"r{number}", type_of(output)) for number, output in enumerate(outputs)]
    made = graph.append(spelling, [*operands, *inside], results, attributes)
    graph.set_results(made.results)
    return made, outputs
