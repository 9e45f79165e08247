"""What the machine offers to everybody who generates native code: its C++ compiler, and a private disk cache."""

from tessiq_core.host.compiler import Compiler, find_compiler
from tessiq_core.host.disk_cache import DiskCache, cache_directory

__all__ = ["Compiler", "DiskCache", "cache_directory", "find_compiler"]
