"""`PluginManager`: asks the loaded plugins, isolates those that fail, and decides between answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pluggy

from tessiq_core.errors import External
from tessiq_core.plugins.answers import decide, discovery_of, items_of
from tessiq_core.plugins.hookspecs import HOOKS
from tessiq_core.plugins.isolation import Failed, attempt
from tessiq_core.plugins.offers import DeviceOffer, Discovery
from tessiq_core.plugins.records import Answer, Conflict, PluginRecord, one_line, warn

if TYPE_CHECKING:
    from tessiq_core.codegen.interfaces import Emitter, LibraryBinding
    from tessiq_core.custom_ops import CustomOperation
    from tessiq_core.ir.pattern import RewritePattern
    from tessiq_core.ops.row import Row
    from tessiq_core.passes.manager import Pass


class PluginManager:
    """The plugins of one process. Every hook is asked at most once, when its answers are first needed.

    Thread-safe: a lock is held while a hook runs. Made by `load_plugins`, or taken from `plugin_manager()`.
    """

    def __init__(
        self,
        hooks: pluggy.PluginManager,
        records: Sequence[PluginRecord],
        conflicts: Iterable[Conflict] = (),
        must_work: frozenset[str] = frozenset(),
    ) -> None:
        self._hooks = hooks
        self._records = list(records)
        self._must_work = must_work
        self._loading_conflicts = tuple(conflicts)
        self._hook_conflicts: dict[str, tuple[Conflict, ...]] = {}
        self._answers: dict[str, tuple[Answer[Any], ...]] = {}
        self._discoveries: tuple[Answer[Discovery], ...] | None = None
        self._disabled_operations: set[str] = set()
        self._lock = threading.RLock()

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """One record an entry point, sorted by name, as things stand: a hook that fails later changes its record."""
        with self._lock:
            return tuple(self._records)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Who lost, for entry points and for the hooks asked so far (see `ask_all`), in firing order."""
        with self._lock:
            asked = (self._hook_conflicts.get(hook, ()) for hook in HOOKS)
            return self._loading_conflicts + tuple(conflict for conflicts in asked for conflict in conflicts)

    def must_work(self, plugin: str) -> bool:
        """Whether a failure of this plugin is raised: it was asked for by name, or strict mode is on."""
        return plugin in self._must_work

    def discoveries(self) -> tuple[Answer[Discovery], ...]:
        """What each target found, by plugin name, with its reason where it found nothing. Plugins that answer None,
        being no target, are left out."""
        with self._lock:
            if self._discoveries is None:
                self._discoveries = tuple(
                    Answer(plugin, discovery)
                    for plugin, discovery in self._ask("tessiq_devices", discovery_of)
                    if discovery is not None
                )
            return self._discoveries

    def devices(self) -> tuple[Answer[DeviceOffer], ...]:
        """Every device on offer, by (priority, highest first; target, ordinal)."""
        with self._lock:
            if "tessiq_devices" not in self._answers:
                offers = [
                    Answer(answer.plugin, offer) for answer in self.discoveries() for offer in answer.value.devices
                ]
                self._settle("tessiq_devices", offers)
            return self._answers["tessiq_devices"]

    def emitters(self) -> tuple[Answer[Emitter], ...]:
        """Every emitter, by (priority, highest first; target, name)."""
        return self._items("tessiq_emitters")

    def libraries(self) -> tuple[Answer[LibraryBinding], ...]:
        """Every library binding, by (priority, highest first; target, name)."""
        return self._items("tessiq_library_bindings")

    def custom_operations(self) -> tuple[Answer[CustomOperation], ...]:
        """Every custom operation, by (priority, highest first; qualified name)."""
        return self._items("tessiq_custom_ops")

    def operation_rows(self, *, with_torch: bool = True) -> tuple[Row, ...]:
        """The rows of the custom operations, for `OperationTable.with_rows`; each one is registered with PyTorch too.

        A bad operation disables itself: it is left out with one warning that names it, its plugin and the problem, and
        raised only where its plugin must work. with_torch: False for tools that only read text; registers nothing.
        """
        with self._lock:
            rows: list[Row] = []
            for answer in self.custom_operations():
                outcome = attempt(lambda operation=answer.value: _joined(operation, with_torch))  # type: ignore[misc]
                if not isinstance(outcome, Failed):
                    rows.append(outcome.value)
                elif self.must_work(answer.plugin):
                    raise outcome.error
                elif answer.value.qualified_name not in self._disabled_operations:
                    self._disabled_operations.add(answer.value.qualified_name)
                    warn(f"{' '.join(str(outcome.error).split())}; the operation of plugin {answer.plugin} is left out")
            return tuple(rows)

    def patterns(self) -> tuple[Answer[RewritePattern], ...]:
        """Every rewrite pattern, by name."""
        return self._items("tessiq_rewrite_patterns")

    def passes(self) -> tuple[Answer[type[Pass]], ...]:
        """Every further pass, by name."""
        return self._items("tessiq_passes")

    def ask_all(self) -> None:
        """Ask every hook that was not asked yet, in firing order, so that `records` and `conflicts` are complete."""
        self.devices()
        for hook in HOOKS[1:]:
            self._items(hook)

    def fingerprint(self) -> str:
        """The plugins that loaded, with their versions: a part of every cache key."""
        return ";".join(
            f"{record.name}={record.distribution}=={record.version}" for record in self.records if record.hooks
        )

    def _items(self, hook: str) -> tuple[Answer[Any], ...]:
        with self._lock:
            if hook not in self._answers:
                answers = self._ask(hook, lambda answer: items_of(hook, answer))
                self._settle(hook, [Answer(plugin, item) for plugin, items in answers for item in items])
            return self._answers[hook]

    def _settle(self, hook: str, answers: list[Answer[Any]]) -> None:
        self._answers[hook], self._hook_conflicts[hook] = decide(hook, answers)

    def _ask(self, hook: str, check: Callable[[object], Any]) -> list[tuple[str, Any]]:
        """(plugin, checked answer) of every plugin that implements the hook and did not fail, by plugin name."""
        answers: list[tuple[str, Any]] = []
        implementations = getattr(self._hooks.hook, hook).get_hookimpls()
        for implementation in sorted(implementations, key=lambda i: i.plugin_name):
            # pluggy calls all of them or none; one at a time is what lets the others answer when one raises.
            outcome = attempt(lambda function=implementation.function: check(function()))  # type: ignore[misc]
            if isinstance(outcome, Failed):
                self._failed(implementation.plugin_name, hook, outcome.error)
            else:
                answers.append((implementation.plugin_name, outcome.value))
        return answers

    def _failed(self, plugin: str, hook: str, error: Exception) -> None:
        """The record turns broken. What the plugin's other hooks answer still counts: whether it was asked before or
        after the failure must make no difference."""
        index = next(i for i, record in enumerate(self._records) if record.name == plugin and record.hooks)
        record = self._records[index]
        reason = f"{hook} failed: {one_line(error)}"
        self._records[index] = replace(
            record, status="broken", reason=f"{record.reason}; {reason}" if record.reason else reason
        )
        if self.must_work(plugin):
            raise External(
                f"tessiq: plugin {record.title}: {reason}. It was asked for by name or in strict mode"
            ) from error
        warn(f"tessiq: plugin {record.title}: {reason}; its answer to that hook is left out")


def _joined(operation: CustomOperation, with_torch: bool) -> Row:
    row = operation.row()
    if with_torch:
        operation.register()
    return row
