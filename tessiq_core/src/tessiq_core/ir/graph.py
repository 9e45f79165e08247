"""The SSA graph: parameters, ordered nodes, results, and use lists that every mutation maintains.

How a node stands for a call: an attribute whose name is a number fills that positional argument, an attribute with
another name (and no `tessiq.` prefix) is a keyword argument, and the operands fill, in order, the positional
arguments without an attribute and then every `HOLE` inside attributes, numbered ones first, then keywords by name.
`tessiq.*` attributes are the compiler's decisions and no part of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tessiq_core.errors import Internal, InvalidArgument
from tessiq_core.ir.attributes import Attribute, attribute_key
from tessiq_core.ir.types import ValueType

DECISION_PREFIX = "tessiq."


@dataclass(frozen=True)
class Use:
    """One reading of a value: operand `index` of `node`; `node` is None for the graph's result number `index`."""

    node: Node | None
    index: int

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Use) and self.node is other.node and self.index == other.index


class Value:
    """Assigned once: a graph parameter (`producer` is None) or result number `index` of `producer`."""

    __slots__ = ("_uses", "index", "name", "producer", "type")

    def __init__(self, name: str, type: ValueType, producer: Node | None, index: int) -> None:
        self.name = name
        self.type = type
        self.producer = producer
        self.index = index
        self._uses: dict[Use, None] = {}

    @property
    def uses(self) -> tuple[Use, ...]:
        """Every reading, in the order the readings were made."""
        return tuple(self._uses)

    @property
    def is_read(self) -> bool:
        return bool(self._uses)

    @property
    def is_returned(self) -> bool:
        return any(use.node is None for use in self._uses)

    @property
    def readers(self) -> tuple[Node, ...]:
        """The nodes that read this value, each once."""
        return tuple(dict.fromkeys(use.node for use in self._uses if use.node is not None))

    def __repr__(self) -> str:
        return f"%{self.name}"


class Node:
    """One operation: `op` is its name; operands, results and attributes as in the module's docstring."""

    __slots__ = ("_attributes", "_next", "_operands", "_order", "_previous", "graph", "op", "results")

    def __init__(self, graph: Graph, op: str, attributes: Mapping[str, Attribute]) -> None:
        self.op = op
        self.graph: Graph | None = graph
        self._operands: list[Value] = []
        self.results: tuple[Value, ...] = ()
        self._attributes: dict[str, Attribute] = dict(attributes)
        self._previous: Node | None = None
        self._next: Node | None = None
        self._order = 0

    @property
    def operands(self) -> tuple[Value, ...]:
        return tuple(self._operands)

    @property
    def name(self) -> str:
        """The name of the first result; `op` for a node without results."""
        return self.results[0].name if self.results else self.op

    @property
    def attributes(self) -> dict[str, Attribute]:
        """A copy, sorted by name (numbers first, by value)."""
        return {k: self._attributes[k] for k in sorted(self._attributes, key=_attribute_order)}

    @property
    def arguments(self) -> dict[str, Attribute]:
        """The attributes that are arguments of the call, sorted; decisions left out."""
        return {k: v for k, v in self.attributes.items() if not k.startswith(DECISION_PREFIX)}

    def attribute(self, name: str, default: Attribute = None) -> Attribute:
        return self._attributes.get(name, default)

    def has_attribute(self, name: str) -> bool:
        return name in self._attributes

    def set_attribute(self, name: str, value: Attribute) -> bool:
        """Set it; True when that changed something."""
        if name in self._attributes and attribute_key(self._attributes[name]) == attribute_key(value):
            return False
        self._attributes[name] = value
        return True

    def remove_attribute(self, name: str) -> bool:
        """Remove it; True when it was there."""
        return self._attributes.pop(name, _MISSING) is not _MISSING

    def set_operand(self, index: int, value: Value) -> bool:
        """Read `value` as operand `index` instead of what was read; both use lists follow."""
        old = self._operands[index]
        if old is value:
            return False
        use = Use(self, index)
        del old._uses[use]
        self._operands[index] = value
        value._uses[use] = None
        return True

    def __repr__(self) -> str:
        return f"<{self.op} {self.name}>"


_MISSING = object()


def _attribute_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)


