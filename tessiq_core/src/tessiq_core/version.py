"""The version of tessiq-core, as installed. All distributions share it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tessiq-core")
except PackageNotFoundError:  # imported from a folder that is not installed
    __version__ = "0+unknown"
