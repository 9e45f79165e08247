"""Parses a row's expression into a small tree: what the schema check walks, and what an emitter may evaluate.

The language is the C subset that C++ and CUDA C++ share: `$argument`, integer literals, floating literals only as
`acc_t(0.5)`, the functions and operators of `ops.functions`, parentheses, and `test ? a : b`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from tessiq_core.errors import InvalidArgument
from tessiq_core.ops.functions import BINARY_OPERATORS, FUNCTIONS, TYPE_NAMES, UNARY_OPERATORS


@dataclass(frozen=True)
class Literal:
    """A number; a float stands only inside an `acc_t(…)` cast."""

    value: int | float


@dataclass(frozen=True)
class ArgumentRef:
    """`$name`: the operand bound to that argument, converted to `acc_t`."""

    name: str


@dataclass(frozen=True)
class Cast:
    """`acc_t(x)` or `scalar_t(x)`."""

    type: str
    operand: Expr


@dataclass(frozen=True)
class Apply:
    """A function of `ops.functions.FUNCTIONS`."""

    function: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary:
    operator: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Conditional:
    """`test ? then : otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr


Expr: TypeAlias = "Literal | ArgumentRef | Cast | Apply | Unary | Binary | Conditional"

_TOKEN = re.compile(
    r"\s*(?:(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?|\d+[eE][+-]?\d+[fFlL]?)|(?P<int>\d+)"
    r"|(?P<argument>\$[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<op>\|\||&&|==|!=|<=|>=|[-+*/<>!|&^?:(),]))"
)


@cache
def parse_expression(text: str) -> Expr:
    """The tree of `text`.

    Raises InvalidArgument, with the column, for anything outside the language: an unknown function or a wrong number
    of its arguments, a floating literal outside `acc_t(…)`, an operator not listed, text left over.
    """
    return _Parser(text).parse()


def walk(tree: Expr) -> Iterator[Expr]:
    """The tree's nodes, operands first."""
    if isinstance(tree, Cast | Unary):
        yield from walk(tree.operand)
    elif isinstance(tree, Apply):
        for operand in tree.operands:
            yield from walk(operand)
    elif isinstance(tree, Binary):
        yield from walk(tree.left)
        yield from walk(tree.right)
    elif isinstance(tree, Conditional):
        yield from walk(tree.test)
        yield from walk(tree.then)
        yield from walk(tree.otherwise)
    yield tree


def argument_names(tree: Expr) -> tuple[str, ...]:
    """Names of the arguments the tree reads, by first occurrence."""
    return tuple(dict.fromkeys(node.name for node in walk(tree) if isinstance(node, ArgumentRef)))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        self.position = 0
        end = 0
        while text[end:].strip():
            match = _TOKEN.match(text, end)
            if match is None:
                start = end + len(text[end:]) - len(text[end:].lstrip())
                raise self._error(start, f"{text[start]!r} is not part of the expression language")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            end = match.end()
        self.tokens.append(("end", "the end", len(text)))

    def parse(self) -> Expr:
        tree = self._conditional()
        kind, token, column = self.tokens[self.position]
        if kind != "end":
            raise self._error(column, f"expected an operator or the end, not {token!r}")
        return tree

    def _error(self, column: int, message: str) -> InvalidArgument:
        return InvalidArgument(f"expression {self.text!r}, column {column + 1}: {message}")

    def _take(self, token: str) -> bool:
        kind, text, _ = self.tokens[self.position]
        if kind == "op" and text == token:
            self.position += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            _, text, column = self.tokens[self.position]
            raise self._error(column, f"expected {token!r}, not {text!r}")

    def _conditional(self) -> Expr:
        test = self._binary(0)
        if not self._take("?"):
            return test
        then = self._conditional()
        self._expect(":")
        return Conditional(test, then, self._conditional())

    def _binary(self, level: int) -> Expr:
        if level == len(BINARY_OPERATORS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            kind, text, _ = self.tokens[self.position]
            if kind != "op" or text not in BINARY_OPERATORS[level]:
                return left
            self.position += 1
            left = Binary(text, left, self._binary(level + 1))

    def _unary(self) -> Expr:
        kind, text, _ = self.tokens[self.position]
        if kind == "op" and text in UNARY_OPERATORS:
            self.position += 1
            return Unary(text, self._unary())
        return self._primary()

    def _primary(self) -> Expr:
        kind, text, column = self.tokens[self.position]
        self.position += 1
        if kind == "int":
            return Literal(int(text))
        if kind == "float":
            raise self._error(column, f"a floating literal must stand inside a cast: acc_t({text})")
        if kind == "argument":
            return ArgumentRef(text[1:])
        if kind == "op" and text == "(":
            inner = self._conditional()
            self._expect(")")
            return inner
        if kind != "name":
            raise self._error(column, f"expected an operand, not {text!r}")
        self._expect("(")
        if text in TYPE_NAMES:
            operand = self._cast_operand(text)
            self._expect(")")
            return Cast(text, operand)
        if text not in FUNCTIONS:
            raise self._error(column, f"unknown function {text!r}; expressions may call {', '.join(FUNCTIONS)}")
        operands = [self._conditional()]
        while self._take(","):
            operands.append(self._conditional())
        self._expect(")")
        if len(operands) != FUNCTIONS[text][0]:
            raise self._error(column, f"{text} takes {FUNCTIONS[text][0]} arguments, not {len(operands)}")
        return Apply(text, tuple(operands))

    def _cast_operand(self, type_name: str) -> Expr:
        start = self.position
        negative = self._take("-")
        kind, text, column = self.tokens[self.position]
        if kind == "float" and type_name == "acc_t":
            if text[-1] in "fFlL":
                raise self._error(column, f"{text!r} has a suffix; acc_t(…) gives the constant its type")
            self.position += 1
            return Literal(-float(text) if negative else float(text))
        self.position = start
        return self._conditional()
