"""Implements a hook that does not exist."""

from tessiq_core.plugins import hookimpl


@hookimpl
def tessiq_emiters():
    return []
