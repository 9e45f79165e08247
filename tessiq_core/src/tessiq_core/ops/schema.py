"""Reads `ops.toml` and checks it: every mistake is an error that names the row, the key and what is allowed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Final, cast

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import Attribute
from tessiq_core.ir.parser import parse_attribute
from tessiq_core.ir.types import ELEMENT_TYPES
from tessiq_core.ops.expression import argument_names, parse_expression
from tessiq_core.ops.row import CATEGORIES, Argument, Row
from tessiq_core.ops.signature import parse_signature

ELEMENT_SETS: Final[dict[str, tuple[str, ...]]] = {
    "floats": tuple(name for name, t in ELEMENT_TYPES.items() if t.is_float),
    "integers": tuple(name for name, t in ELEMENT_TYPES.items() if t.is_integer),
    "numbers": tuple(name for name, t in ELEMENT_TYPES.items() if t.is_float or t.is_integer),
    "all": tuple(ELEMENT_TYPES),
}
"""Words that stand for several element types in a row's `elements`."""

COMPUTE: Final = ("promote", "float", "result")
RESULT: Final = ("compute", "bool", "first", "recorded")
REDUCTIONS: Final = ("sum", "prod", "max", "min", "any", "all")
EFFECTS: Final = ("none", "random", "writes")

_TEXT: Final = ("category", "summary", "expression", "compute", "result", "reduction", "effect")
_LISTS: Final = ("consumes", "elements", "conditions")
_KEYS: Final = (*_TEXT, *_LISTS, "spellings", "allows", "averages")


