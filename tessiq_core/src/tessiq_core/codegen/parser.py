"""The text form of kernel descriptions, read. `tessiq_core.codegen.text` writes it and shows the format."""

from __future__ import annotations

import re

from tessiq_core.codegen.affine import IDENTIFIER, parse_affine, parse_extent_at, separated
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
    Write,
)
from tessiq_core.codegen.names import axis_number, is_stage_name
from tessiq_core.ir.extent import Extent
from tessiq_core.ir.scanner import Scanner
from tessiq_core.ir.types import ELEMENT_TYPES, ElementType, opaque_element

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*")
_VALUE = re.compile(r"%[A-Za-z_][A-Za-z0-9_]*")
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)|(?:inf|nan)(?![A-Za-z0-9_]))")
_INTEGER = re.compile(r"-?[0-9]+")


def parse_kernel(text: str, *, source: str = "<kernel>") -> KernelDescription:
    """The one description in `text`. `source` is how errors call the text, such as a file's path.

    Raises InvalidArgument with line, column, what was expected and what came. What the text means is not verified:
    that is `tessiq_core.codegen.check.check`.
    """
    scan = Scanner(text, source)
    kernel = _Parser(scan).kernel()
    if not scan.at_end:
        raise scan.error("nothing after the kernel")
    return kernel


def parse_kernels(text: str, *, source: str = "<kernels>") -> tuple[KernelDescription, ...]:
    """Every description in `text`, in order; none where it is blank. Raises like `parse_kernel`."""
    scan = Scanner(text, source)
    kernels: list[KernelDescription] = []
    while not scan.at_end:
        kernels.append(_Parser(scan).kernel())
    return tuple(kernels)


