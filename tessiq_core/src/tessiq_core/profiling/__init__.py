"""What happened and why: `explain`."""

from tessiq_core.profiling.explanation import Explanation, explain

__all__ = ["Explanation", "explain"]
