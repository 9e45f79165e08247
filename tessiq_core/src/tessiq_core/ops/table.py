"""The operation table: rows by name and by spelling. `default_table()` holds the rows of `ops.toml`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.attributes import attribute_key
from tessiq_core.ops.row import Argument, Required, Row
from tessiq_core.ops.schema import check_row, load_rows


class OperationTable:
    """Rows by any of their spellings (`aten.add.Tensor`) and by short name (`add`). Immutable.

    `home` is the torch device the graph's tensors live on (`cpu`, `cuda:0`): a device argument equal to it changes
    nothing. Raises InvalidArgument when two rows have one name or one spelling.
    """

    def __init__(self, rows: Iterable[Row], home: str = "cpu") -> None:
        self._rows = tuple(rows)
        self.home = home
        self._by_name: dict[str, Row] = {}
        for row in self._rows:
            for name in (row.name, *row.spellings):
                if name in self._by_name:
                    other = self._by_name[name]
                    raise InvalidArgument(
                        f"tessiq: operation row {row.name!r} of {row.origin}: {name!r} already means row "
                        f"{other.name!r} of {other.origin}; rename it, or leave that row out"
                    )
                self._by_name[name] = row
        self._fingerprint: str | None = None

    def row(self, op_name: str) -> Row | None:
        """The row `op_name` means, a spelling or a short name; None where there is none."""
        return self._by_name.get(op_name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, op_name: object) -> bool:
        return op_name in self._by_name

    def with_rows(self, rows: Iterable[Row]) -> OperationTable:
        """A table with these rows, a plugin's, beside its own.

        Raises InvalidArgument for a malformed row and for a name or spelling that is taken.
        """
        added = tuple(rows)
        for row in added:
            check_row(row, f"an operation of {row.origin}")
        return OperationTable((*self._rows, *added), self.home)

    def for_home(self, home: str) -> OperationTable:
        """The same rows for graphs whose tensors live on the torch device `home`."""
        return self if home == self.home else OperationTable(self._rows, home)

    def fingerprint(self) -> str:
        """A hash of the home and of everything every row says; part of a recipe's key."""
        if self._fingerprint is None:
            digest = hashlib.sha256(self.home.encode())
            for row in self._rows:
                digest.update(repr(_row_key(row)).encode())
            self._fingerprint = digest.hexdigest()
        return self._fingerprint


def _row_key(row: Row) -> tuple[object, ...]:
    return (
        row.name,
        row.category,
        tuple((spelling, tuple(map(_argument_key, arguments))) for spelling, arguments in row.spellings.items()),
        row.consumes,
        row.expression,
        row.compute,
        row.result,
        row.elements,
        row.reduction,
        row.effect,
        row.origin,
        row.conditions,
        tuple((name, tuple(map(attribute_key, values))) for name, values in row.allows.items()),
        row.averages,
    )


def _argument_key(argument: Argument) -> tuple[object, ...]:
    default = "required" if isinstance(argument.default, Required) else attribute_key(argument.default)
    return (argument.name, default, argument.keyword_only)


@lru_cache(maxsize=1)
def default_table() -> OperationTable:
    """The rows of `ops.toml`, read once, for the home `cpu`."""
    text = resources.files("tessiq_core.ops").joinpath("ops.toml").read_text(encoding="utf-8")
    return OperationTable(load_rows(text))
