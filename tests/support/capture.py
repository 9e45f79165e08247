"""A capturing backend: the graphs AOTAutograd makes with tessiq's settings, imported, and run node by node."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tessiq_core.capture.backend import trace
from tessiq_core.capture.importer import import_module
from tessiq_core.ir.attributes import Attribute, Hole, Label
from tessiq_core.ir.graph import Node, Value
from tessiq_core.runtime.element_map import value_of
from tessiq_core.runtime.imported import ImportedGraph, Kind
from tessiq_core.runtime.operators import resolve


@dataclass
class Capture:
    """A backend for torch.compile that keeps what it sees.

    modules:  the FX modules, in the order they were compiled.
    imported: their imports, in the same order.
    run:      "ir" runs the imported graph node by node, "fx" the FX module.
    """

    run: str = "ir"
    modules: list[torch.fx.GraphModule] = field(default_factory=list)
    imported: list[ImportedGraph] = field(default_factory=list)

    def __call__(self, gm: Any, example_inputs: Any) -> Callable[..., Any]:
        def compiler(module: torch.fx.GraphModule, kind: Kind) -> Callable[[list[Any]], list[Any]]:
            from torch.utils._python_dispatch import _disable_current_modes

            with _disable_current_modes():
                imported = import_module(module, kind)
            self.modules.append(module)
            self.imported.append(imported)
            if self.run == "ir":
                return lambda arguments: run_imported(imported, arguments)
            return lambda arguments: list(torch.fx.Interpreter(module).run(*arguments))

        return trace(gm, example_inputs, compiler)

    @property
    def graph(self) -> Any:
        """The only graph."""
        (imported,) = self.imported
        return imported.graph


def run_imported(imported: ImportedGraph, arguments: list[Any]) -> list[Any]:
    """Run the IR of an imported graph through PyTorch's operators; empties `arguments`, as a boxed function must."""
    values: dict[Value, Any] = dict(zip(imported.graph.parameters, arguments, strict=True))
    arguments.clear()
    for node in imported.graph.nodes:
        results = run_node(node, values, imported.constants)
        assert len(results) == len(node.results), f"{node}: {len(results)} results for {len(node.results)} values"
        values.update(zip(node.results, results, strict=True))
    return imported.outputs.gather([values[value] for value in imported.graph.results])


def run_node(node: Node, values: Mapping[Value, Any], constants: Mapping[str, object]) -> list[Any]:
    if node.op == "tessiq.constant":
        return [constants[str(node.attribute("0"))]]
    arguments, keywords = rebuild_call(node, values.__getitem__, constants)
    returned = resolve(node.op)(*arguments, **keywords)
    if not node.results:
        return []
    # The boxed call of an overload gives back a list for a list; one tensor stands alone.
    return flatten(returned) if isinstance(returned, tuple | list) else [returned]


def rebuild_call(
    node: Node, value: Callable[[Value], Any], constants: Mapping[str, object]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call a node stands for: the inverse of the importer, written from the rule in `tessiq_core.ir.graph`."""
    attributes = node.arguments
    operands: Iterator[Value] = iter(node.operands)
    numbered = {int(name): item for name, item in attributes.items() if name.isdigit()}
    total = sum(count_holes(item) for item in attributes.values())
    positions = len(numbered) + len(node.operands) - total
    direct = {position: value(next(operands)) for position in range(positions) if position not in numbered}

    def fill(item: Attribute) -> Any:
        if isinstance(item, Hole):
            return value(next(operands))
        if isinstance(item, tuple):
            return [fill(inner) for inner in item]
        if isinstance(item, Label):
            return meaning(item, constants)
        return item

    filled = {position: fill(numbered[position]) for position in sorted(numbered)}
    arguments = tuple(direct[p] if p in direct else filled[p] for p in range(positions))
    keywords = {name: fill(item) for name, item in attributes.items() if not name.isdigit()}
    assert next(operands, None) is None, f"{node}: operands left over"
    return arguments, keywords


def meaning(label: Label, constants: Mapping[str, object]) -> Any:
    if label.kind in ("subgraph", "object"):
        return constants[label.name]
    return resolve(label.name) if label.kind == "operator" else value_of(label)


def count_holes(item: Attribute) -> int:
    if isinstance(item, tuple):
        return sum(count_holes(inner) for inner in item)
    return int(isinstance(item, Hole))


def flatten(structure: Any) -> list[Any]:
    if isinstance(structure, tuple | list):
        return [leaf for item in structure for leaf in flatten(item)]
    return [structure]


def assert_calls_rebuild(module: torch.fx.GraphModule, imported: ImportedGraph) -> int:
    """Every rebuilt call has exactly the FX node's target and arguments; returns how many calls there were."""
    by_name: dict[str, Node] = {value.name: node for node in imported.graph.nodes for value in node.results}
    without_results = iter([node for node in imported.graph.nodes if not node.results])
    getitems: dict[torch.fx.Node, str] = {}
    count = 0
    for fx_node in module.graph.nodes:
        if fx_node.op != "call_function":
            continue
        if fx_node.target is operator.getitem and isinstance(fx_node.args[0].meta.get("val"), tuple | list):
            getitems[fx_node] = fx_node.name
            continue
        val = fx_node.meta.get("val")
        if val is None or val in ((), []):
            node = next(without_results)
        elif isinstance(val, tuple | list):
            candidates = [user.name for user in fx_node.users if user.name in by_name] + [f"{fx_node.name}_0"]
            node = next(by_name[name] for name in candidates if name in by_name)
        else:
            node = by_name[fx_node.name]
        assert resolve(node.op) is fx_node.target, f"{node.op} is not {fx_node.target}"
        arguments, keywords = rebuild_call(node, lambda value: Named(value.name), imported.constants)
        expected = (plain(fx_node.args), plain(dict(fx_node.kwargs)))
        assert (plain(arguments), plain(keywords)) == expected, f"{fx_node.format_node()}"
        count += 1
    return count


@dataclass(frozen=True)
class Named:
    """Stands for the value of this name."""

    name: str


def plain(item: Any) -> Any:
    """Arguments in a form that compares by type and value: lists as lists, nodes by the name of their value."""
    if isinstance(item, torch.fx.Node):
        if item.op == "get_attr" and not isinstance(getattr(item.graph.owning_module, str(item.target)), torch.Tensor):
            return ("object", id(getattr(item.graph.owning_module, str(item.target))))
        if item.target is operator.getitem:
            same = [u for u in item.args[0].users if u.target is operator.getitem and u.args == item.args]
            return Named(same[0].name)
        return Named(item.name)
    if isinstance(item, tuple | list):
        return [plain(inner) for inner in item]
    if isinstance(item, Mapping):
        return {name: plain(inner) for name, inner in item.items()}
    if isinstance(item, float):
        return ("float", item.hex())
    if isinstance(item, torch.fx.GraphModule):
        return ("object", id(item))
    return item if isinstance(item, Named) else (type(item).__name__, item)


def capture(
    function: Callable[..., Any], *inputs: Any, dynamic: bool | None = False, run: str = "ir", compare: bool = True
) -> Capture:
    """Compile `function` with a capturing backend, run it once, and compare the results with eager ones."""
    torch._dynamo.reset()
    seen = Capture(run)
    expected = function(*copy.deepcopy(inputs)) if compare else None
    got = torch.compile(function, backend=seen, dynamic=dynamic)(*inputs)
    if compare:
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    return seen
