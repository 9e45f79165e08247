"""Written for an API this core does not have yet."""

from tessiq_core.plugins import hookimpl

TESSIQ_API_VERSION = (0, 99)


@hookimpl
def tessiq_emitters():
    return []
