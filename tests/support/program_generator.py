"""Random programs: a seed gives one, as inputs, lines and outputs, so that a failing one can be made smaller."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from support.program_inputs import LAYOUTS, Input, make
from support.program_lines import DTYPES, draft
from support.program_pool import LARGEST, NAMESPACE, Line, Pool

EXTENTS = (0, 1, 2, 3, 7, 17, 33)


@dataclass(frozen=True)
class Program:
    """A function of tensors.

    outputs: names of what it returns, "None" among them.
    near:    the names whose values, when it returns, are right within rounding only.
    written: the numbers of the inputs it writes to.
    """

    seed: int
    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    near: frozenset[str] = frozenset()
    written: frozenset[int] = frozenset()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return tuple(f"x{number}" for number in range(len(self.inputs)))

    def source(self, disturbed: bool = False, broken: int | None = None) -> str:
        """The function as Python.

        disturbed: every result that is near goes through `disturb`.
        broken:    the number of the line before which Dynamo's graph ends.
        """
        body = []
        for number, line in enumerate(self.lines):
            body += ["torch._dynamo.graph_break()"] if number == broken else []
            body.append(str(line))
            if disturbed and line.near:
                body += [f"{target} = disturb({target})" for target in line.targets]
                body += [] if line.targets else [f"disturb_({line.operands[0]})"]
        body.append(f"return ({', '.join(self.outputs)},)")
        return f"def program({', '.join(self.parameters)}):\n" + "".join(f"    {line}\n" for line in body)

    def function(self, file: str, disturbed: bool = False, broken: int | None = None) -> Callable[..., Any]:
        """The function, of a file name of its own: Dynamo keeps what it learns about sizes by file and name."""
        namespace = {**NAMESPACE, "disturb": disturb, "disturb_": disturb_}
        exec(compile(self.source(disturbed, broken), file, "exec"), namespace)
        function: Callable[..., Any] = namespace["program"]
        return function

    def __str__(self) -> str:
        inputs = "".join(f"# {name}: {item}\n" for name, item in zip(self.parameters, self.inputs, strict=True))
        return f"# seed {self.seed}\n{inputs}{self.source()}"


def _disturbances(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A factor near 1 and a summand near 0 for every element."""
    plain = value.detach().to(torch.float64)
    finite = plain[plain.isfinite()].abs()
    largest = finite.max() if finite.numel() else 0.0
    step = torch.finfo(value.dtype).eps
    with torch.random.fork_rng():
        torch.seed()
        one, other = (2 * torch.rand(value.shape, dtype=torch.float64) - 1 for _ in range(2))
    return (1 + 4 * step * one).to(value.dtype), (step * largest * other).to(value.dtype)


def disturb(value: torch.Tensor) -> torch.Tensor:
    """The value with every element off by some units of its own last place, and by one of the largest element's:
    what cancels inside a sum or a gelu leaves the rounding of larger numbers behind."""
    if not value.is_floating_point():
        return value
    factor, summand = _disturbances(value)
    return value * factor + summand


def disturb_(value: torch.Tensor) -> None:
    """The same, in place."""
    with torch.no_grad():
        factor, summand = _disturbances(value)
        value.mul_(factor).add_(summand)


def generate(seed: int, grad: bool = False, most: int = 12) -> Program | None:
    """The program of a seed, of 5 to `most` lines; None where eager cannot run what was drawn.

    grad: it is to be differentiated: most inputs are floating, and nothing special is among their values.
    """
    choose = random.Random(seed)
    inputs = tuple(_inputs(choose, grad))
    pool = _pool(inputs, seed)
    lines: list[Line] = []
    wanted = choose.randrange(5, most + 1)
    with _eager(seed):
        for _ in range(4 * wanted):
            if len(lines) == wanted:
                break
            drafted = draft(pool)
            if drafted is None:
                continue
            stem = f"v{len(lines)}"
            targets = tuple(f"{stem}_{i}" for i in range(drafted.results)) if drafted.many else (stem,)
            line = replace(drafted, targets=targets if drafted.results else ())
            if pool.run(line):
                lines.append(line)
    made = [target for line in lines for target in line.targets]
    outputs = [*made[-2:], *(choose.choice([*pool.tensors]) for _ in range(choose.randrange(3)))] or ["x0"]
    if choose.random() < 0.1:
        outputs.append("None")
    choose.shuffle(outputs)
    return settled(Program(seed, inputs, tuple(lines), tuple(outputs)))


