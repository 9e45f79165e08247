"""Two operations, one of which reads an argument it does not have."""

from tessiq_core.custom_ops import CustomOperation
from tessiq_core.plugins import hookimpl


def _operation(name, expression):
    return CustomOperation(
        schema=f"sample_bad::{name}(Tensor x) -> Tensor",
        reference=lambda x: x * 1,
        expression=expression,
        elements=("f32",),
    )


@hookimpl
def tessiq_custom_ops():
    return [_operation("good", "$x"), _operation("bad", "$x + $y")]
