"""Compiles the portable kernels for the host and makes the plugins simt32 and simt64 of them.

`python tests/simt/simt_build.py` prints the folder; it is build/simt/<digest of everything that goes in>, made once.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
KERNELS = ROOT / "common" / "kernels" / "native"
PLUGINS = ("simt32", "simt64")
FLAGS = ["-std=c++17", "-O2", "-g0", "-fPIC", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror", "-DCLOVER_SIMT"]
FLAGS += ["-fvisibility=hidden"]
INCLUDES = [f"-I{ROOT}", f"-I{ROOT / 'common' / 'include'}", f"-I{HERE}"]


def compiler() -> str:
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise RuntimeError("a C++ compiler is needed for the SIMT harness: set CXX")


def sources() -> list[Path]:
    return sorted(KERNELS.glob("*.cu"))


def digest(version: str) -> str:
    files = [
        *KERNELS.glob("*"),
        *HERE.glob("*.?pp"),
        *HERE.glob("*.toml"),
        *(ROOT / "common" / "device").glob("view.hpp"),
    ]
    files += (ROOT / "common").glob("include/clover/*.h*")
    files += [ROOT / "common" / "schema" / "operators.toml", Path(__file__)]
    sha = hashlib.sha256(f"{version} {compiler()} {platform.machine()}".encode())
    for file in sorted(file for file in files if file.is_file()):
        sha.update(file.name.encode() + b"\0" + file.read_bytes())
    return sha.hexdigest()[:16]


def run(*command: object, **options) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def compile_into(folder: Path, source: Path, *extra: str, name: str | None = None) -> Path:
    output = folder / f"{name or source.name}.o"
    run(compiler(), "-x", "c++", *FLAGS, *INCLUDES, *extra, "-c", source, "-o", output)
    return output


def make_plugin(folder: Path, name: str, version: str, common: list[Path]) -> None:
    plugin = folder / name
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "common")}
    declgen = [sys.executable, "-m", "declgen", "plugin", HERE / f"{name}.toml", plugin / "generated"]
    run(*declgen, "--version", version, "--toolchain", "host", env=environment)
    include = f"-I{plugin / 'generated' / 'include'}"
    own = [
        compile_into(plugin, plugin / "generated" / "registration.cpp", include),
        compile_into(plugin, HERE / "plugin.cpp", include, f'-DCLOVER_SIMT_NAME="{name}"'),
    ]
    exports = f"-Wl,--version-script={ROOT / 'common' / 'cmake' / 'plugin.map'}"
    run(compiler(), "-shared", exports, "-o", plugin / f"libclover_ops_{name}.so", *common, *own)
    shutil.copy(plugin / "generated" / "plugin.manifest", plugin / "plugin.manifest")


def build(version: str) -> Path:
    """The folder with simt32/, simt64/ and the program bad_values, made when it is not there yet."""
    folder = ROOT / "build" / "simt" / digest(version)
    if (folder / "complete").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder.parent))
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            units = [*sources(), HERE / "simt.cpp", HERE / "provider.cpp"]
            objects = dict(zip(units, pool.map(lambda source: compile_into(partial, source), units)))
        for name in PLUGINS:
            (partial / name).mkdir()
            make_plugin(partial, name, version, list(objects.values()))
        machine = [made for unit, made in objects.items() if unit.name != "provider.cpp"]
        for name in ("bad_values", "faults"):
            run(compiler(), "-o", partial / name, compile_into(partial, HERE / f"{name}.cpp"), *machine)
        (partial / "complete").touch()
        try:
            partial.rename(folder)
        except OSError:  # another process was faster
            if not (folder / "complete").is_file():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


if __name__ == "__main__":
    print(build(sys.argv[1] if len(sys.argv) > 1 else "0.1.0"))
