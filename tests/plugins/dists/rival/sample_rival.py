"""Answers for what the working sample answers for: with a higher priority, and with an equal one."""

from dataclasses import dataclass

from tessiq_core.plugins import DeviceOffer, Discovery, hookimpl


@dataclass(frozen=True)
class RivalEmitter:
    name: str = "text"
    target: str = "sample"
    priority: int = 20

    def available(self):
        return None


@hookimpl
def tessiq_devices():
    return Discovery((DeviceOffer("sample", "gpu", 0, "the rival's", ("meta",), -5),))


@hookimpl
def tessiq_emitters():
    return [RivalEmitter()]
