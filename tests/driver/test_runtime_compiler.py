"""Compiling HIP sources where they run: against a stand-in with hiprtc's interface, by a script in hipcc's place, and by the
real hiprtc where this machine has one. The driver is a stand-in throughout, so nothing runs on a card."""

import concurrent.futures
import ctypes.util
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, child_environment

pytestmark = pytest.mark.smoke

LAYER = (
    "code_cache", "code_objects", "device", "driver", "hiprtc", "kernels", "launcher", "own_folder", "runtime_compiler",
    "sha256",
)  # fmt: skip
SOURCE = "// kernels: toy_scale toy_add\n"

HIPCC = """#!{python}
import os, pathlib, sys
architecture = next(a for a in sys.argv if a.startswith("--offload-arch=")).split("=")[1]
source = pathlib.Path(sys.argv[-1]).read_text()
with open(os.environ["STANDIN_COMPILED"], "a") as log:
    log.write(" ".join(sys.argv[1:4]) + " HIP_PLATFORM=" + os.environ.get("HIP_PLATFORM", "") + "\\n")
if "{mode}" == "fail":
    sys.exit("error: it is broken")
names = source.split("// kernels:")[1].splitlines()[0]
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_bytes(f"HSACO {{architecture}}{{names}}".encode() + bytes(1))
"""


class Machine:
    """A stand-in driver, a compiler or none, a cache; and a program with one unit of source."""

    def __init__(self, compiler, folder, libraries):
        self.compiler, self.folder = compiler, folder
        self.log = folder / "compiled.txt"
        self.cache = folder / "cache"
        self.variables = {"STANDIN_COMPILED": str(self.log), "CLOVER_OPS_CACHE_DIR": str(self.cache)}
        self.variables.update(STANDIN_DEVICES="gfx936:sramecc+:xnack-", PATH="/nowhere")
        self.library_path = ":".join(map(str, libraries))

    def run(self, what="1", source=SOURCE, shipped=None, **variables):
        """(stdout, stderr) of the program; `shipped` is what lies beside it, if not the source it was built from."""
        digest = hashlib.sha256(source.encode()).hexdigest()
        sources = [str(ROOT / "common" / "device" / f"{name}.cpp") for name in LAYER]
        options = ["-DCLOVER_DEVICE_TYPE=CLOVER_ROCM", f'-DTOY_DIGEST="{digest}"', f"-I{ROOT}"]
        options.append(f"-I{ROOT / 'common' / 'include'}")
        name = f"toy-{digest[:8]}/program"
        program = self.compiler(name, "native/runtime_compiler.cpp", *sources, *options)
        (program.parent / "hip").mkdir(exist_ok=True)
        file, text = program.parent / "hip" / "toy.hip", source if shipped is None else shipped
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        environment = child_environment(self.library_path, **{**self.variables, **variables})
        command = [str(program), what]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout, result.stderr

    def compiled(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def kept(self):
        return sorted(self.cache.glob("hip/*.clvk"))


@pytest.fixture
def driver_folder(compiler):
    options = ["-fPIC", "-shared", "-Wl,-soname,libamdhip64.so.5"]
    return compiler("hip-driver/libamdhip64.so.5", "standin/hip.cpp", *options).parent


@pytest.fixture
def machine(compiler, tmp_path, driver_folder):
    """With hiprtc."""
    options = ["-fPIC", "-shared", "-Wl,-soname,libhiprtc.so.5"]
    hiprtc = compiler("hiprtc/libhiprtc.so.5", "standin/hiprtc.cpp", *options).parent
    return Machine(compiler, tmp_path, [driver_folder, hiprtc])


@pytest.fixture
def without_hiprtc(compiler, tmp_path, driver_folder):
    if ctypes.util.find_library("hiprtc"):
        pytest.skip("this machine has libhiprtc in the loader's path, which cannot be hidden")
    return Machine(compiler, tmp_path, [driver_folder])


def test_compiled_once_for_the_machine(machine):
    out, err = machine.run()
    assert out == "1 launches, 1 loads\n"
    assert machine.compiled() == ["toy.hip --offload-arch=gfx936 -std=c++17 -O3"]
    assert (
        "clover-ops: compiling native/toy for gfx936 by hiprtc 9.7 (" in err and f"kept in {machine.cache}/hip" in err
    )
    assert machine.run() == ("1 launches, 1 loads\n", "")  # another process: nothing to do, nothing to say
    assert len(machine.compiled()) == 1 and len(machine.kept()) == 1


def test_features_tell_devices_apart(machine):
    machine.run()
    machine.run(STANDIN_DEVICES="gfx936:sramecc-:xnack-")
    machine.run(STANDIN_DEVICES="gfx928")
    assert [line.split()[1] for line in machine.compiled()] == ["--offload-arch=gfx936"] * 2 + ["--offload-arch=gfx928"]


def test_prebuilt_code_comes_first(machine):
    assert machine.run(STANDIN_DEVICES="gfx906:sramecc+:xnack-") == ("1 launches, 1 loads\n", "")
    assert machine.compiled() == [] and machine.kept() == []


def test_threads_and_processes_compile_once(machine):
    out, _ = machine.run("8")
    assert out == "8 launches, 1 loads\n" and len(machine.compiled()) == 1
    machine.kept()[0].unlink()
    machine.run()  # builds the program, so that the processes below start at once
    machine.kept()[0].unlink()
    before = len(machine.compiled())
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: machine.run()[0], range(4)))
    assert results == ["1 launches, 1 loads\n"] * 4 and len(machine.compiled()) == before + 1


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "another's"])
def test_damaged_file_is_compiled_anew(machine, damage):
    machine.run()
    (kept,) = machine.kept()
    sound = kept.read_bytes()
    other = sound.replace(b"gfx936", b"gfx906")
    kept.write_bytes(
        {"truncated": sound[:-1], "changed": sound[:-40] + b"x" + sound[-39:], "empty": b""}.get(damage, other)
    )
    assert machine.run()[0] == "1 launches, 1 loads\n"
    assert len(machine.compiled()) == 2 and machine.kept() == [kept] and kept.read_bytes() == sound