def settled(program: Program) -> Program | None:
    """The program with `near` and `written` as running it finds them; None where it does not run."""
    made = make(program.inputs, program.seed)
    pool = Pool(random.Random(0), dict(zip(program.parameters, made.tensors, strict=True)))
    versions = [tensor._version for tensor in made.tensors]
    with _eager(program.seed):
        if not all(pool.run(line) for line in program.lines):
            return None
    if any(name != "None" and name not in pool.tensors for name in program.outputs):
        return None
    written = frozenset(n for n, tensor in enumerate(made.tensors) if tensor._version != versions[n])
    return replace(program, near=frozenset(pool.near), written=written)


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less, the largest steps first; not all of them run."""
    for number in reversed(range(len(program.lines))):
        yield from _without(program, number)
    for number in range(len(program.outputs)):
        if len(program.outputs) > 1:
            yield replace(program, outputs=program.outputs[:number] + program.outputs[number + 1 :])
    used = {name for line in program.lines for name in line.operands} | set(program.outputs)
    if program.parameters[-1] not in used and len(program.inputs) > 1:
        yield replace(program, inputs=program.inputs[:-1])
    for number, item in enumerate(program.inputs):
        for simpler in (replace(item, layout="packed", alias=None), replace(item, special=False)):
            if simpler != item:
                yield replace(program, inputs=(*program.inputs[:number], simpler, *program.inputs[number + 1 :]))
    for extent in sorted({extent for item in program.inputs for extent in item.shape}, reverse=True):
        if extent > 2:
            yield replace(program, inputs=tuple(item.resized({extent: 2}) for item in program.inputs))


def _without(program: Program, number: int) -> Iterator[Program]:
    line = program.lines[number]
    rest = program.lines[:number] + program.lines[number + 1 :]
    for stand_in in line.operands if len(line.targets) == 1 else ():
        renamed = {line.targets[0]: stand_in}
        lines = tuple(replace(o, operands=tuple(renamed.get(name, name) for name in o.operands)) for o in rest)
        yield replace(program, lines=lines, outputs=tuple(renamed.get(name, name) for name in program.outputs))
    gone = set(line.targets)
    kept: list[Line] = []
    for other in rest:
        if gone.isdisjoint(other.operands):
            kept.append(other)
        else:
            gone |= set(other.targets)
    outputs = tuple(name for name in program.outputs if name not in gone)
    yield replace(program, lines=tuple(kept), outputs=outputs or program.parameters[:1])


def _pool(inputs: tuple[Input, ...], seed: int) -> Pool:
    tensors = make(inputs, seed).tensors
    return Pool(random.Random(seed + 1), {f"x{number}": tensor for number, tensor in enumerate(tensors)})


class _eager:
    """PyTorch's warnings off, and its generator seeded and put back."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __enter__(self) -> None:
        self.warnings = warnings.catch_warnings()
        self.warnings.__enter__()
        warnings.simplefilter("ignore")
        self.state = torch.get_rng_state()
        torch.manual_seed(self.seed)

    def __exit__(self, *details: object) -> None:
        torch.set_rng_state(self.state)
        self.warnings.__exit__(None, None, None)


def _inputs(choose: random.Random, grad: bool) -> Iterator[Input]:
    rank = choose.choices((0, 1, 2, 3, 4), (1, 3, 6, 5, 3))[0]
    extents = choose.choices(EXTENTS, (1, 3, 5, 5, 4, 2, 2), k=rank)
    earlier: list[Input] = []
    for number in range(choose.randrange(1, 5)):
        kept = extents[choose.randrange(rank + 1) if choose.random() < 0.2 else 0 :]
        shape = tuple(1 if choose.random() < 0.12 else extent for extent in kept)
        if len(shape) == 2 and choose.random() < 0.2:
            shape = (shape[1], shape[0])
        if math.prod(shape) > LARGEST:
            shape = tuple(min(extent, 3) for extent in shape)
        dtype = choose.choice(DTYPES[:6] if grad and choose.random() < 0.8 else DTYPES)
        layout = choose.choice(LAYOUTS) if choose.random() < 0.5 else "packed"
        if layout == "channels_last" and len(shape) != 4:
            layout = "transposed"
        axes = tuple(axis for axis in range(len(shape)) if choose.random() < 0.6)
        item = Input(dtype, shape, layout, axes, special=not grad and choose.random() < 0.25)
        if number and not grad and choose.random() < 0.06:
            source = choose.randrange(number)
            turned = choose.choice((True, False))
            origin = earlier[source]
            shape = tuple(reversed(origin.shape)) if turned else origin.shape
            item = Input(origin.dtype, shape, "transposed" if turned else "packed", alias=source)
        earlier.append(item)
        yield item
