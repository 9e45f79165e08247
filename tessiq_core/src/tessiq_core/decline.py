"""`Decline`: a refusal that is an ordinary answer, kept and shown by `explain`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Decline:
    """Why something was not taken.

    code:   a short stable identifier in kebab-case, such as ``no-row`` or ``element-type``; tests match on it.
    reason: one sentence for a person, naming the argument, type or value that was in the way.
    node:   the name of the node's first result, or "" where no single node is meant.
    """

    code: str
    reason: str
    node: str = ""

    def __str__(self) -> str:
        where = f"%{self.node}: " if self.node else ""
        return f"{where}{self.code}: {self.reason}"
