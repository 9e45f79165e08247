"""The form each hook's answer must have, and how two answers for the same thing are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessiq_core.errors import InvalidArgument
from tessiq_core.plugins.offers import DeviceOffer, Discovery
from tessiq_core.plugins.records import Answer, Conflict


@dataclass(frozen=True)
class Form:
    """What a hook returns.

    what:       one of its items, for messages.
    attributes: attributes each item must have, with their type. Plugins are checked by what their answers can do, not
                by class: this package imports neither the compiler nor torch.
    key:        what an item answers for; two items with one key are a conflict.
    """

    what: str
    attributes: Mapping[str, type]
    key: Callable[[Any], str]
    classes: bool = field(default=False)


FORMS: dict[str, Form] = {
    "tessiq_devices": Form(
        "a DeviceOffer", {"target": str, "ordinal": int}, lambda offer: f"{offer.target}/{offer.ordinal}"
    ),
    "tessiq_emitters": Form(
        "an Emitter",
        {"name": str, "target": str, "priority": int},
        lambda emitter: f"{emitter.target}/{emitter.name}",
    ),
    "tessiq_library_bindings": Form(
        "a LibraryBinding",
        {"name": str, "target": str, "priority": int},
        lambda binding: f"{binding.target}/{binding.name}",
    ),
    "tessiq_custom_ops": Form(
        "a CustomOperation", {"schema": str, "qualified_name": str}, lambda operation: str(operation.qualified_name)
    ),
    "tessiq_rewrite_patterns": Form(
        "a RewritePattern", {"name": str, "pattern": str, "replacement": str}, lambda pattern: str(pattern.name)
    ),
    "tessiq_passes": Form(
        "a subclass of Pass", {"name": str, "description": str}, lambda cls: str(cls.name), classes=True
    ),
}


def discovery_of(answer: object) -> Discovery | None:
    """The answer of `tessiq_devices`, checked; None from a plugin that is no target. Raises InvalidArgument saying what
    was expected and what came."""
    if answer is None:
        return None
    if not isinstance(answer, Discovery):
        raise InvalidArgument(
            f"tessiq: tessiq_devices must return a tessiq_core.plugins.Discovery or None, not {type(answer).__name__}"
        )
    if not isinstance(answer.devices, tuple) or not all(isinstance(offer, DeviceOffer) for offer in answer.devices):
        raise InvalidArgument("tessiq: Discovery.devices must be a tuple of DeviceOffer")
    if not answer.devices and not answer.reason:
        raise InvalidArgument("tessiq: a Discovery without devices must give a reason, for `tessiq plugins` to show")
    return answer


def items_of(hook: str, answer: object) -> tuple[Any, ...]:
    """The items a hook returned, checked against its form. Raises InvalidArgument naming the attribute in the way."""
    form = FORMS[hook]
    if answer is None:
        return ()
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence):
        raise InvalidArgument(f"tessiq: {hook} must return a list or None, not {type(answer).__name__}")
    for item in answer:
        if isinstance(item, type) != form.classes:
            raise InvalidArgument(f"tessiq: every item {hook} returns must be {form.what}, not {item!r}")
        for attribute, kind in form.attributes.items():
            if not isinstance(getattr(item, attribute, None), kind):
                raise InvalidArgument(
                    f"tessiq: every item {hook} returns must be {form.what}, with `{attribute}` of type "
                    f"{kind.__name__}; {item!r} has {getattr(item, attribute, 'none')!r}"
                )
    return tuple(answer)


def decide(hook: str, answers: Iterable[Answer[Any]]) -> tuple[tuple[Answer[Any], ...], tuple[Conflict, ...]]:
    """The answers that are used, in order, and who lost.

    The order is (priority, highest first; key; plugin), so it does not depend on the order of installation. For each
    key the first one stands.
    """
    form = FORMS[hook]
    ranked = sorted(answers, key=lambda answer: (-_priority(answer), form.key(answer.value), answer.plugin))
    kept: dict[str, Answer[Any]] = {}
    conflicts: list[Conflict] = []
    for answer in ranked:
        key = form.key(answer.value)
        winner = kept.setdefault(key, answer)
        if winner is not answer:
            conflicts.append(Conflict(hook, key, winner.plugin, answer.plugin, _verdict(winner, answer)))
    return tuple(kept.values()), tuple(conflicts)


def _priority(answer: Answer[Any]) -> int:
    priority = getattr(answer.value, "priority", 0)
    return priority if isinstance(priority, int) else 0


def _verdict(winner: Answer[Any], loser: Answer[Any]) -> str:
    if _priority(winner) != _priority(loser):
        return f"priority {_priority(winner)} is above {_priority(loser)}"
    if winner.plugin == loser.plugin:
        return "the plugin gives it twice; the first one stands"
    return f"equal priority; {winner.plugin!r} sorts before {loser.plugin!r}"
