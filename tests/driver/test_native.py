"""Programs against clover/driver.h, clover/interop/infinirt.h and the code that GPU backends share, on stand-ins."""

import subprocess
from pathlib import Path

import pytest
from clover_ops import _core

from .conftest import ROOT, child_environment

pytestmark = pytest.mark.smoke

LAYER = ("code_objects", "device", "driver", "kernels", "launcher")
COMPILER = ("code_cache", "hiprtc", "own_folder", "runtime_compiler", "sha256")


def run(program, environment, *arguments):
    command = [str(program), *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def headers():
    folder = _core.package_dir() / "include"
    assert (folder / "clover" / "driver.h").is_file()
    return f"-I{folder}"


@pytest.fixture
def hip_library(compiler):
    """hip_library(name, *macros) -> the path of such a stand-in, alone in its folder."""

    def build(name, *macros):
        options = ["-fPIC", "-shared", f"-Wl,-soname,{name}", *(f"-D{macro}" for macro in macros)]
        return compiler(f"hip-{name}-{'-'.join(macros) or 'plain'}/{name}", "standin/hip.cpp", *options)

    return build


@pytest.fixture
def hip_driver(compiler, headers):
    """hip_driver(folder, *arguments, **environment) -> what the program printed, as a dict."""
    program = compiler("hip_driver", "native/hip_driver.cpp", headers)

    def answers(folder, *arguments, **variables):
        text = run(program, child_environment(folder, **variables), *arguments)
        return dict(line.split(": ", 1) for line in text.splitlines())

    return answers


def test_hip_table(hip_driver, hip_library):
    library = hip_library("libamdhip64.so.5")
    answers = hip_driver(library.parent)
    assert answers == {
        "error": "",
        "path": str(library),
        "numbering": "known",
        "warp": "0 64",
        "multiprocessors": "0 60",
        "threads": "0 1024",
        "shared": "0 65536",
        "architecture": "0 gfx906:sramecc+:xnack-",
        "text": "hipErrorDrv (a failure that the test asked for)",
        "call": "hipModuleLaunchKernel hipModuleLoadData",
        "opt-in": "0",
    }


def test_hip_with_the_old_numbering(hip_driver, hip_library):
    answers = hip_driver(hip_library("libamdhip64.so.5").parent, STANDIN_NUMBERING="old", STANDIN_DEVICES="gfx928")
    assert answers["numbering"] == "known" and answers["architecture"] == "0 gfx928"
    assert [answers[name] for name in ("warp", "multiprocessors", "threads", "shared")] == [
        "0 64",
        "0 60",
        "0 1024",
        "0 65536",
    ]


@pytest.mark.parametrize("numbering", ["other", "none"])
def test_hip_with_an_unknown_numbering(hip_driver, hip_library, numbering):
    assert hip_driver(hip_library("libamdhip64.so.5").parent, STANDIN_NUMBERING=numbering)["numbering"] == "unknown"


def test_older_hip(hip_driver, hip_library):
    answers = hip_driver(hip_library("libamdhip64.so.5", "OLDER").parent)
    assert answers["error"] == "" and answers["text"] == "hipErrorStandin (a failure that the test asked for)"


def test_hip_that_lacks_a_function(hip_driver, hip_library):
    library = hip_library("libamdhip64.so.5", "OMIT_CAPTURE")
    error = hip_driver(library.parent)["error"]
    assert error == f"the driver is too old: {library} lacks hipStreamIsCapturing; install a newer one"


def test_no_hip(hip_driver, tmp_path, hidden):
    error = hip_driver(tmp_path, LD_PRELOAD=hidden)["error"]
    assert "there is no HIP driver (set DTK_ROOT if DTK is installed)" in error


@pytest.mark.skipif(not Path("/usr/include/hip").is_dir(), reason="there are no HIP headers in /usr/include")
def test_hip_headers(compiler, headers):
    """The numbers and arguments that clover/driver.h assumes are those of a HIP SDK's headers."""
    options = ["-D__HIP_PLATFORM_AMD__", "-Wno-deprecated-declarations", headers, "-fsyntax-only"]
    source = ROOT / "tests" / "driver" / "native" / "hip_headers.cpp"
    command = [compiler.program, "-std=c++17", *options, str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_hip_of_dtk(hip_driver, hip_library, tmp_path):
    """DTK's library comes before what the loader would find."""
    folder = tmp_path / "dtk" / "hip" / "lib"
    folder.mkdir(parents=True)
    (folder / "libgalaxyhip.so.5").symlink_to(hip_library("libgalaxyhip.so.5"))
    answers = hip_driver(hip_library("libamdhip64.so.5").parent, DTK_ROOT=str(tmp_path / "dtk"))
    assert answers["path"] == str(folder / "libgalaxyhip.so.5")


def test_hip_that_is_loaded_already(hip_driver, hip_library, tmp_path):
    """The copy that a framework has loaded comes first, whatever its version and place."""
    loaded = hip_library("libamdhip64.so.9")
    answers = hip_driver(hip_library("libamdhip64.so.5").parent, "preload", loaded, DTK_ROOT=str(tmp_path))
    assert answers["path"] == str(loaded)


def test_shared_layer_on_hip(compiler, hip_library):
    sources = [str(ROOT / "common" / "device" / f"{name}.cpp") for name in LAYER + COMPILER]
    options = ["-DCLOVER_DEVICE_TYPE=CLOVER_ROCM", f"-I{ROOT}", f"-I{ROOT / 'common' / 'include'}"]
    program = compiler("device_layer", "native/device_layer.cpp", *sources, *options)
    devices = "gfx906:sramecc+:xnack-,gfx906:sramecc+:xnack-"
    run(
        program,
        child_environment(hip_library("libamdhip64.so.5").parent, STANDIN_DEVICES=devices, STANDIN_THREADS="256"),
    )


IMAGES = ("80", "90", "90a", "100", "120", "ptx80", "ptx90")


@pytest.mark.parametrize(
    "device, images, chosen",
    [
        ("80", IMAGES, "80"),
        ("86", IMAGES, "80"),
        ("86", ("ptx80", "80", "86"), "86"),
        ("90", IMAGES, "90a"),
        ("90", ("90", "ptx90"), "90"),
        ("100", IMAGES, "100"),
        ("103", IMAGES, "100"),
        ("110", IMAGES, "ptx90"),
        ("121", IMAGES, "120"),
        ("130", ("ptx90", "ptx80", "120"), "ptx90"),
        ("100", ("90a",), "none"),
        ("89", ("90", "ptx90"), "none"),
        ("75", IMAGES, "none"),
        ("gfx906", ("gfx906", "gfx90a"), "gfx906"),
        ("gfx936", ("gfx906", "gfx90a"), "none"),
    ],
)
def test_choice_of_image(compiler, device, images, chosen):
    source = str(ROOT / "common" / "device" / "code_objects.cpp")
    program = compiler("choose_image", "native/choose_image.cpp", source, f"-I{ROOT}")
    assert run(program, child_environment(None), device, *images).strip() == chosen


def test_infinirt(compiler, headers, nvidia_plugin, cuda_standin):
    """The plugin's modules and launches go through a class with InfiniRT's interface (a stand-in, not InfiniRT)."""
    library = _core.package_dir() / "lib"
    program = compiler(
        "infinirt", "native/infinirt.cpp", headers, f"-L{library}", "-lclover_ops", f"-Wl,-rpath,{library}"
    )
    assert run(program, child_environment(cuda_standin())).strip() == "ok"
