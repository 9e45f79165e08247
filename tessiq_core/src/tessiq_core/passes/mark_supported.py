"""The pass `mark-supported`: what the target runs, node by node."""

from __future__ import annotations

from tessiq_core.decline import Decline
from tessiq_core.ir.graph import Graph
from tessiq_core.passes.claims import claim
from tessiq_core.passes.decisions import set_claim, set_decline
from tessiq_core.passes.manager import Pass, register


@register
class MarkSupported(Pass):
    """Record on every node who runs it, or why the target does not.

    Asked in this order: is it a view of what it reads; does a library of the target claim it (the highest priority
    first); does `lower` describe it as a kernel the emitter accepts.

    Assumes: nothing; decisions of an earlier run are replaced.

    Guarantees: every node has exactly one of `tessiq.claim` ("view", "library", "kernel") and `tessiq.decline`
    ("code: reason"); `tessiq.library` names the binding of a library claim. No node with an effect is claimed. An
    unknown extent never stops a claim by itself: it does where a view or the kernel would have to know it. Without an
    emitter whatever needs a kernel is declined with `no-emitter`.

    Legal because: it only adds attributes that are no part of a call. The answer is a property of the node, not of
    its operation, and comes from the functions that will build the kernel, so what is claimed can be built.
    """

    name = "mark-supported"
    description = "claim each node for the target, or record why not"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.nodes:
            answer = claim(node, self.context)
            if isinstance(answer, Decline):
                changed |= set_decline(node, answer)
            else:
                changed |= set_claim(node, answer.kind, answer.library)
        return changed
