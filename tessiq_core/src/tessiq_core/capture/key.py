"""The key of a traced graph: a hash of everything in it that a recipe depends on.

The key is a SHA-256 over a canonical text of the FX graph, written as it is walked; never of the IR, which forgets
things. It says nothing of what is outside the graph (target, options, plugins, precision, …): the recipe cache adds
that. Names of arguments and nodes, hints of symbolic sizes, storage offsets and alignment are not in it: Dynamo guards
neither of the last two, so a recipe must hold for all of them.

The parts, in `KEY_PARTS`; leaving any of them out calls some two graphs equal that are not:

- `kind`: forward, backward or inference. The saved values that leave a partition are among its outputs.
- `operator`: which operator, overload, higher-order operator or Python function each node calls.
- `operands`: which node, by position in the graph, each argument is. What a `copy_` writes to shows here.
- `arguments`: the arrangement of arguments: positions, keywords, nesting, None, strings, dtypes, layouts, devices.
- `numbers`: the numbers among the arguments.
- `number-types`: whether a number is a bool, an int, a float or a complex: 1, 1.0 and True differ.
- `float-bits`: floats by their bits: 0.0 and -0.0 differ.
- `dtype`, `shape`, `strides`, `device`, `layout` of every recorded tensor; sizes and strides as expressions over
  symbols renamed by first use; the layout with the conjugate and negative bits.
- `scalars`: of every recorded number whether it is int, float or bool, and which expression.
- `constants`: lifted tensors by content; other objects by identity.
- `subgraphs`: the whole text of each subgraph.
- `symbols`: the range of every symbol, and what it is known to be divisible by.
- `outputs`: what is returned, in order, with None where nothing is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from typing import Any

import torch
from torch._ops import OpOverload

from tessiq_core.capture.constants import content_hash, object_token
from tessiq_core.capture.operators import attribute_of, operator_name
from tessiq_core.capture.symbols import Symbols
from tessiq_core.runtime.element_map import label_of
from tessiq_core.runtime.imported import Kind

KEY_PARTS = (
    "kind",
    "operator",
    "operands",
    "arguments",
    "numbers",
    "number-types",
    "float-bits",
    "dtype",
    "shape",
    "strides",
    "device",
    "layout",
    "scalars",
    "constants",
    "subgraphs",
    "symbols",
    "outputs",
)


def graph_key(module: torch.fx.GraphModule, kind: Kind, *, leave_out: Set[str] = frozenset()) -> str:
    """The key, 64 hexadecimal digits. `leave_out` names parts to skip, so that a test can show what each is for."""
    symbols = Symbols()
    symbols.see_inputs(node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder")
    writer = _KeyWriter(symbols, leave_out)
    writer.put("kind", kind)
    writer.graph(module.graph)
    writer.put("symbols", "; ".join(symbols.facts()))
    return writer.digest.hexdigest()


class _KeyWriter:
    def __init__(self, symbols: Symbols, leave_out: Set[str]) -> None:
        self.digest = hashlib.sha256()
        self.symbols = symbols
        self.leave_out = leave_out
        self.numbers: dict[torch.fx.Node, int] = {}

    def put(self, part: str, text: str) -> None:
        """Write one part; the length in front keeps any two sequences of parts apart."""
        if part not in self.leave_out:
            encoded = text.encode()
            self.digest.update(b"%d:%b\n" % (len(encoded), encoded))

    # -- nodes -------------------------------------------------------------------------------------------------
    def graph(self, graph: torch.fx.Graph) -> None:
        self.digest.update(b"{\n")
        for node in graph.nodes:
            self.digest.update(f"{node.op}\n".encode())
            self.node(node)
            self.numbers[node] = len(self.numbers)
        self.digest.update(b"}\n")

    def node(self, node: torch.fx.Node) -> None:
        match node.op:
            case "get_attr":
                self.attribute(attribute_of(node), node.name)
                return
            case "output":
                self.output(node.args[0])
                return
            case "call_function":
                self.put("operator", self.function(node.target))
                for argument in node.args:
                    self.argument(argument)
                for name, argument in sorted(node.kwargs.items()):
                    self.put("arguments", f"{name}=")
                    self.argument(argument)
            case "call_module" | "call_method":
                self.put("operator", str(node.target))
        self.recorded(node.meta.get("val"))

    def function(self, target: Any) -> str:
        return operator_name(target) or object_token(target)

    def attribute(self, value: object, name: str) -> None:
        if isinstance(value, torch.Tensor):
            self.recorded(value)
            self.put("constants", content_hash(value, name))
        elif isinstance(value, torch.fx.GraphModule):
            if "subgraphs" not in self.leave_out:
                self.graph(value.graph)
        else:
            self.put("constants", object_token(value))

    # -- arguments ---------------------------------------------------------------------------------------------
    def argument(self, argument: Any) -> None:
        if isinstance(argument, torch.fx.Node):
            self.put("operands", f"%{self.numbers[argument]}")
        elif isinstance(argument, bool | int | float | complex):
            self.number(argument)
        elif isinstance(argument, tuple | list):
            self.put("arguments", "[")
            for item in argument:
                self.argument(item)
            self.put("arguments", "]")
        elif isinstance(argument, Mapping):
            self.put("arguments", "{")
            for name, item in argument.items():
                self.put("arguments", f"{name!r}:")
                self.argument(item)
            self.put("arguments", "}")
        elif isinstance(argument, slice):
            self.put("arguments", "slice")
            self.argument((argument.start, argument.stop, argument.step))
        else:
            self.put("arguments", self.word(argument))

    def word(self, argument: Any) -> str:
        if argument is None or isinstance(argument, str):
            return json.dumps(argument)
        label = label_of(argument)
        if label is not None:
            return f"@{label.kind}({label.name})"
        if isinstance(argument, torch.SymInt | torch.SymFloat | torch.SymBool):
            return f"sym {self.symbols.text(argument)}"
        if isinstance(argument, OpOverload):
            return f"@operator({argument})"
        return object_token(argument)

    def number(self, number: bool | int | float | complex) -> None:
        self.put("number-types", type(number).__name__)
        if isinstance(number, complex):
            self.put("numbers", f"{self.bits(number.real)},{self.bits(number.imag)}")
        else:
            self.put("numbers", self.bits(number) if isinstance(number, float) else str(int(number)))

    def bits(self, number: float) -> str:
        # Adding 0.0 turns -0.0 into 0.0: what a comparison of values sees.
        return (number + 0.0 if "float-bits" in self.leave_out else number).hex()

    # -- recorded values ---------------------------------------------------------------------------------------
    def recorded(self, value: object) -> None:
        match value:
            case torch.Tensor():
                self.tensor(value)
            case tuple() | list():
                self.put("arguments", f"({len(value)}")
                for item in value:
                    self.recorded(item)
            case bool() | torch.SymBool() | int() | torch.SymInt() | float() | torch.SymFloat():
                kind = type(value).__name__.removeprefix("Sym").lower()
                self.put("scalars", f"{kind} {self.symbols.text(value)}")
            case _:
                self.put("scalars", type(value).__name__)

    def tensor(self, value: torch.Tensor) -> None:
        self.put("dtype", str(value.dtype))
        self.put("device", str(value.device))
        self.put("layout", f"{value.layout} conj={value.is_conj()} neg={value.is_neg()} nested={value.is_nested}")
        self.put("shape", ",".join([self.symbols.text(size) for size in value.shape]))
        if value.layout is torch.strided and not value.is_nested:
            self.put("strides", ",".join([self.symbols.text(stride) for stride in value.stride()]))

    def output(self, returned: Any) -> None:
        items = returned if isinstance(returned, tuple | list) else (returned,)
        texts = [f"%{self.numbers[item]}" if isinstance(item, torch.fx.Node) else repr(item) for item in items]
        self.put("outputs", ",".join(texts))
