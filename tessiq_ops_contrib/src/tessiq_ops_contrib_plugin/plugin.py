"""The entry point `ops-contrib`. Each hook imports what it names, so that loading the plugin costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessiq_core.plugins import hookimpl

if TYPE_CHECKING:
    from tessiq_core.custom_ops import CustomOperation
    from tessiq_core.ir.pattern import RewritePattern
    from tessiq_core.passes.manager import Pass

TESSIQ_API_VERSION = (0, 1)


@hookimpl
def tessiq_custom_ops() -> Sequence[CustomOperation]:
    """The operations of the namespace `tessiq_contrib`."""
    from tessiq_ops_contrib_plugin.operations import OPERATIONS

    return OPERATIONS


@hookimpl
def tessiq_rewrite_patterns() -> Sequence[RewritePattern]:
    """Rewrites that find these operations where a program spells them out."""
    from tessiq_ops_contrib_plugin.patterns import PATTERNS

    return PATTERNS


@hookimpl
def tessiq_passes() -> Sequence[type[Pass]]:
    """The pass `contrib-drop-identity-views`."""
    from tessiq_ops_contrib_plugin.drop_identity_views import DropIdentityViews

    return (DropIdentityViews,)
