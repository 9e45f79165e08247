"""What can be wrong with a custom operation, found without torch and before anything is registered."""

from __future__ import annotations

from collections.abc import Iterator

from tessiq_core.custom_ops.operation import CustomOperation
from tessiq_core.custom_ops.schema import Schema, parse_schema
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.types import ELEMENT_TYPES
from tessiq_core.ops.expression import argument_names, parse_expression
from tessiq_core.ops.row import REQUIRED

RESERVED_NAMESPACES = ("aten", "prim", "prims", "tessiq")
COMPUTE_TYPES = ("promote", "float")
RESULT_TYPES = ("compute", "bool")


def problems(operation: CustomOperation) -> tuple[Decline, ...]:
    """Everything that is wrong with the operation; empty when it can be registered. Codes: `schema`, `namespace`,
    `reference`, `backward`, `elements`, `compute`, `expression`, `expression-argument`."""
    try:
        schema = parse_schema(operation.schema)
    except InvalidArgument as error:
        return (Decline("schema", f"the schema does not parse: {error}"),)
    return (*_of_declaration(operation, schema), *_of_expression(operation.expression, schema))


def checked(operation: CustomOperation) -> Schema:
    """The operation's schema. Raises InvalidArgument that names the operation and every problem it has."""
    found = problems(operation)
    if found:
        listed = "; ".join(problem.reason for problem in found)
        raise InvalidArgument(f"tessiq: custom operation {operation.qualified_name}: {listed}")
    return parse_schema(operation.schema)


def _of_declaration(operation: CustomOperation, schema: Schema) -> Iterator[Decline]:
    if schema.namespace in RESERVED_NAMESPACES:
        yield Decline("namespace", f"the namespace `{schema.namespace}` is not yours; use one named after your package")
    reference: object = operation.reference
    if not callable(reference):
        yield Decline("reference", f"`reference` must be a function, not {reference!r}")
    if (operation.backward is None) != (operation.setup_context is None):
        yield Decline("backward", "`backward` and `setup_context` need each other; give both or neither")
    unknown = [name for name in operation.elements if name not in ELEMENT_TYPES]
    if unknown or not operation.elements:
        what = f"`{unknown[0]}` is not an element type" if unknown else "`elements` names no element type"
        yield Decline("elements", f"{what}; those that exist are {', '.join(ELEMENT_TYPES)}")
    if operation.compute not in COMPUTE_TYPES or operation.result not in RESULT_TYPES:
        yield Decline(
            "compute",
            f"`compute` is one of {', '.join(COMPUTE_TYPES)} and `result` one of {', '.join(RESULT_TYPES)}, "
            f"not {operation.compute!r} and {operation.result!r}",
        )


def _of_expression(expression: str, schema: Schema) -> Iterator[Decline]:
    try:
        read = argument_names(parse_expression(expression))
    except InvalidArgument as error:
        yield Decline("expression", str(error))
        return
    names = [argument.name for argument in schema.arguments]
    for name in read:
        if name not in names:
            yield Decline(
                "expression-argument",
                f"the expression reads `${name}`, which is no argument of the schema ({', '.join(names)})",
            )
    for argument in schema.arguments:
        # An argument with a default may go unread: a call that passes another value then runs the reference.
        if argument.name not in read and (argument.default is REQUIRED or argument.name in schema.tensors):
            yield Decline("expression-argument", f"the expression never reads the argument `{argument.name}`")
