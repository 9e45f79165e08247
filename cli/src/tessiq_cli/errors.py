"""How the command reports errors: one paragraph on standard error, exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tessiq_core.errors import TessiqError

EXIT_CODE = 2


@contextmanager
def reported() -> Iterator[None]:
    """Turn tessiq's own errors, and files that cannot be read, into a message and the exit code. Other exceptions are
    bugs, of tessiq or of the user's file, and keep their traceback."""
    try:
        yield
    except TessiqError as error:
        _fail(str(error), error)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"tessiq: cannot read {error.filename}: {error.strerror}", error)


def _fail(message: str, error: Exception) -> None:
    print(message, file=sys.stderr)
    raise SystemExit(EXIT_CODE) from error
