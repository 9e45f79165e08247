"""Loading and asking plugins, on stand-ins for entry points."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tessiq_core.errors import External, InvalidArgument, NotFound, Unsupported
from tessiq_core.plugins import (
    Answer,
    DeviceOffer,
    Discovery,
    TessiqPluginWarning,
    hookimpl,
    load_plugins,
    loader,
)
from tessiq_core.plugins.answers import decide
from tessiq_core.plugins.api import API_VERSION, compatible


@dataclass
class Point:
    """What the loader uses of an entry point."""

    name: str
    plugin: Any
    distribution: str = ""
    value: str = "module"
    loads: list[str] = field(default_factory=list)

    @property
    def dist(self) -> Any:
        return SimpleNamespace(name=self.distribution, version="1.0") if self.distribution else None

    def load(self) -> Any:
        self.loads.append(self.name)
        return self.plugin


def plugin(**members: Any) -> Any:
    """An object with these attributes; functions become hook implementations."""
    return SimpleNamespace(**{k: hookimpl(v) if callable(v) else v for k, v in members.items()})


def offers(*devices: DeviceOffer) -> Any:
    return plugin(tessiq_devices=lambda: Discovery(devices))


def emitter(name: str, target: str = "t", priority: int = 0) -> Any:
    return SimpleNamespace(name=name, target=target, priority=priority)


def load(*points: Point, **environ: str) -> Any:
    return load_plugins(points, environ)


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TessiqPluginWarning)
        yield


@pytest.mark.parametrize(
    ("version", "expected"),
    [((0, 0), True), (API_VERSION, True), ((0, API_VERSION[1] + 1), False), ((1, 0), False)],
)
def test_compatible(version, expected):
    assert compatible(version) is expected


def test_an_unstated_version_is_the_first_one(monkeypatch):
    point = Point("a", plugin(tessiq_emitters=lambda: None))
    assert load(point).records[0].status == "ok"
    monkeypatch.setattr("tessiq_core.plugins.api.API_VERSION", (1, 0))
    with pytest.warns(TessiqPluginWarning, match="written for plugin API 0.1"):
        assert load(point).records[0].status == "incompatible"
    with pytest.raises(Unsupported, match=r"cannot be used: it is written for plugin API 0\.1"):
        load(point, TESSIQ_PLUGINS="a")


def test_a_malformed_version_is_broken():
    point = Point("a", plugin(tessiq_emitters=lambda: None, TESSIQ_API_VERSION="0.1"))
    with pytest.warns(TessiqPluginWarning, match=r"must be a pair of integers such as \(0, 1\), not '0.1'"):
        assert load(point).records[0].status == "broken"


def test_no_hook_at_all_is_broken():
    with pytest.warns(TessiqPluginWarning, match="implements no hook"):
        assert load(Point("a", plugin())).records[0].status == "broken"


def test_a_wrapper_is_broken():
    @hookimpl(wrapper=True)
    def tessiq_emitters():
        return (yield)

    with pytest.warns(TessiqPluginWarning, match="a hook wrapper would see other plugins' answers"):
        manager = load(Point("a", SimpleNamespace(tessiq_emitters=tessiq_emitters)))
    assert manager.records[0].status == "broken"
    assert manager.emitters() == ()


def test_a_failed_plugin_leaves_nothing_registered():
    bad = plugin(tessiq_emitters=lambda: [emitter("e")], tessiq_passes=lambda config: [])
    with pytest.warns(TessiqPluginWarning):
        manager = load(Point("bad", bad), Point("good", plugin(tessiq_emitters=lambda: [emitter("f")])))
    assert [(answer.plugin, answer.value.name) for answer in manager.emitters()] == [("good", "f")]
    assert [record.status for record in manager.records] == ["broken", "ok"]


def test_names_are_compared_as_package_names_are():
    point = Point("My_Ops", plugin(tessiq_emitters=lambda: None), "My.Package")
    for spelling in ("my-ops", "my.package", " MY_OPS ,"):
        assert load(point, TESSIQ_DISABLE_PLUGINS=spelling).records[0].status == "blocked"
        assert load(point, TESSIQ_PLUGINS=spelling).records[0].status == "ok"
    assert load(point, TESSIQ_DISABLE_PLUGINS="my").records[0].status == "ok"
    assert point.loads == ["My_Ops"] * 4


def test_disabled_wins_over_allowed_and_strict():
    def fails():
        raise AssertionError("must not be loaded")

    point = Point("a", None)
    point.load = fails  # type: ignore[method-assign]
    manager = load(point, TESSIQ_DISABLE_PLUGINS="a", TESSIQ_PLUGINS="a", TESSIQ_STRICT_PLUGINS="1")
    assert manager.records[0].reason == "disabled by TESSIQ_DISABLE_PLUGINS"


def test_an_allow_list_of_nothing_or_of_all_allows_all_and_asks_for_none():
    for text in ("", " ", "*", "a,*"):
        with pytest.warns(TessiqPluginWarning):
            assert load(Point("a", plugin()), TESSIQ_PLUGINS=text).records[0].status == "broken"
    with pytest.raises(External, match=r"plugin a did not load.*skip it with TESSIQ_DISABLE_PLUGINS=a"):
        load(Point("a", plugin()), TESSIQ_PLUGINS="a")


def test_a_name_that_is_not_installed():
    with pytest.raises(NotFound, match=r"asks for the plugin 'cuad'.*did you mean 'cuda'\? \(installed: cuda\)"):
        load(Point("cuda", plugin()), TESSIQ_PLUGINS="cuad")


def test_devices_are_ordered_and_their_reasons_kept():
    def offer(target: str, ordinal: int, priority: int = 0) -> DeviceOffer:
        return DeviceOffer(target, "gpu", ordinal, "", (), priority)

    manager = load(
        Point("z", offers(offer("a", 1), offer("a", 0))),
        Point("y", offers(offer("b", 0, 5))),
        Point("x", plugin(tessiq_devices=lambda: Discovery(reason="no driver"))),
        Point("w", plugin(tessiq_devices=lambda: None)),
    )
    assert [(a.value.target, a.value.ordinal) for a in manager.devices()] == [("b", 0), ("a", 0), ("a", 1)]
    assert [(a.plugin, a.value.reason) for a in manager.discoveries() if not a.value.devices] == [("x", "no driver")]
    assert manager.conflicts == ()


@pytest.mark.parametrize(
    ("hook", "answer", "reason"),
    [
        ("tessiq_devices", [], "must return a tessiq_core.plugins.Discovery or None, not list"),
        ("tessiq_devices", Discovery(), "without devices must give a reason"),
        ("tessiq_devices", Discovery(("gpu",)), "must be a tuple of DeviceOffer"),  # type: ignore[arg-type]
        ("tessiq_emitters", emitter("e"), "must return a list or None, not SimpleNamespace"),
        ("tessiq_emitters", "e", "must return a list or None, not str"),
        ("tessiq_emitters", [SimpleNamespace(name="e", target="t")], "with `priority` of type int"),
        ("tessiq_passes", [SimpleNamespace(name="p", description="")], "must be a subclass of Pass"),
        ("tessiq_rewrite_patterns", [SimpleNamespace(name="p", pattern=1, replacement="")], "`pattern` of type str"),
    ],
)
def test_an_answer_of_another_form_is_isolated(hook, answer, reason):
    manager = load(Point("a", plugin(**{hook: lambda: answer})))
    with pytest.warns(TessiqPluginWarning, match="its answer to that hook is left out"):
        manager.ask_all()
    record = manager.records[0]
    assert record.status == "broken"
    assert reason in record.reason
    assert manager.devices() == manager.emitters() == manager.passes() == manager.patterns() == ()


def test_a_failing_hook_is_raised_where_the_plugin_was_asked_for():
    def tessiq_emitters():
        raise OSError("disk")

    point = Point("a", plugin(tessiq_emitters=tessiq_emitters))
    with pytest.raises(External, match="tessiq_emitters failed: OSError: disk") as caught:
        load(point, TESSIQ_PLUGINS="a").emitters()
    assert isinstance(caught.value.__cause__, OSError)


def test_the_process_can_still_be_interrupted():
    def tessiq_emitters():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(Point("a", plugin(tessiq_emitters=tessiq_emitters))).emitters()


def test_the_same_answer_twice_from_one_plugin():
    manager = load(Point("a", plugin(tessiq_emitters=lambda: [emitter("e"), emitter("e")])))
    assert len(manager.emitters()) == 1
    assert manager.conflicts[0].reason == "the plugin gives it twice; the first one stands"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_priority_decides_and_then_the_plugins_name(order):
    given = [
        Answer("a", emitter("e", priority=1)),
        Answer("z", emitter("e", priority=2)),
        Answer("m", emitter("e", priority=2)),
        Answer("b", emitter("other", priority=1)),
    ]
    kept, conflicts = decide("tessiq_emitters", [given[index] for index in order])
    assert [(answer.plugin, answer.value.name) for answer in kept] == [("m", "e"), ("b", "other")]
    assert [(c.key, c.winner, c.loser, c.reason) for c in conflicts] == [
        ("t/e", "m", "z", "equal priority; 'm' sorts before 'z'"),
        ("t/e", "m", "a", "priority 2 is above 1"),
    ]


def test_a_hook_is_asked_once_by_many_threads():
    calls: list[int] = []
    manager = load(Point("a", plugin(tessiq_emitters=lambda: calls.append(1) or [emitter("e")])))
    threads = [threading.Thread(target=manager.emitters) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


def test_the_fingerprint_names_what_loaded():
    one = Point("a", plugin(tessiq_emitters=lambda: None), "dist-a")
    two = Point("b", plugin(tessiq_emitters=lambda: None), "dist-b")
    assert load(two, one).fingerprint() == "a=dist-a==1.0;b=dist-b==1.0"
    assert load(two, one, TESSIQ_DISABLE_PLUGINS="a").fingerprint() == "b=dist-b==1.0"


def test_the_process_wide_manager_is_built_once(monkeypatch):
    built: list[object] = []
    monkeypatch.setattr(loader, "_manager", None)
    monkeypatch.setattr(loader, "load_plugins", lambda: built.append(object()) or built[-1])
    threads = [threading.Thread(target=loader.plugin_manager) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert loader.plugin_manager() is built[0]


def test_a_failure_to_build_it_is_not_kept(monkeypatch):
    outcomes: list[Any] = [InvalidArgument("first"), "manager"]

    def load_plugins() -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(loader, "_manager", None)
    monkeypatch.setattr(loader, "load_plugins", load_plugins)
    with pytest.raises(InvalidArgument, match="first"):
        loader.plugin_manager()
    assert loader.plugin_manager() == "manager"


def test_two_entry_points_to_one_module():
    shared = plugin(tessiq_emitters=lambda: [emitter("e")])
    with pytest.warns(TessiqPluginWarning, match="plugin b is left out"):
        manager = load(Point("a", shared), Point("b", shared))
    assert [answer.plugin for answer in manager.emitters()] == ["a"]
