"""Signatures in `ops.toml`: `self, *, alpha=1` becomes `Argument` tuples, defaults as the IR writes attributes."""

from __future__ import annotations

import re

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import Attribute
from tessiq_core.ir.parser import parse_attribute
from tessiq_core.ops.row import REQUIRED, Argument, Required


def parse_signature(text: str) -> tuple[Argument, ...]:
    """The arguments of `text`; those after `*` are keyword-only.

    Raises InvalidArgument for a name that is no identifier, a name used twice, or a malformed default.
    """
    arguments: list[Argument] = []
    keyword_only = False
    for item in _split(text):
        if item == "*":
            if keyword_only:
                raise InvalidArgument(f"signature {text!r} has a second '*'")
            keyword_only = True
            continue
        name, equals, default_text = item.partition("=")
        name = name.strip()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InvalidArgument(f"signature {text!r}: {name!r} is not an argument name")
        if any(argument.name == name for argument in arguments):
            raise InvalidArgument(f"signature {text!r}: argument {name!r} occurs twice")
        default: Attribute | Required = REQUIRED
        if equals:
            try:
                default = parse_attribute(default_text)
            except InvalidArgument as error:
                raise InvalidArgument(f"signature {text!r}: the default of {name!r}: {error}") from None
        arguments.append(Argument(name, default, keyword_only))
    return tuple(arguments)


def _split(text: str) -> list[str]:
    """Parts between commas that stand outside brackets and strings."""
    parts: list[str] = []
    depth, quoted, start = 0, False, 0
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []
