"""`tessiq plugins`: what was found and loaded, what each plugin offers, and who lost. Imports no torch and no CUDA."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tessiq_core.plugins import API_VERSION, PluginManager, TessiqPluginWarning, plugin_manager

# What a pipe or a file is taken to be wide, in columns: enough for most reasons to stand on one line.
PIPE_WIDTH = 160
_STATUS_STYLES = {"ok": "green", "blocked": "dim", "incompatible": "yellow", "broken": "red"}


def show_plugins(*, as_json: bool, everything: bool) -> None:
    """Print the plugins as tables or as one JSON object. Every hook is asked, so that the picture is complete."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TessiqPluginWarning)  # the same reasons stand in the table
        manager = plugin_manager()
        manager.ask_all()
        manager.operation_rows(with_torch=False)
        report = report_of(manager, everything=everything)
    if as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)
    if not report["plugins"]:
        console.print("no plugin is installed; `pip install tessiq-cpuref` brings the reference target")
        return
    console.print(_plugins_table(report))
    if report["conflicts"]:
        console.print(_table("lost", ("what", "for", "used", "left out", "because"), _conflict_rows(report)))
    if everything:
        console.print(_table("on offer", ("plugin", "what", "name", "about"), _offer_rows(report)))


def report_of(manager: PluginManager, *, everything: bool) -> dict[str, Any]:
    """Everything the command shows, as plain data; keys and their meaning are what `--json` promises.

    plugins:   records (`PluginRecord`), each with `note`, what its device discovery says.
    conflicts: `Conflict`s.
    offers:    with `everything`, what is in use: plugin, what (device, emitter, library, operation, pattern, pass),
               name, about. Whether an emitter is available is asked here, which may look for a compiler.
    """
    notes = {answer.plugin: answer.value.reason for answer in manager.discoveries()}
    report: dict[str, Any] = {
        "api_version": list(API_VERSION),
        "plugins": [{**asdict(record), "note": notes.get(record.name, "")} for record in manager.records],
        "conflicts": [asdict(conflict) for conflict in manager.conflicts],
    }
    if everything:
        report["offers"] = [
            dict(zip(("plugin", "what", "name", "about"), offer, strict=True)) for offer in _offers(manager)
        ]
    return report


def _offers(manager: PluginManager) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    for device in manager.devices():
        offer = device.value
        about = f"{offer.kind}, {offer.description}, adopts {', '.join(offer.adopts) or 'nothing'}"
        rows.append((device.plugin, "device", f"{offer.target}/{offer.ordinal}", about))
    for emitter in manager.emitters():
        unavailable = emitter.value.available()
        about = "available" if unavailable is None else f"not available: {unavailable.reason}"
        rows.append((emitter.plugin, "emitter", f"{emitter.value.target}/{emitter.value.name}", about))
    for library in manager.libraries():
        rows.append((library.plugin, "library", f"{library.value.target}/{library.value.name}", ""))
    for operation in manager.custom_operations():
        rows.append((operation.plugin, "operation", operation.value.qualified_name, operation.value.summary))
    for pattern in manager.patterns():
        rows.append((pattern.plugin, "pattern", pattern.value.name, ""))
    for cls in manager.passes():
        rows.append((cls.plugin, "pass", cls.value.name, cls.value.description))
    return rows


def _plugins_table(report: dict[str, Any]) -> Table:
    rows = [
        (
            plugin["name"],
            plugin["distribution"],
            plugin["version"],
            Text(plugin["status"], style=_STATUS_STYLES[plugin["status"]]),
            "\n".join(hook.removeprefix("tessiq_") for hook in plugin["hooks"]),
            "; ".join(filter(None, (plugin["reason"], plugin["note"]))),
        )
        for plugin in report["plugins"]
    ]
    return _table("plugins", ("name", "distribution", "version", "status", "hooks", "reason"), rows)


def _conflict_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(c["hook"], c["key"], c["winner"], c["loser"], c["reason"]) for c in report["conflicts"]]


def _offer_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(o["plugin"], o["what"], o["name"], o["about"]) for o in report["offers"]]


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        # Text, so that brackets in a reason are not read as rich's markup.
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table
