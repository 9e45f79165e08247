"""Random programs: a seed gives one, as inputs, lines and outputs, so that a failing one can be made smaller."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from support.program_inputs import DTYPES, EXTENTS, LAYOUTS, Input, make
from support.program_lines import NAMESPACE, Draft, Line, Pool, draft

LARGEST = 4000
"""Most elements a tensor may have: programs are to be many, not large."""


@dataclass(frozen=True)
class Program:
    """A function of tensors.

    outputs: names of what it returns, "None" among them; `near` says of each, and of each input after the call,
             whether it is right within rounding only.
    written: the numbers of the inputs it writes to.
    """

    seed: int
    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    near: frozenset[str] = frozenset()
    written: frozenset[int] = frozenset()

    def source(self, name: str = "program", disturbed: bool = False, broken: int | None = None) -> str:
        """The function as Python.

        disturbed: every result that is right within rounding only goes through `disturb`.
        broken:    the line before which Dynamo's graph ends.
        """
        body = []
        for number, line in enumerate(self.lines):
            if number == broken:
                body.append("torch._dynamo.graph_break()")
            body.append(str(line))
            if disturbed and line.near:
                body += [f"{target} = disturb({target})" for target in line.targets] or [
                    f"disturb({line.operands[0]}, write=True)"
                ]
        body.append(f"return ({', '.join(self.outputs)},)")
        return f"def {name}({', '.join(input_names(self))}):\n" + "".join(f"    {line}\n" for line in body)

    def function(self, file: str, **rendered: Any) -> Callable[..., Any]:
        """The function, compiled under a file name of its own: Dynamo keeps what it learns of sizes by file and name."""
        namespace = {**NAMESPACE, "disturb": disturb}
        exec(compile(self.source(**rendered), file, "exec"), namespace)
        function: Callable[..., Any] = namespace["program"]
        return function

    def __str__(self) -> str:
        inputs = "".join(f"# {name}: {item}\n" for name, item in zip(input_names(self), self.inputs, strict=True))
        return f"# seed {self.seed}\n{inputs}{self.source()}"


def input_names(program: Program) -> tuple[str, ...]:
    return tuple(f"x{number}" for number in range(len(program.inputs)))


def disturb(value: Any, write: bool = False) -> Any:
    """The value with every element off by a few units of its last place, at random."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    step = 4 * torch.finfo(value.dtype).eps
    with torch.random.fork_rng():
        torch.manual_seed(value.numel() + int(NAMESPACE.get("disturbance", 0)))
        factor = (1 + step * (2 * torch.rand(value.shape, dtype=torch.float64) - 1)).to(value.dtype)
    if write:
        with torch.no_grad():
            value.mul_(factor)
        return value
    return value * factor


def generate(seed: int, grad: bool = False, lines: int = 12) -> Program | None:
    """The program of a seed, of 5 to `lines` lines; None where eager itself cannot run it.

    grad: floating inputs are mostly leaves of a gradient, so nothing is special among their values.
    """
    choose = random.Random(seed)
    inputs = tuple(_inputs(choose, grad))
    pool = Pool(choose)
    pool.tensors.update({f"x{number}": tensor for number, tensor in enumerate(make(inputs, seed).tensors)})
    chosen: list[Line] = []
    wanted = choose.randrange(5, lines + 1)
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        for _ in range(4 * wanted):
            if len(chosen) < wanted and (drafted := draft(pool)) is not None:
                line = _run(drafted, pool, len(chosen))
                chosen += [] if line is None else [line]
    made = [target for line in chosen for target in line.targets]
    outputs = [*made[-2:]] + [choose.choice([*pool.tensors]) for _ in range(choose.randrange(3))]
    if choose.random() < 0.1:
        outputs.append("None")
    choose.shuffle(outputs)
    return settled(Program(seed, inputs, tuple(chosen), tuple(outputs) or ("x0",)))