def test_capture(machine):
    out, _ = machine.run("capture")
    assert out.startswith("error 5: kernel toy_add is not loaded on rocm:0 and the stream is being captured")
    assert "warmup" in out and machine.compiled() == []


def test_source_that_does_not_compile(machine):
    out, _ = machine.run(source=SOURCE + "BROKEN\n")
    assert out.startswith("error 5: hiprtc 9.7 (") and "cannot compile toy.hip for gfx936" in out
    assert "HIPRTC_ERROR_COMPILATION" in out and "toy.hip:1:1: error: it is broken" in out
    assert machine.kept() == []


@pytest.mark.parametrize("mode", ["off", "bundle"])
def test_forbidden(machine, mode):
    out, _ = machine.run(CLOVER_OPS_JIT=mode)
    assert (
        out.startswith("error 5: the plugin holds no code for gfx936 (it has gfx906)")
        and f"CLOVER_OPS_JIT={mode}" in out
    )
    assert machine.compiled() == []


def test_source_of_another_build(machine):
    out, _ = machine.run(shipped="// kernels: something_else\n")
    assert "toy.hip is not the source that this plugin was built from; reinstall the plugin" in out
    assert "toy.hip is missing; reinstall the plugin" in machine.run(shipped="")[0]


def test_unwritable_cache(machine):
    """It works, and says that the next process will compile again."""
    machine.folder.joinpath("file").write_text("")
    out, err = machine.run(CLOVER_OPS_CACHE_DIR=str(machine.folder / "file"))
    assert out == "1 launches, 1 loads\n" and "NOT kept for the next process" in err and "is not a folder" in err


def test_cache_that_others_may_write(machine):
    machine.cache.mkdir()
    machine.cache.chmod(0o777)
    out, err = machine.run()
    assert out == "1 launches, 1 loads\n" and "can be written by others; chmod 700 it" in err and machine.kept() == []


