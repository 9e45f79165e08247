"""The key of a traced graph: what must differ differs, what must not does not, and every part is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn

from support.capture import Capture, capture
from tessiq_core.capture.constants import content_hash, object_token
from tessiq_core.capture.key import KEY_PARTS, graph_key
from tessiq_core.errors import InvalidArgument
from tessiq_core.runtime.imported import Kind

torch.set_num_threads(1)
aten = torch.ops.aten


@dataclass
class Case:
    """One graph: its kind, the recorded values of its inputs, and a function that adds nodes and returns outputs."""

    body: Callable[..., Any]
    inputs: list[Any] = field(default_factory=lambda: [torch.zeros(2, 3), torch.zeros(2, 3)])
    kind: Kind = "inference"
    names: tuple[str, ...] = ("a", "b", "c")

    def module(self) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        placeholders = []
        for name, value in zip(self.names, self.inputs, strict=False):
            node = graph.placeholder(name)
            node.meta["val"] = value
            placeholders.append(node)
        root = nn.Module()
        graph.output(self.body(graph, root, *placeholders))
        return torch.fx.GraphModule(root, graph)

    def key(self, *left_out: str) -> str:
        return graph_key(self.module(), self.kind, leave_out=frozenset(left_out))


def call(graph: torch.fx.Graph, target: Any, *args: Any, val: Any = None, **kwargs: Any) -> torch.fx.Node:
    node = graph.call_function(target, args, kwargs)
    node.meta["val"] = torch.zeros(2, 3) if val is None else val
    return node


def scaled(number: Any) -> Callable[..., Any]:
    return lambda g, root, a, b: (call(g, aten.mul.Tensor, a, number),)


def with_constant(tensor: Any) -> Callable[..., Any]:
    def body(g: torch.fx.Graph, root: nn.Module, a: torch.fx.Node, b: torch.fx.Node) -> Any:
        root.constant = tensor
        return (call(g, aten.mul.Tensor, a, g.get_attr("constant")),)

    return body


def with_subgraph(target: Any) -> Callable[..., Any]:
    inner = Case(lambda g, root, a: (call(g, target, a),), [torch.zeros(2, 3)]).module()

    def body(g: torch.fx.Graph, root: nn.Module, a: torch.fx.Node, b: torch.fx.Node) -> Any:
        root.inner = inner
        return (call(g, torch.ops.higher_order.cond, a, g.get_attr("inner"), g.get_attr("inner"), (b,)),)

    return body


def relu(g: torch.fx.Graph, root: nn.Module, a: torch.fx.Node, b: torch.fx.Node) -> Any:
    return (call(g, aten.relu.default, a, val=a.meta["val"]),)


def of(value: Any) -> Case:
    return Case(relu, [value, torch.zeros(1)])


def symbolic(minimum: int = 2, maximum: int = 1000, fact: str | None = None) -> torch.Tensor:
    """A fake tensor with one symbolic axis of a given range; `fact` is something the tracer is told of it."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    fake = mode.from_tensor(torch.zeros(16, 3), symbolic_context=context, source=source("x"))
    (free,) = fake.shape[0].node.expr.free_symbols
    environment.constrain_symbol_range(free, compiler_min=minimum, compiler_max=maximum)
    if fact:
        from torch.utils._sympy.functions import Mod

        environment.divisible.add(Mod(free, int(fact)))
    return fake


def source(name: str) -> Any:
    from torch._dynamo.source import ConstantSource

    return ConstantSource(name)


