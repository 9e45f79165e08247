"""Random programs through tessiq, against eager. From the folder `tests`:

    python -m support.random_programs --count 1000 --seed 0 --route aot [--emitter reference] [--shrink]

Prints every program that is not as eager has it, made smaller with --shrink, then a count of each verdict; exit status
1 where a program is wrong or raises. Compared: values (exactly where eager's arithmetic is exact, else within what a
disturbance of the last place makes of them), element types, sizes, strides, written inputs and what lies between their
elements, which outputs share memory with which inputs and outputs, what requires a gradient, gradients, how many
random numbers were drawn, and the results of the first call after the second. Routes, with programs a second on a core:

    reference  AOTAutograd alone, the reference emitter (16)
    aot        the same with the target's own emitter (5)
    move       `adopt=False`: every kernel's operands are copied there and back (10)
    train      with gradients, the reference emitter (10)
    compile    torch.compile with fixed sizes, every third program with a graph break (4)
    dynamic    torch.compile with symbolic sizes, called with two sets of sizes where the program allows (1.5)
    train-compile  torch.compile with gradients (1.3)

Verdicts: "ok"; "eager": eager does not run it, or not twice alike; "theirs": aot_eager, which compiles nothing, is
wrong or raises too; "known": see KNOWN; "wrong"; "raises".
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from support.operator_sweep import aot_eager
from support.program_generator import Program, generate, settled, smaller
from support.program_inputs import make
from support.program_observation import Call, Route, Run, Seen, difference, observe, passed_of, steps_of
from tessiq_core.capture.backend import importing, trace
from tessiq_core.runtime import compile_graph
from tessiq_core.runtime.options import parse_options

ROUTES = {
    route.name: route
    for route in (
        Route("reference", options={"emitter": "reference"}),
        Route("aot"),
        Route("move", options={"adopt": False, "emitter": "reference"}),
        Route("train", grad=True, options={"emitter": "reference"}),
        Route("compile", dynamo=True),
        Route("dynamic", dynamo=True, dynamic=True),
        Route("train-compile", dynamo=True, grad=True),
    )
}

KNOWN = ("have mixed autograd ._base states", "size_bytes_is_heap_allocated_")
"""What AOTAutograd says where tensors that came out of one compiled graph are views of one memory without being
views to autograd, and the next graph writes to one of them. Inductor's results are such too, with the same outcome."""

OTHER_EXTENTS = {2: 4, 3: 5, 7: 6, 17: 9, 33: 10}
"""The second set of sizes of the dynamic route."""


@dataclass(frozen=True)
class Verdict:
    """What became of a program; `detail` says what differed."""

    verdict: str
    detail: str = ""


class _Module(torch.nn.Module):
    """A function as AOTAutograd takes it."""

    def __init__(self, function: Run) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def _checked(run: Callable[[list[Any]], list[Any]], module: torch.fx.GraphModule) -> Callable[[list[Any]], list[Any]]:
    """The compiled graph, raising where a result is not in the strides recorded for it."""
    returned = next(iter(reversed(module.graph.nodes))).args[0]
    recorded = [node.meta["val"] if isinstance(node, torch.fx.Node) else None for node in returned]

    def call(arguments: list[Any]) -> list[Any]:
        results = run(arguments)
        for number, (value, wanted) in enumerate(zip(results, recorded, strict=True)):
            if isinstance(wanted, torch.Tensor) and all(isinstance(n, int) for n in (*wanted.shape, *wanted.stride())):
                assert steps_of(value) == steps_of(wanted), (
                    f"result {number}: {value.stride()}, recorded {wanted.stride()}"
                )
        return results

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


