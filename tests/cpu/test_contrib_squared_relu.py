"""torch.ops.tessiq_contrib.squared_relu: against the program written out, its gradient, and PyTorch's own checks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import tessiq_ops_contrib
from tessiq_core.custom_ops import CustomOperation, register
from tessiq_core.errors import InvalidArgument
from tessiq_core.profiling import explain

REWRITE = "contrib.squared-relu"
SPECIAL = (-1.5, -0.0, 0.0, 2.0, 1e-30, 3e38, float("inf"), -float("inf"), float("nan"))
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def written_out(x: torch.Tensor) -> torch.Tensor:
    rectified = x.relu()
    return rectified * rectified


def squared_relu(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.ops.tessiq_contrib.squared_relu(x)
    return result


def assert_same(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True, check_stride=True)
    assert torch.equal(got.signbit(), expected.signbit())


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_strides(dtype):
    x = torch.tensor(SPECIAL, dtype=dtype)
    for tensor in (x, x.reshape(3, 3).t(), x[::2], x[3], x[:0], x[:1].expand(4)):
        assert_same(squared_relu(tensor), written_out(tensor))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_the_program_written_out(dtype):
    gradients = []
    incoming = torch.tensor((1.0, float("inf"), -float("inf"), 0.3, 2.0, 1.0, 1.0, float("inf"), 1.0), dtype=dtype)
    for function in (squared_relu, written_out):
        x = torch.tensor(SPECIAL, dtype=dtype, requires_grad=True)
        function(x).backward(incoming)
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients, rtol=0, atol=0, equal_nan=True)


def test_pytorchs_checks_of_an_operator():
    torch.library.opcheck(torch.ops.tessiq_contrib.squared_relu.default, (torch.randn(3, 4, requires_grad=True),))
    x = torch.linspace(-2, 2, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(squared_relu, (x,))


@pytest.mark.parametrize("order", ["import torch, tessiq_ops_contrib", "import tessiq_ops_contrib, torch"])
def test_importing_the_package_is_enough(order):
    code = f"{order}; assert torch.ops.tessiq_contrib.squared_relu(torch.tensor([-1.0, 3.0])).tolist() == [0, 9]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_registering_again_does_nothing_and_another_one_is_refused():
    (operation,) = tessiq_ops_contrib.OPERATIONS
    register(operation)
    other = replace(operation, expression="$x * $x")
    with pytest.raises(InvalidArgument, match="tessiq_contrib::squared_relu: an operator of this name is registered"):
        register(other)
    with torch.library._scoped_library("tessiq_test_taken", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(InvalidArgument, match="tessiq_test_taken::f: an operator of this name is registered"):
            register(replace(operation, schema="tessiq_test_taken::f(Tensor x) -> Tensor"))


@pytest.mark.parametrize("default", ["1_000.0", "99999999999999999999"])
def test_what_pytorch_refuses_leaves_nothing_behind(default):
    # Two spellings of numbers that Python's literals have and PyTorch's schemas do not.
    bad = CustomOperation(
        schema=f"tessiq_test_bad::f(Tensor x, Scalar k={default}) -> Tensor",
        reference=lambda x, k=0: x + k,
        expression="$x + $k",
        elements=("f32",),
    )
    with pytest.raises(InvalidArgument, match="custom operation tessiq_test_bad::f: PyTorch does not take it: "):
        register(bad)
    assert not hasattr(torch.ops.tessiq_test_bad, "f")


def test_a_registration_that_fails_half_way_is_taken_back(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    operation = replace(tessiq_ops_contrib.OPERATIONS[0], schema="tessiq_test_half::f(Tensor x) -> Tensor")
    with monkeypatch.context() as patch:
        patch.setattr(torch.library, "register_fake", refuse)
        # The exception is held, and through its traceback everything the registration made.
        with pytest.raises(InvalidArgument, match="tessiq_test_half::f: PyTorch does not take it: no") as caught:
            register(operation)
    register(operation)
    assert torch.ops.tessiq_test_half.f(torch.tensor([3.0])).item() == 9
    assert caught.value.__traceback__ is not None


def test_numbers_and_defaults_reach_the_reference():
    operation = CustomOperation(
        schema="tessiq_test_add::f(Tensor x, *, int k=1) -> Tensor",
        reference=lambda x, k=1: x + k,
        expression="$x + $k",
        elements=("f32",),
    )
    register(operation)
    assert torch.ops.tessiq_test_add.f(torch.tensor([1.0]), k=2).item() == 3
    assert torch.ops.tessiq_test_add.f(torch.tensor([1.0])).item() == 2


@pytest.mark.parametrize("emitter", ["cpp", "reference"])
@pytest.mark.parametrize("spelling", ["the operation", "written out"])
def test_compiled_it_fuses_like_a_built_in_operation(emitter, spelling):
    function = {"the operation": squared_relu, "written out": written_out}[spelling]

    def chain(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return function(x + b) * 0.5

    x, b = torch.tensor(SPECIAL).repeat(7, 1), torch.linspace(-1, 1, 9)
    explanation = explain(chain, x, b, options={"emitter": emitter, "rewrites": [REWRITE]})
    assert (explanation.counts.kernels, explanation.counts.unclaimed) == (1, 0)
    assert "squared_relu" in str(explanation)
    compiled = torch.compile(chain, backend="tessiq", options={"emitter": emitter, "rewrites": [REWRITE]})
    assert_same(compiled(x, b), chain(x, b))


def test_compiled_gradients():
    def chain(x: torch.Tensor) -> torch.Tensor:
        return squared_relu(x * 3).sum()

    gradients = []
    for function in (chain, torch.compile(chain, backend="tessiq")):
        x = torch.linspace(-2, 2, 33).requires_grad_()
        function(x).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


def test_integers_which_the_expression_is_not_for_run_the_reference():
    compiled = torch.compile(lambda x: squared_relu(x) + 1, backend="tessiq")
    assert compiled(torch.tensor([-2, 3])).tolist() == [1, 10]


def test_the_rewrite_is_not_applied_unasked():
    explanation = explain(lambda x: written_out(x) * 0.5, torch.randn(8))
    assert "squared_relu" not in str(explanation)
