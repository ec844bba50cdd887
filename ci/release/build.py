"""Builds the wheels of a release without containers: `python -m release.build --out dist/release [NAME ...]`.

Each is built from a copy of the checkout (build/release/tree), by clang, lld and libc++ of the pip package ziglang against
the glibc of the tag, and repaired. What it needs is installed already; nothing is fetched. A second run builds only what
changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from importlib import metadata
from pathlib import Path

from packaging.version import Version

from . import tree, zig
from .data import Data, load, version
from .projects import CORE, ROOT, distribution
from .repair import repair

TREE = ROOT / "build" / "release" / "tree"
_IGNORED = {
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CPPFLAGS",
    "CMAKE_ARGS",
    "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
}


def environment(root: Path = ROOT, cache: Path | None = None) -> dict[str, str]:
    """What makes a build the same anywhere, any time: the commit's time, no user's flags. zig keeps what it compiled in its
    own cache, or in `cache`."""
    env = {k: v for k, v in os.environ.items() if k not in _IGNORED}
    env.setdefault("SOURCE_DATE_EPOCH", tree.commit_time(root))
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    env |= {"CMAKE_GENERATOR": "Ninja", "PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    if cache is not None:
        env |= {"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
    return env


def foreign_tvm_ffi(machine: str) -> Path:
    """The library of apache-tvm-ffi for another machine, from its own wheel; fetched once."""
    place = ROOT / "build" / "release" / "siblings" / machine
    wanted = metadata.version("apache-tvm-ffi")
    folder = place / wanted
    if not folder.is_dir():
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(place),
            "--platform", f"manylinux_2_28_{machine}", "--platform", f"manylinux2014_{machine}", f"apache-tvm-ffi=={wanted}",
        ]  # fmt: skip
        subprocess.run(command, check=True)
        (wheel,) = place.glob(f"apache_tvm_ffi-{wanted}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder / "tvm_ffi" / "lib" / "libtvm_ffi.so"


def build(name: str, data: Data, source: Path, out: Path, machine: str, env: dict[str, str], options=()) -> Path:
    """One wheel, from the copy at `source`, into `out`."""
    raw = source / "build" / "raw" / machine / name
    shutil.rmtree(raw, ignore_errors=True)
    folder = source / data.projects[name]
    settings = [
        f"cmake.define.CMAKE_TOOLCHAIN_FILE={source / 'ci/release/zig.cmake'}", f"cmake.define.CLOVER_ZIG={zig.program()}",
        f"cmake.define.CLOVER_ZIG_TARGET={machine}-linux-gnu.{data.glibc}", f"build-dir={source / 'build' / machine / name}",
        f"wheel.tags=py3-none-linux_{machine}", *options,
    ]  # fmt: skip
    if name == CORE and machine != platform.machine():
        settings.append(f"cmake.define.CLOVER_TVM_FFI_LIBRARY={foreign_tvm_ffi(machine)}")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command += ["--wheel-dir", str(raw), *(word for s in settings for word in ("--config-settings", s)), str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{distribution(name)} for {machine} does not build:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    (wheel,) = raw.glob("*.whl")
    old_epoch = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = env["SOURCE_DATE_EPOCH"]
    try:
        return repair(wheel, out, data)
    finally:
        os.environ.pop("SOURCE_DATE_EPOCH") if old_epoch is None else os.environ.update(SOURCE_DATE_EPOCH=old_epoch)


def build_all(names: list[str], data: Data, source: Path, out: Path, machine: str, env: dict[str, str]) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    wheels = []
    for name in names:
        for old in out.glob(f"{distribution(name).replace('-', '_')}-*_{machine}.whl"):
            old.unlink()
        start = time.monotonic()
        wheels.append(build(name, data, source, out, machine, env))
        print(
            f"{wheels[-1].name}: {wheels[-1].stat().st_size / 1e6:.2f} MB, {time.monotonic() - start:.0f} s", flush=True
        )
    return wheels


def next_version(text: str) -> str:
    major, minor, micro = Version(text).release
    return f"{major}.{minor}.{micro + 1}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="short names; default: every distribution of the machine")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release")
    parser.add_argument("--machine", default=platform.machine())
    parser.add_argument("--next", action="store_true", help="build the next version instead, for the rehearsal")
    arguments = parser.parse_args()
    data = load()
    names = arguments.names or [n for n in data.projects if arguments.machine in data.machines(n)]
    if unknown := [n for n in names if n not in data.projects]:
        parser.error(f"no distribution `{unknown[0]}`; there are {', '.join(data.projects)}")
    if wrong := [n for n in names if arguments.machine not in data.machines(n)]:
        parser.error(f"{distribution(wrong[0])} is not for {arguments.machine} (ci/release/release.toml)")
    names.sort(key=lambda n: n != CORE)
    tree.export(TREE)
    if arguments.next:
        tree.set_version(TREE, next_version(version()))
    if repository := os.environ.get("CLOVER_OPS_REPOSITORY"):
        tree.stamp(TREE, list(data.projects.values()), repository, version())
    build_all(names, data, TREE, arguments.out.resolve(), arguments.machine, environment())


if __name__ == "__main__":
    main()
