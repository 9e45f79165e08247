"""Registering custom operations with PyTorch, at run time and only when somebody asks."""

from __future__ import annotations

import threading
from typing import Any

from tessiq_core.custom_ops.checks import checked
from tessiq_core.custom_ops.operation import CustomOperation
from tessiq_core.custom_ops.schema import Schema
from tessiq_core.errors import InvalidArgument

_lock = threading.Lock()
_registered: dict[str, CustomOperation] = {}
# A torch.library.Library takes its registrations back when it is collected, so each one lives as long as the process.
_libraries: list[Any] = []


def register(operation: CustomOperation) -> None:
    """Make `torch.ops.<namespace>.<name>` callable on every device, compiled or not. Imports torch.

    The reference is the kernel of every backend (CompositeExplicitAutograd) and what fake tensors run; `backward` and
    `setup_context` become its autograd formula. Registering the same operation again does nothing. Thread-safe.

    Raises InvalidArgument naming the operation and the problem: a failed check, an operator of that name that
    something else registered, or what PyTorch says against the schema. Nothing stays registered then.
    """
    with _lock:
        known = _registered.get(operation.qualified_name)
        if known == operation:
            return
        schema = checked(operation)
        if known is not None or _exists(schema):
            raise InvalidArgument(
                f"tessiq: custom operation {operation.qualified_name}: an operator of this name is registered already; "
                "give yours another name or the namespace of its package"
            )
        _define(operation, schema)
        _registered[operation.qualified_name] = operation


def _exists(schema: Schema) -> bool:
    import torch

    packet = getattr(getattr(torch.ops, schema.namespace), schema.name, None)
    return packet is not None and (schema.overload or "default") in packet.overloads()


def _define(operation: CustomOperation, schema: Schema) -> None:
    import torch

    library = torch.library.Library(schema.namespace, "FRAGMENT")  # type: ignore[no-untyped-call]
    try:
        library.define(schema.definition, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
        name = operation.qualified_name
        library.impl(name.partition("::")[2], operation.reference, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        torch.library.register_fake(name, operation.reference, lib=library)
        if operation.backward is not None:
            torch.library.register_autograd(
                name, operation.backward, setup_context=operation.setup_context, lib=library
            )
    except (RuntimeError, IndexError) as error:  # PyTorch answers a number out of range with the latter
        library._destroy()  # type: ignore[no-untyped-call]
        raise InvalidArgument(
            f"tessiq: custom operation {operation.qualified_name}: PyTorch does not take it: {error}"
        ) from error
    _libraries.append(library)
