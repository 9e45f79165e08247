"""What is kept about plugins: one record each, their answers, and who lost to whom."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

STATUSES = ("ok", "blocked", "incompatible", "broken")


class TessiqPluginWarning(UserWarning):
    """A plugin nobody asked for by name was left out; the message is one line and says why."""


@dataclass(frozen=True)
class PluginRecord:
    """One entry point of the group `tessiq`.

    name:         the entry point's name; what TESSIQ_PLUGINS and TESSIQ_DISABLE_PLUGINS spell.
    distribution: the package that has it ("" where the entry point does not say).
    version:      that package's version ("" likewise).
    status:       "ok"; "blocked" by an environment variable; "incompatible" with this core's API version;
                  "broken", because it did not load or one of its hooks failed.
    reason:       one line that says why it is not "ok"; "" when it is.
    hooks:        names of the hooks it implements, in firing order; empty when it was not loaded.
    """

    name: str
    distribution: str
    version: str
    status: str
    reason: str = ""
    hooks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The plugin as messages name it: `cuda (tessiq-cuda 0.1.0)`."""
        origin = " ".join(part for part in (self.distribution, self.version) if part)
        return f"{self.name} ({origin})" if origin else self.name


@dataclass(frozen=True)
class Answer(Generic[T]):
    """One thing a hook returned, and the name of the plugin that returned it."""

    plugin: str
    value: T


@dataclass(frozen=True)
class Conflict:
    """Two plugins answered for the same thing: `loser`'s answer is not used, for `reason`.

    hook: the hook both answered, or "entry point" where two plugins have one name.
    key:  what both answered for (`cpuref/cpp`).
    """

    hook: str
    key: str
    winner: str
    loser: str
    reason: str


def one_line(error: BaseException) -> str:
    """`ValueError: message` with line breaks folded, for records and warnings."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def warn(message: str) -> None:
    """Give `message` as one warning line: `warnings.warn` would print a line of the loader's source below it."""
    warnings.warn_explicit(message, TessiqPluginWarning, filename="tessiq", lineno=0, module=__name__)