class Graph:
    """Parameters, ordered nodes, results. Nodes are a linked list, so inserting and erasing cost O(1)."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self._parameters: list[Value] = []
        self._results: list[Value] = []
        self._first: Node | None = None
        self._last: Node | None = None
        self._count = 0
        self._numbered = True
        self._names: set[str] = set()

    # -- reading -----------------------------------------------------------------------------------------------
    @property
    def parameters(self) -> tuple[Value, ...]:
        return tuple(self._parameters)

    @property
    def results(self) -> tuple[Value, ...]:
        return tuple(self._results)

    @property
    def nodes(self) -> Iterator[Node]:
        """In list order. The node just yielded may be erased or moved, and nodes may be inserted before it.

        Raises Internal where the node that would come next was erased meanwhile: iterate over `tuple(graph.nodes)`.
        """
        node = self._first
        while node is not None:
            following = node._next
            yield node
            node = self._still_there(following)

    @property
    def reversed_nodes(self) -> Iterator[Node]:
        """In reversed order; the same rules as for `nodes`, with "before" meaning "after"."""
        node = self._last
        while node is not None:
            preceding = node._previous
            yield node
            node = self._still_there(preceding)

    def _still_there(self, node: Node | None) -> Node | None:
        if node is not None and node.graph is not self:
            raise Internal(
                f"tessiq: {node.op} was erased while the graph was iterated and it stood next; "
                "iterate over tuple(graph.nodes) and skip the nodes whose graph is None"
            )
        return node

    def __len__(self) -> int:
        return self._count

    def values(self) -> Iterator[Value]:
        """Parameters first, then every node's results in order."""
        yield from self._parameters
        for node in self.nodes:
            yield from node.results

    def comes_before(self, a: Node, b: Node) -> bool:
        """True when `a` stands before `b`; amortised O(1)."""
        if not self._numbered:
            for order, node in enumerate(self.nodes):
                node._order = order
            self._numbered = True
        return a._order < b._order

    def unused_name(self, stem: str) -> str:
        """A value name that is free: `stem`, or `stem_1`, `stem_2`, …"""
        name, number = stem, 0
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        return name

    # -- changing ----------------------------------------------------------------------------------------------
    def add_parameter(self, name: str, type: ValueType) -> Value:
        value = Value(self._claim_name(name), type, None, len(self._parameters))
        self._parameters.append(value)
        return value

    def append(
        self,
        op: str,
        operands: Sequence[Value],
        results: Iterable[tuple[str, ValueType]],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Node:
        """A new last node; `results` are (name, type) pairs."""
        return self.insert_before(None, op, operands, results, attributes)

    def insert_before(
        self,
        anchor: Node | None,
        op: str,
        operands: Sequence[Value],
        results: Iterable[tuple[str, ValueType]],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Node:
        """A new node that stands before `anchor`, or last where it is None."""
        node = Node(self, op, attributes or {})
        # Names first: a name that is taken must leave the use lists as they were.
        node.results = self._new_results(node, tuple(results))
        for index, value in enumerate(operands):
            node._operands.append(value)
            value._uses[Use(node, index)] = None
        self._link(node, anchor)
        return node

    def move_before(self, node: Node, anchor: Node | None) -> None:
        """Take `node` out of its place and put it before `anchor` (last where None)."""
        if node is anchor:
            return
        self._unlink(node)
        self._link(node, anchor)

    def set_results(self, values: Sequence[Value]) -> None:
        """What the graph returns, in order; one value may stand at several positions."""
        for index, value in enumerate(self._results):
            del value._uses[Use(None, index)]
        self._results = list(values)
        for index, value in enumerate(values):
            value._uses[Use(None, index)] = None

    def replace_uses(self, old: Value, new: Value) -> bool:
        """Every reading of `old`, by nodes and as a result, becomes a reading of `new`; True if there was any."""
        if old is new or not old._uses:
            return False
        for use in tuple(old._uses):
            if use.node is not None:
                use.node.set_operand(use.index, new)
            else:
                del old._uses[use]
                self._results[use.index] = new
                new._uses[use] = None
        return True

    def erase(self, node: Node) -> None:
        """Remove a node nobody reads. Raises InvalidArgument, naming the readers, when a result is still read."""
        for value in node.results:
            if value.is_read:
                readers = [f"%{u.node.name}" if u.node is not None else f"result {u.index}" for u in value.uses]
                raise InvalidArgument(
                    f"tessiq: cannot erase {node.op}: its result %{value.name} is still read by "
                    f"{', '.join(readers)}; move those readers first (Graph.replace_uses)"
                )
        for index, operand in enumerate(node._operands):
            del operand._uses[Use(node, index)]
        node._operands.clear()
        for value in node.results:
            self._names.discard(value.name)
        self._unlink(node)
        node.graph = None

    def rename(self, value: Value, name: str) -> None:
        """Give a value another free name. Raises InvalidArgument when another value has it."""
        if name != value.name:
            old, value.name = value.name, self._claim_name(name)
            self._names.discard(old)

    # -- the list ----------------------------------------------------------------------------------------------
    def _claim_name(self, name: str) -> str:
        if name in self._names:
            raise InvalidArgument(f"tessiq: the graph already has a value %{name}; use Graph.unused_name({name!r})")
        self._names.add(name)
        return name

    def _new_results(self, node: Node, results: tuple[tuple[str, ValueType], ...]) -> tuple[Value, ...]:
        claimed: list[Value] = []
        try:
            for index, (name, type) in enumerate(results):
                claimed.append(Value(self._claim_name(name), type, node, index))
        except InvalidArgument:
            self._names.difference_update(value.name for value in claimed)
            raise
        return tuple(claimed)

    def _link(self, node: Node, anchor: Node | None) -> None:
        previous = self._last if anchor is None else anchor._previous
        node._previous, node._next = previous, anchor
        if previous is None:
            self._first = node
        else:
            previous._next = node
        if anchor is None:
            self._last = node
            node._order = previous._order + 1 if previous is not None else 0
        else:
            anchor._previous = node
            self._numbered = False
        self._count += 1

    def _unlink(self, node: Node) -> None:
        if node._previous is None:
            self._first = node._next
        else:
            node._previous._next = node._next
        if node._next is None:
            self._last = node._previous
        else:
            node._next._previous = node._previous
        node._previous = node._next = None
        self._count -= 1
