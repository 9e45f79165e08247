"""Reading text by regular expressions, with errors that point at the place."""

from __future__ import annotations

import json
import re

from tessiq_core.errors import InvalidArgument

_SPACE = re.compile(r"(?:\s|//[^\n]*)+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD = re.compile(r"[\w.:]+")
_SHOWN = re.compile(r'"[^"\n]*"?|[%@]?[\w.]+|[^\s\w]')


class Scanner:
    """A position in a text. Every method skips white space and `//` comments first."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.position = 0

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.position)
        if found:
            self.position = found.end()

    @property
    def at_end(self) -> bool:
        self._skip()
        return self.position == len(self.text)

    def here(self) -> int:
        """The position of the next thing to read; pass it to `error` to point there later."""
        self._skip()
        return self.position

    def peek(self, literal: str) -> bool:
        """True when the text goes on with `literal`."""
        self._skip()
        return self.text.startswith(literal, self.position)

    def peek_word(self, word: str) -> bool:
        """True when the text goes on with `word` and the word ends there."""
        found = _WORD.match(self.text, self.here())
        return found is not None and found.group() == word

    def accept(self, literal: str) -> bool:
        """Read `literal` if it comes next."""
        found = self.peek(literal)
        if found:
            self.position += len(literal)
        return found

    def expect(self, literal: str, purpose: str) -> None:
        """Read `literal`, or fail saying what it was for."""
        if not self.accept(literal):
            raise self.error(f"{literal!r} {purpose}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read what the expression matches here, or nothing."""
        self._skip()
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        return found.group()

    def string(self) -> str | None:
        """Read a JSON string, or nothing where none comes."""
        start = self.here()
        token = self.match(_STRING)
        if token is None:
            return None
        try:
            return str(json.loads(token))
        except ValueError as cause:
            raise self.error("a valid JSON string", start) from cause

    def line_of(self, position: int) -> int:
        """The number, from 1, of the line the position is on."""
        return self.text.count("\n", 0, position) + 1

    def error(self, expected: str, position: int | None = None) -> InvalidArgument:
        """The exception for "expected … but got what stands here"."""
        where = self.here() if position is None else position
        shown = _SHOWN.match(self.text, where)
        return self.failure(f"expected {expected}, got {shown.group() if shown else 'the end of the text'}", where)

    def failure(self, message: str, position: int) -> InvalidArgument:
        """The exception for any message about the text at `position`: source, line, column, the line, a caret."""
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else None].rstrip("\r")
        # Tabs stay tabs under the caret's line, or it would point elsewhere.
        indent = "".join(c if c == "\t" else " " for c in self.text[start:position])
        place = f"{self.source}:{self.line_of(position)}:{position - start + 1}"
        return InvalidArgument(f"tessiq: {place}: {message}\n  {line}\n  {indent}^")
