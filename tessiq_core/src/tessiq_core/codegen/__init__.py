"""Kernel descriptions: what they are, how nodes become one, and what emitters and libraries offer."""

from __future__ import annotations

from tessiq_core.codegen.any_emitter import AnyEmitter
from tessiq_core.codegen.canonical import Canonical, Renaming, canonical
from tessiq_core.codegen.check import check
from tessiq_core.codegen.collapse import arrange, collapse, permute_axes, reorder
from tessiq_core.codegen.dependence import dependences
from tessiq_core.codegen.description import (
    Access,
    Axis,
    Constant,
    KernelDescription,
    Map,
    Operand,
    Read,
    Reduce,
    Stage,
    StageRef,
    Write,
)
from tessiq_core.codegen.interfaces import (
    AddressLaunch,
    Emitter,
    Kernel,
    KernelOperand,
    KernelOperands,
    Launch,
    LibraryBinding,
    OperatorLaunch,
    PythonLaunch,
)
from tessiq_core.codegen.lower import Lowered, lower
from tessiq_core.codegen.text import parse_kernel, parse_kernels, print_kernel
from tessiq_core.codegen.traffic import bytes_moved

__all__ = [
    "Access",
    "AddressLaunch",
    "AnyEmitter",
    "Axis",
    "Canonical",
    "Constant",
    "Emitter",
    "Kernel",
    "KernelDescription",
    "KernelOperand",
    "KernelOperands",
    "Launch",
    "LibraryBinding",
    "Lowered",
    "Map",
    "Operand",
    "OperatorLaunch",
    "PythonLaunch",
    "Read",
    "Reduce",
    "Renaming",
    "Stage",
    "StageRef",
    "Write",
    "arrange",
    "bytes_moved",
    "canonical",
    "check",
    "collapse",
    "dependences",
    "lower",
    "parse_kernel",
    "parse_kernels",
    "permute_axes",
    "print_kernel",
    "reorder",
]
