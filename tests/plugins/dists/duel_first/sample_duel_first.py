"""One of two plugins called `duel`."""

from tessiq_core.plugins import Discovery, hookimpl


@hookimpl
def tessiq_devices():
    return Discovery(reason="the first one answers")
