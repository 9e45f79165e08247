"""Where a plan's symbols come from, and which of its steps may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tessiq_core.codegen.interfaces import AddressLaunch, Kernel
from tessiq_core.errors import Internal
from tessiq_core.ir.extent import Extent, symbol, symbols
from tessiq_core.ir.graph import Graph, Value
from tessiq_core.ir.types import ScalarType, TensorType, ValueType
from tessiq_core.passes.decisions import claim_of
from tessiq_core.runtime.plan import CallStep, KernelStep, LateSymbol, Step, SymbolBinding, TransferStep, ViewStep


def input_bindings(graph: Graph) -> dict[str, SymbolBinding]:
    """For every symbol that an input is, or has as an axis, the first place to read it; numbers before tensors."""
    found: dict[str, SymbolBinding] = {}
    for number, value in enumerate(graph.parameters):
        for name, axis in _defined_by(value.type):
            if axis is None:
                found.setdefault(name, SymbolBinding(name, number))
    for number, value in enumerate(graph.parameters):
        for name, axis in _defined_by(value.type):
            found.setdefault(name, SymbolBinding(name, number, axis))
    return found


def late_definitions(graph: Graph, known: Iterable[str]) -> dict[Value, tuple[tuple[str, int | None], ...]]:
    """The values of the graph whose computation tells symbols that no input has: (symbol, axis or None) each."""
    seen = set(known)
    found: dict[Value, tuple[tuple[str, int | None], ...]] = {}
    for node in graph.nodes:
        if claim_of(node):
            continue
        for value in node.results:
            new = {name: axis for name, axis in reversed(_defined_by(value.type)) if name not in seen}
            if new:
                found[value] = tuple(new.items())
                seen.update(new)
    return found


def settle_symbols(
    steps: Sequence[Step],
    kernels: Sequence[Kernel],
    inputs: Mapping[str, SymbolBinding],
    late: Sequence[LateSymbol],
    held: Iterable[ValueType] = (),
) -> tuple[list[Step], tuple[SymbolBinding, ...], tuple[LateSymbol, ...]]:
    """The steps, and of the possible bindings those that are needed, by a step or to hold a value against its type.

    held: the types of the values that are.

    A call's expected type that depends on a size not known before that step is dropped. Raises Internal for another
    step with a size nothing tells by then.
    """
    known = set(inputs)
    arriving: dict[int, set[str]] = {}
    for definition in late:
        arriving.setdefault(definition.step, set()).add(definition.name)
    settled: list[Step] = []
    used: set[str] = set()
    for index, step in enumerate(steps):
        if isinstance(step, CallStep):
            expected = tuple(kind if kind and extents_of(kind) <= known else None for kind in step.expected)
            step = replace(step, expected=expected) if expected != step.expected else step
        needed = _needed(step, kernels)
        if not needed <= known:
            raise Internal(
                f"tessiq: step {index} (%{step.node}) needs the sizes {', '.join(sorted(needed - known))}, which no "
                "input is or has as an axis and no step before it tells; this is a bug in the importer"
            )
        used |= needed
        settled.append(step)
        known |= arriving.get(index, set())
    used |= known & {name for kind in held if isinstance(kind, TensorType) for name in extents_of(kind)}
    return (
        settled,
        tuple(binding for binding in inputs.values() if binding.name in used),
        tuple(definition for definition in late if definition.name in used),
    )


def extents_of(kind: TensorType) -> set[str]:
    """Names of the symbols in a type's shape and strides."""
    return {name for extent in (*kind.shape, *kind.layout) for name in symbols(extent)}


def _defined_by(kind: ValueType) -> list[tuple[str, int | None]]:
    """(symbol, axis) for every axis that exactly is a symbol; (symbol, None) for a number that is one."""
    if isinstance(kind, ScalarType):
        name = _symbol(kind.value) if kind.kind == "int" and kind.value is not None else None
        return [(name, None)] if name is not None else []
    if isinstance(kind, TensorType):
        return [(name, axis) for axis, extent in enumerate(kind.shape) if (name := _symbol(extent)) is not None]
    return []


def _symbol(extent: Extent) -> str | None:
    """The name of the symbol an extent exactly is, or None."""
    names = symbols(extent)
    if len(names) != 1:
        return None
    (name,) = names
    return name if extent == symbol(name) else None


def _needed(step: Step, kernels: Sequence[Kernel]) -> set[str]:
    """Every symbol a step's sizes need before it runs."""
    extents: list[Extent] = []
    kinds: list[TensorType] = []
    match step:
        case CallStep():
            kinds += [kind for kind in step.expected if kind is not None]
        case ViewStep():
            extents += [*step.shape, *step.strides, step.offset]
        case KernelStep():
            kernel = kernels[step.kernel]
            kinds += [operand.type for operand in kernel.inputs + kernel.outputs]
            extents += [*kernel.words, kernel.workspace_bytes]
            if isinstance(kernel.launch, AddressLaunch):
                extents.append(kernel.launch.iterations)
        case TransferStep():
            pass
    names = {name for extent in extents for name in symbols(extent)}
    return names.union(*(extents_of(kind) for kind in kinds))
