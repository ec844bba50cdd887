"""What goes wrong on machines: each ends in a clear error or in the right kernel, never in a wrong one."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clover_ops.errors import CompileError
from clover_ops.jit import artifact, cache, locks, prebuild, service, toolchain, worker
from clover_ops.jit.cache import Cache
from clover_ops.jit.errors import ToolchainError

from .conftest import KERNELS, identity, jobs, needs_triton, python

JOB = jobs("cuda:90")[0]
TEXT = JOB.request.text()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real artifact."""
    with worker.Worker() as process:
        return process.compile(JOB.request, JOB.kernel, toolchain.toolchain())


def child(cache_dir: Path, code: str, **variables: str) -> subprocess.Popen:
    """A process that gets the kernel, prints its size, and logs each compile to the file LOG names."""
    environment = {**os.environ, "CLOVER_OPS_CACHE_DIR": str(cache_dir), **variables}
    return subprocess.Popen(
        python("-c", code, TEXT, str(KERNELS)),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


GET = """
import os, sys, threading
from pathlib import Path
from clover_ops.jit import service
compiled = service._compile
def logged(*arguments):
    with open(os.environ["LOG"], "a") as log:
        log.write("compile\\n")
    return compiled(*arguments)
service._compile = logged
results = []
def get():
    results.append(service.get(sys.argv[1], Path(sys.argv[2])))
threads = [threading.Thread(target=get) for _ in range(int(os.environ.get("THREADS", "1")))]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(results) == len(threads) and len(set(results)) == 1, len(results)
print(len(results[0]))
"""


@needs_triton
@pytest.mark.smoke
@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty", "garbage"])
def test_a_damaged_cache_file_is_compiled_anew(alone: Path, sound: bytes, damage: str, capfd: pytest.CaptureFixture):
    wrong = bytearray(sound)
    wrong[len(wrong) // 2] ^= 4
    content = {"truncated": sound[:-100], "flipped": bytes(wrong), "empty": b"", "garbage": b"\x7fELF" * 100}
    if damage == "foreign":
        other = jobs("hip:gfx906")[0]
        with worker.Worker() as process:
            content["foreign"] = process.compile(other.request, other.kernel, toolchain.toolchain())
    store = Cache(alone)
    path = store.path(identity(JOB.request))
    path.write_bytes(content[damage])
    assert service.get(TEXT, KERNELS) == sound
    assert path.read_bytes() == sound
    said = capfd.readouterr().err
    expected = {"truncated": "truncated", "empty": "truncated", "flipped": "checksum", "foreign": "of another identity"}
    assert expected.get(damage, "no compiled kernel") in said and "compiled anew" in said


def refuse_writing(monkeypatch: pytest.MonkeyPatch, below: Path, number: int) -> None:
    """os.open fails for writing as on a read-only file system: permissions do not stop root, under whom tests may run."""
    real = os.open

    def open_(path, flags, *arguments, **options):
        if flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(below)):
            raise OSError(number, os.strerror(number), path)
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", open_)


@needs_triton
@pytest.mark.smoke
def test_a_read_only_cache_is_memory_alone_with_one_warning(alone, sound, monkeypatch, capfd):
    Cache(alone)
    compiled = []

    def compile_once(*arguments):
        compiled.append(1)
        return sound

    monkeypatch.setattr(service, "_compile", compile_once)
    refuse_writing(monkeypatch, alone, errno.EROFS)
    for _ in range(3):
        assert service.get(TEXT, KERNELS) == sound
    assert len(compiled) == 1
    warnings = [line for line in capfd.readouterr().err.splitlines() if "memory only" in line]
    assert warnings and all("Read-only file system" in line for line in warnings)
    assert len(warnings) <= 2  # the lock's and the file's
    assert not list((alone / "jit").glob("*"))


@needs_triton
@pytest.mark.smoke
def test_a_kernel_that_was_to_be_kept_and_is_not_has_failed(alone, sound, monkeypatch):
    Cache(alone)
    monkeypatch.setattr(worker.Worker, "compile", lambda *_: sound)
    refuse_writing(monkeypatch, alone, errno.ENOSPC)
    (lost,) = prebuild.into_cache([JOB], lambda *_: None, 1, lasting=True)
    assert lost.status == "failed"
    assert re.search(rf"compiled, and not kept: the cache {alone}/jit/\w+\.clvk: No space left", lost.reason)
    (kept,) = prebuild.into_cache([JOB], lambda *_: None, 1)
    assert (kept.status, kept.data) == ("up to date", sound)  # of memory, which is enough for who launches it at once


@needs_triton
@pytest.mark.smoke
def test_what_lies_in_the_place_of_the_cache(alone: Path, sound: bytes, capfd: pytest.CaptureFixture):
    alone.write_bytes(b"a file, no directory")
    assert service.get(TEXT, KERNELS) == sound
    assert "not a directory" in capfd.readouterr().err
    assert alone.read_bytes() == b"a file, no directory"


@needs_triton
def test_a_full_disk(alone: Path, sound: bytes, tmp_path: Path):
    """A limit on the size of files stands in for it: writes fail in the middle, and half a file must not stay."""
    limited = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom clover_ops.jit import service\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"service._compile = lambda *a: Path({str(tmp_path / 'sound')!r}).read_bytes()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "print(len(service.get(sys.argv[1], Path(sys.argv[2]))))\n"
    )
    (tmp_path / "sound").write_bytes(sound)
    process = child(alone, limited)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert int(out) == len(sound)
    assert err.count("memory only") == 1 and "File too large" in err
    assert [path.suffix for path in (alone / "jit").iterdir()] == [".lock"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small file system")
@needs_triton
def test_a_really_full_disk(alone: Path, sound: bytes, capfd: pytest.CaptureFixture):
    alone.mkdir(mode=0o700)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs", str(alone)], check=False
    ).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        (alone / "filler").write_bytes(bytes(12288))
        assert service.get(TEXT, KERNELS) == sound
        assert "No space left on device" in capfd.readouterr().err
        assert not list((alone / "jit").glob("*.clvk")) and not list((alone / "jit").glob(".*.tmp"))
    finally:
        subprocess.run(["umount", str(alone)], check=True)


