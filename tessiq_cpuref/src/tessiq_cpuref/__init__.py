"""The reference target of tessiq: the host CPU, the reference emitter, the C++ emitter, and PyTorch's matrix products.

Importing the package, and every module but `tessiq_cpuref.operators`, imports no torch.
"""

from __future__ import annotations

from tessiq_cpuref.cpp import CppEmitter
from tessiq_cpuref.libraries import AtenOut
from tessiq_cpuref.reference import ReferenceEmitter

__all__ = ["AtenOut", "CppEmitter", "ReferenceEmitter"]
