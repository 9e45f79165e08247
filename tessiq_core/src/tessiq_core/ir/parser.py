"""The text form of a graph, read. `tessiq_core.ir.printer` writes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import TypeVar

from tessiq_core.ir.attributes import Attribute
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.fragments import (
    read_attribute,
    read_attributes,
    read_extent,
    read_list,
    read_type,
    read_word,
)
from tessiq_core.ir.graph import Graph, Node, Value
from tessiq_core.ir.scanner import Scanner
from tessiq_core.ir.types import ValueType
from tessiq_core.ir.verifier import find_problem

_VALUE = re.compile(r"%[A-Za-z_][A-Za-z0-9_]*")
_T = TypeVar("_T")


def parse_graph(text: str, *, source: str = "<text>") -> Graph:
    """The graph a text describes. `source` is how errors call the text, such as a file's path.

    Raises InvalidArgument with line, column, what was expected and what came, and for a graph the verifier rejects.
    """
    return _whole(text, source, lambda scan: _GraphReader(scan).read())


def parse_type(text: str, *, source: str = "<text>") -> ValueType:
    """The type a text describes: `f32[2, s0; 1, 2]`, `int(s0)`, `opaque "sparse_coo f32"`. Raises InvalidArgument."""
    return _whole(text, source, read_type)


def parse_extent(text: str, *, source: str = "<text>") -> Extent:
    """The extent a text describes: `2*s0*s1 + 1`, `floordiv(s0, 2)`, `?`. Raises InvalidArgument."""
    return _whole(text, source, read_extent)


def parse_attribute(text: str, *, source: str = "<text>") -> Attribute:
    """The attribute value a text describes: `[1, _, @dtype(float64)]`. Raises InvalidArgument."""
    return _whole(text, source, read_attribute)


def _whole(text: str, source: str, read: Callable[[Scanner], _T]) -> _T:
    scan = Scanner(text, source)
    result = read(scan)
    if not scan.at_end:
        raise scan.error("nothing more")
    return result


class _GraphReader:
    """`graph @name(%x: type, …) { node… return %x, … }`"""

    def __init__(self, scan: Scanner) -> None:
        self.scan = scan
        self.values: dict[str, Value] = {}
        self.places: dict[Node, int] = {}
        self.graph = Graph()

    def read(self) -> Graph:
        scan = self.scan
        start = scan.here()
        self._keyword("graph")
        scan.expect("@", "before the graph's name")
        self.graph = Graph(read_word(scan, "the graph's name"))
        scan.expect("(", "before the parameters")
        if not scan.peek(")"):
            read_list(scan, self._parameter)
        scan.expect(")", "after the parameters")
        scan.expect("{", "before the graph's nodes")
        while not scan.peek_word("return"):
            if scan.at_end or scan.peek("}"):
                raise scan.error("a node or 'return'")
            self._node()
        self._keyword("return")
        self.graph.set_results(self._operands() if scan.peek("%") else [])
        scan.expect("}", "after the returned values")
        problem = find_problem(self.graph)
        if problem is not None:
            place = start if problem.node is None else self.places.get(problem.node, start)
            raise scan.failure(f"{problem.message}; {problem.likely_cause}", place)
        return self.graph

    def _parameter(self) -> None:
        name = self._new_name("a parameter such as %x")
        self.scan.expect(":", "before the parameter's type")
        self.values[name] = self.graph.add_parameter(name, read_type(self.scan))

    def _node(self) -> None:
        """`%a, %b = op(%x, …) {name = attribute, …} : type, type`; a node without results is only `op(…) {…}`."""
        scan = self.scan
        start = scan.here()
        names: list[str] = []
        if scan.peek("%"):
            names.append(self._new_name("a result such as %x"))
            while scan.accept(","):
                names.append(self._new_name("a result such as %x", taken=names))
            scan.expect("=", "after the results' names")
        op = read_word(scan, "a node: '%result = operation(…)', 'operation(…)', or 'return'")
        scan.expect("(", "before the operands")
        operands = [] if scan.peek(")") else self._operands()
        scan.expect(")", "after the operands")
        attributes = read_attributes(scan)
        types: list[ValueType] = []
        if names:
            scan.expect(":", "before the results' types")
            place = scan.here()
            types = read_list(scan, lambda: read_type(scan))
            if len(types) != len(names):
                raise scan.failure(f"expected {len(names)} types, one a result, got {len(types)}", place)
        node = self.graph.append(op, operands, zip(names, types, strict=True), attributes)
        self.values.update((value.name, value) for value in node.results)
        self.places[node] = start

    def _operands(self) -> list[Value]:
        return read_list(self.scan, self._operand)

    def _operand(self) -> Value:
        place = self.scan.here()
        name = self._value_name("a value such as %x")
        if name in self.values:
            return self.values[name]
        close = difflib.get_close_matches(name, self.values, n=1)
        hint = f"; did you mean %{close[0]}?" if close else ""
        raise self.scan.failure(f"expected a value defined before this line, got %{name}{hint}", place)

    def _new_name(self, expected: str, taken: list[str] | None = None) -> str:
        place = self.scan.here()
        name = self._value_name(expected)
        if name in self.values or (taken is not None and name in taken):
            raise self.scan.failure(f"expected a new value, got %{name}, which is already defined", place)
        return name

    def _value_name(self, expected: str) -> str:
        token = self.scan.match(_VALUE)
        if token is None:
            raise self.scan.error(expected)
        return token[1:]

    def _keyword(self, word: str) -> None:
        if not self.scan.peek_word(word):
            raise self.scan.error(repr(word))
        self.scan.accept(word)
