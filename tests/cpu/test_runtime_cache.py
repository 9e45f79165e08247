"""The recipe cache: what a recipe depends on, what is kept, and what threads see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import pytest
import torch

from support.runtime_targets import HOST, Manager, imported, recipe, target
from tessiq_core.errors import InvalidArgument
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ops.table import OperationTable
from tessiq_core.runtime.options import parse_options
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.recipe_cache import Dependencies, RecipeCache

GRAPH = """
graph @main(%x: f32[4]) {
  %a = aten.relu.default(%x) : f32[4]
  return %a
}
"""
WITH_CONSTANT = """
graph @main(%x: f32[4]) {
  %k = tessiq.constant() {0 = "k", content = "sha256:0"} : f32[4]
  %a = aten.add.Tensor(%x, %k) : f32[4]
  return %a
}
"""


def dependencies() -> Dependencies:
    return Dependencies.of(imported(GRAPH), target(), parse_options())


def _shorter_table() -> OperationTable:
    return OperationTable(list(target().table)[:-1])


def _with_table(table: OperationTable) -> Dependencies:
    return Dependencies.of(imported(GRAPH), replace(target(), table=table), parse_options())


CHANGES: dict[str, Callable[[], Dependencies]] = {
    "graph": lambda: Dependencies.of(imported(GRAPH, key="other"), target(), parse_options()),
    "kind": lambda: Dependencies.of(replace(imported(GRAPH), kind="forward"), target(), parse_options()),
    "home": lambda: Dependencies.of(replace(imported(GRAPH), home="cuda:0"), target(), parse_options()),
    "target": lambda: Dependencies.of(
        imported(GRAPH), target({"rewrites": ["p"]}, Manager(patterns=[RewritePattern("p", "a", "b")])), parse_options()
    ),
    "plugins": lambda: Dependencies.of(imported(GRAPH), target(manager=Manager(plugins="test=2")), parse_options()),
    "table": lambda: _with_table(_shorter_table()),
    "options": lambda: Dependencies.of(imported(GRAPH), target(), parse_options({"adopt": False})),
}


@pytest.mark.parametrize("part", CHANGES)
def test_each_dependency_of_the_compile_gives_another_key(part: str) -> None:
    same, changed = dependencies(), CHANGES[part]()
    assert same.key() == dependencies().key()
    assert getattr(changed, part) != getattr(same, part)
    assert changed.key() != same.key()


@pytest.fixture
def settings() -> Iterator[None]:
    """Puts back what the test changes."""
    precision = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    deterministic = torch.are_deterministic_algorithms_enabled()
    half = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    yield
    torch.backends.mkldnn.matmul.fp32_precision = precision  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(deterministic)
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = half


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("part", ["precision", "half", "deterministic", "torch", "tessiq"])
def test_each_setting_of_the_process_gives_another_key(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dependencies().key()
    match part:
        case "precision":
            torch.backends.mkldnn.matmul.fp32_precision = "bf16"  # type: ignore[attr-defined]
        case "half":
            flag = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = not flag
        case "deterministic":
            torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
        case "torch":
            monkeypatch.setattr(torch, "__version__", "9.9.9")
        case "tessiq":
            monkeypatch.setattr("tessiq_core.runtime.recipe_cache.tessiq_version", "9.9.9")
    assert dependencies().key() != before


def test_every_dependency_is_tested() -> None:
    tested = set(CHANGES) | {"precision", "deterministic", "torch", "tessiq"}
    assert tested == {field.name for field in fields(Dependencies)}


@pytest.mark.parametrize("part", [field.name for field in fields(Dependencies)])
def test_dropping_a_part_of_the_key_gives_a_wrong_hit(part: str) -> None:
    """Two compiles that differ in one part only: equal once that part is left out, so the part is what tells them."""
    one = dependencies()
    other = replace(one, **{part: getattr(one, part) + "x"})
    assert one.key() != other.key()
    assert replace(one, **{part: ""}).key() == replace(other, **{part: ""}).key()


def test_a_hit_is_the_same_recipe_and_the_least_recently_used_goes_first() -> None:
    cache = RecipeCache(size=2)
    made: dict[str, Recipe] = {}

    def get(key: str) -> Recipe:
        return cache.get_or_build(key, lambda: made.setdefault(key, recipe(GRAPH)))

    a, b = get("a"), get("b")
    assert get("a") is a
    get("c")  # puts out b, because a was used after it
    assert (cache.hits, cache.misses, len(cache)) == (1, 3, 2)
    assert get("a") is a
    made.clear()
    assert get("b") is not b
    cache.clear()
    assert len(cache) == 0


def test_a_cache_keeps_at_least_one() -> None:
    with pytest.raises(InvalidArgument, match="got size 0"):
        RecipeCache(size=0)


def test_threads_that_ask_for_one_key_at_once_build_it_once() -> None:
    cache = RecipeCache()
    built: list[int] = []
    entered, go = threading.Event(), threading.Event()

    def build() -> Recipe:
        built.append(1)
        entered.set()
        go.wait(10)
        return recipe(GRAPH)

    results: list[Recipe] = []
    threads = [threading.Thread(target=lambda: results.append(cache.get_or_build("k", build))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert entered.wait(10)
    go.set()
    for thread in threads:
        thread.join(10)
    assert len(built) == 1
    assert len(results) == 4
    assert len({id(result) for result in results}) == 1


def test_a_failed_build_goes_to_its_caller_and_the_next_one_builds() -> None:
    cache = RecipeCache()

    def fail() -> Recipe:
        raise KeyError("no")

    with pytest.raises(KeyError):
        cache.get_or_build("k", fail)
    assert cache.get_or_build("k", lambda: recipe(GRAPH)).plan.steps


def test_a_recipe_whose_constant_was_written_is_built_again() -> None:
    cache = RecipeCache()
    constant = torch.ones(4)
    first = cache.get_or_build("k", lambda: recipe(WITH_CONSTANT, constants={"k": constant}))
    assert cache.get_or_build("k", lambda: recipe(WITH_CONSTANT, constants={"k": constant})) is first
    constant.add_(1)
    again = cache.get_or_build("k", lambda: recipe(WITH_CONSTANT, constants={"k": torch.ones(4)}))
    assert again is not first


def test_a_recipe_that_writes_to_a_constant_is_not_kept() -> None:
    text = """
    graph @main(%x: f32[4]) {
      %k = tessiq.constant() {0 = "k", content = "sha256:0"} : f32[4]
      %c = aten.copy_.default(%k, %x) : f32[4]
      return %c
    }
    """
    cache = RecipeCache()
    first = cache.get_or_build("k", lambda: recipe(text, constants={"k": torch.ones(4)}))
    assert first.key == ""
    assert cache.get_or_build("k", lambda: recipe(text, constants={"k": torch.ones(4)})) is not first
    assert recipe(GRAPH).key != ""


def test_the_device_is_a_part_of_the_targets_fingerprint() -> None:
    other = target(manager=Manager(devices=[replace(HOST, ordinal=0, description="another")]))
    assert Dependencies.of(imported(GRAPH), other, parse_options()).key() != dependencies().key()
