"""`tessiq explain`: compile the model of a file and print what became of it."""

from __future__ import annotations

import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tessiq_core.errors import InvalidArgument


def run_explain(file: Path, options: Sequence[str]) -> None:
    """Run the file, compile what `model()` returns on what `inputs()` returns, and print the explanation.

    `model()` returns a module or a function; `inputs()` its positional arguments as a tuple or list, or the only one.
    Raises InvalidArgument when the file has no such functions, OSError when it cannot be read.
    """
    parsed = dict(_option(text) for text in options)
    file.stat()  # the OSError that names the file, which runpy would bury
    namespace = runpy.run_path(str(file))
    for name in ("model", "inputs"):
        if not callable(namespace.get(name)):
            raise InvalidArgument(
                f"tessiq: {file} has no function {name}(); `tessiq explain` needs model(), which returns a module or "
                "function, and inputs(), which returns its arguments as a tuple"
            )
    function, inputs = namespace["model"](), namespace["inputs"]()
    if not isinstance(inputs, tuple | list):
        inputs = (inputs,)
    from tessiq_core.profiling import explain

    print(explain(function, *inputs, options=parsed or None))


def _option(text: str) -> tuple[str, Any]:
    """`verify=true` as ("verify", True): the value is JSON, or else a string."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidArgument(f"tessiq: --option takes NAME=VALUE, such as verify=true, not {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
