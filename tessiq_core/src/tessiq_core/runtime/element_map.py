"""torch's dtypes, layouts, devices and memory formats, to and from the IR's element types and labels."""

from __future__ import annotations

import torch

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import Label
from tessiq_core.ir.types import ELEMENT_TYPES, ElementType, opaque_element

_DTYPES: dict[str, torch.dtype] = {
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
_ELEMENTS: dict[torch.dtype, ElementType] = {dtype: ELEMENT_TYPES[name] for name, dtype in _DTYPES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """torch's own spelling without the module: `float32`."""
    return str(dtype).removeprefix("torch.")


def element_of(dtype: torch.dtype) -> ElementType:
    """The IR's element type of a dtype; an opaque one, named by torch, for dtypes the IR does not compute with."""
    known = _ELEMENTS.get(dtype)
    return opaque_element(dtype_name(dtype)) if known is None else known


def dtype_of(element: ElementType) -> torch.dtype:
    """The torch dtype of an element type. Raises InvalidArgument for an opaque type torch does not have."""
    return dtype_named(element.name) if element.is_opaque else _DTYPES[element.name]


def dtype_named(name: str) -> torch.dtype:
    """The dtype torch calls `name` (`float32`, `complex64`). Raises InvalidArgument when there is none."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise InvalidArgument(f"tessiq: expected the name of a torch dtype such as 'float32', got {name!r}")
    return found


def label_of(value: object) -> Label | None:
    """The label that stands for a dtype, layout, device, memory format or complex number; None for anything else."""
    match value:
        case torch.dtype():
            return Label("dtype", dtype_name(value))
        case torch.layout():
            return Label("layout", str(value).removeprefix("torch."))
        case torch.device():
            return Label("device", str(value))
        case torch.memory_format():
            return Label("memory_format", str(value).removeprefix("torch."))
        case complex():
            return Label("complex", f"{value.real!r},{value.imag!r}")
    return None


def value_of(label: Label) -> object:
    """The inverse of `label_of`: what a label means to torch.

    Raises InvalidArgument for a kind that needs the imported graph's constants (subgraph, object) or is unknown.
    """
    match label.kind:
        case "dtype":
            return dtype_named(label.name)
        case "layout" | "memory_format":
            found = getattr(torch, label.name, None)
            if not isinstance(found, torch.layout | torch.memory_format):
                raise InvalidArgument(f"tessiq: torch has no {label.kind} called {label.name!r}")
            return found
        case "device":
            return torch.device(label.name)
        case "complex":
            real, _, imaginary = label.name.partition(",")
            return complex(float(real), float(imaginary))
    raise InvalidArgument(
        f"tessiq: label @{label.kind}({label.name}) is no dtype, layout, device, memory_format or complex number; "
        "subgraphs and objects are found in the imported graph's constants"
    )
