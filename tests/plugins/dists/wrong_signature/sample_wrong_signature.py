"""Takes an argument that the hook does not have."""

from tessiq_core.plugins import hookimpl


@hookimpl
def tessiq_emitters():
    return []


@hookimpl
def tessiq_devices(config):
    return None
