"""Random programs by every route, a slice with fixed seeds; `support/random_programs.py` says how to run more."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

from support.program_generator import Program, generate, settled, smaller
from support.program_inputs import LAYOUTS, Input, make
from support.program_observation import Route, difference, observe
from support.program_pool import Line
from support.random_programs import ROUTES, Examiner, campaign, shrunk


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("route", "seeds"),
    [
        ("reference", range(120)),
        ("aot", range(1000, 1024)),
        ("move", range(2000, 2080)),
        ("train", range(3000, 3040)),
        ("compile", range(4000, 4016)),
        ("dynamic", range(5000, 5006)),
        ("train-compile", range(6000, 6010)),
    ],
)
def test_random_programs_are_as_eager_has_them(route: str, seeds: range) -> None:
    verdicts = [(program, verdict) for program, verdict in campaign(ROUTES[route], seeds)]
    wrong = [f"{verdict.detail}\n{program}" for program, verdict in verdicts if verdict.verdict in ("wrong", "raises")]
    assert not wrong, "\n".join(wrong)
    assert sum(verdict.verdict == "ok" for _, verdict in verdicts) > 0.4 * len(seeds)


def test_a_seed_is_one_program_and_values_and_each_line_is_used() -> None:
    assert generate(7) == generate(7)
    programs = [program for seed in range(60) if (program := generate(seed)) is not None]
    assert len(programs) > 55
    assert {item.layout for program in programs for item in program.inputs} == set(LAYOUTS)
    assert sum(bool(program.written) for program in programs) > 5
    assert sum(len(program.lines) >= 5 for program in programs) > 50


def program_of(source: tuple[Line, ...], *inputs: Input, outputs: tuple[str, ...]) -> Program:
    program = settled(Program(1, inputs, source, outputs))
    assert program is not None
    return program


FLOATS = Input(torch.float32, (2, 3))
EAGER = Route("eager")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x: (x[0].clone(), x + 1), "distance of output 0 from input 0"),
        (lambda x: (x[0], x + 1.0001), "output 1: at (0, 0)"),
        (lambda x: (x[0], (x + 1).double()), "output 1: torch.float64"),
        (lambda x: (x[0], (x + 1).t().contiguous().t()), "output 1: strides"),
        (lambda x: (x[0], x.clone() + 1 + 0 * x.select(1, 2).fill_(7).sum()), "output 0: at (2,) 7.0"),
        (lambda x: (x[0], x + 1 + 0 * torch.rand(1)), "random number"),
        (lambda x: (x[0], None), "output 1"),
    ],
)
def test_the_comparison_sees(wrong: object, says: str) -> None:
    lines = (Line("{0}[0]", ("x0",), targets=("v0",)), Line("{0} + 1", ("x0",), targets=("v1",)))
    program = program_of(lines, FLOATS, outputs=("v0", "v1"))
    expected = observe(program.function("<eager>"), program, 1, EAGER)
    assert difference(observe(program.function("<eager>"), program, 1, EAGER), expected, (program, 1), EAGER) == ""
    assert callable(wrong)
    assert says in difference(observe(wrong, program, 1, EAGER), expected, (program, 1), EAGER)


def test_rounding_is_told_from_being_wrong() -> None:
    program = program_of((Line("torch.exp({0})", ("x0",), near=True, targets=("v0",)),), FLOATS, outputs=("v0",))
    expected = observe(program.function("<eager>"), program, 1, EAGER)
    for factor, says in ((1 + 1e-7, ""), (1 + 1e-4, "output 0")):
        got = observe(lambda x, factor=factor: (x.exp() * factor,), program, 1, EAGER)  # type: ignore[misc]
        assert difference(got, expected, (program, 1), EAGER).startswith(says)
        assert bool(difference(got, expected, (program, 1), EAGER)) == bool(says)


def test_a_written_gap_between_elements_is_seen() -> None:
    made = make([Input(torch.float32, (2, 3), "sliced")], 1)
    again = make([Input(torch.float32, (2, 3), "sliced")], 1)
    assert made.tensors[0].storage_offset() > 0
    assert made.bases[0].numel() > made.tensors[0].numel()
    assert torch.equal(made.bases[0], again.bases[0])


def test_failing_programs_are_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    from support import random_programs

    examiner = Examiner(EAGER)

    def examine(program: Program) -> random_programs.Verdict:
        found = any("torch.exp" in line.template for line in program.lines)
        return random_programs.Verdict("wrong" if found else "ok")

    monkeypatch.setattr(examiner, "examine", examine)
    choose = random.Random(0)
    for _ in range(200):
        program = generate(choose.randrange(10**6))
        if program is not None and examine(program).verdict == "wrong":
            break
    assert program is not None
    small, verdict = shrunk(program, examine(program), examiner)
    assert verdict.verdict == "wrong"
    assert len(small.lines) == 1
    assert all(settled(candidate) != small for candidate in smaller(small))
