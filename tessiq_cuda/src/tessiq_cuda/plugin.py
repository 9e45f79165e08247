"""The entry point `cuda`: looks for NVIDIA GPUs and says what it found.

This release has no emitter for GPUs, and a device that nothing can compile for must not be offered: it would win over
the CPU and then claim nothing. So the GPUs found are named in the reason that `tessiq plugins` shows.
"""

from __future__ import annotations

from tessiq_core.plugins import Discovery, hookimpl
from tessiq_cuda.driver import Driver, NoGpus, find_gpus, load_driver

TESSIQ_API_VERSION = (0, 1)


@hookimpl
def tessiq_devices() -> Discovery:
    """No device yet; the reason names the GPUs, or says why there are none."""
    return discovery(load_driver())


def discovery(driver: Driver | NoGpus) -> Discovery:
    """The answer for this driver."""
    gpus = driver if isinstance(driver, NoGpus) else find_gpus(driver)
    if isinstance(gpus, NoGpus):
        return Discovery(reason=gpus.reason)
    noun = "GPU" if len(gpus) == 1 else "GPUs"
    names = ", ".join(dict.fromkeys(str(gpu) for gpu in gpus))
    return Discovery(reason=f"found {len(gpus)} NVIDIA {noun} ({names}); this release compiles for the CPU only")
