"""The entry `torch.compile(backend="tessiq")` calls, and the compilers it hands to AOTAutograd."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tessiq_core.errors import External, InvalidArgument, NotFound, TessiqError, Unsupported
from tessiq_core.runtime.imported import ImportedGraph, Kind

log = logging.getLogger(__name__)

Boxed = Callable[[list[Any]], list[Any]]
Compiler = Callable[..., Any]  # what AOTAutograd calls with a graph module and its example inputs

REFUSALS = (InvalidArgument, Unsupported, NotFound, External)
"""What a user asked for and cannot have, and what a plugin or compiler on the user's machine failed at."""


class ModuleCompiler(Protocol):
    """Compiles one graph module that AOTAutograd produced; `kind` says which of a training pair it is."""

    def __call__(self, module: Any, kind: Kind) -> Boxed: ...


def tessiq(
    gm: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The Dynamo backend: compiles a captured module and returns the callable that runs instead of it.

    gm:             the graph module Dynamo captured.
    example_inputs: its inputs, real or fake tensors and symbolic sizes.
    options, mode:  as given to torch.compile; see `tessiq_core.runtime.options`.

    An unknown option or mode, or a target that is not there, is raised by the compiled function when it first runs:
    InvalidArgument, Unsupported or NotFound, as themselves; so is External. Registers nothing with PyTorch.
    """
    from tessiq_core.runtime import compile_graph
    from tessiq_core.runtime.options import parse_options

    try:
        parsed = parse_options(options, mode)
    except REFUSALS as error:
        return _raising(error)

    def compile_imported(imported: ImportedGraph) -> Boxed:
        compiled: Boxed = compile_graph(imported, parsed)
        return compiled

    return trace(gm, example_inputs, importing(compile_imported))


def importing(compile_imported: Callable[[ImportedGraph], Boxed]) -> ModuleCompiler:
    """A module compiler that imports the module into the IR and hands it on.

    AOTAutograd runs the forward compiler under a fake tensor mode, in which `torch.ones(3)` is no memory; it is off
    while ours runs.
    """
    from torch.utils._python_dispatch import _disable_current_modes

    from tessiq_core.capture.importer import import_module

    def compile_module(module: Any, kind: Kind) -> Boxed:
        with _disable_current_modes():
            return compile_imported(import_module(module, kind))

    return compile_module


def trace(gm: Any, example_inputs: Sequence[Any], compiler: ModuleCompiler) -> Callable[..., Any]:
    """Hand a captured module to AOTAutograd with our settings; `compiler` compiles what comes out.

    Mutations of inputs stay in an inference graph as `copy_` (otherwise each is an output copied in Python), forward
    and backward are cut by the min-cut partitioner, and the decompositions are only our own. Compiled autograd passes
    a list of tensors as one input; AOTAutograd takes them flat.
    """
    from torch._dynamo.utils import flatten_graph_inputs
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    from tessiq_core.capture.decompositions import decomposition_table

    if any(isinstance(given, list | tuple | dict) for given in example_inputs):
        flat: Callable[..., Any] = flatten_graph_inputs(gm, example_inputs, lambda g, given: trace(g, given, compiler))
        return flat

    def compile_as(kind: Kind, refusals: tuple[type[TessiqError], ...]) -> Compiler:
        def compile_module(module: Any, inputs: Sequence[Any]) -> Boxed:
            del inputs  # placeholders carry the same values in their metadata
            compiled = compiler(module, kind)
            if not getattr(compiled, "_boxed_call", False):
                compiled = _boxed(compiled)
            return compiled

        return _raising_when_run(compile_module, refusals)

    compiled: Callable[..., Any] = aot_module_simplified(
        gm,
        example_inputs,
        fw_compiler=compile_as("forward", REFUSALS),
        bw_compiler=_untraced(compile_as("backward", (TessiqError,))),
        inference_compiler=compile_as("inference", REFUSALS),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
        decompositions=decomposition_table(),
    )
    return compiled


def _boxed(function: Boxed) -> Boxed:
    """The function with the mark by which AOTAutograd knows that it takes one list, and empties it."""

    def call(arguments: list[Any]) -> list[Any]:
        return function(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _raising_when_run(compiler: Compiler, refusals: tuple[type[TessiqError], ...]) -> Compiler:
    """A compiler whose refusals are raised when the graph runs, as themselves.

    Raised while compiling a forward graph an exception reaches the user inside Dynamo's BackendCompilerFailed, whose
    text buries ours. Raised while compiling a backward graph with symbolic sizes, AOTAutograd drops it with a warning
    and compiles again in the backward pass. So a refusal is kept, logged once, and raised by what asked for it. Other
    exceptions, bugs, are left to Dynamo and AOTAutograd.
    """

    def compile_or_keep(module: Any, inputs: Sequence[Any]) -> Boxed:
        try:
            compiled: Boxed = compiler(module, inputs)
            return compiled
        except refusals as error:
            log.error("tessiq: a graph was refused; running it will raise: %s", error)
            return _boxed(_raising(error))

    return compile_or_keep


def _untraced(compiler: Compiler) -> Compiler:
    """A compiler that Dynamo does not trace, nor what it compiles.

    A backward graph is compiled and run where the program calls `backward()`. In a frame that Dynamo has cut there it
    watches every Python function called, ours too.
    """
    from torch import compiler as torch_compiler

    disable: Callable[..., Any] = torch_compiler.disable

    def compile_untraced(module: Any, inputs: Sequence[Any]) -> Boxed:
        compiled: Any = disable(compiler(module, inputs), reason="a compiled backward graph is no program")
        compiled._boxed_call = True
        return compiled  # type: ignore[no-any-return]

    untraced: Compiler = disable(compile_untraced, reason="the compiler of a backward graph is no program")
    return untraced


def _raising(error: TessiqError) -> Callable[..., Any]:
    def refuse(*arguments: Any) -> Any:
        raise error.with_traceback(None)  # else each call would make the traceback longer

    return refuse
