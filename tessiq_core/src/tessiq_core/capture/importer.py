"""From an FX graph module, as AOTAutograd leaves it, to the IR."""

from __future__ import annotations

import operator
from typing import Any

import torch

from tessiq_core.capture.arguments import Inexpressible, Operand, encode_call, keep_call
from tessiq_core.capture.constants import content_hash
from tessiq_core.capture.key import graph_key
from tessiq_core.capture.operators import attribute_of, effect_of, operator_name
from tessiq_core.capture.recorded import record_missing
from tessiq_core.capture.symbols import Symbols
from tessiq_core.capture.value_types import home_of, value_type
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import Attribute, Label
from tessiq_core.ir.graph import Graph, Value
from tessiq_core.ir.types import ValueType
from tessiq_core.runtime.imported import ImportedGraph, Kind, OutputSpec

CONSTANT_OP = "tessiq.constant"
EFFECT = "tessiq.effect"
RETURNS = "tessiq.returns"
CALLS = "tessiq.calls"


def import_module(module: torch.fx.GraphModule, kind: Kind) -> ImportedGraph:
    """The graph of `module` in the IR, with what the IR cannot hold beside it.

    Every FX node is one IR node of the same name, but that `getitem` of a list names a result of its producer, and
    lists of results inside a result are laid out flat, depth first. A node that returns a list of exactly one carries
    `tessiq.returns = "list"`; one with an effect carries `tessiq.effect`. A call whose arguments are no attributes (a
    dict, a slice) or whose function has no name is `operator.call` of an object, with the name in `tessiq.calls`.

    Raises InvalidArgument, naming the node, for a node without `meta["val"]`, a call_module and a call_method.
    """
    record_missing(module)
    return _Importer(module, kind).run()


