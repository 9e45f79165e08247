"""Targets for tests of the runtime: a plugin manager made of lists, and recipes from the IR's text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessiq_core.codegen.interfaces import Emitter, LibraryBinding
from tessiq_core.ir.parser import parse_graph
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.plugins import Answer, DeviceOffer, PluginRecord
from tessiq_core.runtime.build import build_recipe
from tessiq_core.runtime.imported import ImportedGraph, OutputSpec
from tessiq_core.runtime.options import parse_options
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.report import Listener
from tessiq_core.runtime.runners import AnyRunner, make_runner
from tessiq_core.runtime.target import Target, select_target
from tessiq_cpuref.reference import ReferenceEmitter

HOST = DeviceOffer("cpuref", "cpu", 0, "the host", ("cpu",))


class Manager:
    """Answers as a PluginManager does, from lists; every answer comes from a plugin called `test`."""

    def __init__(
        self,
        devices: Sequence[DeviceOffer] = (HOST,),
        emitters: Sequence[Emitter] = (ReferenceEmitter(),),
        libraries: Sequence[LibraryBinding] = (),
        operations: Sequence[Any] = (),
        patterns: Sequence[RewritePattern] = (),
        plugins: str = "test=1",
        records: Sequence[PluginRecord] = (),
    ) -> None:
        self._answers: dict[str, Sequence[Any]] = {
            "devices": devices,
            "emitters": emitters,
            "libraries": libraries,
            "operations": operations,
            "patterns": patterns,
        }
        self._plugins = plugins
        self.records = tuple(records)
        self.demanded: set[str] = set()

    def must_work(self, plugin: str) -> bool:
        return plugin in self.demanded

    def _of(self, kind: str) -> tuple[Answer[Any], ...]:
        return tuple(Answer("test", value) for value in self._answers[kind])

    def discoveries(self) -> tuple[Answer[Any], ...]:
        return ()

    def devices(self) -> tuple[Answer[Any], ...]:
        return self._of("devices")

    def emitters(self) -> tuple[Answer[Any], ...]:
        return self._of("emitters")

    def libraries(self) -> tuple[Answer[Any], ...]:
        return self._of("libraries")

    def custom_operations(self) -> tuple[Answer[Any], ...]:
        return self._of("operations")

    def patterns(self) -> tuple[Answer[Any], ...]:
        return self._of("patterns")

    def fingerprint(self) -> str:
        return self._plugins


def target(options: Mapping[str, object] | None = None, manager: Manager | None = None) -> Target:
    """The target the options select for the CPU."""
    return select_target("cpu", parse_options(options), manager or Manager())  # type: ignore[arg-type]


def imported(
    text: str,
    *,
    constants: Mapping[str, object] | None = None,
    outputs: OutputSpec | None = None,
    key: str = "key",
) -> ImportedGraph:
    """A graph written by hand; its outputs are its results in order unless `outputs` says otherwise."""
    graph = parse_graph(text)
    spec = outputs or OutputSpec(tuple(range(len(graph.results))))
    return ImportedGraph(graph, dict(constants or {}), spec, key, "inference")


def recipe(
    text: str,
    options: Mapping[str, object] | None = None,
    *,
    constants: Mapping[str, object] | None = None,
    outputs: OutputSpec | None = None,
    manager: Manager | None = None,
    listener: Listener | None = None,
) -> Recipe:
    """The recipe of a graph written by hand, by default with the reference emitter."""
    graph = imported(text, constants=constants, outputs=outputs)
    return build_recipe(graph, target(options, manager), parse_options(options), listener)


def runner(text: str, options: Mapping[str, object] | None = None, **more: Any) -> AnyRunner:
    """The runner, of the kind TESSIQ_RUNNER says, of a graph written by hand; arguments as of `recipe`."""
    return make_runner(recipe(text, options, **more))[0]


def no_emitter() -> Manager:
    """A manager whose target generates nothing: every node that is no view runs through ATen."""
    return Manager(emitters=())
