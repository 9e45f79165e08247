"""The plugin framework: what a target or an operation package implements, and how it is found and isolated.

A plugin is a module named by an entry point of the group `tessiq`. It decorates functions with `hookimpl`, named
after the hooks of `tessiq_core.plugins.hookspecs`. Nothing here imports torch, and an entry-point module must not
import it either: `tessiq plugins` and `tessiq opt` load every plugin.
"""

from __future__ import annotations

from tessiq_core.plugins.api import API_VERSION, hookimpl
from tessiq_core.plugins.loader import load_plugins, plugin_manager
from tessiq_core.plugins.manager import PluginManager
from tessiq_core.plugins.offers import DeviceOffer, Discovery
from tessiq_core.plugins.records import Answer, Conflict, PluginRecord, TessiqPluginWarning

__all__ = [
    "API_VERSION",
    "Answer",
    "Conflict",
    "DeviceOffer",
    "Discovery",
    "PluginManager",
    "PluginRecord",
    "TessiqPluginWarning",
    "hookimpl",
    "load_plugins",
    "plugin_manager",
]