class Examiner:
    """Runs programs by one route."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.number = 0

    def examine(self, program: Program) -> Verdict:
        """The verdict on a program."""
        eager = program.function("<eager>")
        programs = [program, program]
        if self.route.dynamic:
            other = settled(replace(program, inputs=tuple(item.resized(OTHER_EXTENTS) for item in program.inputs)))
            programs += [] if other is None else [other]
        calls = [(each, program.seed + number) for number, each in enumerate(programs)]
        try:
            expected = [observe(eager, *call, self.route) for call in calls]
            again = observe(eager, *calls[0], self.route)
        except Exception as error:  # noqa: BLE001 - whatever eager raises makes it no program
            return Verdict("eager", _first_line(error))
        if difference(again, expected[0], calls[0], self.route):
            return Verdict("eager", "not twice alike")
        got = self._called(self._ours, program, calls)
        if isinstance(got, list) and not (differs := self._differences(got, expected, calls)):
            return Verdict("ok")
        reference = self._called(aot_eager, program, calls)
        if isinstance(got, str):
            return Verdict(
                "theirs" if isinstance(reference, str) else "known" if got.startswith("known ") else "raises", got
            )
        if isinstance(reference, str):
            return Verdict("theirs", f"aot_eager raises {reference}")
        if not self._differences(reference, expected, calls):
            return Verdict("wrong", differs)
        beyond = self._differences(got, reference, calls)
        return Verdict("wrong", f"{beyond}, by aot_eager") if beyond else Verdict("theirs", differs)

    def _ours(self, gm: Any, inputs: Sequence[Any]) -> Run:
        """As the backend itself, with each graph's results held against the strides tracing recorded for them."""
        options = parse_options(self.route.options, None)
        compiler = importing(lambda imported: compile_graph(imported, options))
        return trace(gm, inputs, lambda module, kind: _checked(compiler(module, kind), module))

    def _called(self, backend: Callable[..., Run], program: Program, calls: Sequence[Call]) -> list[Seen] | str:
        """What one compilation gives for all calls, looked at after the last; the text of an exception."""
        self.number += 1
        broken = len(program.lines) // 2 if self.route.dynamo and program.seed % 3 == 0 else None
        function = program.function(f"<program {self.number}>", broken=broken)
        try:
            if self.route.dynamo:
                run: Run = torch.compile(function, backend=backend, dynamic=self.route.dynamic)
            else:
                run = backend(_Module(function), passed_of(program, make(program.inputs, program.seed), self.route)[1])
            return [observe(run, *call, self.route) for call in calls]
        except Exception as error:  # noqa: BLE001 - the verdict is the report
            known = any(text in str(error) for text in KNOWN)
            return ("known " if known else "") + _first_line(error)
        finally:
            if self.route.dynamo:
                torch._dynamo.reset()

    def _differences(self, got: Sequence[Seen], expected: Sequence[Seen], calls: Sequence[Call]) -> str:
        for number, (one, other, call) in enumerate(zip(got, expected, calls, strict=True)):
            if differs := difference(one, other, call, self.route):
                return f"call {number}: {differs}"
        return ""


def _first_line(error: Exception) -> str:
    text = str(error).strip() or "no text"
    return f"{type(error).__name__}: {text.splitlines()[0]} … {text.splitlines()[-1]}"[:600]


def shrunk(program: Program, verdict: Verdict, examiner: Examiner, seconds: float = 60.0) -> tuple[Program, Verdict]:
    """A smaller program with the same verdict, within a time."""
    end = time.monotonic() + seconds
    found = verdict.verdict in ("wrong", "raises")
    while found and time.monotonic() < end:
        found = False
        for candidate in smaller(program):
            ready = settled(candidate)
            if ready is None or ready == program or time.monotonic() > end:
                continue
            now = examiner.examine(ready)
            if now.verdict == verdict.verdict:
                program, verdict, found = ready, now, True
                break
    return program, verdict


def campaign(route: Route, seeds: Sequence[int], shrink: bool = False) -> Iterator[tuple[Program, Verdict]]:
    """The verdict on the program of each seed."""
    examiner = Examiner(route)
    for seed in seeds:
        program = generate(seed, route.grad)
        if program is None:
            continue
        verdict = examiner.examine(program)
        if shrink and verdict.verdict in ("wrong", "raises"):
            program, verdict = shrunk(program, verdict, examiner)
        yield program, verdict


def main() -> int:
    """The command described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others count on")
    parser.add_argument("--route", choices=ROUTES, default="reference")
    parser.add_argument("--emitter")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", nargs="*", default=["wrong", "raises"], help="verdicts to print")
    given = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    route = ROUTES[given.route]
    if given.emitter:
        route = replace(route, options=route.options | {"emitter": given.emitter})
    counts: collections.Counter[str] = collections.Counter()
    start = time.monotonic()
    for program, verdict in campaign(route, range(given.seed, given.seed + given.count), given.shrink):
        counts[verdict.verdict] += 1
        if verdict.verdict in given.show:
            print(f"{verdict.verdict}: {verdict.detail}\n{program}", flush=True)
    print(f"{dict(counts)} in {time.monotonic() - start:.0f} s")
    return 1 if counts["wrong"] or counts["raises"] else 0


if __name__ == "__main__":
    sys.exit(main())
