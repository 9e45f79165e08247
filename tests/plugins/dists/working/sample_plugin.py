"""Implements every hook, with answers that only this distribution can have given."""

from dataclasses import dataclass

from tessiq_core.plugins import DeviceOffer, Discovery, hookimpl

TESSIQ_API_VERSION = (0, 1)


@dataclass(frozen=True)
class SampleEmitter:
    name: str = "text"
    target: str = "sample"
    priority: int = 10

    def available(self):
        return None


@dataclass(frozen=True)
class SampleBinding:
    name: str = "gemm"
    target: str = "sample"
    priority: int = 0


@hookimpl
def tessiq_devices():
    return Discovery((DeviceOffer("sample", "gpu", 0, "a sample", ("meta",), -5),))


@hookimpl
def tessiq_emitters():
    return [SampleEmitter()]


@hookimpl
def tessiq_library_bindings():
    return [SampleBinding()]


@hookimpl
def tessiq_custom_ops():
    from tessiq_core.custom_ops import CustomOperation

    return [
        CustomOperation(
            schema="sample::twice(Tensor x) -> Tensor",
            reference=lambda x: x + x,
            expression="$x + $x",
            elements=("f32",),
            summary="two of it",
        )
    ]


@hookimpl
def tessiq_rewrite_patterns():
    from tessiq_core.ir.pattern import RewritePattern

    return [
        RewritePattern(
            "sample.twice",
            "graph @p(%x: f32[?]) {\n  %y = aten.add.Tensor(%x, %x) : f32[?]\n  return %y\n}\n",
            "graph @r(%x: f32[?]) {\n  %y = sample.twice.default(%x) : f32[?]\n  return %y\n}\n",
        )
    ]


@hookimpl
def tessiq_passes():
    from tessiq_core.passes.manager import Pass

    class Nothing(Pass):
        name = "sample-nothing"
        description = "change nothing"

        def run(self, graph):
            return False

    return [Nothing]
