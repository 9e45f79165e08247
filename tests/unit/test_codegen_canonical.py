"""The canonical form: equal for kernels that differ in names, unequal for every other difference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from support.kernels import meaningful_kernels
from tessiq_core.codegen import KernelDescription, canonical, parse_kernel

BASE = """\
kernel @layer_0(d0 < s0, d1 < 2*s1) {
  x = read %x[2*s1*d0 + d1] : f32
  b = read %bias[d1] : f32
  add = add(x, b) in f32 : f32
  m = reduce max(add) over d1 in f32 : f32
  y = mul(m, 1.0) in f32 : f32
  write %y[d0] : f32 = y over d0
  members add, m, y
}"""


def test_renamed_kernels_are_one() -> None:
    renamed = BASE
    for old, new in [
        ("layer_0", "layer_7"),
        ("%x[", "%hidden["),
        ("%bias", "%mul_3"),
        ("%y[", "%z["),
        ("add =", "q ="),
        ("max(add)", "max(q)"),
        ("members add", "members q"),
        ("s1", "s9"),
        ("s0", "s4"),
        ("x = ", "first = "),
        ("add(x,", "add(first,"),
    ]:
        assert old in renamed
        renamed = renamed.replace(old, new)
    assert renamed != BASE
    ours, theirs = canonical(parse_kernel(BASE)), canonical(parse_kernel(renamed))
    assert ours.text == theirs.text
    assert ours.description == theirs.description
    assert dict(theirs.mapping.values) == {"hidden": "v0", "mul_3": "v1", "z": "v2"}
    assert dict(theirs.mapping.symbols) == {"s4": "s0", "s9": "s1"}
    assert dict(theirs.mapping.stages) == {"first": "t0", "b": "t1", "q": "t2", "m": "t3", "y": "t4"}


def test_names_that_are_already_canonical_for_something_else_do_not_clash() -> None:
    swapped = BASE.replace("s0", "S").replace("s1", "s0").replace("S", "s1").replace("%x[", "%v1[")
    assert canonical(parse_kernel(swapped)).text == canonical(parse_kernel(BASE)).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mul(m, 1.0)", "mul(m, 1)"),
        ("mul(m, 1.0)", "mul(m, true)"),
        ("mul(m, 1.0)", "mul(m, 2.0)"),
        ("mul(m, 1.0)", "mul(1.0, m)"),
        ("add(x, b)", "add(b, x)"),
        ("add(x, b)", "sub(x, b)"),
        ("reduce max", "reduce min"),
        ("add(x, b) in f32", "add(x, b) in f64"),
        ("%bias[d1] : f32", "%bias[d1] : bf16"),
        ("%bias[d1]", "%bias[2*d1]"),
        ("%bias[d1]", "%bias[1 + d1]"),
        ("%bias[d1]", "%x[d1]"),
        ("d0 < s0", "d0 < 4"),
        ("d0 < s0", "d0 < s1"),
    ],
)
def test_every_other_difference_shows(old: str, new: str) -> None:
    assert old in BASE
    assert canonical(parse_kernel(BASE.replace(old, new))).text != canonical(parse_kernel(BASE)).text


def test_zeros_of_different_sign_differ() -> None:
    plus, minus = (parse_kernel(BASE.replace("1.0", zero)) for zero in ("0.0", "-0.0"))
    assert plus == minus  # as dataclasses, for 0.0 == -0.0: the text is the identity
    assert canonical(plus).text != canonical(minus).text


@given(meaningful_kernels())
@settings(max_examples=40, deadline=None)
def test_the_canonical_form_is_canonical(kernel: KernelDescription) -> None:
    once = canonical(kernel)
    assert parse_kernel(once.text) == once.description
    assert canonical(once.description).text == once.text
