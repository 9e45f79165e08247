"""The compiled module: its cache key, its answers where it cannot be had, and launching kernels through it."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
import threading
import time
from pathlib import Path

import pytest
import torch

from tessiq_core import native
from tessiq_core.decline import Decline
from tessiq_core.host import Compiler, find_compiler
from tessiq_core.native import build

RANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def module() -> native.NativeModule:
    found = native.load()
    if isinstance(found, Decline):
        pytest.skip(f"the compiled module cannot be had here: {found}")
    return found


def address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def test_launch_covers_every_iteration_once() -> None:
    seen: list[range] = []

    @RANGE
    def kernel(_buffers: int, _words: int, begin: int, end: int) -> None:
        seen.append(range(begin, end))

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        module().launch(address(kernel), 0, 0, 1000, 10)
    finally:
        torch.set_num_threads(before)
    assert sorted(i for part in seen for i in part) == list(range(1000))
    assert len(seen) == 2


def test_launch_hands_over_buffers_and_words() -> None:
    got: list[tuple[int | None, int]] = []

    @RANGE
    def kernel(buffers: int, words: int, _begin: int, _end: int) -> None:
        got.append((ctypes.c_void_p.from_address(buffers).value, ctypes.c_int64.from_address(words).value))

    buffers, words = (ctypes.c_void_p * 1)(0x1230), (ctypes.c_int64 * 1)(-7)
    module().launch(address(kernel), ctypes.addressof(buffers), ctypes.addressof(words), 1, 1)
    assert got == [(0x1230, -7)]


def test_launch_holds_no_gil() -> None:
    going = threading.Event()

    @RANGE
    def kernel(_buffers: int, _words: int, _begin: int, _end: int) -> None:
        going.set()
        ctypes.CDLL(None).usleep(200_000)  # a CDLL call lets the GIL go; `launch` must have let it go before

    count = 0

    def launch() -> None:
        module().launch(address(kernel), 0, 0, 1, 1)

    thread = threading.Thread(target=launch)
    thread.start()
    assert going.wait(5)
    stop = time.monotonic() + 0.05
    while time.monotonic() < stop:
        count += 1
    thread.join()
    assert count > 100


def test_launch_refuses_no_kernel() -> None:
    with pytest.raises(ValueError, match="address of a kernel"):
        module().launch(0, 0, 0, 1, 1)


def test_every_part_of_the_key_changes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler()
    if isinstance(compiler, Decline):
        pytest.skip(str(compiler))
    keys = {
        "as it is": build.cache_key(compiler),
        "torch": build.cache_key(compiler, torch_version="9.9.9"),
        "compiler": build.cache_key(dataclasses.replace(compiler, version="another 1.0")),
        "path": build.cache_key(Compiler("/elsewhere/g++", compiler.version)),
        "flags": build.cache_key(compiler, flags=(*build.FLAGS, "-g")),
    }
    copied = tmp_path / "csrc"
    shutil.copytree(native.sources(), copied)
    monkeypatch.setattr(build, "sources", lambda: copied)
    assert build.cache_key(compiler) == keys["as it is"]
    (copied / "launch.h").write_text((copied / "launch.h").read_text() + "\n// changed\n")
    keys["sources"] = build.cache_key(compiler)
    monkeypatch.setattr(build, "sources", native.sources)
    monkeypatch.setattr(build.sysconfig, "get_config_var", lambda name: "cpython-399")
    keys["python"] = build.cache_key(compiler)
    monkeypatch.setattr(torch, "compiled_with_cxx11_abi", lambda: False)
    keys["abi"] = build.cache_key(compiler)
    assert len(set(keys.values())) == len(keys), keys


def test_off_and_no_compiler_are_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSIQ_NATIVE", "off")
    off = native.load()
    assert isinstance(off, Decline)
    assert off.code == "native-off"
    monkeypatch.setenv("TESSIQ_NATIVE", "auto")
    monkeypatch.setenv("TESSIQ_CXX", "none")
    missing = native.load()
    assert isinstance(missing, Decline)
    assert missing.code == "no-compiler"


def test_a_build_that_fails_is_an_answer_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "csrc"
    broken.mkdir()
    (broken / "module.cpp").write_text("this is not C++")
    monkeypatch.setattr(build, "sources", lambda: broken)
    monkeypatch.setenv("TESSIQ_CACHE_DIR", str(tmp_path / "cache"))
    answer = build._load.__wrapped__("auto", "")
    if isinstance(find_compiler(), Decline):
        pytest.skip("no compiler")
    assert isinstance(answer, Decline)
    assert answer.code == "native-build"
    assert "error" in answer.reason
    assert "building its compiled module" in capfd.readouterr().err
