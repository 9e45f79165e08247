"""Matrix products through `out=`: values, strides kept, and what is declined."""

from __future__ import annotations

import pytest
import torch

from support.emitters import launch
from support.op_torch import node_of_call
from tessiq_core.decline import Decline
from tessiq_core.ir.extent import UNKNOWN
from tessiq_core.ir.graph import Graph
from tessiq_core.ir.types import F32, TensorType
from tessiq_core.ops.table import default_table
from tessiq_cpuref import AtenOut

TABLE = default_table()
BINDING = AtenOut()


def arguments_of(name: str, dtype: torch.dtype, rows: int = 3, inner: int = 4) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(3)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw).to(dtype)

    batch = (2,) if name in ("bmm", "baddbmm") else ()
    product = [random(*batch, rows, inner), random(*batch, inner, 5)]
    return (
        [random(5), *product] if name == "addmm" else [random(2, rows, 5), *product] if name == "baddbmm" else product
    )


@pytest.mark.parametrize("layout", ["packed", "transposed", "gaps"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_products_are_written_in_place_in_the_recorded_strides(name: str, dtype: torch.dtype, layout: str) -> None:
    arguments = arguments_of(name, dtype)
    node, (expected,) = node_of_call(f"aten.{name}.default", arguments)
    assert BINDING.claim(node, TABLE) is None
    assert BINDING.layouts(node, TABLE) == (None,) * len(arguments)
    kernel = BINDING.build(node, TABLE)
    assert kernel.origin == "aten-out"
    assert kernel.members == (node.results[0].name,)
    match layout:
        case "transposed":
            out = torch.full_like(expected.mT.contiguous(), 9).mT
        case "gaps":
            out = torch.full([2 * extent for extent in expected.shape], 9.0, dtype=dtype)[..., 1::2, ::2]
            out = out[:2] if expected.dim() == 3 else out
        case _:
            out = torch.full_like(expected, 9)
    strides, address = out.stride(), out.data_ptr()
    launch(kernel, arguments, [out])
    assert (out.stride(), out.data_ptr()) == (strides, address)
    torch.testing.assert_close(out, expected)


def test_no_inner_element_gives_zeros() -> None:
    arguments = arguments_of("mm", torch.float32, inner=0)
    node, _ = node_of_call("aten.mm.default", arguments)
    out = torch.full((3, 5), 9.0)
    launch(BINDING.build(node, TABLE), arguments, [out])
    assert torch.equal(out, torch.zeros(3, 5))


def test_a_value_read_twice_is_one_input() -> None:
    graph = Graph()
    x = graph.add_parameter("x", TensorType(F32, (3, 3)))
    node = graph.append("aten.mm.default", [x, x], [("y", TensorType(F32, (3, 3)))])
    kernel = BINDING.build(node, TABLE)
    assert [operand.value for operand in kernel.inputs] == ["x"]
    value, out = torch.randn(3, 3, requires_grad=True), torch.empty(3, 3)
    launch(kernel, [value], [out])
    assert torch.equal(out, (value @ value).detach())


def test_declines() -> None:
    def code(spelling: str, *arguments: object, **keywords: object) -> str:
        node, _ = node_of_call(spelling, list(arguments), keywords)
        declined = BINDING.claim(node, TABLE)
        return declined.code if isinstance(declined, Decline) else ""

    a = torch.ones(3, 3)
    assert code("aten.mm.default", a, a) == ""
    assert code("aten.addmm.default", a, a, a, beta=1, alpha=1) == ""
    assert code("aten.addmm.default", a, a, a, alpha=2) == "argument"
    assert code("aten.mm.default", a.long(), a.long()) == "element-type"
    assert code("aten.relu.default", a) == "not-a-product"
    assert code("aten.cumsum.default", a, 0) == "no-row"


def test_unknown_sizes_and_overlapping_results_are_declined() -> None:
    for type, expected in (
        (TensorType(F32, (3, UNKNOWN)), "unknown-extent"),
        (TensorType(F32, (3, 3), (0, 1)), "overlapping-output"),
    ):
        graph = Graph()
        x = graph.add_parameter("x", TensorType(F32, (3, 3)))
        declined = BINDING.claim(graph.append("aten.mm.default", [x, x], [("y", type)]), TABLE)
        assert isinstance(declined, Decline)
        assert declined.code == expected
