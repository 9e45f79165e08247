"""What a target offers to compile for. Plain data: discovering a device opens nothing and creates no context."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceOffer:
    """One physical unit a target can compile for and run on today.

    target:      the target it belongs to (`cpuref`), the name emitters and library bindings carry too.
    kind:        what people ask for: "cpu" or "gpu".
    ordinal:     the driver's own number of the unit, from 0; never shown to users.
    description: one line for people (`NVIDIA H200, 139 GiB`).
    adopts:      torch device types whose memory the target reads and writes in place (`("cpu",)`).
    priority:    where two targets adopt the same home, or two plugins offer the same unit, the higher one is used,
                 and devices are numbered in that order; ties go to the name that sorts first. Use 0 unless you
                 mean to displace somebody.
    """

    target: str
    kind: str
    ordinal: int
    description: str
    adopts: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class Discovery:
    """The answer of `tessiq_devices`: the devices found, and one line for people when there are none.

    devices: every unit that can be compiled for, in the driver's order; empty where there is none.
    reason:  why `devices` is empty or shorter than a user may expect (`no NVIDIA driver: libcuda.so.1 was not
             found`). `tessiq plugins` shows it. Must be given when `devices` is empty.
    """

    devices: tuple[DeviceOffer, ...] = ()
    reason: str = ""
