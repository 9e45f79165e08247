"""Capture: from `torch.compile` through AOTAutograd to the IR. The Dynamo backend is `tessiq`."""

from tessiq_core.capture.backend import tessiq

__all__ = ["tessiq"]