def load_rows(text: str, origin: str = "tessiq", source: str = "ops.toml") -> tuple[Row, ...]:
    """The rows of a TOML text, in its order, checked one by one and for spellings used twice.

    Raises InvalidArgument naming `source`, the row and the key.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"tessiq: {source} is not TOML: {error}") from error
    rows = tuple(_row(name, data, origin, source) for name, data in document.items())
    seen: dict[str, str] = {}
    for row in rows:
        for spelling in row.spellings:
            if spelling in seen:
                raise InvalidArgument(
                    f"tessiq: {source}, row {row.name!r}: spelling {spelling!r} is already one of row "
                    f"{seen[spelling]!r}; a spelling means one row"
                )
            seen[spelling] = row.name
    return rows


def _row(name: str, data: object, origin: str, source: str) -> Row:
    where = f"tessiq: {source}, row {name!r}"
    if not isinstance(data, dict):
        raise InvalidArgument(f"{where}: expected a table [{name}], got {data!r}")
    for key in data:
        if key not in _KEYS:
            raise InvalidArgument(f"{where}: unknown key {key!r}; a row has {', '.join(_KEYS)}")
    for key in ("category", "summary", "spellings"):
        if key not in data:
            raise InvalidArgument(f"{where}: key {key!r} is missing")
    for key in _TEXT:
        if key in data and not isinstance(data[key], str):
            raise InvalidArgument(f"{where}: {key} must be a string, not {data[key]!r}")
    if not isinstance(data.get("averages", False), bool):
        raise InvalidArgument(f"{where}: averages must be true or false, not {data['averages']!r}")
    lists = {key: _strings(data.get(key, []), where, key) for key in _LISTS}
    row = Row(
        name=name,
        category=data["category"],
        spellings=_spellings(data["spellings"], where),
        consumes=lists["consumes"],
        expression=data.get("expression"),
        compute=data.get("compute", "promote"),
        result=data.get("result", "compute"),
        elements=_elements(lists["elements"], where),
        reduction=data.get("reduction"),
        effect=data.get("effect", "none"),
        summary=data["summary"],
        origin=origin,
        conditions=lists["conditions"],
        allows=_allows(data.get("allows", {}), where),
        averages=data.get("averages", False),
    )
    check_row(row, source)
    return row


def _strings(value: object, where: str, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidArgument(f"{where}: {key} must be a list of strings, not {value!r}")
    return tuple(cast("list[str]", value))


def _elements(names: tuple[str, ...], where: str) -> tuple[str, ...]:
    expanded: dict[str, None] = {}
    for name in names:
        if name not in ELEMENT_TYPES and name not in ELEMENT_SETS:
            raise InvalidArgument(
                f"{where}: unknown element type {name!r}; use {', '.join((*ELEMENT_SETS, *ELEMENT_TYPES))}"
            )
        expanded.update(dict.fromkeys(ELEMENT_SETS.get(name, (name,))))
    return tuple(expanded)


def _spellings(value: object, where: str) -> dict[str, tuple[Argument, ...]]:
    if not isinstance(value, dict) or not value:
        raise InvalidArgument(f'{where}: spellings must be a table of overload = "signature", not {value!r}')
    found: dict[str, tuple[Argument, ...]] = {}
    for spelling, signature in value.items():
        if not isinstance(signature, str):
            raise InvalidArgument(f"{where}: the signature of {spelling!r} must be a string, not {signature!r}")
        try:
            found[spelling] = parse_signature(signature)
        except InvalidArgument as error:
            raise InvalidArgument(f"{where}: {spelling}: {error}") from None
    return found


def _allows(value: object, where: str) -> dict[str, tuple[Attribute, ...]]:
    if not isinstance(value, dict):
        raise InvalidArgument(f'{where}: allows must be a table of argument = ["literal", …], not {value!r}')
    found: dict[str, tuple[Attribute, ...]] = {}
    for name, literals in value.items():
        try:
            found[name] = tuple(parse_attribute(item) for item in _strings(literals, where, f"allows.{name}"))
        except InvalidArgument as error:
            raise InvalidArgument(f"{where}: allows.{name}: {error}") from None
    return found


def check_row(row: Row, source: str = "row") -> None:
    """Check one row, of `ops.toml` or of a plugin.

    Raises InvalidArgument naming `source`, the row, what was expected and what came.
    """
    where = f"tessiq: {source}, row {row.name!r}"
    if not re.fullmatch(r"[A-Za-z_]\w*", row.name):
        raise InvalidArgument(f"{where}: a row's name is an identifier")
    choices: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "category": (row.category, CATEGORIES),
        "compute": (row.compute, COMPUTE),
        "result": (row.result, RESULT),
        "effect": (row.effect, EFFECTS),
        "reduction": (row.reduction, (REDUCTIONS if row.category == "reduction" else (None,))),
    }
    for key, (value, allowed) in choices.items():
        if value not in allowed:
            raise InvalidArgument(
                f"{where}: unknown {key} {value!r}; a row of category {row.category!r} may have "
                f"{', '.join(map(str, allowed))}"
            )
    if not row.spellings:
        raise InvalidArgument(f"{where}: it has no spelling; give the operator's name and signature")
    for element in row.elements:
        if element not in ELEMENT_TYPES:
            raise InvalidArgument(f"{where}: unknown element type {element!r}; use {', '.join(ELEMENT_TYPES)}")
    if not row.elements and row.category not in ("movement", "convolution", "normalization") and row.effect == "none":
        raise InvalidArgument(f"{where}: elements is empty; name the element types it computes in")
    if row.averages and row.reduction != "sum":
        raise InvalidArgument(f'{where}: averages needs reduction = "sum", not {row.reduction!r}')
    _check_arguments(row, where)
    _check_expression(row, where)


def _check_arguments(row: Row, where: str) -> None:
    signatures = {spelling: {a.name for a in arguments} for spelling, arguments in row.spellings.items()}
    everywhere = set(row.operands)
    for name in row.consumes:
        missing = [spelling for spelling, names in signatures.items() if name not in names]
        if missing and (name in everywhere or len(missing) == len(signatures)):
            raise InvalidArgument(f"{where}: consumes {name!r}, which is not in the signature of {', '.join(missing)}")
    for name in row.conditions:
        if name not in row.consumes:
            raise InvalidArgument(f"{where}: conditions names {name!r}, which is not consumed")
    for name in row.allows:
        if name in row.consumes or not any(name in names for names in signatures.values()):
            raise InvalidArgument(
                f"{where}: allows names {name!r}; it may name arguments of a signature that are not consumed"
            )


def _check_expression(row: Row, where: str) -> None:
    if row.expression is None:
        if row.category == "elementwise" and row.effect == "none" and row.reference is None:
            raise InvalidArgument(f"{where}: an elementwise row without an effect needs an expression")
        return
    if row.category not in ("elementwise", "copy", "fill"):
        raise InvalidArgument(f"{where}: a {row.category} row has no expression")
    try:
        named = argument_names(parse_expression(row.expression))
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from None
    for name in named:
        if name not in row.consumes:
            raise InvalidArgument(f"{where}: the expression names ${name}, which is not in consumes")
    if row.category == "elementwise":
        for name in row.consumes:
            if name not in named:
                raise InvalidArgument(f"{where}: consumes {name!r}, but the expression never names ${name}")
