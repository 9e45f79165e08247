"""Reading the part of PyTorch's operator schemas that custom operations use, without torch."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tessiq_core.errors import InvalidArgument
from tessiq_core.ops.row import REQUIRED, Argument

_DEFAULTS: dict[str, tuple[type, ...]] = {
    "Tensor": (),
    "Scalar": (int, float, bool),
    "float": (float, int),
    "int": (int,),
    "bool": (bool,),
}
ARGUMENT_TYPES = tuple(_DEFAULTS)

_SCHEMA = re.compile(
    r"\s*(?P<namespace>[A-Za-z_]\w*)::(?P<name>[A-Za-z_]\w*)(?:\.(?P<overload>[A-Za-z_]\w*))?"
    r"\s*\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+?)\s*",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"(?P<type>[^\s=]+)\s+(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<default>.+))?", re.DOTALL)


@dataclass(frozen=True)
class Schema:
    """A schema in parts. `definition` is what `torch.library.Library.define` takes: without the namespace."""

    namespace: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    tensors: frozenset[str]
    definition: str

    @property
    def spelling(self) -> str:
        """The operator as graphs name it: `my_ops.soft_clip.default`."""
        return f"{self.namespace}.{self.name}.{self.overload or 'default'}"


def parse_schema(text: str) -> Schema:
    """The schema in parts. Raises InvalidArgument saying which part cannot be read and what is expected."""
    match = _SCHEMA.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{text!r} is not of the form `namespace::name(Tensor x, float k=1.0) -> Tensor`")
    if match["returns"] != "Tensor":
        raise InvalidArgument(f"it returns `{match['returns']}`; an elementwise operation returns `Tensor`")
    arguments: list[Argument] = []
    tensors: set[str] = set()
    keyword_only = False
    listed = match["arguments"].strip()
    for part in (part.strip() for part in listed.split(",")) if listed else ():
        if part == "*" and not keyword_only:
            keyword_only = True
            continue
        argument, kind = _argument(part, keyword_only)
        if argument.name in {known.name for known in arguments}:
            raise InvalidArgument(f"two arguments are called `{argument.name}`")
        arguments.append(argument)
        if kind == "Tensor":
            tensors.add(argument.name)
    if not tensors:
        raise InvalidArgument("it takes no Tensor, so nothing gives the result its shape")
    definition = text[match.start("name") :].strip()
    return Schema(
        match["namespace"], match["name"], match["overload"] or "", tuple(arguments), frozenset(tensors), definition
    )


def _argument(text: str, keyword_only: bool) -> tuple[Argument, str]:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"the argument `{text}` is not of the form `Tensor x` or `float k=1.0`")
    kind, name = match["type"], match["name"]
    if kind not in ARGUMENT_TYPES:
        raise InvalidArgument(f"argument `{name}` has type `{kind}`; expected one of {', '.join(ARGUMENT_TYPES)}")
    if match["default"] is None:
        return Argument(name, REQUIRED, keyword_only), kind
    default = _number(match["default"].strip())
    # Exact types: True is no int here, as it is none in a graph's arguments.
    if default is None or type(default) not in _DEFAULTS[kind]:
        expected = " or ".join(allowed.__name__ for allowed in _DEFAULTS[kind]) or "none, as for every Tensor"
        raise InvalidArgument(f"argument `{name}` has the default `{match['default']}`; expected {expected}")
    return Argument(name, default, keyword_only), kind


def _number(text: str) -> bool | int | float | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, (bool, int, float)) else None
