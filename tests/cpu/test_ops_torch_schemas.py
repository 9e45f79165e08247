"""Every spelling of every row is an operator of the installed PyTorch, with exactly that schema."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.op_torch import node_of_call, overload
from tessiq_core.ir import Attribute, Label
from tessiq_core.ops import REQUIRED, Argument, BoundCall, Required, bind, default_table

TABLE = default_table()
# Names that begin with `tessiq.` are the compiler's own and no operators of PyTorch.
SPELLINGS = [(row, spelling) for row in TABLE for spelling in row.spellings if not spelling.startswith("tessiq.")]


def _default(value: Any) -> Attribute:
    if isinstance(value, list | tuple):
        return tuple(_default(item) for item in value)
    return value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("row", "spelling"), SPELLINGS, ids=[spelling for _, spelling in SPELLINGS])
def test_the_signature_is_torchs(row: Any, spelling: str) -> None:
    schema = overload(spelling)._schema
    expected: list[Argument] = []
    for argument in schema.arguments:
        default: Attribute | Required = REQUIRED
        if argument.has_default_value():
            default = _default(argument.default_value)
        expected.append(Argument(argument.name, default, argument.kwarg_only))
    assert list(row.spellings[spelling]) == expected
    assert [type(a.default) for a in row.spellings[spelling]] == [type(a.default) for a in expected]


@pytest.mark.parametrize(("row", "spelling"), SPELLINGS, ids=[spelling for _, spelling in SPELLINGS])
def test_views_move_and_writes_write(row: Any, spelling: str) -> None:
    schema = overload(spelling)._schema
    writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)
    views = any(result.alias_info is not None for result in schema.returns) and not writes
    assert writes == (row.effect == "writes")
    # _unsafe_view promises no alias in its schema and is a view all the same.
    assert views == (row.category == "movement" and spelling != "aten._unsafe_view.default")
    tagged = torch.Tag.nondeterministic_seeded in overload(spelling).tags
    assert tagged == (row.effect == "random")


def test_calls_made_by_position_by_keyword_and_inside_lists_bind_alike() -> None:
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    for arguments, keywords in (
        ([x, y], {}),
        ([x], {"other": y}),
        ([x, y], {"alpha": 1}),
    ):
        node, _ = node_of_call("aten.add.Tensor", arguments, keywords)
        bound = bind(node, TABLE)
        assert isinstance(bound, BoundCall)
        assert [bound.arguments[name] for name in ("self", "other")] == list(node.operands)
    node, _ = node_of_call("aten.rsub.Scalar", [x, 2.0])
    bound = bind(node, TABLE)
    assert isinstance(bound, BoundCall)
    assert bound.operands == (node.operands[0], 2.0)
    node, _ = node_of_call("aten.clone.default", [x], {"memory_format": torch.contiguous_format})
    bound = bind(node, TABLE)
    assert isinstance(bound, BoundCall)
    assert bound.arguments["memory_format"] == Label("memory_format", "contiguous_format")
