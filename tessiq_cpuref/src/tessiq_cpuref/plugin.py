"""What tessiq-cpuref offers: the host CPU, two emitters and the matrix products. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessiq_core.plugins import DeviceOffer, Discovery, hookimpl

if TYPE_CHECKING:
    from tessiq_core.codegen.interfaces import Emitter, LibraryBinding

TESSIQ_API_VERSION = (0, 1)


@hookimpl
def tessiq_devices() -> Discovery:
    """The host CPU, which is always there."""
    from tessiq_cpuref.cpp.flags import cpu_model

    return Discovery((DeviceOffer("cpuref", "cpu", 0, cpu_model(), adopts=("cpu",), priority=0),))


@hookimpl
def tessiq_emitters() -> Sequence[Emitter]:
    """The reference emitter, and the C++ emitter, which is preferred where a compiler is installed."""
    from tessiq_cpuref.cpp.emitter import CppEmitter
    from tessiq_cpuref.reference import ReferenceEmitter

    return [ReferenceEmitter(), CppEmitter()]


@hookimpl
def tessiq_library_bindings() -> Sequence[LibraryBinding]:
    """Matrix products through PyTorch's `out=` operators."""
    from tessiq_cpuref.libraries import AtenOut

    return [AtenOut()]
