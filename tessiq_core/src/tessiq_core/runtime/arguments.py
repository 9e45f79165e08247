"""Turning the argument templates of a plan into fast calls.

Everything constant about the calls of a plan (numbers, dtypes, lists of numbers, subgraphs) is put into slots behind
the plan's own, once. A call then takes all its arguments out of the slots with one `itemgetter`, which costs the
same few nanoseconds whatever the mix; only lists that hold tensors are built at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tessiq_core.errors import Internal
from tessiq_core.ir.attributes import Hole, Label
from tessiq_core.runtime.element_map import value_of
from tessiq_core.runtime.operators import resolve
from tessiq_core.runtime.plan import SlotRef, Template

Slots = list[Any]
Invoke = Callable[[Slots], Any]


class Arguments:
    """Builds calls over one list of slots: the plan's, then the constants collected here."""

    def __init__(self, size: int, constants: Mapping[str, object]) -> None:
        """`size`: how many slots the plan has. `constants`: the recipe's, for labels that name one."""
        self.size = size
        self.pool: Slots = []
        self._constants = constants

    def invoke(
        self, operator: Callable[..., Any], arguments: tuple[Template, ...], keywords: tuple[tuple[str, Template], ...]
    ) -> Invoke:
        """A function of the slots that makes the call and returns what it returns."""
        if any(is_mixed(value) for value in (*arguments, *(value for _, value in keywords))):
            return self._invoke_mixed(operator, arguments, keywords)
        take = taker([self._slot(value) for value in arguments])
        if not keywords:
            if len(arguments) == 1:
                only = self._slot(arguments[0])
                return lambda slots: operator(slots[only])
            return lambda slots: operator(*take(slots))
        if any(isinstance(value, SlotRef) for _, value in keywords):
            names = [name for name, _ in keywords]
            take_keywords = taker([self._slot(value) for _, value in keywords])
            return lambda slots: operator(*take(slots), **dict(zip(names, take_keywords(slots), strict=True)))
        constant = {name: self.constant(value) for name, value in keywords}
        return lambda slots: operator(*take(slots), **constant)

    def _invoke_mixed(
        self, operator: Callable[..., Any], arguments: tuple[Template, ...], keywords: tuple[tuple[str, Template], ...]
    ) -> Invoke:
        build = [self._builder(value) for value in arguments]
        build_keywords = {name: self._builder(value) for name, value in keywords}

        def call(slots: Slots) -> Any:
            return operator(*[b(slots) for b in build], **{name: b(slots) for name, b in build_keywords.items()})

        return call

    def constant(self, value: Template) -> object:
        """What a template without slots means to PyTorch."""
        match value:
            case tuple():
                return [self.constant(item) for item in value]
            case Label():
                if value.kind in ("subgraph", "object"):
                    if value.name not in self._constants:
                        raise Internal(f"tessiq: the recipe has no constant {value.name!r}; this is a bug in tessiq")
                    return self._constants[value.name]
                if value.kind == "operator":
                    return resolve(value.name)
                return value_of(value)
            case Hole() | SlotRef():
                raise Internal("tessiq: a plan's constant holds a slot; this is a bug in tessiq")
        return value

    def _slot(self, value: Template) -> int:
        if isinstance(value, SlotRef):
            return value.slot
        self.pool.append(self.constant(value))
        return self.size + len(self.pool) - 1

    def _builder(self, value: Template) -> Invoke:
        if isinstance(value, SlotRef):
            return itemgetter(value.slot)
        if isinstance(value, tuple) and is_mixed(value):
            items = [self._builder(item) for item in value]
            return lambda slots: [item(slots) for item in items]
        constant = self.constant(value)
        return lambda slots: constant


def is_mixed(value: Template) -> bool:
    """Whether the template is a list that holds a slot somewhere."""
    return isinstance(value, tuple) and any(isinstance(item, SlotRef) or is_mixed(item) for item in value)


def taker(slots: Sequence[int]) -> Callable[[Slots], tuple[Any, ...]]:
    """A function that takes the values of these slots, as a tuple, out of the list."""
    if len(slots) > 1:
        return itemgetter(*slots)
    if not slots:
        return lambda _: ()
    only = slots[0]
    return lambda values: (values[only],)