class _Parser:
    """Reads one kernel; each method reads what its docstring shows."""

    def __init__(self, scan: Scanner) -> None:
        self.scan = scan
        self.domain: list[Extent] = []
        self.reads: list[Read] = []
        self.stages: list[Stage] = []
        self.writes: list[Write] = []

    def kernel(self) -> KernelDescription:
        """`kernel @name(d0 < extent, …) { line… }`"""
        scan = self.scan
        self._keyword("kernel")
        scan.expect("@", "before the kernel's name")
        name = self._word("the kernel's name")
        separated(scan, "(", ")", self._domain_axis)
        scan.expect("{", "before the kernel's lines")
        members: tuple[str, ...] = ()
        while not members and not scan.peek("}"):
            members = self._line()
        scan.expect("}", "after the kernel's lines")
        return KernelDescription(
            name, tuple(self.domain), tuple(self.reads), tuple(self.stages), tuple(self.writes), members
        )

    def _domain_axis(self) -> None:
        """`d0 < extent`"""
        position = self.scan.here()
        if self.scan.match(IDENTIFIER) != f"d{len(self.domain)}":
            raise self.scan.error(f"'d{len(self.domain)}' (axes are numbered in order)", position)
        self.scan.expect("<", "before the axis's extent")
        self.domain.append(parse_extent_at(self.scan))

    def _line(self) -> tuple[str, ...]:
        """A read, a map, a reduce, a write, or `members a, b`, whose names are returned."""
        scan = self.scan
        start = scan.here()
        name = self._word("a stage, 'write', 'members' or '}'")
        if scan.accept("="):
            self._stage(name, start)
        elif name == "write":
            self._write()
        elif name == "members":
            members = [self._word("the name of a value")]
            while scan.accept(","):
                members.append(self._word("the name of a value"))
            return tuple(members)
        else:
            raise scan.error("'=' after a stage's name")
        return ()

    def _stage(self, name: str, start: int) -> None:
        """What follows `name =`: `read …`, `reduce …` or `row(…) …`."""
        scan = self.scan
        if not is_stage_name(name):
            raise scan.failure(f"{name!r} cannot name a stage: it is an axis, a constant or no identifier", start)
        if self.writes:
            raise scan.failure(f"stage {name} must stand before the writes", start)
        word = self._word("'read', 'reduce' or a row of the operation table")
        if word == "read" and not scan.peek("("):
            if self.stages:
                raise scan.failure(f"read {name} must stand before the maps and reduces", start)
            value, access, element = self._buffer()
            self.reads.append(Read(name, value, element, access))
        elif word == "reduce" and not scan.peek("("):
            combine = self._word("what combines two elements, such as sum")
            scan.expect("(", "before the reduced stage")
            operand = self._stage_reference()
            scan.expect(")", "after the reduced stage")
            axes = self._over()
            self.stages.append(Reduce(name, combine, operand, axes, *self._types()))
        else:
            operands = tuple(separated(scan, "(", ")", self._operand))
            self.stages.append(Map(name, word, operands, *self._types()))

    def _write(self) -> None:
        """What follows `write`: `%value[index] : element = stage over d0, d1`."""
        value, access, element = self._buffer()
        self.scan.expect("=", "before the stage written")
        stage = self._stage_reference()
        self.writes.append(Write(value, stage, element, access, self._over()))

    def _buffer(self) -> tuple[str, Access, ElementType]:
        """`%value[index] : element`"""
        scan = self.scan
        value = scan.match(_VALUE)
        if value is None:
            raise scan.error("a value, such as %x")
        scan.expect("[", "before the index")
        start = scan.here()
        index = parse_affine(scan)
        scan.expect("]", "after the index")
        if any(axis >= len(self.domain) for axis in index.strides):
            raise scan.failure(f"the index uses an axis beyond the kernel's {len(self.domain)}", start)
        access = Access(index.offset, tuple(index.strides.get(axis, 0) for axis in range(len(self.domain))))
        scan.expect(":", "before the element type")
        return value[1:], access, self._element()

    def _types(self) -> tuple[ElementType, ElementType]:
        """`in compute : element`"""
        self._keyword("in")
        compute = self._element()
        self.scan.expect(":", "before the element type")
        return compute, self._element()

    def _element(self) -> ElementType:
        """`f32`, `opaque(complex64)`"""
        position = self.scan.here()
        name = self.scan.match(IDENTIFIER)
        if name == "opaque" and self.scan.accept("("):
            dtype = self._word("the name of a torch dtype")
            self.scan.expect(")", "after the dtype")
            return opaque_element(dtype)
        if name not in ELEMENT_TYPES:
            raise self.scan.error(f"an element type ({', '.join(ELEMENT_TYPES)})", position)
        return ELEMENT_TYPES[name]

    def _operand(self) -> Operand:
        """A stage, `d0`, or a constant: `true`, `-1`, `0.5`, `-inf`."""
        scan = self.scan
        number = scan.match(_FLOAT)
        if number is not None:
            return Constant(float(number))
        digits = scan.match(_INTEGER)
        if digits is not None:
            return Constant(int(digits))
        position = scan.here()
        word = scan.match(IDENTIFIER)
        if word in ("true", "false"):
            return Constant(word == "true")
        axis = axis_number(word) if word is not None else None
        if axis is not None and axis < len(self.domain):
            return Axis(axis)
        if word is None or not is_stage_name(word):
            raise scan.error(f"a stage, a constant or one of the kernel's {len(self.domain)} axes", position)
        return word

    def _stage_reference(self) -> str:
        position = self.scan.here()
        word = self.scan.match(IDENTIFIER)
        if word is None or not is_stage_name(word):
            raise self.scan.error("the name of a stage", position)
        return word

    def _over(self) -> tuple[int, ...]:
        """`over d0, d1`, or nothing."""
        scan = self.scan
        start = scan.here()
        if scan.match(IDENTIFIER) != "over":
            scan.position = start
            return ()
        axes: list[int] = []
        while not axes or scan.accept(","):
            position = scan.here()
            axis = axis_number(scan.match(IDENTIFIER) or "")
            if axis is None or axis >= len(self.domain):
                raise scan.error(f"one of the kernel's {len(self.domain)} axes", position)
            axes.append(axis)
        return tuple(axes)

    def _word(self, what: str) -> str:
        word = self.scan.match(_WORD)
        if word is None:
            raise self.scan.error(what)
        return word

    def _keyword(self, word: str) -> None:
        position = self.scan.here()
        if self.scan.match(_WORD) != word:
            raise self.scan.error(f"'{word}'", position)
