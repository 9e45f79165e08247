"""A fixed slice of PyTorch's operator and module databases through tessiq; `support.operator_sweep` runs all of it.

The slice is every operator the table has a row for, and a part of the others; the whole takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from support.module_sweep import sweep as sweep_modules
from support.operator_sweep import Settings, Verdict, sweep
from tessiq_core.ops.table import default_table
from tessiq_core.runtime import recipes

PARTS = 24


def _names() -> set[str]:
    """Last parts of the names of everything the table means: `add`, `softmax`."""
    spellings = {spelling for row in default_table() for spelling in row.spellings}
    return {spelling.split(".")[1].strip("_") for spelling in spellings}


ROWS = [op for op in op_db if op.name.rpartition(".")[2] in _names()]
OTHERS = [op for op in op_db if op not in ROWS][::PARTS]


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """One thread; no recipe of an earlier test, and none left to a later one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    recipes.clear()
    yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    recipes.clear()


def settle(verdicts: Iterator[Verdict], at_least: int) -> None:
    """None is wrong or raises, and enough were compared."""
    seen = list(verdicts)
    bad = [str(verdict) for verdict in seen if verdict.verdict in ("wrong", "raises")]
    assert not bad, "\n".join(bad)
    assert sum(verdict.verdict == "ok" for verdict in seen) >= at_least


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_operators_with_a_row(dtype: torch.dtype) -> None:
    settle(sweep(ROWS, [dtype], 1, Settings()), 10)


def test_gradients_of_operators_with_a_row_on_strided_inputs() -> None:
    settle(sweep(ROWS, [torch.float32], 1, Settings(grad=True, noncontiguous=True)), 40)


def test_operators_with_a_row_in_place() -> None:
    settle(sweep(ROWS, [torch.float32], 1, Settings(inplace=True)), 20)


def test_a_part_of_the_other_operators() -> None:
    settle(sweep(OTHERS, [torch.float32], 1, Settings()), 10)
    settle(sweep(OTHERS, [torch.float32], 1, Settings(grad=True)), 5)


def test_a_part_of_the_operators_through_dynamo() -> None:
    settle(sweep(ROWS[::12], [torch.float32], 1, Settings(route="dynamic", grad=True)), 4)


def test_a_part_of_the_modules() -> None:
    settle(sweep_modules(module_db[::24], torch.float32, 1), 6)


def test_a_batch_norm_whose_recorded_statistics_have_another_type_than_the_kernel_returns() -> None:
    # PyTorch's shape function says float32 for bfloat16 statistics; the kernel returns bfloat16.
    chosen = [op for op in op_db if op.name in ("nn.functional.batch_norm", "nn.functional.instance_norm")]
    settle(sweep(chosen, [torch.bfloat16], 2, Settings()), 3)


def test_a_sweep_sees_a_kernel_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessiq_cpuref import operators

    whole = operators.call_row
    monkeypatch.setattr(operators, "call_row", lambda row, operands, compute: whole(row, operands, compute) + 1)
    chosen = [op for op in op_db if op.name in ("add", "exp", "sigmoid")]
    seen = list(sweep(chosen, [torch.float32], 1, Settings(options=(("emitter", "reference"),))))
    assert {verdict.verdict for verdict in seen} == {"wrong"}
