"""IR types of the values a traced graph records in `meta["val"]`."""

from __future__ import annotations

import torch

from tessiq_core.capture.symbols import Symbols
from tessiq_core.ir.types import OpaqueType, ScalarType, ValueType, tensor_type
from tessiq_core.runtime.element_map import dtype_name, element_of


def value_type(value: object, symbols: Symbols, home: str) -> ValueType:
    """The IR type of a recorded value: shape and strides exactly as recorded, as extents.

    Opaque: sparse, quantized, nested and mkldnn tensors, tensors whose conjugate or negative bit is set (their memory
    does not hold their values), tensors on another device than `home`, and everything that is no tensor or number.
    """
    match value:
        case torch.Tensor():
            return _tensor_type(value, symbols, home)
        case bool() | torch.SymBool():
            return ScalarType("bool")
        case int() | torch.SymInt():
            return ScalarType("int", symbols.extent(value))
        case float() | torch.SymFloat():
            return ScalarType("float")
        case None:
            return OpaqueType("none")
    return OpaqueType(type(value).__name__)


def _tensor_type(value: torch.Tensor, symbols: Symbols, home: str) -> ValueType:
    opaque = _why_opaque(value, home)
    if opaque:
        return OpaqueType(f"{opaque} {element_of(value.dtype).name}")
    shape = tuple(symbols.extent(size) for size in value.shape)
    strides = tuple(symbols.extent(stride) for stride in value.stride())
    return tensor_type(element_of(value.dtype), shape, strides)


def _why_opaque(value: torch.Tensor, home: str) -> str:
    if value.is_quantized or dtype_name(value.dtype).startswith(("qint", "quint")):
        return "quantized"
    if value.layout is not torch.strided:
        return str(value.layout).removeprefix("torch.").lstrip("_")
    if value.is_nested:
        return "nested"
    if value.is_conj():
        return "conj"
    if value.is_neg():
        return "neg"
    return "" if str(value.device) == home else str(value.device)


def home_of(values: list[object]) -> str:
    """The device a graph's tensors live on: the first that is not the host's, else "cpu"."""
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type not in ("cpu", "meta"):
            return str(value.device)
    return "cpu"
