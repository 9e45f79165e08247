"""Types of IR values: element type, shape and layout; host scalars; and everything else as opaque."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.extent import Extent, mul, provably_equal


@dataclass(frozen=True)
class ElementType:
    """The type of one element. `size` is in bytes, 0 for an opaque type; `kind` is bool, int, uint, float or opaque."""

    name: str
    kind: str
    size: int

    @property
    def is_opaque(self) -> bool:
        """Carried through the graph and never claimed (complex64, float8_e4m3fn, …)."""
        return self.kind == "opaque"

    @property
    def is_float(self) -> bool:
        """A real floating type: f16, bf16, f32, f64."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """i8, u8, i16, i32, i64; not bool."""
        return self.kind in ("int", "uint")

    def __str__(self) -> str:
        return f"opaque({self.name})" if self.is_opaque else self.name

    def __repr__(self) -> str:
        return f"<{self}>"


BOOL = ElementType("bool", "bool", 1)
I8 = ElementType("i8", "int", 1)
U8 = ElementType("u8", "uint", 1)
I16 = ElementType("i16", "int", 2)
I32 = ElementType("i32", "int", 4)
I64 = ElementType("i64", "int", 8)
F16 = ElementType("f16", "float", 2)
BF16 = ElementType("bf16", "float", 2)
F32 = ElementType("f32", "float", 4)
F64 = ElementType("f64", "float", 8)

ELEMENT_TYPES: dict[str, ElementType] = {t.name: t for t in (BOOL, I8, U8, I16, I32, I64, F16, BF16, F32, F64)}


def opaque_element(name: str) -> ElementType:
    """An element type the compiler carries and never claims; `name` is torch's own (`complex64`)."""
    return ElementType(name, "opaque", 0)


def packed_strides(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """Row-major strides in elements, the last axis 1. Extents of 0 and 1 count as they are."""
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(shape):
        strides.append(step)
        step = mul(step, extent)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class TensorType:
    """Element type, shape, and strides in elements; `strides` is None for a packed row-major tensor.

    Build with `tensor_type`, which drops strides that are exactly the packed ones. The storage offset is never
    part of a type: PyTorch does not guard it, so views are relative to their base.
    """

    element: ElementType
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def layout(self) -> tuple[Extent, ...]:
        """The strides in elements, spelt out also where the tensor is packed."""
        return packed_strides(self.shape) if self.strides is None else self.strides


def tensor_type(
    element: ElementType, shape: tuple[Extent, ...], strides: tuple[Extent, ...] | None = None
) -> TensorType:
    """A tensor type in its one canonical form: strides provably equal to the packed ones become None.

    Raises InvalidArgument when there is not one stride for each extent of the shape.
    """
    if strides is not None:
        if len(strides) != len(shape):
            raise InvalidArgument(
                f"tessiq: a tensor type needs one stride an axis: {len(shape)} extents, but {len(strides)} strides"
            )
        packed = packed_strides(shape)
        if all(provably_equal(a, b) for a, b in zip(strides, packed, strict=True)):
            strides = None
    return TensorType(element, shape, strides)


@dataclass(frozen=True)
class ScalarType:
    """A Python number that flows through the graph at run time: a symbolic size, or a number computed from sizes.

    kind:  "int", "float" or "bool".
    value: for an int, what is known of it as an extent (`s0`, `s0*s1`, 4) or None.
    """

    kind: str
    value: Extent | None = None


@dataclass(frozen=True)
class OpaqueType:
    """A value the compiler only hands on: a sparse or quantized tensor, a script object. `name` says what it is."""

    name: str


ValueType: TypeAlias = TensorType | ScalarType | OpaqueType
