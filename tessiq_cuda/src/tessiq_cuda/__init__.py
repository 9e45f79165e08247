"""The NVIDIA GPU target of tessiq. Today: discovery only; see `tessiq_cuda.plugin`."""
