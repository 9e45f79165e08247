"""Which runner runs a recipe: the C++ one where it can, else the Python one, and why."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from tessiq_core.decline import Decline
from tessiq_core.errors import External, InvalidArgument
from tessiq_core.native import load
from tessiq_core.runtime.native_runner import native_runner
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.runner import Runner

RUNNER = "TESSIQ_RUNNER"
"""Environment variable: `auto`, `cpp` or `python`; `docs/options.md` says what they do."""

AnyRunner: TypeAlias = Any
"""`Runner`, or the C++ one, which is called alike and has `recipe` and `python`, the Python runner of the recipe."""


def make_runner(recipe: Recipe) -> tuple[AnyRunner, str]:
    """The runner of a recipe, and a note that says why it is the Python one; "" for the C++ one.

    Raises InvalidArgument for an unknown setting of TESSIQ_RUNNER, External where it says `cpp` and there is no
    compiled module.
    """
    setting = os.environ.get(RUNNER, "auto")
    if setting not in ("auto", "cpp", "python"):
        raise InvalidArgument(f"tessiq: {RUNNER}: expected auto, cpp or python, got {setting!r}")
    python = Runner(recipe)
    if setting == "python":
        return python, f"the Python runner runs the plan: {RUNNER}=python"
    native = load()
    if isinstance(native, Decline):
        if setting == "cpp":
            raise External(f"tessiq: {RUNNER}=cpp, and there is no compiled module: {native.reason}")
        return python, f"the Python runner runs the plan: {native.reason}"
    made = native_runner(python, native)
    if isinstance(made, Decline):
        return python, f"the Python runner runs the plan: {made.reason}"
    return made, ""
