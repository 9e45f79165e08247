"""The cache of recipes in memory, and the list of everything a recipe depends on.

A recipe depends on exactly these, and each is a part of its key (`Dependencies`):

- the traced graph: operators, arguments by type and value, dtypes, shapes and strides as expressions over canonical
  symbols and what is known of those, constants by content, subgraphs, written inputs, outputs (`ImportedGraph.key`);
- the home, and the target that serves it: its device, its emitter with compiler, flags and architecture, its library
  bindings, the selected rewrites by content (`Target.fingerprint`);
- the plugins that loaded, with their versions;
- the operation table, with the rows plugins brought;
- the options and the mode;
- PyTorch's precision settings for matmul and convolution;
- PyTorch's deterministic-algorithm settings;
- the versions of torch and of tessiq.

Not in the key, because nothing built depends on it: the number of threads (read at each launch), grad mode, autocast
and the default dtype (spent while tracing), storage offsets and alignment of inputs (checked at launch).
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch

from tessiq_core.errors import InvalidArgument
from tessiq_core.runtime.imported import ImportedGraph
from tessiq_core.runtime.options import Options
from tessiq_core.runtime.recipe import Recipe
from tessiq_core.runtime.target import Target
from tessiq_core.version import __version__ as tessiq_version

DEFAULT_SIZE = 256


@dataclass(frozen=True)
class Dependencies:
    """What a recipe depends on; one text each, as the module's docstring lists them."""

    graph: str
    kind: str
    home: str
    target: str
    plugins: str
    table: str
    options: str
    precision: str
    deterministic: str
    torch: str
    tessiq: str

    @classmethod
    def of(cls, imported: ImportedGraph, target: Target, options: Options) -> Dependencies:
        """Of compiling `imported` for `target` now."""
        return cls(
            graph=imported.key,
            kind=imported.kind,
            home=imported.home,
            target=target.fingerprint(),
            plugins=target.plugins,
            table=target.table.fingerprint(),
            options=options.key(),
            precision=_precision(),
            deterministic=_deterministic(),
            torch=torch.__version__,
            tessiq=tessiq_version,
        )

    def key(self) -> str:
        """sha256, in hex, of all of them."""
        text = "\0".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))
        return hashlib.sha256(text.encode()).hexdigest()


def _precision() -> str:
    # The per-backend settings; reading the older allow_tf32 flags raises once somebody has set a newer one.
    settings = [
        torch._C._get_fp32_precision_getter(backend, op)
        for backend, op in (
            ("generic", "all"),
            ("cuda", "matmul"),
            ("cuda", "conv"),
            ("mkldnn", "matmul"),
            ("mkldnn", "conv"),
        )
    ]
    matmul = torch.backends.cuda.matmul
    settings += [
        repr(matmul.allow_fp16_reduced_precision_reduction),
        repr(matmul.allow_bf16_reduced_precision_reduction),
    ]
    return " ".join(settings)


def _deterministic() -> str:
    return " ".join(
        str(flag)
        for flag in (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.backends.cudnn.deterministic,
        )
    )


class RecipeCache:
    """Recipes by key, least recently used first out. Thread-safe; one thread builds a key, the others wait for it."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        """`size`: how many recipes are kept, at least 1."""
        if size < 1:
            raise InvalidArgument(f"tessiq: a recipe cache keeps at least 1 recipe, got size {size}")
        self.size = size
        self.hits = 0
        self.misses = 0
        self._recipes: OrderedDict[str, Recipe] = OrderedDict()
        self._building: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._recipes)

    def clear(self) -> None:
        """Forget every recipe. Runners keep those they have."""
        with self._lock:
            self._recipes.clear()

    def get_or_build(self, key: str, build: Callable[[], Recipe]) -> Recipe:
        """The recipe under `key`, or what `build` makes.

        A recipe whose constants were written since, or that has the key "", is not kept. An exception of `build` goes
        to its own caller only; a thread that waited then builds for itself.
        """
        while True:
            with self._lock:
                recipe = self._recipes.get(key)
                if recipe is not None and recipe.constants_unchanged():
                    self._recipes.move_to_end(key)
                    self.hits += 1
                    return recipe
                waiting = self._building.get(key)
                if waiting is None:
                    done = self._building[key] = threading.Event()
                    self.misses += 1
                    break
            waiting.wait()
        try:
            recipe = build()
            if recipe.key:
                with self._lock:
                    self._recipes[key] = recipe
                    self._recipes.move_to_end(key)
                    while len(self._recipes) > self.size:
                        self._recipes.popitem(last=False)
            return recipe
        finally:
            with self._lock:
                del self._building[key]
            done.set()


recipes = RecipeCache()
"""The process's cache."""