@pytest.mark.smoke
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_cache_that_others_may_write_is_not_read(alone: Path, mode: int, capfd: pytest.CaptureFixture):
    Cache(alone).store("0" * 64, b"planted")
    os.chmod(alone, mode)
    store = Cache(alone)
    assert f"mode {mode:04o}" in store.reason and store.load("0" * 64) is None
    store.store("1" * 64, b"mine")
    assert store.load("1" * 64) == b"mine" and not store.path("1" * 64).exists()
    assert capfd.readouterr().err.count("memory only") == 1


@pytest.mark.smoke
def test_a_cache_of_another_user_is_not_read(alone: Path, monkeypatch: pytest.MonkeyPatch):
    Cache(alone).store("0" * 64, b"theirs")
    if os.getuid() == 0:
        os.chown(alone, 12345, 12345)
        other = "user 12345"
    else:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        other = f"user {me}"
    store = Cache(alone)
    assert f"belongs to {other}" in store.reason and store.load("0" * 64) is None


@pytest.mark.smoke
def test_the_cache_is_private_and_never_inside_an_installation(tmp_path: Path):
    store = Cache(tmp_path / "deep" / "cache")
    assert store.reason == ""
    assert [p.stat().st_mode & 0o777 for p in (store.base, store.folder)] == [0o700, 0o700]
    store.store("0" * 64, b"x")
    assert store.path("0" * 64).stat().st_mode & 0o777 == 0o600
    inside = Cache(tmp_path / "lib" / "site-packages" / "clover_ops" / "cache")
    assert "no place for a cache" in inside.reason


@pytest.mark.smoke
def test_a_planted_link_is_not_followed(alone: Path, tmp_path: Path):
    store = Cache(alone)
    target = tmp_path / "precious"
    target.write_text("precious")
    (store.folder / f"{'0' * 64}.lock").symlink_to(target)
    (store.folder / f"{'0' * 64}.clvk").symlink_to(target)
    with store.locked("0" * 64):
        store.store("0" * 64, b"new")
    assert target.read_text() == "precious"
    assert store.path("0" * 64).read_bytes() == b"new"


