#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["nox>=2025.2.9"]
# ///
"""Every task of a developer's or a release's day. `python3 noxfile.py -l` lists them; `-s NAME` runs one.

Needs Python 3.10 and a C++17 compiler. nox itself is fetched into .nox/ when it is not installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent

try:
    import nox
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    home = ROOT / ".nox" / "bootstrap"
    python = home / "bin" / "python"
    if not (home / "bin" / "nox").exists():
        print("noxfile.py: nox is not installed; fetching it into .nox/bootstrap", flush=True)
        try:
            venv.create(home, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit(
                "noxfile.py: this Python cannot make virtual environments; on Debian: apt-get install python3-venv"
            )
        subprocess.run([python, "-m", "pip", "install", "--quiet", "nox>=2025.2.9"], check=True)
    os.execv(python, [str(python), str(ROOT / "noxfile.py"), *sys.argv[1:]])

nox.needs_version = ">=2025.2.9"
# pip in a plain venv: the constraint on torch may be met by a local file, which uv would not look at.
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "gen", "test-cpu"]
os.chdir(ROOT)

CONSTRAINTS = "ci/constraints.txt"
DIST = ROOT / "dist"
PROJECTS = {"core": ".", "cpu": "packaging/cpu", "nvidia": "packaging/nvidia"}
TESTS = ("pytest", "pytest-xdist", "hypothesis", "numpy", "ml_dtypes", "torch")


def build_wheels(session: nox.Session, *names: str) -> list[str]:
    """Builds the named distributions into dist/ and returns the wheels' paths."""
    wheels = []
    for name in names:
        folder = DIST / name
        for old in folder.glob("*.whl"):
            old.unlink()
        session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), PROJECTS[name])
        (wheel,) = folder.glob("*.whl")
        session.log(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB")
        wheels.append(str(wheel))
    return wheels


def install_wheels(session: nox.Session, *names: str) -> None:
    """Builds and installs the named distributions, nothing of ours from anywhere else."""
    wheels = build_wheels(session, *names)
    session.install("--quiet", "-c", CONSTRAINTS, *wheels)
    session.install("--quiet", "--force-reinstall", "--no-deps", *wheels)


@nox.session(name="build-cpu")
def build_cpu(session: nox.Session) -> None:
    """Build the core and CPU wheels into dist/."""
    build_wheels(session, "core", "cpu")


@nox.session
def demo(session: nox.Session) -> None:
    """Build the core and CPU wheels, install them and run Clover's preview-and-commit loop (`-- --help` for options)."""
    install_wheels(session, "core", "cpu")
    session.install("--quiet", "-c", CONSTRAINTS, "numpy", "ml_dtypes")
    session.run("clover-ops", "demo", *session.posargs)


@nox.session(name="test-cpu")
def test_cpu(session: nox.Session) -> None:
    """Test the installed wheels: the smoke selection, or everything with `-- --full`. Other arguments go to pytest."""
    arguments = list(session.posargs)
    selection = ["-n", "auto", "-m", "smoke"]
    if "--full" in arguments:
        arguments.remove("--full")
        selection = ["-n", "auto"]
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS)
    install_wheels(session, "core", "cpu")
    session.run("python", "-m", "pytest", *selection, *arguments)


@nox.session(name="device-code-nvidia")
def device_code_nvidia(session: nox.Session) -> None:
    """Compile the CUDA kernels into build/device-code/nvidia, with nvcc from CUDA_HOME, PATH or its pip package."""
    session.install("--quiet", "tomli")
    session.run("python", "ci/build_device_code.py", "nvidia", *session.posargs)


@nox.session(name="build-nvidia")
def build_nvidia(session: nox.Session) -> None:
    """Compile the CUDA kernels and build the core and NVIDIA wheels into dist/."""
    device_code_nvidia(session)
    build_wheels(session, "core", "nvidia")


@nox.session(name="test-nvidia")
def test_nvidia(session: nox.Session) -> None:
    """Test the NVIDIA wheel here: against a stand-in driver, and on the GPU if there is one; else skipped with the reason."""
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS)
    device_code_nvidia(session)
    install_wheels(session, "core", "cpu", "nvidia")
    session.run(
        "python", "-m", "pytest", "-m", "smoke", "tests/driver", "tests/ops", "tests/packaging", *session.posargs
    )


