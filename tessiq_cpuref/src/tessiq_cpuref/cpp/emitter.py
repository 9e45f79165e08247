"""The C++ emitter: kernel descriptions to loaded C functions. Its text half needs no compiler."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence

from tessiq_core.codegen.canonical import canonical
from tessiq_core.codegen.collapse import arrange
from tessiq_core.codegen.dependence import accesses
from tessiq_core.codegen.description import KernelDescription, Map, Reduce
from tessiq_core.codegen.interfaces import AddressLaunch, Kernel, KernelOperands
from tessiq_core.decline import Decline
from tessiq_core.errors import Unsupported
from tessiq_core.host import find_compiler
from tessiq_core.ir.extent import Unknown, symbol
from tessiq_core.ops.table import OperationTable
from tessiq_cpuref.cpp import math
from tessiq_cpuref.cpp.body import symbol_order
from tessiq_cpuref.cpp.build import build, package_version
from tessiq_cpuref.cpp.expressions import expression_problem, function_calls, row_of
from tessiq_cpuref.cpp.flags import cpu_features, flags
from tessiq_cpuref.cpp.levels import recompute_problem
from tessiq_cpuref.cpp.loops import grain, iterations, reduce_problem
from tessiq_cpuref.cpp.names import function_name
from tessiq_cpuref.cpp.source import unit_text

UNIT_KERNELS = 40
"""Above this many kernels a call compiles two units side by side."""


class CppEmitter:
    """Plain header-free C++ for the host, compiled by the system's compiler."""

    @property
    def name(self) -> str:
        return "cpp"

    @property
    def target(self) -> str:
        return "cpuref"

    @property
    def priority(self) -> int:
        return 10

    def available(self) -> Decline | None:
        """None where a C++ compiler answers; else `no-compiler`."""
        found = find_compiler()
        return found if isinstance(found, Decline) else None

    def accepts(self, kernel: KernelDescription, table: OperationTable) -> Decline | None:
        """None for known extents and rows that have an expression, where all reduces run over the same axes;
        `reduce-axes`, `recompute`, `element-type`, `unknown-extent`, `no-row`, `no-expression`, `expression` or
        `function` otherwise."""
        extents = [*kernel.domain, *(e for index in accesses(kernel) for e in (index.offset, *index.strides))]
        if any(isinstance(extent, Unknown) for extent in extents):
            return Decline("unknown-extent", f"kernel @{kernel.name} has an extent or stride nobody knows")
        for read in kernel.reads:
            if read.element.is_opaque:
                return Decline("element-type", f"%{read.value} has elements of {read.element}", read.name)
        for stage in kernel.stages:
            if stage.element.is_opaque or stage.compute.is_opaque:
                return Decline("element-type", f"stage {stage.name} has an opaque element type", stage.name)
            problem = expression_problem(stage, table) if isinstance(stage, Map) else None
            if problem is not None:
                return problem
        if not any(isinstance(stage, Reduce) for stage in kernel.stages):
            return None
        return reduce_problem(arrange(kernel)) or recompute_problem(kernel, table)

    def source(self, kernels: Sequence[KernelDescription], table: OperationTable) -> str:
        """The translation unit of these kernels; ones that differ in names only appear once."""
        unique = _unique([arrange(kernel) for kernel in kernels])
        return unit_text(list(unique.values()), _function_names(list(unique.values())), table)

    def compile(
        self, kernels: Sequence[KernelDescription], operands: Sequence[KernelOperands], table: OperationTable
    ) -> Sequence[Kernel]:
        """Loaded kernels. Raises Unsupported where there is no compiler, External where it fails."""
        compiler = find_compiler()
        if isinstance(compiler, Decline):
            raise Unsupported(f"tessiq: emitter 'cpp' cannot compile: {compiler.reason}")
        arranged = [arrange(kernel) for kernel in kernels]
        unique = _unique(arranged)
        texts = list(unique)
        half = (len(texts) + 1) // 2 if len(texts) > UNIT_KERNELS else max(len(texts), 1)
        units = [texts[start : start + half] for start in range(0, len(texts), half)]
        names = [_function_names([unique[text] for text in unit]) for unit in units]
        sources = [
            unit_text([unique[text] for text in unit], name, table) for unit, name in zip(units, names, strict=True)
        ]
        addresses: dict[str, tuple[int, str]] = {}
        for library, unit, exported, source in zip(build(sources, compiler), units, names, sources, strict=True):
            for text, name in zip(unit, exported, strict=True):
                address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
                assert address is not None
                addresses[text] = (address, _function_source(source, name))
        result: list[Kernel] = []
        for kernel, buffers in zip(arranged, operands, strict=True):
            address, source = addresses[canonical(kernel).text]
            result.append(_kernel(kernel, buffers, address, source, table))
        return result

    def fingerprint(self) -> str:
        """A hash of the compiler, its flags, the CPU's features and the version of this package."""
        parts = (find_compiler(), flags(), cpu_features(), package_version())
        return f"cpp-{hashlib.sha256(repr(parts).encode()).hexdigest()}"


def _unique(kernels: Sequence[KernelDescription]) -> dict[str, KernelDescription]:
    """The first kernel of each canonical text."""
    found: dict[str, KernelDescription] = {}
    for kernel in kernels:
        found.setdefault(canonical(kernel).text, kernel)
    return found


def _function_names(kernels: Sequence[KernelDescription]) -> list[str]:
    """Exported names, made distinct by a number."""
    names: list[str] = []
    for kernel in kernels:
        base = function_name(kernel.name)
        name, number = base, 0
        while name in names:
            number += 1
            name = f"{base}_{number}"
        names.append(name)
    return names


def _function_source(unit: str, name: str) -> str:
    """The part of a unit that is this function, with the description above it."""
    start = unit.index(f'extern "C" void {name}(')
    start = unit.rindex("// kernel @", 0, start)
    return unit[start : unit.index("\n}\n", start) + 3]


def _kernel(
    kernel: KernelDescription, buffers: KernelOperands, address: int, source: str, table: OperationTable
) -> Kernel:
    calls = [
        (name, element)
        for stage in kernel.stages
        if isinstance(stage, Map)
        for name, element in function_calls(stage, row_of(stage, table))
    ]
    expensive = sum(math.functions(element)[name].expensive for name, element in calls)
    return Kernel(
        name=kernel.name,
        origin="cpp",
        members=kernel.members,
        inputs=buffers.inputs,
        outputs=buffers.outputs,
        words=tuple(symbol(name) for name in symbol_order(kernel)),
        launch=AddressLaunch(address, iterations(kernel), grain(kernel, expensive)),
        source=source,
    )
