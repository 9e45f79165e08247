"""The disk cache: private, atomic, and checked on every read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tessiq_core.decline import Decline
from tessiq_core.host import Compiler, DiskCache, cache_directory, find_compiler
from tessiq_core.host.disk_cache import _checked


def write(content: bytes):  # type: ignore[no-untyped-def]
    return lambda path: path.write_bytes(content)


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "er", ".so")
    first = cache.get("k", write(b"one"))
    second = cache.get("k", write(b"two"))
    assert first == second
    assert second.read_bytes() == b"one"
    assert (cache.hits, cache.misses) == (1, 1)


@pytest.mark.parametrize("damage", ["truncate", "foreign", "no-digest"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    cache = DiskCache(tmp_path, ".so")
    path = cache.get("k", write(b"a whole file"))
    if damage == "truncate":
        path.write_bytes(b"a whole")
    elif damage == "foreign":
        path.write_bytes(b"something that somebody else put here")
    else:
        path.with_name(path.name + ".sha256").unlink()
    assert cache.find("k") is None
    assert cache.get("k", write(b"built again")).read_bytes() == b"built again"


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, ".so")

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ValueError("the compiler stopped")

    with pytest.raises(ValueError, match="the compiler stopped"):
        cache.get("k", fail)
    assert list(tmp_path.iterdir()) == []


def test_concurrent_writers_both_end_with_a_whole_entry(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, ".so")
    gate = threading.Barrier(4)
    seen: list[bytes] = []

    def work() -> None:
        gate.wait()
        seen.append(cache.get("k", write(b"x" * 100_000)).read_bytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [b"x" * 100_000] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.so", "k.so.sha256"]


def test_a_directory_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("TESSIQ_CACHE_DIR", str(open_to_all))
    with pytest.warns(UserWarning, match="others may write to it"):
        used = cache_directory()
    assert used != open_to_all
    assert used.stat().st_mode & 0o077 == 0


def test_the_directory_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESSIQ_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "tessiq"
    assert (tmp_path / "tessiq").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TESSIQ_CACHE_DIR", str(tmp_path / "file" / "inside"))
    with pytest.warns(UserWarning, match="is not used"):
        assert cache_directory().is_dir()


def test_no_compiler_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSIQ_CXX", "none")
    found = find_compiler()
    assert isinstance(found, Decline)
    assert found.code == "no-compiler"
    monkeypatch.setenv("TESSIQ_CXX", "no-such-compiler")
    found = find_compiler()
    assert isinstance(found, Decline)
    assert "no-such-compiler" in found.reason
    monkeypatch.delenv("TESSIQ_CXX")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_compiler()
    assert isinstance(found, Decline)
    assert "install one" in found.reason


def test_a_cxx_that_is_no_program_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "clang++"
    compiler.write_text("#!/bin/sh\necho a compiler 1.0\n")
    compiler.chmod(0o755)
    monkeypatch.delenv("TESSIQ_CXX", raising=False)
    monkeypatch.setenv("CXX", "ccache g++")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler() == Compiler(str(compiler), "a compiler 1.0")


def test_without_a_home_nothing_is_written_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TESSIQ_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda user: {}[user])  # a user without a name, as containers have
    _checked.cache_clear()
    with pytest.warns(UserWarning, match="Could not determine home directory"):
        used = cache_directory()
    _checked.cache_clear()
    assert used.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_relative_directory_is_where_it_was_when_first_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESSIQ_CACHE_DIR", f"kept-{tmp_path.name}")
    first = cache_directory()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache_directory() == first == tmp_path / f"kept-{tmp_path.name}"


def test_a_temporary_directory_goes_with_its_process(tmp_path: Path) -> None:
    code = """
import os, warnings
from tessiq_core.host import cache_directory
warnings.simplefilter("ignore")
used = cache_directory()
if os.fork() == 0:
    raise SystemExit  # runs the exit functions it inherited
os.wait()
assert used.is_dir()
print(used)
"""
    (tmp_path / "file").write_text("in the way")
    environment = {**os.environ, "TESSIQ_CACHE_DIR": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    used = Path(done.stdout.strip())
    assert used.parent == tmp_path
    assert not used.exists()
