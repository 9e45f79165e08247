"""Compiling, the disk cache, and what happens without a compiler or with one that fails."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from support.emitters import buffers_of, compile_text, launch
from tessiq_core.codegen import parse_kernel
from tessiq_core.codegen.interfaces import Kernel
from tessiq_core.decline import Decline
from tessiq_core.errors import External, Unsupported
from tessiq_core.host import Compiler, DiskCache, find_compiler
from tessiq_core.ops.table import OperationTable, default_table
from tessiq_cpuref import CppEmitter
from tessiq_cpuref.cpp import build as building
from tessiq_cpuref.cpp import flags as flag_module
from tessiq_cpuref.cpp.build import ObjectKey, build, object_key

needs_compiler = pytest.mark.skipif(CppEmitter().available() is not None, reason="no C++ compiler")

TEXT = """
kernel @one(d0 < 3) {
  x = read %x[d0] : f32
  y = add(x, NUMBER) in f32 : f32
  write %y[d0] : f32 = y over d0
}
"""


def make(number: str = "1.0") -> Kernel:
    return compile_text(CppEmitter(), TEXT.replace("NUMBER", number))


def value(kernel: Kernel) -> list[float]:
    y = torch.full((3,), 9.0)
    launch(kernel, [torch.zeros(3)], [y])
    return [float(item) for item in y]


@pytest.fixture
def compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A cache directory of the test's own; how often a compiler ran since the last question."""
    monkeypatch.setenv("TESSIQ_CACHE_DIR", str(tmp_path / "cache"))
    count = 0
    run = Compiler.run

    def counted(self: Compiler, arguments: list[str], what: str) -> None:
        nonlocal count
        count += 1
        run(self, arguments, what)

    monkeypatch.setattr(Compiler, "run", counted)

    def since() -> int:
        nonlocal count
        answer, count = count, 0
        return answer

    return since


def objects(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "cpp").glob("*.so"))


@needs_compiler
def test_an_object_is_compiled_once_and_kept_private(compiles: Callable[[], int], tmp_path: Path) -> None:
    assert value(make()) == [1, 1, 1]
    assert compiles() == 1
    assert value(make()) == [1, 1, 1]
    assert compiles() == 0
    assert len(objects(tmp_path)) == 1
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert not [path for path in (tmp_path / "cache" / "cpp").iterdir() if path.suffix not in (".so", ".sha256")]


