"""The Dynamo backend: options first, fake mode off, backward refusals kept, nothing left registered."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from tessiq_core.capture import backend as capture_backend
from tessiq_core.capture import tessiq
from tessiq_core.capture.backend import importing, trace
from tessiq_core.errors import External, InvalidArgument, Unsupported
from tessiq_core.runtime.imported import ImportedGraph

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()


def interpreting(module: Any, kind: str) -> Any:
    return lambda arguments: list(torch.fx.Interpreter(module).run(*arguments))


def refusing_backward(error: Exception) -> Any:
    def compiler(module: Any, kind: str) -> Any:
        if kind == "backward":
            raise error
        return interpreting(module, kind)

    return lambda gm, inputs: trace(gm, inputs, compiler)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("error", [Unsupported("tessiq: no such thing"), KeyError("a bug")], ids=["refusal", "bug"])
def test_a_backward_error_is_raised_by_the_backward_pass(dynamic: bool, error: Exception) -> None:
    module = nn.Linear(3, 3)
    result = torch.compile(module, backend=refusing_backward(error), dynamic=dynamic)(torch.randn(4, 3))
    with pytest.raises(type(error), match=str(error.args[0])):
        result.sum().backward()


def test_a_backward_refusal_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    backend = refusing_backward(Unsupported("tessiq: no such thing"))
    with caplog.at_level(logging.ERROR, logger=capture_backend.__name__):
        result = torch.compile(nn.Linear(3, 3), backend=backend, dynamic=True)(torch.randn(4, 3))
        with pytest.raises(Unsupported):
            result.sum().backward()
    ours = [record for record in caplog.records if record.name == capture_backend.__name__]
    assert len(ours) == 1
    assert "no such thing" in ours[0].getMessage()


def test_options_are_read_before_anything_is_compiled() -> None:
    compiled = torch.compile(nn.Linear(2, 2), backend=tessiq, options={"devise": "cpu"})
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="devise"):
            compiled(torch.randn(1, 2))


@pytest.mark.parametrize("refusal", [External, Unsupported])
@pytest.mark.parametrize("grad", [False, True])
def test_a_forward_refusal_is_raised_as_itself(grad: bool, refusal: type[Exception]) -> None:
    def compiler(module: Any, kind: str) -> Any:
        raise refusal(f"tessiq: no {kind}")

    compiled = torch.compile(nn.Linear(2, 2), backend=lambda g, i: trace(g, i, compiler))
    with torch.set_grad_enabled(grad), pytest.raises(refusal, match=r"no (forward|inference)"):
        compiled(torch.randn(1, 2))


def test_the_compiler_makes_real_tensors() -> None:
    made: list[torch.Tensor] = []

    def compile_imported(imported: ImportedGraph) -> Any:
        made.append(torch.ones(3))
        return lambda arguments: [arguments[0] * made[0]]

    backend = lambda gm, inputs: trace(gm, inputs, importing(compile_imported))  # noqa: E731
    result = torch.compile(lambda x: x * 5, backend=backend)(torch.full((3,), 2.0))
    assert type(made[0]) is torch.Tensor
    assert result.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_float_in_the_model_restarts_and_is_not_caught(dynamic: bool) -> None:
    kinds: list[str] = []

    def compiler(module: Any, kind: str) -> Any:
        kinds.append(kind)
        return interpreting(module, kind)

    compiled = torch.compile(lambda x, y: x * y, backend=lambda g, i: trace(g, i, compiler), dynamic=dynamic)
    for y in (0.5, 0.25, 0.125):
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, y), x * y)
    assert set(kinds) == {"inference"}


def test_mutated_inputs_stay_in_an_inference_graph() -> None:
    returned: list[int] = []

    def compile_imported(imported: ImportedGraph) -> Any:
        returned.append(len(imported.outputs.positions))
        from support.capture import run_imported

        return lambda arguments: run_imported(imported, arguments)

    def step(x: torch.Tensor) -> None:
        x.add_(1)

    x = torch.zeros(3)
    with torch.no_grad():
        torch.compile(step, backend=lambda g, i: trace(g, i, importing(compile_imported)))(x)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert returned == [0]


def test_importing_capture_does_not_import_aot_autograd() -> None:
    code = (
        "import sys, tessiq_core.capture; "
        "print([m for m in ('torch._dynamo', 'torch._functorch.aot_autograd', 'torch._inductor') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
