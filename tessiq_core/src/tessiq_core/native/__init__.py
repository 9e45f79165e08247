"""`tessiq_core._C`, the one compiled module: found bundled, in the user's cache, or built on first need.

`load()` answers with the module, or with a Decline that says why there is none; compiling works without it. What a
cached `_C` depends on, and so its key: torch's version and C++ ABI, Python's ABI tag, the compiler's path and version,
the flags, and the content of every file in `csrc/`.
"""

from tessiq_core.native.build import NativeModule, cache_key, load, sources

__all__ = ["NativeModule", "cache_key", "load", "sources"]