def test_cache_inside_an_installation(machine):
    folder = machine.folder / "site-packages" / "cache"
    out, err = machine.run(CLOVER_OPS_CACHE_DIR=str(folder))
    assert out == "1 launches, 1 loads\n" and "is inside an installation of Python packages" in err
    assert not list(folder.glob("**/*.clvk"))


def test_no_compiler(without_hiprtc):
    out, _ = without_hiprtc.run()
    assert out.startswith("error 5: there is no HIP compiler: no hiprtc (") and "set DTK_ROOT" in out


@pytest.mark.parametrize("mode", ["good", "fail"])
def test_hipcc_of_dtk(without_hiprtc, mode):
    hipcc = without_hiprtc.folder / "dtk" / "bin" / "hipcc"
    hipcc.parent.mkdir(parents=True)
    hipcc.write_text(HIPCC.format(python=sys.executable, mode=mode))
    hipcc.chmod(0o755)
    out, err = without_hiprtc.run(DTK_ROOT=str(without_hiprtc.folder / "dtk"))
    assert without_hiprtc.compiled() == ["--genco --offload-arch=gfx936 -std=c++17 HIP_PLATFORM=amd"]
    assert f"by hipcc ({hipcc})" in err
    if mode == "fail":
        assert "cannot compile toy.hip for gfx936 (exit status 1):\nerror: it is broken" in out
    else:
        assert out == "1 launches, 1 loads\n" and len(without_hiprtc.kept()) == 1


def real_hiprtc():
    """A library of this machine that has hiprtc's functions (in HIP 5.2 they are the driver library's), or None."""
    for name in ("hiprtc", "amdhip64"):
        if found := ctypes.util.find_library(name):
            for folder in ("/usr/lib/x86_64-linux-gnu", "/opt/rocm/lib", "/usr/lib64"):
                path = Path(folder) / found
                if path.exists() and b"hiprtcCompileProgram" in path.read_bytes():
                    return path
    return None


@pytest.fixture
def hygon_machine(hygon_plugin, compiler, tmp_path, driver_folder):
    """run(architecture, code): a process with the installed plugin, the stand-in driver and the real hiprtc."""
    library = real_hiprtc()
    if library is None:
        pytest.skip("this machine has no hiprtc (on Debian: apt-get install libamdhip64-dev rocm-device-libs)")
    (tmp_path / "libhiprtc.so.5").symlink_to(library)

    def run(architecture, code):
        environment = child_environment(f"{driver_folder}:{tmp_path}", CLOVER_OPS_CACHE_DIR=str(tmp_path / "cache"))
        environment.update(STANDIN_DEVICES=architecture, STANDIN_BACKEND="hygon")
        environment["PYTHONPATH"] += os.pathsep + str(ROOT / "tests")
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run


MERGE = """
from driver.calls import Tensor, call, standin
call("merge_live_rows", [Tensor("bfloat16", 4, 8), Tensor("bfloat16", 4, 8), Tensor("bool", 4), Tensor("bfloat16", 4, 8)])
print([launch["kernel"] for launch in standin().launches()])
"""


def test_real_hiprtc_compiles_what_the_plugin_lacks(hygon_machine):
    """gfx908: public compilers know it, and the wheel holds nothing for it."""
    first = hygon_machine("gfx908:sramecc+:xnack-", MERGE)
    assert first.returncode == 0, first.stderr
    assert "clover_portable_merge_live_rows" in first.stdout
    assert "compiling native/live_rows for gfx908 by hiprtc" in first.stderr
    second = hygon_machine("gfx908:sramecc+:xnack-", MERGE)
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")


def test_real_hiprtc_refuses_what_it_does_not_know(hygon_machine):
    result = hygon_machine("gfx936:sramecc+:xnack-", MERGE)
    assert result.returncode == 1, "the process must not be ended by the compiler"
    assert "CompileError" in result.stderr and "does not know gfx936" in result.stderr and "DTK_ROOT" in result.stderr
