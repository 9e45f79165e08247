"""What happened and why: `explain`."""

from tessiq_core.profiling.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
