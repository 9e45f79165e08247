"""Where values are while a plan is made: in slots, at home, on the device, or both."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Extent, add
from tessiq_core.ir.graph import Value
from tessiq_core.ir.types import TensorType
from tessiq_core.runtime.plan import Slot, Step, TransferStep, ViewStep

HOME, DEVICE = False, True


@dataclass(frozen=True)
class View:
    """A value that is its source's memory seen differently; `offset` in elements from the source's start."""

    source: Value
    node: str
    offset: Extent
    on_device: bool
    """A pass decided that it runs on the device: then its source crosses rather than itself."""


class Places:
    """Gives each value its slots, and emits the views and transfers that bring it where it is read.

    Both are emitted when a reader asks, so a view nobody reads, such as one a kernel absorbed, costs nothing.
    """

    def __init__(self, steps: list[Step], together: Container[Value] = ()) -> None:
        """`steps`: the plan so far; views and transfers are appended to it.

        together: values whose memory several results may share. Such a value crosses home as a whole and its views
                  are made there, because views that cross one by one share nothing.
        """
        self.steps = steps
        self.together = together
        self.slots: list[Slot] = []
        self.moved: list[str] = []
        """Names of the values that crossed, since the caller last cleared it."""
        self._slots_of: dict[Value, dict[bool, int]] = {}
        self._born: dict[Value, bool] = {}
        self._views: dict[Value, View] = {}

    def born(self, value: Value, side: bool) -> int:
        """A new slot in which `value` comes into being on `side`."""
        self._born[value] = side
        return self._new(value, side)

    def is_view(self, value: Value, view: View) -> None:
        """From now on `value` is a view."""
        self._views[value] = view

    def root(self, value: Value) -> Value:
        """The value whose memory `value` is, through views resolved here."""
        while value in self._views:
            value = self._views[value].source
        return value

    def slot(self, value: Value, side: bool) -> int:
        """The slot that has `value` on `side` now, emitting what brings it there."""
        have = self._slots_of.get(value, {})
        if side in have:
            return have[side]
        view = self._views.get(value)
        if view is not None and (
            self._reaches(view.source, side) or (side == HOME and self.root(value) in self.together)
        ):
            return self._view(value, view, side)
        if not have:
            if view is None:
                raise Internal(f"tessiq: %{value.name} is read before it is computed; this is a bug in the schedule")
            placed = DEVICE if view.on_device else HOME
            made = self._view(value, view, placed)
            if placed == side:
                return made
        return self._transfer(value, side)

    def written(self, operands: Iterable[Value]) -> None:
        """What stands at home may just have been written: copies on the device are stale.

        operands: what the writing operator writes to. Values born on the device that are not among them keep both
        places: AOTAutograd's graphs are functional but for writes to their inputs. Every value born at home loses its
        copy, because ATen may have made it as a view of what was written.
        """
        roots = {self.root(value) for value in operands}
        for value, have in list(self._slots_of.items()):
            root = self.root(value)
            if root not in roots and self._born[root] == DEVICE:
                continue
            if HOME in have:
                have.pop(DEVICE, None)
            elif value in self._views:
                del self._slots_of[value]

    def _reaches(self, value: Value, side: bool) -> bool:
        """Whether the value is on `side`, or a view of something that is: having it there costs no transfer."""
        while side not in self._slots_of.get(value, {}):
            view = self._views.get(value)
            if view is None:
                return False
            value = view.source
        return True

    def _view(self, value: Value, view: View, side: bool) -> int:
        source, offset = view.source, view.offset
        if self._reaches(source, side):
            # A view of a view that nobody else has asked for is a view of what that one views.
            while side not in self._slots_of.get(source, {}):
                outer = self._views[source]
                source, offset = outer.source, add(offset, outer.offset)
        slot = self.slot(source, side)
        result = self._new(value, side)
        assert isinstance(value.type, TensorType)
        self.steps.append(ViewStep(view.node, slot, result, value.type.shape, value.type.layout, offset))
        return result

    def _transfer(self, value: Value, side: bool) -> int:
        source = self._slots_of[value][not side]
        result = self._new(value, side)
        self.moved.append(value.name)
        direction = "to-device" if side == DEVICE else "to-home"
        self.steps.append(TransferStep(value.name, direction, source, result))
        return result

    def _new(self, value: Value, side: bool) -> int:
        self.slots.append(Slot(value.name, value.type, side))
        self._slots_of.setdefault(value, {})[side] = len(self.slots) - 1
        return len(self.slots) - 1