@pytest.mark.smoke
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert cache.directory() == (Path(os.environ["CLOVER_OPS_CACHE_DIR"]), "CLOVER_OPS_CACHE_DIR")
    monkeypatch.delenv("CLOVER_OPS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == (tmp_path / "clover-ops", "XDG_CACHE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == (tmp_path / ".cache" / "clover-ops", "HOME")
    monkeypatch.delenv("HOME")
    assert cache.directory()[0].name == f"clover-ops-{os.getuid()}"


@needs_triton
def test_two_processes_and_eight_threads_compile_once(alone: Path, tmp_path: Path, sound: bytes):
    log = tmp_path / "log"
    processes = [child(alone, GET, LOG=str(log), THREADS="8") for _ in range(2)]
    answers = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert [int(out) for out, _ in answers] == [len(sound)] * 2
    assert log.read_text() == "compile\n"


@needs_triton
def test_eight_threads_without_a_cache_compile_once(alone: Path, sound: bytes, monkeypatch: pytest.MonkeyPatch):
    alone.write_text("in the way")
    compiled = []

    def slow(*_: object) -> bytes:
        compiled.append(1)
        time.sleep(0.2)
        return sound

    monkeypatch.setattr(service, "_compile", slow)
    threads = [threading.Thread(target=service.get, args=(TEXT, KERNELS)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1


STUCK = GET.replace(
    "compiled = service._compile",
    "import time\ncompiled = lambda *a: (open(os.environ['STARTED'], 'w').close(), time.sleep(600))[1]",
)


@needs_triton
def test_kill_9_during_a_compile(alone: Path, tmp_path: Path, sound: bytes):
    started = tmp_path / "started"
    victim = child(alone, STUCK, LOG=str(tmp_path / "log"), STARTED=str(started))
    wait_for(started.exists, victim)
    left = alone / "jit" / f".{identity(JOB.request)}.clvk.1.dead.tmp"
    left.write_bytes(sound[: len(sound) // 2])
    victim.kill()
    victim.communicate(timeout=60)
    assert victim.returncode == -signal.SIGKILL
    begun = time.monotonic()
    assert service.get(TEXT, KERNELS) == sound
    assert time.monotonic() - begun < 120
    assert sorted(path.suffix for path in (alone / "jit").iterdir()) == [".clvk", ".lock"]


@needs_triton
def test_kill_9_of_the_compiler_itself(tmp_path: Path, sound: bytes):
    with worker.Worker() as process:
        process._child = process._start()
        process._child.kill()
        with pytest.raises(CompileError, match="vector_add, cuda:90:32: the compiler's process was ended by SIGKILL"):
            process.compile(JOB.request, JOB.kernel, toolchain.toolchain())
        assert process.compile(JOB.request, JOB.kernel, toolchain.toolchain()) == sound


def wait_for(condition, process: subprocess.Popen) -> None:
    for _ in range(600):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("it never came to be")


@pytest.mark.smoke
def test_a_lock_ends_with_its_holder(tmp_path: Path):
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom clover_ops.jit import locks\n"
        "with locks.exclusive(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    path = tmp_path / "lock"
    holder = subprocess.Popen(python("-c", code, str(path)), stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    got = threading.Event()

    def take() -> None:
        with locks.exclusive(path):
            got.set()

    waiter = threading.Thread(target=take)
    waiter.start()
    assert not got.wait(0.3)
    holder.kill()
    assert got.wait(30)
    waiter.join()
    holder.communicate()


@pytest.mark.smoke
def test_a_lock_ends_though_a_forked_process_lives_on(tmp_path: Path):
    path = tmp_path / "lock"
    with locks.exclusive(path):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        got = threading.Event()

        def take() -> None:
            with locks.exclusive(path):
                got.set()

        waiter = threading.Thread(target=take, daemon=True)
        waiter.start()
        assert got.wait(10)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def stand_in(root: Path, version: str | None) -> Path:
    """A package called triton, of a version, that cannot be imported."""
    package = root / "triton"
    package.mkdir(parents=True)
    lines = (
        "raise RuntimeError('imported')\n" if version is None else f"__version__ = {version!r}\nraise RuntimeError\n"
    )
    (package / "__init__.py").write_text(lines)
    return root


@pytest.mark.smoke
@pytest.mark.parametrize("version", ["2.1.0", "3.4.1", None])
def test_triton_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None):
    monkeypatch.syspath_prepend(str(stand_in(tmp_path / version if version else tmp_path, version)))
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    with pytest.raises(ToolchainError, match=rf"Triton {version or 'of unknown version'} .*too old.*triton>=3\.5"):
        service.get(TEXT, KERNELS)


@pytest.mark.smoke
def test_triton_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match=r"Triton is not installed: pip install 'triton>=3\.5'"):
        service.get(TEXT, KERNELS)


@pytest.mark.smoke
def test_triton_that_claims_to_be_new_and_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(stand_in(tmp_path, "3.9.0")))
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    with pytest.raises(CompileError, match=r"RuntimeError|cannot be imported"):
        service.get(TEXT, KERNELS)


@pytest.mark.smoke
def test_an_embedded_interpreter_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/usr/bin/some-server")
    with pytest.raises(ToolchainError, match="CLOVER_OPS_PYTHON"):
        worker.interpreter()
    monkeypatch.setenv("CLOVER_OPS_PYTHON", "/nowhere/python3")
    with pytest.raises(ToolchainError, match="/nowhere/python3 cannot be started"), worker.Worker() as process:
        process.compile(JOB.request, JOB.kernel, toolchain.Toolchain("3.9.0", "", ""))


@needs_triton
@pytest.mark.parametrize("code", ["print('welcome')", "import os; os.write(1, b'a line left open')"])
def test_what_a_python_prints_at_start_up_is_no_answer(tmp_path, sound, monkeypatch, capfd, code: str):
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with worker.Worker() as process:
        for _ in range(2):
            assert process.compile(JOB.request, JOB.kernel, toolchain.toolchain()) == sound
    assert "welcome" in capfd.readouterr().err or "line left" in code


@pytest.mark.smoke
@pytest.mark.parametrize(
    "script, says",
    [
        (
            'echo "$@"',
            "vector_add, cuda:90:32: the compiler's process, .*/python, ended with exit code 0; what it printed",
        ),
        ('exec yes -- "$*"', "/python prints without end and compiles nothing: CLOVER_OPS_PYTHON must be a Python"),
    ],
)
def test_what_is_no_python_fails_one_kernel_after_the_other(tmp_path, monkeypatch, capfd, script: str, says: str):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("CLOVER_OPS_PYTHON", str(program))
    monkeypatch.setattr(prebuild, "toolchain", lambda: toolchain.Toolchain("3.9.0", "", ""))
    outcomes = prebuild.into_folder(jobs("cuda:90"), tmp_path / "out", lambda *_: None, 1)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    for outcome in outcomes:
        assert re.search(says, outcome.reason)
    assert "import json, sys" in capfd.readouterr().err


@needs_triton
def test_what_is_stored_is_what_was_asked_for(sound: bytes, monkeypatch: pytest.MonkeyPatch, alone: Path):
    """A compiler that answers with another kernel is not believed."""
    other = jobs("cuda:90")[1]
    monkeypatch.setattr(service, "_compile", lambda *_: sound)
    with pytest.raises(CompileError, match="of another request"):
        service.get(other.request.text(), KERNELS)
    assert not list((alone / "jit").glob("*.clvk"))
    assert artifact.load(sound)["kernel"] == "vector_add"


@needs_triton
def test_sources_that_changed_under_a_request_are_refused(tmp_path: Path):
    copy = Path(shutil.copytree(KERNELS, tmp_path / "kernels"))
    (copy / "helper.py").write_text((copy / "helper.py").read_text() + "\n# changed\n")
    with pytest.raises(CompileError, match="another version"):
        service.get(TEXT, copy)
