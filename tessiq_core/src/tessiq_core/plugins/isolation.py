"""The one catch-all `except` of tessiq, on purpose: a plugin is somebody else's code, and whatever it raises must not
take down a process that never asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Succeeded(Generic[T]):
    """What the plugin's code returned."""

    value: T


@dataclass(frozen=True)
class Failed:
    """The exception the plugin's code raised."""

    error: Exception


def attempt(function: Callable[[], T]) -> Succeeded[T] | Failed:
    """Run a plugin's code. KeyboardInterrupt and SystemExit pass: they are addressed to the process."""
    try:
        return Succeeded(function())
    except Exception as error:  # noqa: BLE001 - see the module's docstring
        return Failed(error)
