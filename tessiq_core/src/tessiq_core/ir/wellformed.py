"""What a single name, type, attribute or node must satisfy. Each function returns what is wrong, or None."""

from __future__ import annotations

import re

from tessiq_core.ir.attributes import Hole, Label, holes
from tessiq_core.ir.extent import Expression, Extent, Unknown, substitute
from tessiq_core.ir.graph import DECISION_PREFIX, Node
from tessiq_core.ir.types import (
    ELEMENT_TYPES,
    ElementType,
    OpaqueType,
    ScalarType,
    TensorType,
    opaque_element,
    tensor_type,
)

CLAIMS = ("kernel", "view", "library")
EFFECTS = ("none", "random", "writes", "ordered")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POSITION = re.compile(r"0|[1-9][0-9]*")
_DECLINE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*: .+", re.DOTALL)


def name_problem(kind: str, name: object) -> str | None:
    """Names of values are identifiers; names of graphs and operations may have parts separated by `.` or `::`."""
    pattern = _IDENTIFIER if kind == "value" else _WORD
    if isinstance(name, str) and pattern.fullmatch(name) and not (kind == "operation" and name == "return"):
        return None
    what = "an identifier" if kind == "value" else "identifiers separated by '.' or '::'"
    return f"the {kind}'s name must be {what}, not {name!r}"


def type_problem(type: object) -> str | None:
    """A type is one of the three classes, of known elements, in the form that prints and parses back to itself."""
    if isinstance(type, TensorType):
        return _tensor_problem(type)
    if isinstance(type, ScalarType):
        if type.kind not in ("int", "float", "bool"):
            return f"is a scalar of kind {type.kind!r}, not int, float or bool"
        if type.value is not None and type.kind != "int":
            return f"is a {type.kind} scalar with an extent; only an int has one"
        return None if type.value is None else _extent_problem(type.value)
    if isinstance(type, OpaqueType):
        return _text_problem(type.name)
    return f"is {type!r}, not a TensorType, ScalarType or OpaqueType"


def _tensor_problem(type: TensorType) -> str | None:
    if not _is_known_element(type.element):
        return f"has the unknown element type {type.element!r}"
    if type.strides is not None and len(type.strides) != len(type.shape):
        return f"has {len(type.shape)} extents but {len(type.strides)} strides"
    for extent in (*type.shape, *(type.strides or ())):
        if reason := _extent_problem(extent):
            return reason
    if any(isinstance(extent, int) and extent < 0 for extent in type.shape):
        return "has a negative extent"
    if type.strides is not None and tensor_type(type.element, type.shape, type.strides).strides is None:
        return "spells out strides that are the packed ones; they must be None"
    return None


def _is_known_element(element: ElementType) -> bool:
    if element.kind == "opaque":
        return element == opaque_element(element.name) and bool(_WORD.fullmatch(element.name))
    return ELEMENT_TYPES.get(element.name) == element


def _extent_problem(extent: Extent) -> str | None:
    # Exactly int: a bool or a numpy integer would print as something else.
    if type(extent) is int or isinstance(extent, Unknown):
        return None
    if isinstance(extent, Expression):
        canonical = substitute(extent, {})
        return None if canonical == extent else f"has the extent {extent}, whose canonical form is {canonical}"
    return f"has the extent {extent!r}, which is not an int, an Expression or UNKNOWN"


def attribute_problem(name: str, value: object) -> str | None:
    """An attribute's name is a position, a keyword, or a decision; its value is of the closed set."""
    if not (_POSITION.fullmatch(name) or _WORD.fullmatch(name)):
        return "has a name that is neither a position nor identifiers separated by '.'"
    if name.startswith(DECISION_PREFIX) and _holes(value):
        return "is a decision, and decisions have no places for operands"
    return _value_problem(value)


def _holes(value: object) -> int:
    return holes(value) if isinstance(value, tuple | Hole) else 0


def _value_problem(value: object) -> str | None:
    # Exactly these types: a subclass, such as an enum's member or a numpy float, would not come back from text.
    if value is None or type(value) in (bool, int, float, Hole):
        return None
    if type(value) is str:
        return _text_problem(value)
    if type(value) is Label:
        if not _IDENTIFIER.fullmatch(value.kind):
            return f"is a label of kind {value.kind!r}, which is not an identifier"
        return _text_problem(value.name)
    if type(value) is tuple:
        return next((reason for item in value if (reason := _value_problem(item))), None)
    return f"is {value!r} of {type(value).__name__}, not a bool, int, float, str, None, Label, HOLE or a tuple of these"


def _text_problem(text: object) -> str | None:
    if not isinstance(text, str):
        return f"has {text!r} where a string belongs"
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return f"has the string {text!r}, which no file can hold: it contains half a surrogate pair"
    return None


def call_form_problem(node: Node) -> str | None:
    """Operands must be as many as the holes and the open positions below the last numbered attribute, at least."""
    arguments = node.arguments
    numbered = [int(name) for name in arguments if name.isdecimal()]
    open_positions = max(numbered) + 1 - len(numbered) if numbered else 0
    in_holes = sum(holes(value) for value in arguments.values())
    operands = len(node.operands)
    if operands >= open_positions + in_holes:
        return None
    return (
        f"{node.op} has {operands} operand{'' if operands == 1 else 's'}, but its attributes leave {open_positions} "
        f"positions and {in_holes} holes to fill"
    )


def decision_problem(node: Node) -> str | None:
    """Decisions have their form, and none contradicts another."""
    claim = node.attribute("tessiq.claim")
    if claim is not None and claim not in CLAIMS:
        return f"{node.op} has tessiq.claim {claim!r}, not one of {', '.join(CLAIMS)}"
    decline = node.attribute("tessiq.decline")
    if decline is not None and not (isinstance(decline, str) and _DECLINE.fullmatch(decline)):
        return f"{node.op} has tessiq.decline {decline!r}, not text of the form 'code: reason'"
    if claim is not None and decline is not None:
        return f"{node.op} is both claimed ({claim!r}) and declined ({decline!r})"
    for name, needed in (("tessiq.cluster", CLAIMS), ("tessiq.group", ("kernel",))):
        number = node.attribute(name)
        if node.has_attribute(name) and type(number) is not int:
            return f"{node.op} has {name} {number!r}, not an integer"
        if node.has_attribute(name) and claim not in needed:
            return f"{node.op} has {name} {number}, but its tessiq.claim is {claim!r}, not {' or '.join(needed)}"
    effect = node.attribute("tessiq.effect", "none")
    if effect not in EFFECTS:
        return f"{node.op} has tessiq.effect {effect!r}, not one of {', '.join(EFFECTS)}"
    library = node.attribute("tessiq.library")
    if node.has_attribute("tessiq.library") and (claim != "library" or not isinstance(library, str)):
        return f"{node.op} has tessiq.library {library!r}, which needs a name and the claim 'library', not {claim!r}"
    absorbed = node.attribute("tessiq.absorbed", ())
    if not (isinstance(absorbed, tuple) and all(isinstance(name, str) for name in absorbed)):
        return f"{node.op} has tessiq.absorbed {absorbed!r}, not a list of names"
    if effect != "none" and claim == "kernel":
        return f"{node.op} has the effect {effect!r} and is claimed as a kernel, which may be moved and merged"
    return None
