"""FX graphs as AOTAutograd leaves them, imported: run node by node they give eager's results, exactly laid out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from support.capture import Capture, assert_calls_rebuild, capture, run_imported
from tessiq_core.capture.arguments import Inexpressible, encode_call, keep_call
from tessiq_core.capture.importer import import_module
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import HOLE, Label
from tessiq_core.ir.graph import Graph
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.printer import print_graph
from tessiq_core.ir.types import F32, OpaqueType, ScalarType, TensorType
from tessiq_core.ir.verifier import verify
from tessiq_core.runtime.imported import ImportedGraph

torch.set_num_threads(1)
aten = torch.ops.aten


class WrittenOutAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1)
        return weights @ v


def residual() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())


def complex_numbers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = torch.complex(x, x + 1)
    return torch.fft.fft(z).conj().imag, (z * (1 - 2j)).real, torch.view_as_real(z * z)


def constants(x: torch.Tensor) -> torch.Tensor:
    return (x + torch.tensor([1.0, 2.0, 3.0, 4.0]))[torch.tensor([1, 0])]


def conditional(flag: torch.Tensor, x: torch.Tensor) -> Any:
    return torch.cond(flag, lambda y: y.sin() * 2, lambda y: y.cos(), (x,))


def several(x: torch.Tensor) -> tuple[Any, ...]:
    values, _ = torch.topk(x, 2)
    mean = torch.var_mean(x, 1)[1]
    left, *_ = x.split([1, 3], 1)
    return values, mean, left, None, torch.cat([x, x * 2], 1), x.unbind(1)[3]


def odd_layouts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.t() * 2, (x + 1).expand(3, *x.shape), x.new_empty_strided(x.shape, (1, x.shape[0])).copy_(x)


def labels(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    image = x.reshape(1, 2, 2, 2).to(memory_format=torch.channels_last)
    return x.to(torch.float64), torch.zeros(3, dtype=torch.int16, device="cpu") + x.sum().long(), image + 1


def scalars(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(x * -0.0 + float("inf"), min=-1.5, max=float("inf")) + x * True


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    x.add_(1)
    x[0].zero_()
    return y


def eager_checkpoint(x: torch.Tensor) -> torch.Tensor:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(lambda y: torch.sin(y).exp(), x, use_reentrant=False)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "complex": (complex_numbers, lambda: (torch.randn(2, 4),)),
    "constants": (constants, lambda: (torch.randn(2, 4),)),
    "cond": (conditional, lambda: (torch.tensor(True), torch.randn(3))),
    "several": (several, lambda: (torch.randn(2, 4),)),
    "layouts": (odd_layouts, lambda: (torch.randn(2, 4),)),
    "labels": (labels, lambda: (torch.randn(8),)),
    "scalars": (scalars, lambda: (torch.randn(2, 4),)),
    "in-place": (in_place, lambda: (torch.randn(2, 4),)),
    "mlp": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), lambda: (torch.randn(2, 4),)),
    "residual": (residual().eval(), lambda: (torch.randn(1, 2, 5, 5),)),
    "attention": (WrittenOutAttention(), lambda: (torch.randn(2, 3, 8),)),
    "checkpoint": (eager_checkpoint, lambda: (torch.randn(3),)),
}


def check(seen: Capture) -> None:
    assert seen.imported
    for module, imported in zip(seen.modules, seen.imported, strict=True):
        verify(imported.graph)
        text = print_graph(imported.graph)
        assert print_graph(parse_graph(text)) == text
        assert_calls_rebuild(module, imported)
        assert_types_are_recorded(module, imported)


def assert_types_are_recorded(module: torch.fx.GraphModule, imported: ImportedGraph) -> None:
    values = {value.name: value for value in imported.graph.values()}
    for node in module.graph.nodes:
        recorded = node.meta.get("val")
        if not isinstance(recorded, torch.Tensor) or node.name not in values:
            continue
        type = values[node.name].type
        if isinstance(type, TensorType):
            assert len(type.shape) == recorded.dim()
            if all(isinstance(size, int) for size in recorded.shape):
                assert type.shape == tuple(recorded.shape)
                assert recorded.numel() == 0 or type.layout == recorded.stride(), node.name


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("grad", [False, True])
def test_imports_and_runs(name: str, grad: bool) -> None:
    torch.manual_seed(0)
    function, inputs = CASES[name]
    with torch.set_grad_enabled(grad):
        check(capture(function, *inputs()))


def train(module: nn.Module, x: torch.Tensor, dynamic: bool = False) -> Capture:
    """One step, compiled and eager: every gradient and every buffer agrees."""
    import copy

    torch._dynamo.reset()
    reference, seen = copy.deepcopy(module), Capture()
    expected, got = reference(x), torch.compile(module, backend=seen, dynamic=dynamic)(x)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    expected.square().sum().backward()
    got.square().sum().backward()
    for (key, parameter), other in zip(module.named_parameters(), reference.parameters(), strict=True):
        assert parameter.grad is not None, key
        torch.testing.assert_close(parameter.grad, other.grad, rtol=1e-4, atol=1e-5, msg=key)
    for (key, buffer), other in zip(module.named_buffers(), reference.buffers(), strict=True):
        torch.testing.assert_close(buffer, other, msg=key)
    return seen


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), (2, 4)),
        (residual().train(), (2, 2, 5, 5)),
        (residual().eval(), (2, 2, 5, 5)),
        (nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), (2, 3, 16)),
        (WrittenOutAttention(), (2, 3, 8)),
    ],
    ids=["mlp", "residual-train", "residual-eval", "encoder", "attention"],
)
def test_training_step(module: nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    seen = train(module, torch.randn(shape))
    assert [imported.kind for imported in seen.imported] == ["forward", "backward"]
    check(seen)


def test_gradients_nobody_needs_are_none_positions() -> None:
    seen = train(residual().train(), torch.randn(2, 2, 5, 5))
    backward = seen.imported[1]
    assert None in backward.outputs.positions
    assert [p for p in backward.outputs.positions if p is not None] == list(range(len(backward.graph.results)))


def test_buffers_written_in_place_carry_the_effect() -> None:
    seen = train(residual().train(), torch.randn(2, 2, 5, 5))
    writes = [node for node in seen.imported[0].graph.nodes if node.attribute("tessiq.effect") == "writes"]
    assert [node.op for node in writes] == ["aten.copy_.default"] * 3
    assert all(node.operands[0].producer is None for node in writes)


def test_symbolic_sizes_are_operands_and_extents() -> None:
    torch.manual_seed(0)
    seen = train(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), torch.randn(2, 3, 16), dynamic=True)
    check(seen)
    graph = seen.imported[0].graph
    assert [str(p.type.value) for p in graph.parameters if isinstance(p.type, ScalarType)] == ["s0", "s1"]
    text = print_graph(graph)
    assert "operator.mul(%primals_2, %primals_1) : int(s0*s1)" in text
    assert "f32[s0, s1, 16]" in text
    assert "?" not in text


def test_one_symbolic_graph_serves_other_sizes() -> None:
    torch._dynamo.reset()
    module, seen = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), Capture()
    compiled = torch.compile(module, backend=seen, dynamic=True)
    for batch in (2, 5, 7, 11, 13):
        x = torch.randn(batch, 4)
        torch.testing.assert_close(compiled(x), module(x))
    assert [imported.kind for imported in seen.imported] == ["forward", "backward"]


def test_names_and_results() -> None:
    seen = capture(several, torch.randn(2, 4))
    by_op = {node.op: node for node in seen.graph.nodes}
    topk = by_op["aten.topk.default"]
    assert len(topk.results) == 2
    assert topk.results[1].name.startswith("topk_")
    cat = by_op["aten.cat.default"]
    assert print_graph(seen.graph).count("aten.cat.default(%arg0_1, %") == 1
    assert len(cat.operands) == 2
    assert seen.imported[0].outputs.positions.count(None) == 0  # Dynamo keeps None for itself


def test_names_of_unread_results_never_collide() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        first = torch.native_layer_norm(x, [4], None, None, 1e-5)[0]
        return torch.native_layer_norm(first, [4], None, None, 1e-5)[0]

    names = [value.name for value in capture(function, torch.randn(2, 4)).graph.values()]
    assert len(names) == len(set(names))


def test_a_taken_name_is_passed_over() -> None:
    x = torch.randn(2, 4)
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    topk = graph.create_node("call_function", aten.topk.default, (node, 2), name="topk")
    taken = graph.create_node("call_function", aten.neg.default, (node,), name="topk_1")
    node.meta["val"], topk.meta["val"], taken.meta["val"] = x, tuple(torch.topk(x, 2)), -x
    graph.output((taken,))
    imported = import_module(torch.fx.GraphModule(nn.Module(), graph), "inference")
    assert [value.name for value in imported.graph.values()] == ["x", "topk_0", "topk_1_", "topk_1"]


def test_operands_and_holes_follow_the_rule() -> None:
    graph, value = torch.fx.Graph(), Graph()
    nodes = {name: graph.placeholder(name) for name in "abcdefg"}
    values = {node: value.add_parameter(name, TensorType(F32, ())) for name, node in nodes.items()}
    a, b, c, d, e, f, g = nodes.values()
    operands, attributes = encode_call(
        ([a, None, (b,)], c, 1, d), {"zeta": e, "alpha": [f, 2.0], "dtype": torch.int8, "beta": g}, values.__getitem__
    )
    assert [operand.name for operand in operands] == ["c", "d", "a", "b", "f", "g", "e"]
    assert attributes == {
        "0": (HOLE, None, (HOLE,)),
        "2": 1,
        "alpha": (HOLE, 2.0),
        "beta": HOLE,
        "dtype": Label("dtype", "int8"),
        "zeta": HOLE,
    }


def test_a_call_attributes_cannot_hold_keeps_its_structure() -> None:
    graph, value = torch.fx.Graph(), Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    values = {a: value.add_parameter("a", ScalarType("int")), b: value.add_parameter("b", ScalarType("int"))}
    with pytest.raises(Inexpressible):
        encode_call(({"x": a},), {}, values.__getitem__)

    def function(*arguments: Any, **keywords: Any) -> Any:
        return arguments, keywords

    kept, operands = keep_call(function, ({"x": a}, [b, 1]), {"k": slice(a, None, 2)}, values.__getitem__, id)
    assert [operand.name for operand in operands] == ["a", "b", "a"]
    assert kept(10, 20, 30) == (({"x": 10}, (20, 1)), {"k": slice(30, None, 2)})


def test_a_list_of_one_is_marked() -> None:
    seen = capture(conditional, torch.tensor(True), torch.randn(3))
    (node,) = [node for node in seen.graph.nodes if node.op == "higher_order.cond"]
    assert node.attribute("tessiq.returns") == "list"
    assert node.attribute("tessiq.effect") is None
    subgraphs = [label.name for label in node.arguments.values() if hasattr(label, "name")]
    assert all(isinstance(seen.imported[0].constants[name], torch.fx.GraphModule) for name in subgraphs)
    assert len(subgraphs) == 2


def test_only_complex_and_conjugate_values_are_opaque() -> None:
    graph = capture(complex_numbers, torch.randn(2, 4)).graph
    types = {value.name: value.type for value in graph.values()}
    assert types["arg0_1"] == TensorType(F32, (2, 4))
    assert types["complex_1"].element.name == "complex64"  # type: ignore[union-attr]
    assert types["complex_1"].element.is_opaque  # type: ignore[union-attr]
    assert types["_conj"] == OpaqueType("conj complex64")
    assert types["_neg_view"] == OpaqueType("neg f32")
    assert types["view_as_real_1"] == TensorType(F32, (2, 4, 2))


def chain(x: torch.Tensor, *calls: tuple[Any, ...]) -> torch.fx.GraphModule:
    """ATen calls one after another, with the real values recorded, for tensors that Dynamo does not take."""
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = x
    for function, *arguments in calls:
        value = function(node.meta["val"], *arguments)
        node = graph.call_function(function, (node, *arguments))
        node.meta["val"] = value
    graph.output((node,))
    return torch.fx.GraphModule(nn.Module(), graph)


@pytest.mark.filterwarnings("ignore:.*quantize_per_tensor.*:UserWarning")
@pytest.mark.parametrize(
    ("calls", "opaque"),
    [
        ([(aten.to_sparse.default,), (aten.neg.default,), (aten.to_dense.default,)], "sparse_coo f32"),
        ([(aten.quantize_per_tensor.default, 0.1, 0, torch.qint8), (aten.dequantize.self,)], "quantized qint8"),
        ([(aten.to_mkldnn.default,), (aten.to_dense.default,)], "mkldnn f32"),
    ],
    ids=["sparse", "quantized", "mkldnn"],
)
def test_opaque_tensors_leave_the_rest_typed(calls: list[tuple[Any, ...]], opaque: str) -> None:
    x = torch.randn(4, 4)
    module = chain(x, *calls, (aten.add.Tensor, 1))
    imported = import_module(module, "inference")
    types = [value.type for value in imported.graph.values()]
    assert types[0] == types[-1] == types[-2] == TensorType(F32, (4, 4))
    assert set(types[1:-2]) == {OpaqueType(opaque)}
    torch.testing.assert_close(run_imported(imported, [x]), list(module(x)))
    assert_calls_rebuild(module, imported)
    assert print_graph(parse_graph(print_graph(imported.graph))) == print_graph(imported.graph)


def test_random_operators_and_checks_carry_effects() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async(x.sum() < 1e9, "too large")
        return torch.rand(3) + nn.functional.dropout(x, 0.5) + torch.randn_like(x)

    graph = capture(function, torch.randn(3), compare=False).graph
    effects = {node.op: node.attribute("tessiq.effect") for node in graph.nodes}
    assert effects["aten._assert_async.msg"] == "ordered"
    assert effects["aten.rand.default"] == "random"
    assert effects["aten.add.Tensor"] is None
    assert "random" in {effects.get("aten.native_dropout.default"), effects.get("aten.bernoulli.p")}


def test_attention_without_dropout_is_not_random() -> None:
    q = torch.randn(1, 2, 4, 8)
    graph = capture(lambda q: nn.functional.scaled_dot_product_attention(q, q, q), q).graph
    (node,) = [n for n in graph.nodes if "scaled_dot_product" in n.op]
    assert node.attribute("tessiq.effect") is None


def test_sizes_only_known_at_run_time() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        seen = capture(lambda x: (x.nonzero() * 2, torch.zeros(3) + x.sum().item()), torch.randn(4))
    check(seen)
    text = print_graph(seen.graph)
    assert "i64[u0, 1; 1, u0]" in text
    assert "aten._assert_scalar.default" in text


@torch.library.custom_op("tessiq_capture_test::twice", mutates_args=())
def twice(x: torch.Tensor, names: list[int]) -> list[torch.Tensor]:
    return [x * 2, x * len(names)]


@twice.register_fake
def _(x: torch.Tensor, names: list[int]) -> list[torch.Tensor]:
    return [torch.empty_like(x), torch.empty_like(x)]


@torch.library.custom_op("tessiq_capture_test::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


def test_custom_operators() -> None:
    seen = capture(lambda x: twice(x, [1, 2, 3]), torch.randn(3))
    check(seen)
    assert [node.op for node in seen.graph.nodes] == ["tessiq_capture_test.twice.default"]

    def mutating(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        bump(y)
        return y * 2

    seen = capture(mutating, torch.randn(3))
    check(seen)
    node = next(n for n in seen.graph.nodes if n.op.startswith("higher_order.auto_functionalized"))
    assert node.attribute("0") is not None
    assert node.attribute("tessiq.effect") == "ordered"


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
def test_flex_attention_runs_as_one_step() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def attention(q: torch.Tensor) -> torch.Tensor:
        return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score * 2 + i - j)  # type: ignore[no-any-return]

    q = torch.randn(1, 2, 16, 16)
    seen = capture(attention, q)
    node = next(n for n in seen.graph.nodes if n.attribute("tessiq.calls") or "flex_attention" in n.op)
    assert node.op == "operator.call"  # its kernel options are a dict
    assert node.attribute("tessiq.calls") == "higher_order.flex_attention"


def broken_module(make: Callable[[torch.fx.Graph, torch.fx.Node], torch.fx.Node]) -> torch.fx.GraphModule:
    root = nn.Module()
    root.relu = nn.ReLU()
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.randn(2)
    graph.output((make(graph, x),))
    return torch.fx.GraphModule(root, graph)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g, x: g.call_function(torch.ops.aten.relu.default, (x,)), ["%relu", "meta['val']"]),
        (lambda g, x: g.call_module("relu", (x,)), ["%relu", "call_module"]),
        (lambda g, x: g.call_method("relu", (x,)), ["%relu", "call_method"]),
    ],
)
def test_refusals_name_the_node(make: Callable[..., torch.fx.Node], words: list[str]) -> None:
    with pytest.raises(InvalidArgument) as error:
        import_module(broken_module(make), "inference")
    assert all(word in str(error.value) for word in words)


def test_output_spec_is_strict() -> None:
    from tessiq_core.errors import Internal
    from tessiq_core.runtime.imported import OutputSpec

    spec = OutputSpec((0, None, 1, 0, None), ((4, 7),))
    assert spec.gather(["a", "b"]) == ["a", None, "b", "a", 7]
    with pytest.raises(Internal):
        spec.gather(["a"])
    with pytest.raises(Internal):
        spec.gather(["a", "b", "c"])


def test_number_outputs_are_literals() -> None:
    module = broken_module(lambda g, x: x)
    (output,) = [n for n in module.graph.nodes if n.op == "output"]
    (x,) = [n for n in module.graph.nodes if n.op == "placeholder"]
    output.args = ((x, 3, None, x),)
    imported = import_module(module, "inference")
    assert imported.outputs.gather(["t", "t"]) == ["t", 3, None, "t"]
