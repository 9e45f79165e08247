"""The row of a custom operation: from here on the compiler treats it like one of its own."""

from __future__ import annotations

from tessiq_core.custom_ops.checks import checked
from tessiq_core.custom_ops.operation import CustomOperation
from tessiq_core.ops.expression import argument_names, parse_expression
from tessiq_core.ops.row import Row


def row_of(operation: CustomOperation) -> Row:
    """The operation as a row of the operation table, so that compiled graphs fuse it like a built-in one.

    The row's short name is `namespace_name`, so that it stays clear of the built-in ones. `consumes` are the
    arguments the expression reads, in the schema's order. Raises InvalidArgument naming the operation and what is
    wrong with it.
    """
    schema = checked(operation)
    read = argument_names(parse_expression(operation.expression))
    return Row(
        name="_".join(filter(None, (schema.namespace, schema.name, schema.overload))),
        category="elementwise",
        spellings={schema.spelling: schema.arguments},
        consumes=tuple(argument.name for argument in schema.arguments if argument.name in read),
        expression=operation.expression,
        compute=operation.compute,
        result=operation.result,
        elements=operation.elements,
        summary=operation.summary,
        origin=schema.namespace,
        reference=operation.reference,
    )
