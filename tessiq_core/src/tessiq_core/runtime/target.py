"""Which target compiles for a home, and with what: its device, emitter, library bindings, operations and rewrites."""

from __future__ import annotations

import difflib
import hashlib
import re
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tessiq_core.codegen.interfaces import Emitter, LibraryBinding
from tessiq_core.errors import InvalidArgument, NotFound, Unsupported
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ops.table import OperationTable, default_table
from tessiq_core.plugins import DeviceOffer, PluginManager
from tessiq_core.plugins.records import warn
from tessiq_core.runtime.options import Options

KINDS = ("cpu", "gpu")
# Distributions of ours that adopt a home, for the message of somebody who has none installed.
_PACKAGES = {"cpu": "tessiq-cpuref", "cuda": "tessiq-cuda", "tessiq": "tessiq-cpuref"}
REFERENCE = "reference"


@dataclass(frozen=True)
class Target:
    """What one graph is compiled for.

    name:      the target's name (`cpuref`).
    home:      the torch device whose memory the graph's tensors live in (`cpu`, `cuda:0`).
    device:    the unit it runs on.
    emitter:   generates kernels; None where the target has no emitter that works here.
    libraries: asked in this order for nodes they claim.
    table:     the operation table, with the rows plugins bring.
    patterns:  the rewrites the options select, by name.
    reference: the reference emitter that `verify` compares with; None unless that option is set.
    plugins:   the fingerprint of all loaded plugins.
    notes:     what did not go as asked, one sentence each, for reports.
    """

    name: str
    home: str
    device: DeviceOffer
    emitter: Emitter | None
    libraries: tuple[LibraryBinding, ...]
    table: OperationTable
    patterns: tuple[RewritePattern, ...] = ()
    reference: Emitter | None = None
    plugins: str = ""
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """sha256, in hex, of everything about the target that a recipe depends on, the operation table left out:
        device, emitter and what that depends on, bindings, rewrites by content, and the plugins with their versions."""
        digest = hashlib.sha256()
        parts: list[object] = [self.name, self.home, self.device.kind, self.device.ordinal, self.device.description]
        for emitter in (self.emitter, self.reference):
            parts += ["emitter", None if emitter is None else (emitter.name, emitter.fingerprint())]
        parts += ["library", [(b.name, b.priority, type(b).__module__, type(b).__qualname__) for b in self.libraries]]
        parts += ["pattern", [(p.name, p.pattern, p.replacement) for p in self.patterns]]
        parts += ["plugins", self.plugins]
        digest.update("\0".join(repr(part) for part in parts).encode())
        return digest.hexdigest()


def select_target(home: str, options: Options, manager: PluginManager) -> Target:
    """The target that compiles for tensors of the torch device `home` (`cpu`, `cuda:1`).

    Of the targets that adopt the home's device type the one with the highest priority is used. Raises NotFound when
    there is none (with the package to install) or when the options name an emitter, a rewrite or a device that does
    not exist; InvalidArgument for a malformed device; Unsupported for a device other than the home's own, and for
    `graphs="on"` where the target cannot capture.
    """
    offer = _offer(home, manager)
    if options.device is not None:
        _check_device(options.device, home, offer, manager)
    if options.graphs == "on":
        raise Unsupported(
            f"tessiq: option 'graphs': target {offer.target!r} cannot capture device graphs; use 'auto' or 'off'"
        )
    emitter, notes = _emitter(offer.target, options.emitter, manager)
    return Target(
        name=offer.target,
        home=home,
        device=offer,
        emitter=emitter,
        libraries=tuple(a.value for a in manager.libraries() if a.value.target == offer.target),
        table=_table(manager).for_home(home),
        patterns=_patterns(options.rewrites, manager),
        reference=_reference(offer.target, manager) if options.verify else None,
        plugins=manager.fingerprint(),
        notes=notes,
    )


_tables: weakref.WeakKeyDictionary[PluginManager, OperationTable] = weakref.WeakKeyDictionary()
_tables_lock = threading.Lock()


def _table(manager: PluginManager) -> OperationTable:
    """The default table with the rows of the plugins' custom operations, which are registered with PyTorch.

    An operation that is malformed, or collides with another, is left out with one warning that names it, or raised
    where its plugin must work; the rest of the plugin's operations stay.
    """
    with _tables_lock:
        table = _tables.get(manager)
        if table is None:
            table = default_table()
            for answer in manager.custom_operations():
                operation = answer.value
                try:
                    joined = table.with_rows([operation.row()])
                    operation.register()
                except InvalidArgument as error:
                    if manager.must_work(answer.plugin):
                        raise
                    warn(f"tessiq: plugin {answer.plugin!r}: {operation.qualified_name} is left out: {error}")
                else:
                    table = joined
            _tables[manager] = table
        return table


