"""Compiling, and a backward pass on CPU tensors, register nothing with PyTorch. In fresh processes: state is global."""

from __future__ import annotations

import subprocess
import sys
import textwrap

COMPILE = textwrap.dedent(
    """
    import os, sys, threading
    import torch

    def native_threads():
        return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()

    torch.set_num_threads(1)

    def step(backend):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
        compiled = torch.compile(model, backend=backend)
        compiled(torch.randn(5, 8)).square().mean().backward()
        return model

    # Once with a backend that does nothing, so that the threads autograd and Dynamo start anyway are there.
    step("aot_eager")
    torch._dynamo.reset()
    accelerator = torch.accelerator.current_accelerator()
    before = native_threads(), threading.active_count()
    step("tessiq")
    after = native_threads(), threading.active_count()
    """
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", COMPILE + textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_accelerator_no_name_no_thread() -> None:
    out = run(
        """
        print(before == after, before, after)
        print(torch.accelerator.current_accelerator() == accelerator)
        print(torch._C._get_privateuse1_backend_name())
        print(hasattr(torch, "tessiq"))
        """
    ).splitlines()
    assert out[0].startswith("True"), out[0]
    assert out[1:] == ["True", "privateuseone", "False"]


def test_another_device_can_still_register() -> None:
    out = run(
        """
        torch.utils.rename_privateuse1_backend("other")
        print(torch._C._get_privateuse1_backend_name())
        """
    )
    assert out.strip() == "other"


def test_importing_tessiq_registers_nothing_either() -> None:
    out = run("import tessiq; print(torch.accelerator.current_accelerator() == accelerator, tessiq.__version__)")
    assert out.split()[0] == "True"
