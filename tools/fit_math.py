"""Fits the polynomials of the C++ emitter's float32 functions and writes them as a Python module.

    .venv/bin/python tools/fit_math.py            # rewrite tessiq_cpuref/src/tessiq_cpuref/cpp/coefficients.py
    .venv/bin/python tools/fit_math.py --check    # exit 1 when the checked-in module differs

Method: Lawson's iteration. A weighted least-squares fit on Chebyshev nodes is repeated, each time multiplying a node's
weight by its error, until the largest error is spread evenly: the minimax polynomial. Coefficients are rounded to
float32 one after the other, lowest degree first, and the rest is fitted again after each, so that later ones absorb
the earlier ones' rounding. All arithmetic is mpmath's with 160 bits; the result does not depend on the machine.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpmath import mp, mpf

TARGET = Path(__file__).resolve().parent.parent / "tessiq_cpuref/src/tessiq_cpuref/cpp/coefficients.py"
NODES = 48
ROUNDS = 16

mp.prec = 160


def to_float32(value: mpf) -> float:
    """The float32 nearest to `value`, as a Python float."""
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


# -log(erfc(1)) as a float32; the polynomial holds what its rounding left.
ERFC_START = mpf(to_float32(-mp.log(mp.erfc(mpf(1)))))


@dataclass(frozen=True)
class Fit:
    """Approximate `function` on [low, high] by a polynomial of `degree`; `weight` turns its error into a relative one.

    `meaning` is the formula the C text uses it in.
    """

    name: str
    function: Callable[[mpf], mpf]
    weight: Callable[[mpf], mpf]
    low: mpf
    high: mpf
    degree: int
    meaning: str


def _exp_tail(r: mpf) -> mpf:
    return (mp.expm1(r) - r) / r**2


def _log_tail(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / (s * z)


def _tanh_tail(z: mpf) -> mpf:
    x = mp.sqrt(z)
    return (mp.tanh(x) - x) / (x * z)


def _erf_center(z: mpf) -> mpf:
    x = mp.sqrt(z)
    return (mp.erf(x) - x) / x


FITS = (
    Fit(
        "EXP",
        _exp_tail,
        lambda r: r**2 / abs(mp.expm1(r)),
        -mp.log(2) / 2 * mpf("1.001"),
        mp.log(2) / 2 * mpf("1.001"),
        5,
        "exp(r) = 1 + (r + r*r*P(r)) for |r| <= log(2)/2",
    ),
    Fit(
        "LOG",
        _log_tail,
        lambda z: z,
        mpf(0),
        ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001"),
        3,
        "log(1+f) = 2*s + s*z*P(z), s = f/(2+f), z = s*s, for 1+f in [sqrt(1/2), sqrt(2)]",
    ),
    Fit(
        "TANH",
        _tanh_tail,
        lambda z: mp.sqrt(z) * z / mp.tanh(mp.sqrt(z)),
        mpf(0),
        mpf("0.625") ** 2,
        4,
        "tanh(x) = x + x*z*P(z), z = x*x, for |x| <= 0.625",
    ),
    Fit(
        "ERF",
        _erf_center,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        mpf(0),
        mpf(1),
        6,
        "erf(x) = x + x*P(z), z = x*x, for |x| <= 1",
    ),
    Fit(
        "ERFC",
        lambda t: -mp.log(mp.erfc(1 + t)) - ERFC_START,
        lambda t: mp.erfc(1 + t) / mp.erf(1 + t),
        mpf(0),
        mpf(3),
        6,
        "erf(x) = 1 - exp(-(ERFC_START + P(t))), t = x - 1, for 1 <= x <= 4",
    ),
)


def hex_text(value: float) -> str:
    """The exact hexadecimal spelling without trailing zeros: `0x1.8p+1`."""
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def _nodes(low: mpf, high: mpf) -> list[mpf]:
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * NODES)) for i in range(NODES)]


def _solve(points: list[mpf], values: list[mpf], weights: list[mpf], powers: range) -> list[mpf]:
    """Coefficients of x**p for p in `powers` that minimise sum((w * (value - polynomial))**2)."""
    rows = [[w * x**p for p in powers] for x, w in zip(points, weights, strict=True)]
    size = len(powers)
    normal = mp.matrix(size, size)
    right = mp.matrix(size, 1)
    for row, value, weight in zip(rows, values, weights, strict=True):
        for i in range(size):
            right[i] += row[i] * weight * value
            for j in range(i, size):
                normal[i, j] += row[i] * row[j]
    for i in range(size):
        for j in range(i):
            normal[i, j] = normal[j, i]
    return list(mp.lu_solve(normal, right))


def _lawson(points: list[mpf], values: list[mpf], weights: list[mpf], powers: range) -> tuple[list[mpf], mpf]:
    """The best coefficients of Lawson's iteration, and the largest weighted error they have on the points."""
    emphasis = [mpf(1)] * len(points)
    best: tuple[list[mpf], mpf] | None = None
    for _ in range(ROUNDS):
        combined = [w * mp.sqrt(e) for w, e in zip(weights, emphasis, strict=True)]
        solution = _solve(points, values, combined, powers)
        errors = [
            abs(w * (v - sum(c * x**p for c, p in zip(solution, powers, strict=True))))
            for x, v, w in zip(points, values, weights, strict=True)
        ]
        worst = max(errors)
        if best is None or worst < best[1]:
            best = (solution, worst)
        total = sum(e * r for e, r in zip(emphasis, errors, strict=True))
        if total == 0:
            break
        emphasis = [e * r / total * len(points) for e, r in zip(emphasis, errors, strict=True)]
    assert best is not None
    return best


def fit(task: Fit) -> tuple[list[float], float]:
    """float32 coefficients, lowest degree first, and the largest weighted error on the nodes after rounding."""
    points = _nodes(task.low, task.high)
    weights = [task.weight(x) for x in points]
    rest = [task.function(x) for x in points]
    coefficients: list[float] = []
    for power in range(task.degree + 1):
        solution, _ = _lawson(points, rest, weights, range(power, task.degree + 1))
        coefficients.append(to_float32(solution[0]))
        rest = [v - mpf(coefficients[-1]) * x**power for v, x in zip(rest, points, strict=True)]
    return coefficients, float(max(abs(w * v) for w, v in zip(weights, rest, strict=True)))


def render() -> str:
    """The text of the coefficients module."""
    lines = [
        '"""float32 polynomial coefficients, lowest degree first. Written by `tools/fit_math.py`; do not edit."""',
        "",
        "from __future__ import annotations",
    ]
    for task in FITS:
        coefficients, error = fit(task)
        lines += ["", f"# {task.meaning};", f"# largest relative error of the polynomial {error:.2g}."]
        if task.name == "ERFC":
            lines += [f'ERFC_START = "{hex_text(float(ERFC_START))}"']
        lines += [f"{task.name} = ("]
        lines += [f'    "{hex_text(value)}",' for value in coefficients]
        lines += [")"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Fit the C++ emitter's float32 polynomials.")
    parser.add_argument("--check", action="store_true", help="compare with the checked-in module, write nothing")
    check = parser.parse_args().check
    text = render()
    if check:
        if not TARGET.exists() or TARGET.read_text() != text:
            print(f"{TARGET} is not what {Path(__file__).name} writes; run it without --check", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