def _offer(home: str, manager: PluginManager) -> DeviceOffer:
    kind, _, number = home.partition(":")
    offers = [answer.value for answer in manager.devices() if kind in answer.value.adopts]
    if not offers:
        package = _PACKAGES.get(kind)
        remedy = f"pip install {package}" if package else f"install the package that has a target for {kind!r}"
        reasons = [f"{a.plugin}: {a.value.reason}" for a in manager.discoveries() if a.value.reason]
        reasons += [f"plugin {r.name} is {r.status}: {r.reason}" for r in manager.records if r.status != "ok"]
        found = f" What was found: {'; '.join(reasons)}." if reasons else ""
        raise NotFound(
            f"tessiq: no target is installed that compiles for tensors on {kind!r}; {remedy}.{found} "
            "`tessiq plugins` shows every plugin"
        )
    target = offers[0].target  # by priority, then by name
    ordinal = int(number) if number else 0
    for offer in offers:
        if offer.target == target and offer.ordinal == ordinal:
            return offer
    have = ", ".join(f"{kind}:{o.ordinal}" for o in offers if o.target == target)
    raise NotFound(f"tessiq: target {target!r} has no device for tensors on {home!r}; it has {have}")


def _check_device(wanted: str, home: str, offer: DeviceOffer, manager: PluginManager) -> None:
    match = re.fullmatch(r"([a-z]+)(?::(\d+))?", wanted)
    if match is None or match[1] not in KINDS:
        raise InvalidArgument(
            f"tessiq: option 'device' takes a kind and perhaps an ordinal, as 'gpu', 'gpu:1' or 'cpu', got {wanted!r}"
        )
    kind, ordinal = match[1], None if match[2] is None else int(match[2])
    if kind == offer.kind and ordinal in (None, offer.ordinal):
        return
    offers = [a.value for a in manager.devices()]
    if not any(o.kind == kind and ordinal in (None, o.ordinal) for o in offers):
        have = ", ".join(f"{o.kind}:{o.ordinal} ({o.description})" for o in offers)
        raise NotFound(f"tessiq: option 'device': this machine has no {wanted!r}; it has {have}")
    raise Unsupported(
        f"tessiq: option 'device': tensors on {home!r} cannot be sent to {wanted!r}; leave the option out to compile "
        f"for {offer.description} ({offer.kind}:{offer.ordinal}), or move the model and its inputs there first"
    )


def _emitter(target: str, wanted: str | None, manager: PluginManager) -> tuple[Emitter | None, tuple[str, ...]]:
    """The emitter to use, and a note for each one passed over because it is not available."""
    emitters = _ranked([a.value for a in manager.emitters() if a.value.target == target])
    if wanted is not None:
        named = [e for e in emitters if e.name == wanted]
        if not named:
            names = [e.name for e in emitters]
            raise NotFound(f"tessiq: option 'emitter': target {target!r} has no emitter {_quoted(wanted, names)}")
        emitters = named + [e for e in emitters if e.name != wanted]
    notes: list[str] = []
    for emitter in emitters:
        decline = emitter.available()
        if decline is None:
            return emitter, tuple(notes)
        notes.append(f"emitter {emitter.name!r} is not available: {decline.reason}")
    return None, (*notes, f"target {target!r} has no emitter that works here; no kernels are generated")


def _ranked(emitters: Iterable[Emitter]) -> list[Emitter]:
    return sorted(emitters, key=lambda e: (-e.priority, e.name))


def _reference(target: str, manager: PluginManager) -> Emitter:
    """The reference emitter: the target's own, else another target's on the same machine."""
    found = [a.value for a in manager.emitters() if a.value.name == REFERENCE and a.value.available() is None]
    if not found:
        raise NotFound(
            "tessiq: option 'verify' compares kernels with the reference emitter, and none is installed; "
            "pip install tessiq-cpuref"
        )
    return min(found, key=lambda e: (e.target != target, -e.priority, e.target))


def _patterns(names: Sequence[str], manager: PluginManager) -> tuple[RewritePattern, ...]:
    patterns: dict[str, RewritePattern] = {a.value.name: a.value for a in manager.patterns()}
    for name in names:
        if name not in patterns:
            raise NotFound(f"tessiq: option 'rewrites': there is no rewrite {_quoted(name, list(patterns))}")
    return tuple(patterns[name] for name in sorted(set(names)))


def _quoted(name: str, valid: Sequence[str]) -> str:
    """`'nmae'; did you mean 'name'? There are …`, the end of a message about a misspelt name."""
    close = difflib.get_close_matches(name, valid, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{name!r}{hint} there are: {', '.join(sorted(valid)) or 'none'}"
