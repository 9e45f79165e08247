"""The plugin side of tessiq-ops-contrib: what its operations, rewrites and passes are. Imports no torch."""
