"""Loads, and fails when a hook is asked; its other hook answers."""

from tessiq_core.plugins import Discovery, hookimpl


@hookimpl
def tessiq_devices():
    return Discovery(reason="still here")


@hookimpl
def tessiq_emitters():
    raise ZeroDivisionError("a hook that fails on purpose")
