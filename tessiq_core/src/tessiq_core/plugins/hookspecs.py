"""The hooks, in the order they fire when a graph is compiled. An answer is asked for at most once a process and kept.
A tool that needs only some of them asks only for those: `tessiq opt` never looks for devices.

Every hook takes no argument and must be cheap, free of side effects and callable from any thread: it *names* what the
plugin has, and the work (opening a driver, importing torch, compiling) waits until what it named is used. Types are
given for reading and for type checkers; a plugin need not import them to answer.

A hook that raises does not stop the process: the plugin's record turns `broken` with the reason, one warning is given,
and every other answer still counts. Where two plugins answer for the same thing, the higher priority is used, then
the plugin whose name sorts first; `tessiq plugins` shows who lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessiq_core.plugins.api import hookspec

if TYPE_CHECKING:
    from tessiq_core.codegen.interfaces import Emitter, LibraryBinding
    from tessiq_core.custom_ops import CustomOperation
    from tessiq_core.ir.pattern import RewritePattern
    from tessiq_core.passes.manager import Pass
    from tessiq_core.plugins.offers import Discovery


@hookspec
def tessiq_devices() -> Discovery | None:
    """Say which devices this machine has that your target can compile for and run on.

    When it is called:
        First of all hooks, once a process: when the first graph is compiled, or when somebody lists devices. Never
        when the plugin is loaded.

    Arguments:
        None. Ordinals and counts in the answer are plain integers, memory in a description is in GiB.

    Returns:
        A `tessiq_core.plugins.Discovery`: `devices`, one `DeviceOffer` a unit, and `reason`, one line for people. No
        driver, a driver that is too old, no unit: an empty `devices` with the reason, never an exception. A unit you
        cannot compile for yet is not offered; say so in `reason`. Creating a context or allocating memory here is
        wrong: counting must leave the process as it was.
        None means that the plugin is no target (a package of operations may also leave the hook out).

    Raises:
        Nothing on purpose. An exception is isolated as described at the top of this module.

    Who may implement it:
        Packages that are a target. One distribution should offer one target.

    Since: API version 0.1.
    """


@hookspec
def tessiq_emitters() -> Sequence[Emitter] | None:
    """Give the emitters of your target: kernel description to source text to loaded kernel.

    When it is called:
        Once a process, when the first graph is compiled for any target, after `tessiq_devices`; also where no device
        was found, because the text half of an emitter works without one.

    Arguments:
        None.

    Returns:
        A list of objects that satisfy `tessiq_core.codegen.interfaces.Emitter`. Two emitters of one target need two
        names. The available one with the highest `priority` is used; `options={"emitter": name}` forces one.
        None, or an empty list, means that the plugin has no emitter: unless another plugin has one for the target,
        nothing is generated for it and every node runs through a library binding or ATen.

    Raises:
        Nothing on purpose. "No compiler on this machine" is what `Emitter.available` answers, not a failure here.

    Who may implement it:
        Targets, and packages that bring another emitter for somebody else's target (`target` names it).

    Since: API version 0.1.
    """


@hookspec
def tessiq_library_bindings() -> Sequence[LibraryBinding] | None:
    """Give the bindings that run whole nodes (matmul, convolution, attention) by calling a library.

    When it is called:
        Once a process, when the first graph is compiled for any target, after `tessiq_emitters`.

    Arguments:
        None. What `LibraryBinding.layouts` answers later is in elements, workspace in bytes.

    Returns:
        A list of objects that satisfy `tessiq_core.codegen.interfaces.LibraryBinding`. For each node they are asked
        in the order of `priority`, highest first; the first that claims it builds its kernel.
        None, or an empty list, means none: such nodes run through ATen.

    Raises:
        Nothing on purpose. A library that is not installed is a binding that declines every node with that reason,
        so that `tessiq explain` can tell the user what to install.

    Who may implement it:
        Targets, and packages that bring a library to somebody else's target (`target` names it).

    Since: API version 0.1.
    """


@hookspec
def tessiq_custom_ops() -> Sequence[CustomOperation] | None:
    """Give operations PyTorch does not have: schema, reference, and exactly one kind of kernel.

    When it is called:
        Once a process, when the first graph is compiled for any target, after `tessiq_library_bindings`. The
        operations are then registered with PyTorch and their rows join the operation table.

    Arguments:
        None. Shapes and dtypes are those of each operation's schema and `elements`.

    Returns:
        A list of `tessiq_core.custom_ops.CustomOperation`. Making one imports no torch; its reference is called only
        when the operation runs. An operation that fails its checks disables itself, with one warning that names it
        and the problem; the plugin's other operations stay.
        None, or an empty list, means none.

    Raises:
        Nothing on purpose.

    Who may implement it:
        Anybody. Operators live in the package's own namespace (`tessiq_contrib::squared_relu`), never in `aten`.

    Since: API version 0.1.
    """


@hookspec
def tessiq_rewrite_patterns() -> Sequence[RewritePattern] | None:
    """Give rewrites: a pattern in the IR's text form and what replaces it.

    When it is called:
        Once a process, when the first pipeline with plugin rewrites runs, after `tessiq_custom_ops`, whose operations
        a replacement may use.

    Arguments:
        None. A pattern states element types and extents only where it depends on them.

    Returns:
        A list of `tessiq_core.ir.pattern.RewritePattern`. They are tried in the order of their names, before nodes
        are claimed; only those that `options={"rewrites": […]}` names are. A rewrite gives what the nodes it replaces
        gave for every input, both zeros, infinities and NaNs too; one that does not says so in its name.
        None, or an empty list, means none.

    Raises:
        Nothing on purpose. A pattern that does not parse is an `InvalidArgument`, which is isolated like any other.

    Who may implement it:
        Anybody.

    Since: API version 0.1.
    """


@hookspec
def tessiq_passes() -> Sequence[type[Pass]] | None:
    """Give further passes, which pipelines name.

    When it is called:
        Once a process, when the first pipeline is parsed; last of all hooks.

    Arguments:
        None.

    Returns:
        A list of subclasses of `tessiq_core.passes.manager.Pass` (the classes, not instances). A pass runs only where
        a pipeline names it: `tessiq opt --passes contrib-drop-identity-views,dce`. Names are kebab-case and start
        with the package's own prefix; a name that is taken loses to the pass that has it.
        None, or an empty list, means none.

    Raises:
        Nothing on purpose.

    Who may implement it:
        Anybody. The pass's docstring says what it assumes, what it guarantees and why its rewrite is legal.

    Since: API version 0.1.
    """


HOOKS = (
    "tessiq_devices",
    "tessiq_emitters",
    "tessiq_library_bindings",
    "tessiq_custom_ops",
    "tessiq_rewrite_patterns",
    "tessiq_passes",
)
"""The hooks' names in the order they fire."""
