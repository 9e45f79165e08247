"""The C++ emitter. Its text half (`source`, `loops`, `expressions`, `elements`, `math`) needs no compiler."""

from __future__ import annotations

from tessiq_cpuref.cpp.emitter import CppEmitter

__all__ = ["CppEmitter"]
