"""Rewrite patterns, compiled from their text, and where they match."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import Attribute, attribute_key
from tessiq_core.ir.extent import Expression, Extent, Symbol, substitute, symbols
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ir.types import TensorType, ValueType, tensor_type
from tessiq_core.ops.table import OperationTable


@dataclass(frozen=True)
class CompiledPattern:
    """A pattern's two graphs, parsed and checked. `root` produces what the pattern returns.

    needs_types: the replacement has inner values, whose types are made from the types of what the parameters bind,
                 so those must match what is written.
    """

    name: str
    pattern: Graph
    root: Node
    replacement: Graph
    needs_types: bool


@dataclass
class Match:
    """Where a pattern stands in a graph: what each of its values, nodes and symbolic extents means there."""

    values: dict[Value, Value] = field(default_factory=dict)
    nodes: dict[Node, Node] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)

    def type_of(self, value: Value) -> ValueType:
        """The type of an inner value of the replacement, its symbols replaced by the extents they bound."""
        type = value.type
        if not isinstance(type, TensorType):
            return type
        strides = None if type.strides is None else tuple(substitute(e, self.extents) for e in type.strides)
        return tensor_type(type.element, tuple(substitute(e, self.extents) for e in type.shape), strides)


@lru_cache(maxsize=256)
def compile_pattern(source: RewritePattern) -> CompiledPattern:
    """Parse and check both graphs. Raises InvalidArgument, naming the pattern, for one that cannot be applied."""
    where = f"rewrite pattern {source.name!r}"
    pattern = parse_graph(source.pattern, source=f"{where}, pattern")
    replacement = parse_graph(source.replacement, source=f"{where}, replacement")

    def fail(reason: str) -> InvalidArgument:
        return InvalidArgument(f"tessiq: {where}: {reason}")

    ours, theirs = ([value.name for value in graph.parameters] for graph in (pattern, replacement))
    if ours != theirs:
        raise fail(f"both graphs must have the same parameters in the same order, not {ours} and {theirs}")
    for graph in (pattern, replacement):
        if len(graph.results) != 1:
            raise fail(f"both graphs must return exactly one value, not {len(graph.results)}")
    root = pattern.results[0].producer
    if root is None:
        raise fail("the pattern must compute something; it returns a parameter")
    unread = [f"%{value.name}" for value in pattern.parameters if not value.is_read]
    if unread:
        raise fail(f"the pattern does not read {', '.join(unread)}, so nothing would say what it means")
    for node in pattern.nodes:
        if node is not root and not any(value.is_read for value in node.results):
            raise fail(f"the pattern's result does not depend on {node.op}, so that node cannot be found from it")
    inner = _inner_values(replacement)
    bound = {name for value in pattern.parameters for name in _plain_symbols(value.type)}
    for value in inner:
        loose = sorted(_symbols(value.type) - bound)
        if loose:
            raise fail(f"the type of %{value.name} uses {', '.join(loose)}, which is no extent of a parameter")
    return CompiledPattern(source.name, pattern, root, replacement, bool(inner))


def _inner_values(replacement: Graph) -> list[Value]:
    return [value for node in replacement.nodes for value in node.results if value is not replacement.results[0]]


def _plain_symbols(type: ValueType) -> set[str]:
    return {name for extent in type.shape if (name := _symbol(extent))} if isinstance(type, TensorType) else set()


def _symbols(type: ValueType) -> set[str]:
    if not isinstance(type, TensorType):
        return set()
    return set().union(*(symbols(extent) for extent in (*type.shape, *(type.strides or ()))))


def _symbol(extent: Extent) -> str | None:
    """The name, where the extent is one symbol and nothing else."""
    found = symbols(extent)
    if len(found) != 1 or not isinstance(extent, Expression):
        return None
    (name,) = found
    return name if extent.terms == ((((Symbol(name), 1),), 1),) else None


def match(
    compiled: CompiledPattern,
    node: Node,
    table: OperationTable,
    may_take: Callable[[Node], bool],
) -> Match | None:
    """The match whose root is `node`, or None. `may_take` is asked of every node the match would replace.

    A value computed inside the match may be read only inside it, except the root's result, and no parameter means one.
    """
    found = Match()
    if not _match_node(compiled.root, node, found, table, may_take):
        return None
    root = found.values[compiled.pattern.results[0]]
    taken = set(found.nodes.values())
    if any(found.values[parameter].producer in taken for parameter in compiled.pattern.parameters):
        return None  # the replacement would read what it replaces
    for inner in taken:
        for value in inner.results:
            if value is not root and (value.is_returned or any(reader not in taken for reader in value.readers)):
                return None
    if compiled.needs_types and not all(
        _match_type(parameter.type, found.values[parameter].type, found.extents)
        for parameter in compiled.pattern.parameters
    ):
        return None
    return found


def _match_node(
    pattern: Node, node: Node, found: Match, table: OperationTable, may_take: Callable[[Node], bool]
) -> bool:
    if pattern in found.nodes:
        return found.nodes[pattern] is node
    if not _same_operation(pattern.op, node.op, table) or not may_take(node):
        return False
    if len(pattern.operands) != len(node.operands) or len(pattern.results) != len(node.results):
        return False
    if not _same_arguments(pattern.arguments, node.arguments):
        return False
    found.nodes[pattern] = node
    found.values.update(zip(pattern.results, node.results, strict=True))
    return all(
        _match_value(wanted, operand, found, table, may_take)
        for wanted, operand in zip(pattern.operands, node.operands, strict=True)
    )


def _match_value(
    wanted: Value, value: Value, found: Match, table: OperationTable, may_take: Callable[[Node], bool]
) -> bool:
    if wanted.producer is None:
        return found.values.setdefault(wanted, value) is value
    if value.producer is None or wanted.index != value.index:
        return False
    return _match_node(wanted.producer, value.producer, found, table, may_take)


def _same_operation(pattern: str, op: str, table: OperationTable) -> bool:
    # A short name stands for every spelling of its row; a spelling only for itself.
    row = table.row(pattern)
    return pattern == op or (row is not None and pattern == row.name and row is table.row(op))


def _same_arguments(pattern: Mapping[str, Attribute], node: Mapping[str, Attribute]) -> bool:
    return pattern.keys() == node.keys() and all(_same(value, node[name]) for name, value in pattern.items())


def _same(a: Attribute, b: Attribute) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    # `x * 1` and `x * 1.0` are one program to whoever writes a pattern; True, and the sign of zero, are not.
    if {type(a), type(b)} == {int, float} and a == b:
        return attribute_key(float(a)) == attribute_key(float(b))  # type: ignore[arg-type]
    return attribute_key(a) == attribute_key(b)


def _match_type(pattern: ValueType, type: ValueType, extents: dict[str, Extent]) -> bool:
    """Element types and ranks equal, integers equal, `?` anything, and a symbol the same extent wherever it stands."""
    if not isinstance(pattern, TensorType) or not isinstance(type, TensorType):
        return pattern == type
    if pattern.element != type.element or pattern.rank != type.rank:
        return False
    for wanted, extent in zip(pattern.shape, type.shape, strict=True):
        name = _symbol(wanted)
        if name is not None and extents.setdefault(name, extent) != extent:
            return False
        if isinstance(wanted, int) and wanted != extent:
            return False
    return True
