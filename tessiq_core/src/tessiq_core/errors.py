"""Exceptions at tessiq's edges. Inside the compiler a refusal is a value: see `tessiq_core.decline`.

Every message says who refused, what was expected, what came, and what to do next.
"""

from __future__ import annotations


class TessiqError(Exception):
    """Base of every exception tessiq raises on purpose."""


class InvalidArgument(TessiqError, ValueError):
    """A caller passed something that cannot be accepted: an unknown option, malformed text, a misspelt pass."""


class Unsupported(TessiqError, NotImplementedError):
    """A valid request that nothing here can serve: a missing compiler, a device feature, a newer plugin API."""


class NotFound(TessiqError, LookupError):
    """Something asked for by name does not exist: a target, a device, a plugin, a pass."""


class ResourceExhausted(TessiqError, MemoryError):
    """Memory or another bounded resource ran out."""


class External(TessiqError, RuntimeError):
    """A vendor library, compiler or plugin failed; carries its own message."""


class Internal(TessiqError, AssertionError):
    """A bug in tessiq: an invariant the compiler promised itself does not hold."""
