"""Which target compiles for a home, and with which of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from support.runtime_targets import HOST, Manager, target
from tessiq_core.custom_ops import CustomOperation
from tessiq_core.decline import Decline
from tessiq_core.errors import InvalidArgument, NotFound, Unsupported
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.plugins import DeviceOffer, PluginRecord, TessiqPluginWarning
from tessiq_core.runtime.options import parse_options
from tessiq_core.runtime.target import Target, select_target
from tessiq_cpuref.reference import ReferenceEmitter

GPU = DeviceOffer("cuda", "gpu", 0, "a GPU", ("cuda",))


class NamedEmitter(ReferenceEmitter):
    """An emitter of another name and priority, perhaps not available."""

    def __init__(self, name: str, priority: int, missing: str = "", mark: str = "1", target: str = "cpuref") -> None:
        self._name, self._priority, self._missing, self._mark, self._target = name, priority, missing, mark, target

    @property
    def name(self) -> str:
        return self._name

    @property
    def target(self) -> str:
        return self._target

    @property
    def priority(self) -> int:
        return self._priority

    def available(self) -> Decline | None:
        return Decline("missing", self._missing) if self._missing else None

    def fingerprint(self) -> str:
        return f"{self._name}-{self._mark}"


def select(home: str, manager: Manager, options: Mapping[str, object] | None = None) -> Target:
    return select_target(home, parse_options(options), manager)  # type: ignore[arg-type]


def test_no_target_names_the_package_to_install_and_what_failed() -> None:
    broken = PluginRecord("cpuref", "tessiq-cpuref", "0.1", "broken", "ImportError: no torch")
    with pytest.raises(NotFound) as caught:
        select("cpu", Manager(devices=(), records=(broken,)))
    assert "pip install tessiq-cpuref" in str(caught.value)
    assert "plugin cpuref is broken: ImportError: no torch" in str(caught.value)
    with pytest.raises(NotFound, match="pip install tessiq-cuda"):
        select("cuda:0", Manager())


def test_the_first_offer_for_the_home_decides_and_its_ordinal_must_exist() -> None:
    other = DeviceOffer("other", "cpu", 0, "another host", ("cpu",), priority=5)
    assert select("cpu", Manager(devices=(other, HOST))).name == "other"
    two = Manager(devices=(HOST, GPU, replace(GPU, ordinal=1, description="b")))
    assert select("cuda:1", two).device.description == "b"
    with pytest.raises(NotFound, match="has no device for tensors on 'cuda:2'; it has cuda:0, cuda:1"):
        select("cuda:2", two)


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_the_homes_own_device_may_be_named(device: str) -> None:
    assert target({"device": device}).device is HOST


@pytest.mark.parametrize(
    ("device", "error", "says"),
    [
        ("tpu", InvalidArgument, "takes a kind and perhaps an ordinal"),
        ("gpu:x", InvalidArgument, "takes a kind and perhaps an ordinal"),
        ("gpu:1", NotFound, r"no 'gpu:1'; it has cpu:0 \(the host\), gpu:0 \(a GPU\)"),
        ("gpu", Unsupported, "cannot be sent to 'gpu'; leave the option out"),
    ],
)
def test_another_device_is_refused(device: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        target({"device": device}, Manager(devices=(HOST, GPU)))


def test_graphs_on_is_refused_where_nothing_captures() -> None:
    assert target({"graphs": "off"}).name == "cpuref"
    with pytest.raises(Unsupported, match="cannot capture device graphs"):
        target({"graphs": "on"})


def test_the_available_emitter_of_the_highest_priority_serves() -> None:
    emitters = [NamedEmitter("low", 1), NamedEmitter("high", 9, "no compiler was found"), NamedEmitter("mid", 5)]
    chosen = target(manager=Manager(emitters=[*emitters, NamedEmitter("foreign", 99, target="cuda")]))
    assert chosen.emitter is not None
    assert chosen.emitter.name == "mid"
    assert chosen.notes == ("emitter 'high' is not available: no compiler was found",)


def test_an_emitter_can_be_forced_and_falls_back_with_a_note() -> None:
    emitters = [NamedEmitter("high", 9), NamedEmitter("low", 1), NamedEmitter("gone", 3, "it is not here")]
    forced = target({"emitter": "low"}, Manager(emitters=emitters))
    assert forced.emitter is emitters[1]
    fallen = target({"emitter": "gone"}, Manager(emitters=emitters))
    assert fallen.emitter is emitters[0]
    assert fallen.notes == ("emitter 'gone' is not available: it is not here",)
    with pytest.raises(NotFound, match=r"no emitter 'hihg'; did you mean 'high'\? there are: gone, high, low"):
        target({"emitter": "hihg"}, Manager(emitters=emitters))


def test_without_an_emitter_the_target_still_serves_and_says_so() -> None:
    chosen = target(manager=Manager(emitters=()))
    assert chosen.emitter is None
    assert "no kernels are generated" in chosen.notes[-1]


def test_rewrites_are_applied_only_where_they_are_named() -> None:
    patterns = [RewritePattern("b.exact", "p", "r"), RewritePattern("a.tanh", "p", "r")]
    manager = Manager(patterns=patterns)
    assert target(manager=manager).patterns == ()
    assert target({"rewrites": []}, manager).patterns == ()
    both = target({"rewrites": ["b.exact", "a.tanh"]}, manager)
    assert [p.name for p in both.patterns] == ["a.tanh", "b.exact"]
    with pytest.raises(NotFound, match=r"no rewrite 'b.exat'; did you mean 'b.exact'\?"):
        target({"rewrites": ["b.exat"]}, manager)


def test_verify_needs_a_reference() -> None:
    assert target({"verify": True}).reference is not None
    assert target().reference is None
    with pytest.raises(NotFound, match="pip install tessiq-cpuref"):
        target({"verify": True}, Manager(emitters=[NamedEmitter("cpp", 1)]))


def _double(name: str) -> CustomOperation:
    return CustomOperation(f"test_runtime::{name}(Tensor x) -> Tensor", lambda x: x + x, "$x + $x", ("f32",))


def test_rows_of_custom_operations_join_the_table_and_bad_ones_are_left_out_by_name() -> None:
    good, bad = _double("double"), replace(_double("bad"), expression="$y")
    manager = Manager(operations=[good, bad])
    with pytest.warns(TessiqPluginWarning, match="plugin 'test': test_runtime::bad is left out") as warned:
        table = target(manager=manager).table
    assert len(warned) == 1
    assert table.row("test_runtime.double.default") is not None
    assert table.row("test_runtime.bad.default") is None
    assert target(manager=manager).table is table  # registered once a process


def test_a_bad_operation_of_a_plugin_that_must_work_is_raised() -> None:
    manager = Manager(operations=[replace(_double("demanded"), expression="$y")])
    manager.demanded.add("test")
    with pytest.raises(InvalidArgument, match="test_runtime::demanded"):
        target(manager=manager)


@pytest.mark.parametrize(
    "change",
    [
        lambda: target(manager=Manager(emitters=[NamedEmitter("reference", 0, mark="2")])),
        lambda: target(manager=Manager(devices=[replace(HOST, description="another host")])),
        lambda: target({"rewrites": ["p"]}, manager=Manager(patterns=[RewritePattern("p", "a", "b")])),
        lambda: target({"rewrites": ["p"]}, manager=Manager(patterns=[RewritePattern("p", "a", "c")])),
        lambda: target(manager=Manager(plugins="test=2")),
        lambda: target({"verify": True}),
        lambda: target(manager=Manager(emitters=())),
    ],
)
def test_everything_a_target_is_made_of_shows_in_its_fingerprint(change: Callable[[], Target]) -> None:
    assert target().fingerprint() == target().fingerprint()
    assert change().fingerprint() != target().fingerprint()
