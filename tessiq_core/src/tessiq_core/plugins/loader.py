"""Finding, loading and isolating plugins: one record an entry point, whatever becomes of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from importlib.metadata import EntryPoint

import pluggy

from tessiq_core.errors import External, Internal, InvalidArgument, Unsupported
from tessiq_core.plugins import api, hookspecs
from tessiq_core.plugins.isolation import Succeeded, attempt
from tessiq_core.plugins.manager import PluginManager
from tessiq_core.plugins.records import Conflict, PluginRecord, one_line, warn
from tessiq_core.plugins.selection import DISABLE, Selection, distribution_of, normalized


def load_plugins(
    entry_points: Iterable[EntryPoint] | None = None, environ: Mapping[str, str] | None = None
) -> PluginManager:
    """Load every plugin the environment allows and keep a record of each one.

    entry_points: what to look at; by default the installed entry points of the group `tessiq`.
    environ:      where TESSIQ_PLUGINS, TESSIQ_DISABLE_PLUGINS and TESSIQ_STRICT_PLUGINS are read; by default the
                  process's environment.

    A plugin that fails gets a record that says why, and one `TessiqPluginWarning`. Raises External (with the plugin's
    exception as its cause) or Unsupported (API version) instead where TESSIQ_PLUGINS names that plugin or
    TESSIQ_STRICT_PLUGINS=1 is set, and NotFound where TESSIQ_PLUGINS names one that is not installed.
    """
    if entry_points is None:
        entry_points = metadata.entry_points(group=api.ENTRY_POINT_GROUP)
    points = sorted(entry_points, key=lambda p: (normalized(p.name), normalized(distribution_of(p)[0]), p.value))
    selection = Selection.of(os.environ if environ is None else environ)
    selection.check_names(points)
    hooks = pluggy.PluginManager(api.PROJECT)
    hooks.add_hookspecs(hookspecs)
    records: list[PluginRecord] = []
    conflicts: list[Conflict] = []
    must_work: set[str] = set()
    winners: dict[str, EntryPoint] = {}
    for point in points:
        record = PluginRecord(point.name, *distribution_of(point), status="ok")
        if reason := selection.blocked(point):
            records.append(replace(record, status="blocked", reason=reason))
            continue
        winner = winners.setdefault(normalized(point.name), point)
        if winner is not point:
            conflicts.append(_duel(point, winner))
            records.append(_lost(record, conflicts[-1], selection.strict or selection.requested_distribution(point)))
            continue
        asked_for = selection.strict or selection.requested(point)
        records.append(_load(point, record, hooks, asked_for))
        if asked_for:
            must_work.add(record.name)
    return PluginManager(hooks, records, conflicts, frozenset(must_work))


_lock = threading.RLock()
_manager: PluginManager | None = None
_loading = False


def plugin_manager() -> PluginManager:
    """The process's plugins, loaded from the installed entry points when first asked for. Thread-safe.

    Raises what `load_plugins` raises, and again at the next call: a failure is not kept.
    """
    global _manager, _loading
    with _lock:
        if _loading:
            raise Internal(
                "tessiq: plugin_manager() was asked for while plugins are loading; an entry-point module must not ask "
                "for it at import time"
            )
        if _manager is None:
            _loading = True
            try:
                _manager = load_plugins()
            finally:
                _loading = False
        return _manager


def _duel(point: EntryPoint, winner: EntryPoint) -> Conflict:
    """Two entry points of one name: the distribution whose name sorts first has it, and the other is not imported."""
    ours, theirs = (distribution_of(p)[0] or p.value for p in (winner, point))
    if ours == theirs:
        ours, theirs = winner.value, point.value
    return Conflict("entry point", point.name, ours, theirs, f"{ours!r} sorts before {theirs!r}")


def _lost(record: PluginRecord, conflict: Conflict, must_work: bool) -> PluginRecord:
    record = replace(
        record,
        status="broken",
        reason=f"{conflict.winner} has a plugin of this name too and {conflict.reason}; uninstall one, or name one "
        f"distribution in {DISABLE}",
    )
    if must_work:
        raise InvalidArgument(f"tessiq: plugin {record.title} cannot be loaded: {record.reason}")
    warn(f"tessiq: plugin {record.title} is left out: {record.reason}")
    return record


def _load(point: EntryPoint, record: PluginRecord, hooks: pluggy.PluginManager, must_work: bool) -> PluginRecord:
    """Import and register one plugin; what fails leaves nothing registered. Raises only where `must_work`."""
    loaded = attempt(point.load)
    outcome = attempt(lambda: _register(loaded.value, record, hooks)) if isinstance(loaded, Succeeded) else loaded
    if isinstance(outcome, Succeeded):
        return replace(record, hooks=outcome.value)
    error = outcome.error
    if isinstance(loaded, Succeeded) and hooks.get_plugin(record.name) is loaded.value:
        hooks.unregister(name=record.name)
    if isinstance(error, _Incompatible):
        record = replace(record, status="incompatible", reason=str(error))
        if must_work:
            raise Unsupported(f"tessiq: plugin {record.title} cannot be used: {error}")
    else:
        record = replace(record, status="broken", reason=one_line(error))
        if must_work:
            raise External(
                f"tessiq: plugin {record.title} did not load: {record.reason}. Mend or uninstall it, or "
                f"skip it with {DISABLE}={record.name}"
            ) from error
    warn(f"tessiq: plugin {record.title} is left out: {record.reason} ({DISABLE}={record.name} skips it)")
    return record


class _Incompatible(Exception):
    """The plugin was written for another API version; the message is the record's reason."""


def _register(plugin: object, record: PluginRecord, hooks: pluggy.PluginManager) -> tuple[str, ...]:
    """Register a loaded plugin; the names of the hooks it implements, in firing order."""
    version = _stated_version(plugin)
    if not api.compatible(version):
        raise _Incompatible(
            f"it is written for plugin API {api.spell(version)}, this tessiq-core has {api.spell(api.API_VERSION)}; "
            + ("upgrade tessiq-core" if version > api.API_VERSION else f"upgrade {record.distribution or 'the plugin'}")
        )
    hooks.register(plugin, name=record.name)
    hooks.check_pending()
    callers = hooks.get_hookcallers(plugin) or []
    if any(impl.wrapper or impl.hookwrapper for c in callers for impl in c.get_hookimpls() if impl.plugin is plugin):
        raise InvalidArgument("a hook wrapper would see other plugins' answers; hooks are asked one plugin at a time")
    names = {caller.name for caller in callers}
    if not names:
        raise InvalidArgument(
            f"{_label(plugin)} implements no hook; decorate functions named {', '.join(hookspecs.HOOKS)} with "
            "tessiq_core.plugins.hookimpl"
        )
    return tuple(name for name in hookspecs.HOOKS if name in names)


def _stated_version(plugin: object) -> tuple[int, int]:
    stated = getattr(plugin, api.VERSION_ATTRIBUTE, api.UNSTATED_VERSION)
    match stated:
        case (int(major), int(minor)):
            return (major, minor)
    raise InvalidArgument(f"{api.VERSION_ATTRIBUTE} must be a pair of integers such as (0, 1), not {stated!r}")


def _label(plugin: object) -> str:
    """How messages name the object an entry point led to."""
    return str(getattr(plugin, "__name__", None) or type(plugin).__name__)