PAIRS: dict[str, tuple[str, Case, Case]] = {
    "kind": ("kind", Case(relu), Case(relu, kind="forward")),
    "operator": ("operator", Case(relu), Case(lambda g, r, a, b: (call(g, aten.neg.default, a),))),
    "overload": ("operator", Case(scaled(2)), Case(lambda g, r, a, b: (call(g, aten.mul.Scalar, a, 2),))),
    "operands": (
        "operands",
        Case(lambda g, r, a, b: (call(g, aten.sub.Tensor, a, b),)),
        Case(lambda g, r, a, b: (call(g, aten.sub.Tensor, b, a),)),
    ),
    "written input": (
        "operands",
        Case(lambda g, r, a, b: (call(g, aten.copy_.default, a, call(g, aten.add.Tensor, a, b)) and a,)),
        Case(lambda g, r, a, b: (call(g, aten.copy_.default, b, call(g, aten.add.Tensor, a, b)) and a,)),
    ),
    "keyword": (
        "arguments",
        Case(lambda g, r, a, b: (call(g, aten.div.Tensor_mode, a, b, rounding_mode="floor"),)),
        Case(lambda g, r, a, b: (call(g, aten.div.Tensor_mode, a, b, rounding_mode=None),)),
    ),
    "nesting": (
        "arguments",
        Case(lambda g, r, a, b: (call(g, aten.sum.dim_IntList, a, [0], True),)),
        Case(lambda g, r, a, b: (call(g, aten.sum.dim_IntList, a, [0, True]),)),
    ),
    "argument dtype": (
        "arguments",
        Case(lambda g, r, a, b: (call(g, aten._to_copy.default, a, dtype=torch.float64),)),
        Case(lambda g, r, a, b: (call(g, aten._to_copy.default, a, dtype=torch.float16),)),
    ),
    "number": ("numbers", Case(scaled(2)), Case(scaled(3))),
    "1 and True": ("number-types", Case(scaled(1)), Case(scaled(True))),
    "1 and 1.0": ("numbers", Case(scaled(1)), Case(scaled(1.0))),
    "zeros": ("float-bits", Case(scaled(0.0)), Case(scaled(-0.0))),
    "complex": ("numbers", Case(scaled(1j)), Case(scaled(2j))),
    "dtype": ("dtype", of(torch.zeros(2, 3)), of(torch.zeros(2, 3, dtype=torch.int32))),
    "shape": ("shape", of(torch.zeros(2, 3)), of(torch.zeros(4, 3))),
    "strides": ("strides", of(torch.zeros(3, 3)), of(torch.zeros(3, 3).t())),
    "device": ("device", of(torch.zeros(2, 3)), of(torch.zeros(2, 3, device="meta"))),
    "layout": ("layout", of(torch.zeros(3, dtype=torch.complex64)), of(torch.zeros(3, dtype=torch.complex64).conj())),
    "scalars": ("scalars", of(3), of(3.0)),
    "constants": ("constants", Case(with_constant(torch.zeros(3))), Case(with_constant(torch.ones(3)))),
    "subgraphs": ("subgraphs", Case(with_subgraph(aten.sin.default)), Case(with_subgraph(aten.cos.default))),
    "range": ("symbols", of(symbolic(maximum=1000)), of(symbolic(maximum=64))),
    "divisible": ("symbols", of(symbolic()), of(symbolic(fact="8"))),
    "outputs": ("outputs", Case(lambda g, r, a, b: (a, b)), Case(lambda g, r, a, b: (b, a))),
    "None output": ("outputs", Case(lambda g, r, a, b: (a, None)), Case(lambda g, r, a, b: (a, b))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_different_graphs_have_different_keys(name: str) -> None:
    _, first, second = PAIRS[name]
    assert first.key() == first.key()
    assert first.key() != second.key()


# Pairs that the text of another part happens to keep apart too.
ALSO_ELSEWHERE = {
    "1 and 1.0": ("number-types",),
    "nesting": ("number-types",),
    "written input": (),
}


@pytest.mark.parametrize("name", PAIRS)
def test_leaving_the_part_out_is_a_wrong_hit(name: str) -> None:
    part, first, second = PAIRS[name]
    left_out = (part, *ALSO_ELSEWHERE.get(name, ()))
    assert first.key(*left_out) == second.key(*left_out)


def test_every_part_has_a_pair() -> None:
    assert {part for part, _, _ in PAIRS.values()} == set(KEY_PARTS)


def test_names_offsets_and_hints_do_not_matter() -> None:
    plain = Case(relu)
    assert plain.key() == Case(relu, names=("first", "second")).key()
    offset = torch.zeros(16)[4:10].view(2, 3)
    assert of(torch.zeros(2, 3)).key() == of(offset).key()
    assert of(symbolic()).key() == of(symbolic()).key()


def test_symbols_are_named_by_first_use_not_by_the_program() -> None:
    def f(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b) + 1

    def g(some: torch.Tensor, thing: torch.Tensor) -> torch.Tensor:
        return torch.relu(some @ thing) + 1

    first = capture(f, torch.randn(3, 5), torch.randn(5, 7), dynamic=True)
    second = capture(g, torch.randn(11, 13), torch.randn(13, 4), dynamic=True)
    assert first.imported[0].symbols != second.imported[0].symbols
    assert [i.key for i in first.imported] == [i.key for i in second.imported]


def test_equal_sizes_give_another_graph_than_different_ones() -> None:
    def f(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.unsqueeze(0) * b.unsqueeze(1)

    square = capture(f, torch.randn(5), torch.randn(5), dynamic=True)
    oblong = capture(f, torch.randn(5), torch.randn(7), dynamic=True)
    assert square.imported[0].key != oblong.imported[0].key


def test_a_tensor_constant_and_a_range_from_a_program() -> None:
    keys = []
    for values in ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]):
        seen = capture(lambda x, values=values: x + torch.tensor(values), torch.randn(2))
        keys.append(seen.imported[0].key)
    assert keys[0] == keys[1] != keys[2]
    keys = []
    for most in (100, 64):
        torch._dynamo.reset()
        x, seen = torch.randn(6, 3), Capture()
        torch._dynamo.mark_dynamic(x, 0, min=2, max=most)
        torch.compile(lambda x: x * 2, backend=seen)(x)
        keys.append(seen.imported[0].key)
    assert keys[0] != keys[1]


PROGRAM = """
import torch
from support.capture import capture
layer = torch.nn.Linear(3, 4)
seen = capture(layer, torch.randn(5, 3), dynamic=True)
print([imported.key for imported in seen.imported])
"""


@pytest.mark.slow
def test_the_same_in_every_process(request: pytest.FixtureRequest) -> None:
    import os

    keys = set()
    path = os.pathsep.join([str(request.config.rootpath / "tests"), os.environ.get("PYTHONPATH", "")])
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        keys.add(done.stdout)
    assert len(keys) == 1


# -- content ---------------------------------------------------------------------------------------------------------
def test_content_is_read_again_after_a_write() -> None:
    tensor = torch.zeros(3)
    before = content_hash(tensor, "c")
    assert content_hash(torch.zeros(3), "c") == before
    tensor.add_(1)
    assert content_hash(tensor, "c") == content_hash(torch.ones(3), "c") != before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (torch.zeros(4), torch.zeros(2, 2)),
        (torch.zeros(2, 2), torch.zeros(2, 2).t()[:, :1].expand(2, 2)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.zeros(0), torch.zeros(0, 1)),
        (torch.tensor([1j]), torch.tensor([1j]).conj()),
    ],
)
def test_content_tells_apart(first: torch.Tensor, second: torch.Tensor) -> None:
    assert content_hash(first, "c") != content_hash(second, "c")


def test_a_view_hashes_its_own_elements() -> None:
    base = torch.arange(8.0)
    assert content_hash(base[4:6], "c") == content_hash(torch.tensor([4.0, 5.0]), "c")
    assert content_hash(base[::2], "c") != content_hash(base[:4], "c")


def test_inference_tensors_are_hashed_each_time() -> None:
    with torch.inference_mode():
        tensor = torch.zeros(3)
        before = content_hash(tensor, "c")
        tensor.add_(1)
        assert content_hash(tensor, "c") != before


def test_a_fake_constant_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="'lifted'"):
        content_hash(torch.zeros(3, device="meta"), "lifted")


def test_tokens_are_never_shared() -> None:
    class Thing:
        pass

    first, second = Thing(), Thing()
    assert object_token(first) == object_token(first) != object_token(second)
    sparse = torch.eye(2).to_sparse()
    assert content_hash(sparse, "c") == content_hash(sparse, "c") != content_hash(sparse.clone(), "c")
    assert object_token((1, 2)) != object_token((1, 2))  # cannot be held weakly