def _inputs(choose: random.Random, grad: bool) -> Iterator[Input]:
    rank = choose.choices((0, 1, 2, 3, 4), (1, 3, 6, 5, 3))[0]
    extents = choose.choices((0, 1, 2, 3, 7, 17, 33), (1, 3, 5, 5, 4, 2, 2), k=rank)
    earlier: list[Input] = []
    for number in range(choose.randrange(1, 5)):
        kept = extents[choose.randrange(rank + 1) if choose.random() < 0.2 else 0 :]
        shape = tuple(1 if choose.random() < 0.12 else extent for extent in kept)
        if len(shape) == 2 and choose.random() < 0.2:
            shape = (shape[1], shape[0])
        while _elements(shape) > LARGEST:
            shape = tuple(min(extent, 3) for extent in shape)
        dtype = choose.choice(DTYPES[:6] if grad and choose.random() < 0.8 else DTYPES)
        layout = choose.choice(LAYOUTS) if choose.random() < 0.5 else "packed"
        axes = tuple(axis for axis in range(len(shape)) if choose.random() < 0.6)
        if layout == "channels_last" and len(shape) != 4:
            layout = "transposed"
        item = Input(dtype, shape, layout, axes, not grad and choose.random() < 0.25)
        if number and not grad and choose.random() < 0.06:
            source = choose.randrange(number)
            origin = earlier[source]
            item = replace(origin, layout=choose.choice(("packed", "transposed")), alias=source)
        earlier.append(item)
        yield item


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _run(drafted: Draft, pool: Pool, number: int) -> Line | None:
    """Execute one line on the pool; None, and no change but a failed write, where it does not suit."""
    operands = drafted.operands
    inexact = any(name in pool.near for name in operands)
    if drafted.jumps and inexact:
        return None
    targets = tuple(f"v{number}" if drafted.results == 1 else f"v{number}_{i}" for i in range(drafted.results))
    line = Line(drafted.template, operands, targets if drafted.results else (), drafted.near, drafted.writes)
    before = {name: tensor.clone() for name, tensor in pool.tensors.items()} if drafted.writes else {}
    names = dict(pool.tensors)
    try:
        exec(str(line), dict(NAMESPACE), names)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        if any(not torch.equal(tensor, pool[name]) for name, tensor in before.items() if tensor.shape == pool[name].shape):
            pool.near.update(pool.tensors)  # half written: nothing may be concluded from these values any more
        return None
    made = [names[target] for target in line.targets]
    if any(not isinstance(t, torch.Tensor) or t.is_complex() or t.numel() > LARGEST for t in made):
        return None
    pool.tensors.update(zip(line.targets, made, strict=True))
    for target, tensor in zip(line.targets, made, strict=True):
        if tensor.is_floating_point() and (inexact or drafted.near):
            pool.near.add(target)
    if drafted.writes and (inexact or drafted.near):
        memory = pool[operands[0]].untyped_storage().data_ptr()
        pool.near.update(n for n, t in pool.tensors.items() if t.untyped_storage().data_ptr() == memory)
    return line


def settled(program: Program, seed: int | None = None) -> Program | None:
    """The program with `near` and `written` found by running it line by line; None where eager cannot run it, or
    where a line that jumps reads what is right within rounding only."""
    made = make(program.inputs, program.seed if seed is None else seed)
    pool = Pool(random.Random(0))
    pool.tensors.update({f"x{number}": tensor for number, tensor in enumerate(made.tensors)})
    versions = [tensor._version for tensor in made.tensors]
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        for line in program.lines:
            jumps = line.jumps
            drafted = Draft(line.template, line.operands, line.near, jumps, line.writes, len(line.targets))
            if any(name not in pool.tensors for name in line.operands) or _rerun(drafted, line, pool) is None:
                return None
    if any(name != "None" and name not in pool.tensors for name in program.outputs):
        return None
    written = frozenset(n for n, tensor in enumerate(made.tensors) if tensor._version != versions[n])
    return replace(program, near=frozenset(pool.near), written=written)


def _rerun(drafted: Draft, line: Line, pool: Pool) -> Line | None:
    names = [*pool.tensors]
    ran = _run(replace(drafted, results=0), pool, 0) if not line.targets else _run_named(drafted, line, pool)
    if ran is None:
        return None
    assert len(pool.tensors) >= len(names)
    return ran
