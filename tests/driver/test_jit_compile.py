"""The child process that compiles a kernel for a plugin, with stand-ins for Python."""

import os
import subprocess

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def program(compiler):
    source = str(ROOT / "common" / "jit" / "compile_service.cpp")
    return compiler("jit_compile", "native/jit_compile.cpp", source, f"-I{ROOT}", f"-I{ROOT / 'common' / 'include'}")


@pytest.fixture
def compile_with(program, tmp_path):
    """compile_with(script) -> what the program printed when Python is that shell script."""

    def run(script, question="compile"):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return call(program, question, CLOVER_OPS_PYTHON=str(python))

    return run


def call(program, *arguments, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLOVER_OPS_")}
    environment = {**kept, **variables}
    return subprocess.run([str(program), *arguments], env=environment, stdout=-1, timeout=60, check=True).stdout


@pytest.mark.parametrize(("value", "mode"), [("off", b"0"), ("bundle", b"1"), ("on", b"2"), ("", b"2")])
def test_modes(program, value, mode):
    assert call(program, CLOVER_OPS_JIT=value) == mode


def test_default_mode(program):
    assert call(program) == b"2"


@pytest.mark.parametrize("value", ["1", "ON", " on"])
def test_another_mode_is_refused(program, value):
    assert call(program, CLOVER_OPS_JIT=value) == f"1 CLOVER_OPS_JIT must be off, bundle or on, got `{value}`".encode()


def test_arguments_and_text_arrive_without_a_shell(compile_with):
    asked = compile_with('for word in "$@"; do echo "<$word>"; done; cat').decode().splitlines()
    words = ["-m", "clover_ops.jit", "compile", "--kernels", "a folder; $HOME", "--request", "-", "--artifact", "-"]
    assert asked == [*(f"<{word}>" for word in words), "text"]


def test_bytes_come_back_whole(compile_with):
    assert compile_with("head -c 3000000 /dev/zero; echo noise >&2") == bytes(3_000_000)


def test_what_a_python_prints_at_start_up_is_no_answer(compile_with):
    assert compile_with("echo welcome; printf 'hello '; printf 'CLOVERJ1 and so on'") == b"CLOVERJ1 and so on"
    lines = "triton 3.6.0\nbackend 12ab\n"
    assert compile_with(f"echo triton welcomes you; printf '{lines}'", "toolchain").decode() == lines
    assert b"toolchain` names no Triton" in compile_with("echo welcome", "toolchain")


def test_the_last_line_is_the_reason(compile_with):
    said = compile_with("head -c 300000 /dev/zero >&2; echo >&2; echo 'clover-ops: no Triton' >&2; exit 1").decode()
    assert said.startswith("5 the compiler `") and said.endswith("` exited with 1: clover-ops: no Triton")


def test_a_silent_failure_and_a_signal(compile_with):
    assert compile_with("exit 3").endswith(b"exited with 3: it gave no reason")
    assert compile_with("kill -9 $$").endswith(b"ended by signal 9: it gave no reason")


def test_missing_python(program, tmp_path):
    said = call(program, "compile", CLOVER_OPS_PYTHON=str(tmp_path / "none")).decode()
    assert said.startswith("5 cannot run `") and "No such file" in said and "CLOVER_OPS_PYTHON" in said
