"""Reading the parts every text form shares: extents, types, attributes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import TypeVar

from tessiq_core.ir import extent as extents
from tessiq_core.ir.attributes import HOLE, Attribute, Label
from tessiq_core.ir.extent import FUNCTION_NAMES, UNKNOWN, Extent
from tessiq_core.ir.printer import BARE_LABEL
from tessiq_core.ir.scanner import Scanner
from tessiq_core.ir.types import (
    ELEMENT_TYPES,
    OpaqueType,
    ScalarType,
    ValueType,
    opaque_element,
    tensor_type,
)

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[0-9]+")
_SCALARS = ("int", "float", "bool")
_CONSTANTS: dict[str, Attribute] = {
    "true": True,
    "false": False,
    "none": None,
    "_": HOLE,
    "inf": float("inf"),
    "nan": float("nan"),
}
_T = TypeVar("_T")


def read_list(scan: Scanner, read: Callable[[], _T]) -> list[_T]:
    """One thing or more, separated by commas."""
    items = [read()]
    while scan.accept(","):
        items.append(read())
    return items


def read_word(scan: Scanner, expected: str) -> str:
    """A name with dots such as `aten.add.Tensor`; `expected` says in the error what it is for."""
    word = scan.match(WORD)
    if word is None:
        raise scan.error(expected)
    return word


def read_extent(scan: Scanner) -> Extent:
    """`extent := ["-"] term (("+" | "-") term)*` with `term := factor ("*" factor)*`."""
    negative = scan.accept("-")
    total = _term(scan)
    if negative:
        total = extents.mul(-1, total)
    while True:
        if scan.accept("+"):
            total = extents.add(total, _term(scan))
        elif scan.accept("-"):
            total = extents.sub(total, _term(scan))
        else:
            return total


def _term(scan: Scanner) -> Extent:
    result = _factor(scan)
    while scan.accept("*"):
        result = extents.mul(result, _factor(scan))
    return result


def _factor(scan: Scanner) -> Extent:
    """`factor := number | symbol | function "(" extent, … ")" | "(" extent ")" | "?"`."""
    start = scan.here()
    if scan.accept("?"):
        return UNKNOWN
    if scan.accept("("):
        inner = read_extent(scan)
        scan.expect(")", "after the extent")
        return inner
    digits = scan.match(_DIGITS)
    if digits is not None:
        return int(digits)
    name = scan.match(IDENTIFIER)
    if name is None:
        raise scan.error("an extent (a number, a symbol, a function of extents, or ?)")
    if not scan.accept("("):
        return extents.symbol(name)
    if name not in FUNCTION_NAMES:
        raise scan.error(f"a function of extents ({', '.join(FUNCTION_NAMES)})", start)
    arguments = read_list(scan, lambda: read_extent(scan))
    scan.expect(")", f"after the arguments of {name}")
    if name not in ("max", "min") and len(arguments) != 2:
        raise scan.failure(f"expected two arguments of {name}, got {len(arguments)}", start)
    return extents.call(name, *arguments)


def read_type(scan: Scanner) -> ValueType:
    """A tensor `f32[2, s0; 1, 2]`, a scalar `int(s0)`, or `opaque "what it is"`."""
    start = scan.here()
    name = scan.match(IDENTIFIER)
    if name == "opaque" and scan.peek('"'):
        return OpaqueType(_string(scan))
    if name == "opaque":
        scan.expect("(", "or a string after 'opaque'")
        element = opaque_element(read_word(scan, "the name of an opaque element type"))
        scan.expect(")", "after the name of an opaque element type")
    elif name in _SCALARS and not scan.peek("["):
        if name != "int" or not scan.accept("("):
            return ScalarType(name)
        value = read_extent(scan)
        scan.expect(")", "after the scalar's value")
        return ScalarType(name, value)
    elif name in ELEMENT_TYPES:
        element = ELEMENT_TYPES[name]
    else:
        close = difflib.get_close_matches(name or "", ELEMENT_TYPES, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise scan.error(f"a type: one of {', '.join(ELEMENT_TYPES)}, int, float, opaque{hint}", start)
    scan.expect("[", f"and the shape after {element}")
    shape = [] if scan.peek("]") or scan.peek(";") else read_list(scan, lambda: read_extent(scan))
    strides: list[Extent] | None = None
    if scan.accept(";"):
        place = scan.here()
        strides = read_list(scan, lambda: read_extent(scan))
        if len(strides) != len(shape):
            raise scan.failure(f"expected {len(shape)} strides, one an extent, got {len(strides)}", place)
    scan.expect("]", "after the shape" if strides is None else "after the strides")
    return tensor_type(element, tuple(shape), None if strides is None else tuple(strides))


def read_attributes(scan: Scanner) -> dict[str, Attribute]:
    """`{name = value, …}`; nothing where no brace comes."""
    attributes: dict[str, Attribute] = {}
    if not scan.accept("{") or scan.accept("}"):
        return attributes

    def one() -> None:
        start = scan.here()
        name = scan.match(_DIGITS) or read_word(scan, "an attribute's name or position")
        if name in attributes:
            raise scan.error("an attribute not given yet", start)
        scan.expect("=", f"after the attribute's name {name}")
        attributes[name] = read_attribute(scan)

    read_list(scan, one)
    scan.expect("}", "after the attributes")
    return attributes


def read_attribute(scan: Scanner) -> Attribute:
    """A number, a JSON string, `true`, `false`, `none`, `_`, `@kind(name)`, or a list of these."""
    expected = "an attribute (a number, a string, true, false, none, _, @kind(name) or a list)"
    start = scan.here()
    if scan.accept("["):
        items = [] if scan.peek("]") else read_list(scan, lambda: read_attribute(scan))
        scan.expect("]", "after the list's items")
        return tuple(items)
    if scan.peek('"'):
        return _string(scan)
    if scan.accept("@"):
        return _label(scan)
    negative = scan.accept("-")
    digits = scan.match(_NUMBER)
    if digits is not None:
        number = int(digits) if digits.isdigit() else float(digits)
        return -number if negative else number
    word = scan.match(IDENTIFIER)
    if word not in _CONSTANTS or (negative and word not in ("inf", "nan")):
        raise scan.error(expected, start)
    constant = _CONSTANTS[word]
    return -constant if negative and isinstance(constant, float) else constant


def _label(scan: Scanner) -> Label:
    kind = scan.match(IDENTIFIER)
    if kind is None:
        raise scan.error("the label's kind")
    scan.expect("(", "after the label's kind")
    name = _string(scan) if scan.peek('"') else scan.match(BARE_LABEL)
    if name is None:
        raise scan.error("the label's name, in quotes where it is not plain")
    scan.expect(")", "after the label's name")
    return Label(kind, name)


def _string(scan: Scanner) -> str:
    text = scan.string()
    if text is None:
        raise scan.error("a JSON string closed on the same line")
    return text
