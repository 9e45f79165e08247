"""The environment variables that choose plugins, and which entry points they leave."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from tessiq_core.errors import NotFound

ALLOW = "TESSIQ_PLUGINS"
DISABLE = "TESSIQ_DISABLE_PLUGINS"
STRICT = "TESSIQ_STRICT_PLUGINS"


def distribution_of(point: EntryPoint) -> tuple[str, str]:
    """(name, version) of the package an entry point belongs to; two empty strings where it does not say."""
    return (point.dist.name, point.dist.version) if point.dist is not None else ("", "")


def normalized(name: str) -> str:
    """A name as package indexes compare it: lower case, runs of `-`, `_` and `.` are one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Selection:
    """What the environment asks for. Names are a plugin's own or its distribution's, compared in normalized form.

    allowed:  TESSIQ_PLUGINS, a comma-separated list: only these load, and a failure of one of them is raised. None
              when the variable is unset, empty or `*`: all load and none is asked for by name.
    disabled: TESSIQ_DISABLE_PLUGINS: these are not even imported, also where they are allowed; `*` means every one.
    strict:   TESSIQ_STRICT_PLUGINS=1: every failure is raised.
    """

    allowed: frozenset[str] | None
    disabled: frozenset[str]
    strict: bool

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Selection:
        allowed = _names(environ.get(ALLOW, ""))
        return cls(
            allowed=None if not allowed or "*" in allowed else allowed,
            disabled=_names(environ.get(DISABLE, "")),
            strict=environ.get(STRICT, "") not in ("", "0"),
        )

    def blocked(self, point: EntryPoint) -> str:
        """Why this entry point must not be loaded; "" when it may."""
        if "*" in self.disabled or _spellings(point) & self.disabled:
            return f"disabled by {DISABLE}"
        if self.allowed is not None and not _spellings(point) & self.allowed:
            return f"not among those that {ALLOW} names"
        return ""

    def requested(self, point: EntryPoint) -> bool:
        """Whether TESSIQ_PLUGINS names this entry point."""
        return self.allowed is not None and bool(_spellings(point) & self.allowed)

    def requested_distribution(self, point: EntryPoint) -> bool:
        """Whether TESSIQ_PLUGINS names the distribution of this entry point."""
        return self.allowed is not None and normalized(distribution_of(point)[0]) in self.allowed

    def check_names(self, points: Iterable[EntryPoint]) -> None:
        """Raise NotFound when TESSIQ_PLUGINS names something that is not installed, with those that are."""
        known = {spelling for point in points for spelling in _spellings(point)}
        for name in sorted((self.allowed or frozenset()) - known):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            installed = ", ".join(sorted(known)) or "none"
            raise NotFound(
                f"tessiq: {ALLOW} asks for the plugin {name!r}, which is not installed{hint} (installed: {installed}). "
                f"Install the package that has it, or take the name out of {ALLOW}"
            )


def _names(text: str) -> frozenset[str]:
    return frozenset(normalized(part.strip()) for part in text.split(",") if part.strip())


def _spellings(point: EntryPoint) -> frozenset[str]:
    return frozenset({normalized(point.name), normalized(distribution_of(point)[0])} - {""})