@needs_compiler
def test_everything_an_object_depends_on_is_a_miss_when_it_changes(
    compiles: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = find_compiler()
    assert isinstance(compiler, Compiler)
    make()
    compiles()

    # The source: a constant, an expression of the table, an element type.
    make("2.0")
    assert compiles() == 1
    rows = [replace(row, expression="$other + $self") if row.name == "add" else row for row in default_table()]
    kernel = parse_kernel(TEXT.replace("NUMBER", "1.0"))
    CppEmitter().compile([kernel], [buffers_of(kernel)], OperationTable(rows))
    assert compiles() == 1
    compile_text(CppEmitter(), TEXT.replace("NUMBER", "1.0").replace("f32", "f64"))
    assert compiles() == 1

    # The flags, the compiler, the CPU, the version.
    changes: list[tuple[object, str, object]] = [
        (flag_module, "FLAGS", (*flag_module.FLAGS, "-DCHANGED")),
        (building, "find", Compiler(compiler.path, compiler.version + " changed")),
        (building, "cpu_features", lambda: "another CPU"),
        (building, "package_version", lambda: "9.9.9"),
    ]
    for place, name, new in changes:
        with monkeypatch.context() as patch:
            if isinstance(new, Compiler):
                patch.setattr("tessiq_cpuref.cpp.emitter.find_compiler", lambda new=new: new)
            else:
                patch.setattr(place, name, new)
            before = CppEmitter().fingerprint()
            make()
            assert compiles() == 1, name
            make()
            assert compiles() == 0, name
        if name in ("FLAGS", "find"):
            assert CppEmitter().fingerprint() != before
    make()
    assert compiles() == 0


def test_the_key_differs_in_every_field() -> None:
    key = ObjectKey("source", ("-O3",), "g++ 12", "avx2", "0.1.0")
    changed = [
        replace(key, source="other"),
        replace(key, flags=("-O3", "-g")),
        replace(key, compiler="g++ 13"),
        replace(key, cpu="avx512f"),
        replace(key, version="0.2.0"),
    ]
    assert len({item.digest() for item in (key, *changed)}) == 1 + len(changed)
    assert object_key("s", Compiler("/usr/bin/g++", "1")) != object_key("s", Compiler("/opt/g++", "1"))


@needs_compiler
@pytest.mark.parametrize("damage", ["truncated", "foreign", "no-digest", "empty"])
def test_a_damaged_object_is_built_again(compiles: Callable[[], int], tmp_path: Path, damage: str) -> None:
    compiler = find_compiler()
    assert isinstance(compiler, Compiler)
    cache = DiskCache(tmp_path / "cache" / "cpp", ".so")
    source = 'extern "C" int answer() { return 42; }\n'
    key = object_key(source, compiler).digest()
    # Not loaded yet, so that damaging the file harms no mapping of this process.
    cache.get(key, lambda path: building._compile(source, compiler, path))
    path = cache.path(key)
    whole = path.read_bytes()
    compiles()
    match damage:
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "foreign":
            path.write_bytes(b"\x7fELF not ours")
        case "no-digest":
            path.with_name(path.name + ".sha256").unlink()
        case "empty":
            path.write_bytes(b"")
    (library,) = build([source], compiler, cache)
    assert compiles() == 1
    assert library.answer() == 42


@needs_compiler
def test_a_directory_others_may_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TESSIQ_CACHE_DIR", str(shared))
    with pytest.warns(UserWarning, match="is not used: others may write to it"):
        assert value(make("3.5")) == [3.5, 3.5, 3.5]
    assert not list(shared.iterdir())


def test_without_a_compiler_the_emitter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSIQ_CXX", "none")
    emitter, kernel = CppEmitter(), parse_kernel(TEXT.replace("NUMBER", "1.0"))
    declined = emitter.available()
    assert isinstance(declined, Decline)
    assert declined.code == "no-compiler"
    # The text half works on.
    assert emitter.accepts(kernel, default_table()) is None
    assert "tessiq_one" in emitter.source([kernel], default_table())
    assert emitter.fingerprint()
    with pytest.raises(Unsupported, match="cannot compile: TESSIQ_CXX=none"):
        emitter.compile([kernel], [buffers_of(kernel)], default_table())


@needs_compiler
def test_a_failing_compiler_is_an_external_error_with_its_log(
    compiles: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = find_compiler()
    assert isinstance(compiler, Compiler)
    with pytest.raises(External, match=r"(?s)failed.*nonsense"):
        build(["int nonsense(\n"], compiler)
    assert compiles() == 1
    # Nothing of it stays in the cache: it is tried again.
    with pytest.raises(External):
        build(["int nonsense(\n"], compiler)
    assert compiles() == 1
    # One bad unit of several fails the call, naming the log of that unit.
    with pytest.raises(External, match="nonsense"):
        build(['extern "C" int fine() { return 1; }\n', "int nonsense(\n"], compiler)


@needs_compiler
def test_an_object_the_system_cannot_load_is_an_external_error(tmp_path: Path) -> None:
    compiler = find_compiler()
    assert isinstance(compiler, Compiler)
    source = "// never compiled\n"
    cache = DiskCache(tmp_path, ".so")
    cache.get(object_key(source, compiler).digest(), lambda path: path.write_text("not a library") and None)
    with pytest.raises(External, match=r"cannot load .*TESSIQ_CACHE_DIR"):
        build([source], compiler, cache)
