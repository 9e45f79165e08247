"""The plugin API's own version, and the two markers of pluggy that make a function a hook of ours."""

from __future__ import annotations

import pluggy

PROJECT = "tessiq"
ENTRY_POINT_GROUP = "tessiq"

API_VERSION = (0, 1)
"""What this core offers. A plugin states what it was written for as `TESSIQ_API_VERSION` in its entry-point module;
the loader takes it when the major number is the same and the minor number is not above ours."""

VERSION_ATTRIBUTE = "TESSIQ_API_VERSION"
UNSTATED_VERSION = (0, 1)
"""What a module without `TESSIQ_API_VERSION` is taken to be written for: always the first version, never "the newest".
A plugin that says nothing therefore stops loading, with the reason, at the first major release that could break it."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


def compatible(version: tuple[int, int]) -> bool:
    """Whether a plugin written for `version` (major, minor) runs on this core: same major, minor at most ours."""
    return version[0] == API_VERSION[0] and version[1] <= API_VERSION[1]


def spell(version: tuple[int, int]) -> str:
    """`(0, 1)` as people write it: `0.1`."""
    return ".".join(str(part) for part in version)