class _Importer:
    def __init__(self, module: torch.fx.GraphModule, kind: Kind) -> None:
        self.module = module
        self.kind: Kind = kind
        self.graph = Graph()
        self.symbols = Symbols()
        self.constants: dict[str, object] = {}
        self.operands: dict[torch.fx.Node, Operand] = {}
        self.structures: dict[torch.fx.Node, Any] = {}  # multi-result nodes, and lists inside them: nested values
        self.fx_names = {node.name for node in module.graph.nodes}
        self.outputs = OutputSpec(())
        self.home = "cpu"

    def run(self) -> ImportedGraph:
        nodes = list(self.module.graph.nodes)
        inputs = [_recorded(node) for node in nodes if node.op == "placeholder"]
        self.symbols.see_inputs(inputs)
        self.home = home_of(inputs + [node.meta.get("val") for node in nodes])
        for node in nodes:
            match node.op:
                case "placeholder":
                    self.operands[node] = self.graph.add_parameter(node.name, self.type_of(_recorded(node)))
                case "get_attr":
                    self.get_attribute(node)
                case "call_function":
                    self.call_function(node)
                case "output":
                    self.output(node)
                case _:
                    raise InvalidArgument(
                        f"tessiq: %{node.name} is a {node.op} of {node.target!r}; expected a graph traced by "
                        "AOTAutograd, which holds only function calls; compile through torch.compile"
                    )
        return ImportedGraph(
            self.graph,
            self.constants,
            self.outputs,
            graph_key(self.module, self.kind),
            self.kind,
            self.home,
            self.symbols.tracer_names,
        )

    def type_of(self, value: object) -> ValueType:
        return value_type(value, self.symbols, self.home)

    # -- what nodes read ---------------------------------------------------------------------------------------
    def get_attribute(self, node: torch.fx.Node) -> None:
        value = attribute_of(node)
        if not isinstance(value, torch.Tensor):
            label = Label("subgraph" if isinstance(value, torch.fx.GraphModule) else "object", node.name)
            self.constants[node.name] = value
            self.operands[node] = label
            return
        self.constants[node.name] = value
        attributes: dict[str, Attribute] = {"0": node.name, "content": content_hash(value, node.name)}
        made = self.graph.append(CONSTANT_OP, (), [(node.name, self.type_of(value))], attributes)
        self.operands[node] = made.results[0]

    def operand_of(self, node: torch.fx.Node) -> Operand:
        return self.operands[node]

    # -- calls -------------------------------------------------------------------------------------------------
    def call_function(self, node: torch.fx.Node) -> None:
        if node.target is operator.getitem and self.is_result_of_list(node):
            return
        assert callable(node.target)
        name = operator_name(node.target)
        calls: str | None = None
        try:
            if name is None:
                raise Inexpressible
            operands, attributes = encode_call(node.args, node.kwargs, self.operand_of)
        except Inexpressible:
            calls = name or getattr(node.target, "__qualname__", repr(node.target))
            name, operands, attributes = self.kept_call(node)
        effect = effect_of(node.target, node.args, node.kwargs)
        if effect != "none":
            attributes[EFFECT] = effect
        if calls is not None:
            attributes[CALLS] = calls
        self.append(node, name, operands, attributes)

    def kept_call(self, node: torch.fx.Node) -> tuple[str, list[Value], dict[str, Attribute]]:
        assert callable(node.target)
        kept, operands = keep_call(
            node.target, node.args, node.kwargs, self.operand_of, lambda label: self.constants[label.name]
        )
        stem = f"{node.name}_call"
        while stem in self.fx_names:
            stem += "_"
        self.constants[stem] = kept
        return "operator.call", operands, {"0": Label("object", stem)}

    def append(self, node: torch.fx.Node, name: str, operands: list[Value], attributes: dict[str, Attribute]) -> None:
        if "val" not in node.meta and _returns_something(node):
            raise InvalidArgument(
                f"tessiq: %{node.name} = {name} has no recorded value (meta['val']), so its type is unknown; expected "
                "a graph traced with fake tensors, as AOTAutograd leaves it"
            )
        value = node.meta.get("val")
        if value is None:
            self.operands[node] = ()
            self.graph.append(name, operands, (), attributes)
            return
        if not isinstance(value, tuple | list):
            made = self.graph.append(name, operands, [(node.name, self.type_of(value))], attributes)
            self.operands[node] = made.results[0]
            return
        flat = _flatten(value)
        if len(flat) == 1:
            attributes[RETURNS] = "list"
        names = self.result_names(node, value)
        made = self.graph.append(
            name, operands, [(n, self.type_of(v)) for n, v in zip(names, flat, strict=True)], attributes
        )
        self.remember(node, _like(value, iter(made.results)))

    # -- results of lists --------------------------------------------------------------------------------------
    def is_result_of_list(self, node: torch.fx.Node) -> bool:
        """Resolve `getitem` of a value that is a list: the node becomes a name for one of its results."""
        source, index = node.args
        structure = self.structures.get(source) if isinstance(source, torch.fx.Node) else None
        if structure is None or not isinstance(index, int | slice):
            return False
        self.remember(node, structure[index])
        return True

    def remember(self, node: torch.fx.Node, structure: Any) -> None:
        if isinstance(structure, Value):
            self.operands[node] = structure
            return
        self.structures[node] = structure
        self.operands[node] = tuple(_flatten(structure))

    def result_names(self, node: torch.fx.Node, value: Any) -> list[str]:
        """A name for each flat result: that of the first `getitem` node that reads it, else `NODE_1` for result 1."""
        names: list[str] = []
        taken: set[str] = set()
        for number, reader in enumerate(_flatten(_readers(node, value))):
            name = f"{node.name}_{number}" if reader is None else reader.name
            while reader is None and (name in self.fx_names or name in taken):
                name += "_"
            taken.add(name)
            names.append(name)
        return names

    # -- outputs -----------------------------------------------------------------------------------------------
    def output(self, node: torch.fx.Node) -> None:
        (returned,) = node.args
        results: list[Value] = []
        positions: list[int | None] = []
        literals: list[tuple[int, bool | int | float]] = []
        for position, item in enumerate(returned if isinstance(returned, tuple | list) else (returned,)):
            if isinstance(item, bool | int | float):
                literals.append((position, item))
            elif item is not None:
                value = self.operands[item] if isinstance(item, torch.fx.Node) else None
                if not isinstance(value, Value):
                    raise InvalidArgument(
                        f"tessiq: the traced graph returns {item!r} at position {position}; expected a tensor, "
                        "a number or None there"
                    )
                positions.append(len(results))
                results.append(value)
                continue
            positions.append(None)
        self.graph.set_results(results)
        self.outputs = OutputSpec(tuple(positions), tuple(literals))


def _recorded(node: torch.fx.Node) -> object:
    if "val" not in node.meta:
        raise InvalidArgument(
            f"tessiq: input %{node.name} of the traced graph has no recorded value (meta['val']); expected a graph "
            "traced with fake tensors, as AOTAutograd leaves it"
        )
    return node.meta["val"]


def _returns_something(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is None or len(schema.returns) > 0


def _flatten(structure: Any) -> list[Any]:
    if isinstance(structure, tuple | list):
        return [leaf for item in structure for leaf in _flatten(item)]
    return [structure]


def _like(structure: Any, leaves: Any) -> Any:
    """`structure` with its leaves replaced, in order."""
    if isinstance(structure, tuple | list):
        return tuple(_like(item, leaves) for item in structure)
    return next(leaves)


def _readers(node: torch.fx.Node, structure: Any) -> Any:
    """`structure` with each leaf replaced by the first getitem node that reads it, or None."""
    readers: list[torch.fx.Node | None] = [None] * len(structure)
    for user in node.users:
        if user.target is operator.getitem and user.args[0] is node and isinstance(user.args[1], int):
            if readers[user.args[1]] is None:
                readers[user.args[1]] = user
    found: list[Any] = []
    for item, reader in zip(structure, readers, strict=True):
        if isinstance(item, tuple | list):
            found.append(_readers(reader, item) if reader is not None else _like(item, iter(lambda: None, 0)))
        else:
            found.append(reader)
    return found
