"""The options of `torch.compile(..., backend="tessiq", options={...}, mode=...)`, read and checked once a compile."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tessiq_core.errors import InvalidArgument, Unsupported

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
GRAPHS = ("auto", "on", "off")


@dataclass(frozen=True)
class Options:
    """What a user asked of one compile. Every field is part of the recipe key.

    device:    where to run, as `gpu`, `gpu:1` or `cpu`; None means where the tensors are. Sending the tensors of one
               home to another device is refused until a target can do it.
    rewrites:  names of plugin rewrites to apply. None are applied unasked: what is installed does not change a result.
    graphs:    replay captured device graphs: "auto" (where target and graph allow it), "on" (refused where the target
               cannot) or "off".
    emitter:   the name of the emitter to use; where it is not available the next one serves, and the report says so.
    adopt:     use the home's tensors in place. False makes real transfers to copies on the device's side and back.
    residency: keep device copies of inputs between calls. None means what the target does; nothing is kept today, so
               True is refused and False is what happens anyway.
    emulate_eager_rounding: round after every operator, as eager kernels do. Every kernel does already, so True and
               False give the same code: False allows less rounding, it does not promise it.
    verify:    compare each generated kernel, at every launch, with the reference emitter on the same inputs.
    mode:      as torch.compile spells it. "reduce-overhead" asks for captured graphs where the target can; the
               "max-autotune" modes ask for a search over configurations, and each kernel has one configuration.
    """

    device: str | None = None
    rewrites: tuple[str, ...] = ()
    graphs: str = "auto"
    emitter: str | None = None
    adopt: bool = True
    residency: bool | None = None
    emulate_eager_rounding: bool = True
    verify: bool = False
    mode: str = "default"

    def key(self) -> str:
        """A text in which every field shows; two options with equal text ask for the same."""
        return ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _graphs(value: object) -> str | None:
    return value if isinstance(value, str) and value in GRAPHS else None


def _names(value: object) -> tuple[str, ...] | None:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None


@dataclass(frozen=True)
class _Form:
    """How an option is read: `read` answers None for a value of the wrong type, `expected` says what it takes."""

    read: Callable[[object], Any]
    expected: str


_FORMS: dict[str, _Form] = {
    "device": _Form(_text, "a device as 'gpu', 'gpu:1' or 'cpu'"),
    "rewrites": _Form(_names, "a list of names of rewrites"),
    "graphs": _Form(_graphs, "one of 'auto', 'on', 'off'"),
    "emitter": _Form(_text, "the name of an emitter, such as 'cpp' or 'reference'"),
    "adopt": _Form(_flag, "True or False"),
    "residency": _Form(_flag, "True or False"),
    "emulate_eager_rounding": _Form(_flag, "True or False"),
    "verify": _Form(_flag, "True or False"),
}
OPTION_NAMES = tuple(_FORMS)


def parse_options(options: Mapping[str, object] | None = None, mode: str | None = None) -> Options:
    """The checked options of one compile; a value of None means the option's default.

    Raises InvalidArgument for an unknown option or mode (naming the valid ones) or a value of the wrong type, and
    Unsupported for a value that is valid but that nothing here can do yet.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidArgument(
            f"tessiq: options must be a mapping from names to values, got {type(options).__name__}; "
            f"the options are {', '.join(OPTION_NAMES)}"
        )
    read: dict[str, Any] = {}
    for name, value in (options or {}).items():
        form = _FORMS.get(name)
        if form is None:
            raise InvalidArgument(
                f"tessiq: there is no option {name!r}{_hint(str(name), OPTION_NAMES)} "
                f"the options are {', '.join(OPTION_NAMES)}"
            )
        if value is None:
            continue
        read[name] = form.read(value)
        if read[name] is None:
            raise InvalidArgument(f"tessiq: option {name!r} takes {form.expected}, got {value!r}")
    if mode is not None and mode not in MODES:
        raise InvalidArgument(
            f"tessiq: there is no mode {mode!r}{_hint(str(mode), MODES)} the modes are {', '.join(MODES)}"
        )
    if read.get("residency"):
        raise Unsupported(
            "tessiq: option 'residency': no target here keeps device copies of inputs between calls; leave it out"
        )
    return Options(**read, mode=mode or "default")


def _hint(name: str, valid: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, valid, n=1)
    return f"; did you mean {close[0]!r}?" if close else ";"