@nox.session(name="test-jit")
def test_jit(session: nox.Session) -> None:
    """Test the Triton JIT's front, with no device, and the Triton kernels in Triton's interpreter (`-- --full`: all cases)."""
    arguments = list(session.posargs)
    selection = ["-m", "smoke"]
    if "--full" in arguments:
        arguments.remove("--full")
        selection = []
    session.install("--quiet", "-c", CONSTRAINTS, "pytest", "pytest-xdist", "numpy", "ml_dtypes", "torch", "triton")
    install_wheels(session, "core", "cpu")
    session.run("python", "-m", "pytest", "-n", "2", "tests/jit", *arguments)
    # Processes of their own: whether Triton interprets is settled when it is imported.
    session.run("python", "-m", "pytest", "-n", "2", *selection, "tests/triton_kernels")


@nox.session(name="jit-bundle")
def jit_bundle(session: nox.Session) -> None:
    """Compile the bundle of a backend's Triton kernels (`-- nvidia`) into build/jit/<backend>; further options pass on."""
    name, *options = session.posargs or ["nvidia"]
    targets = Path("backends", name, "bundle.toml")
    if not targets.is_file():
        session.error(f"backend {name!r} has no {targets}")
    session.install("--quiet", "-c", CONSTRAINTS, "triton")
    install_wheels(session, "core")
    session.run(
        "python", "-m", "clover_ops.jit", "bundle", "--kernels", "common/kernels/triton", "--targets-from", str(targets),
        "--output", f"build/jit/{name}", *options,
    )  # fmt: skip


@nox.session(name="test-native")
def test_native(session: nox.Session) -> None:
    """Build and run the C++ consumers in tests/native against the installed wheels."""
    session.install("--quiet", "cmake>=3.25", "ninja")
    install_wheels(session, "core", "cpu")
    cmake_dir = session.run("clover-ops", "config", "--cmakedir", silent=True).strip()
    build = ROOT / "build" / "native"
    session.run(
        "cmake", "-S", "tests/native", "-B", str(build), "-G", "Ninja", f"-DCloverOps_DIR={cmake_dir}",
        f"-DPython_EXECUTABLE={session.virtualenv.location}/bin/python", "-DCMAKE_BUILD_TYPE=Release",
    )  # fmt: skip
    session.run("cmake", "--build", str(build))
    session.run("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", *session.posargs)


@nox.session(name="test-sanitizers")
def test_sanitizers(session: nox.Session) -> None:
    """Build the core, the CPU backend and their C++ consumers with ASan + UBSan, then with TSan, and run them."""
    session.install("--quiet", "cmake>=3.25", "ninja", "tomli")
    for sanitizers in ("address,undefined", "thread"):
        build = ROOT / "build" / f"native-{sanitizers.replace(',', '-')}"
        session.run("cmake", "-S", "tests/native", "-B", str(build), "-G", "Ninja", f"-DCLOVER_SANITIZE={sanitizers}")
        session.run("cmake", "--build", str(build))
        session.run("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error")


@nox.session(name="test-sdist")
def test_sdist(session: nox.Session) -> None:
    """Build each sdist and, from an unpacked copy in an awkward folder, the same wheel."""
    session.install(
        "--quiet", "build", "scikit-build-core>=1.1", "apache-tvm-ffi>=0.1.15,<0.2", "tomli", "cmake>=3.25", "ninja"
    )
    session.run("python", "ci/check_sdists.py", *(f"{name}={PROJECTS[name]}" for name in ("core", "cpu")))


@nox.session
def gen(session: nox.Session) -> None:
    """Renew what is generated from the operator schema; with `-- --check` fail when a checked-in file is stale."""
    session.install("--quiet", "tomli")
    session.run("python", "-m", "declgen", "files", *session.posargs, env={"PYTHONPATH": "common"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check Python with ruff and the layout of Python and C++; `-- --fix` mends what can be mended."""
    session.install("--quiet", "-c", CONSTRAINTS, "ruff", "clang-format")
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    tracked = session.run("git", "ls-files", external=True, silent=True).split()
    sources = [f for f in tracked if f.endswith((".cpp", ".hpp", ".h", ".cu", ".cuh", ".hip"))]
    sources = [f for f in sources if "/generated/" not in f and f not in GENERATED_HEADERS and Path(f).is_file()]
    session.run("clang-format", *(["-i"] if fix else ["--dry-run", "-Werror"]), *sources)


GENERATED_HEADERS = ("common/include/clover/ops.h", "common/include/clover/abi_ops.h")

if __name__ == "__main__":
    nox.main()
