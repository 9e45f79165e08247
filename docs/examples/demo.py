"""Compile the examples with tessiq on the CPU, check them against eager in float64, and print what was decided.

Run as `make demo`, or `python docs/examples/demo.py [NAME …]`. Ends with exit status 1 when a result is off or fewer
kernels were generated than `counts.toml` states.
"""

from __future__ import annotations

import argparse
import sys

import torch
from checks import EXAMPLES, Outcome, Phase, least_kernels, run_example

LIMIT = 1e-5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*EXAMPLES, []], help=f"of {', '.join(EXAMPLES)}; default all")
    parser.add_argument("--explain", action="store_true", help="print the whole explanation of every graph")
    arguments = parser.parse_args()
    torch.set_num_threads(min(2, torch.get_num_threads()))

    header = (
        f"{'example':<20} {'phase':<9} {'kernels':>7} {'library':>7} {'views':>5} {'ATen':>4} {'error':>9}  verdict"
    )
    print(header)
    print("-" * len(header))
    failed = False
    for name in arguments.names or EXAMPLES:
        for outcome in run_example(name):
            verdict = judge(outcome)
            failed |= verdict != "ok"
            counts = outcome.explanation.counts
            print(
                f"{name:<20} {outcome.phase.value:<9} {counts.kernels:>7} {counts.library_kernels:>7} "
                f"{counts.views:>5} {counts.unclaimed:>4} {outcome.error:>9.1e}  {verdict}"
            )
            if arguments.explain:
                print(outcome.explanation)
    print()
    print(
        f"error: norm of the difference to eager in float64 over its norm, the greatest of all tensors; limit {LIMIT:g}"
    )
    print(f"training: outputs and every gradient of one step; {Phase.EVAL.value}: outputs, under no_grad")
    print("what was decided, in full: .venv/bin/tessiq explain docs/examples/NAME.py, or --explain here")
    return 1 if failed else 0


def judge(outcome: Outcome) -> str:
    """ "ok", or what is wrong with it."""
    if not outcome.error <= LIMIT:
        return f"WRONG: {outcome.worst} is off by {outcome.error:.1e}"
    least = least_kernels(outcome.name, outcome.phase)
    if outcome.explanation.counts.kernels < least:
        return f"TOO FEW KERNELS: at least {least} are expected"
    return "ok"


if __name__ == "__main__":
    sys.exit(main())
