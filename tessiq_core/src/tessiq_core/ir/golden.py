"""Golden files: a pipeline, a graph, and the graph the pipeline must make of it.

    // RUN: dce,cse
    graph @main(…) { … }
    // -----
    graph @main(…) { … }

A file for the pass `rewrite` gives its patterns first, then the graph after a line `// INPUT`:

    // RUN: rewrite
    // PATTERN silu
    graph @pattern(…) { … }
    // REPLACEMENT
    graph @replacement(…) { … }
    // INPUT
    graph @main(…) { … }
    // -----
    graph @main(…) { … }
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.pattern import RewritePattern

_MARKER = re.compile(r"//\s*(RUN:|PATTERN\b|REPLACEMENT\b|INPUT\b|-----)[ \t]*(.*?)\s*")
_ORDER = re.compile(r"(RUN: )?((PATTERN REPLACEMENT )*INPUT )?(----- )?")


@dataclass(frozen=True)
class Golden:
    """A golden file, or any file with a graph, in its parts.

    pipeline: what follows `// RUN:`, or None where there is no such line.
    patterns: for the pass `rewrite`.
    input:    the graph's text. It starts with as many empty lines as stand before it in the file, so that the line
              numbers in errors are the file's.
    expected: the text after `// -----`, padded likewise, or None where there is no such line.
    """

    pipeline: str | None
    patterns: tuple[RewritePattern, ...]
    input: str
    expected: str | None


def split_golden(text: str, *, source: str = "<text>") -> Golden:
    """The parts of a golden file. A file without any marker is all input.

    Raises InvalidArgument for markers out of order.
    """
    kinds, names, texts = [""], [""], [""]
    for number, line in enumerate(text.split("\n"), 1):
        found = _MARKER.fullmatch(line)
        if found is None:
            texts[-1] += line + "\n"
        else:
            kinds.append(found[1])
            names.append(found[2])
            texts.append("\n" * number)
    # Whatever stands before the first marker is a comment, or the whole input.
    order = "".join(f"{kind} " for kind in kinds[1:])
    if not _ORDER.fullmatch(order) or ("INPUT" in kinds and _has_graph(texts[0] + texts[1])):
        raise InvalidArgument(
            f"tessiq: {source}: expected the lines // RUN: pipeline, then any number of // PATTERN name with "
            f"// REPLACEMENT followed by // INPUT, then // -----, and no graph before // PATTERN; got {order or 'none'}"
        )
    parts = list(zip(kinds, names, texts, strict=True))
    patterns = tuple(
        RewritePattern(name, pattern, replacement)
        for (kind, name, pattern), (_, _, replacement) in pairwise(parts)
        if kind == "PATTERN"
    )
    before_expected = [text for kind, _, text in parts if kind in ("", "RUN:", "INPUT") and _has_graph(text)]
    return Golden(
        pipeline=next((name for kind, name, _ in parts if kind == "RUN:"), None),
        patterns=patterns,
        input=before_expected[-1] if before_expected else "",
        expected=next((text for kind, _, text in parts if kind == "-----"), None),
    )


def _has_graph(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("//") for line in text.splitlines())
