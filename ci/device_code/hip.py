"""HIP: DTK's hipcc where DTK_ROOT says so, else a public hipcc (Debian's), to one code object per source and architecture.

Which of the two is used is never guessed: with DTK_ROOT set, its compiler must be there. What public compilers do not know
(gfx926, gfx928, gfx936) is compiled on the user's machine from the sources in the wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import code_object
from .jobs import CompileError, Job, make_jobs, run_compiler

DTK_ONLY = ("gfx926", "gfx928", "gfx936")
INSTALL = "apt-get install hipcc libamdhip64-dev rocm-device-libs"


class Toolchain:
    flags = ("-std=c++17", "-O3", "-I.", "-Wall", "-Wno-unused-function")
    driver_version = 0  # HIP's versions say nothing of which code objects a driver loads

    def __init__(self) -> None:
        self.dtk = os.environ.get("DTK_ROOT", "")
        self.program = find(self.dtk)
        # Without it hipcc compiles for CUDA wherever there is an nvcc.
        self.environment = {**os.environ, "HIP_PLATFORM": "amd"}
        if self.dtk:
            self.environment.setdefault("ROCM_PATH", self.dtk)
        self.version = self._version()
        self.text = f"{'DTK ' + dtk_version(self.dtk) + ' ' if self.dtk else ''}hipcc {self.version}"

    def jobs(self, table: dict, architectures: list[str] | None) -> list[Job]:
        wanted = architectures or table["architectures"]["dtk" if self.dtk else "public"]
        for name in wanted:
            self._check_architecture(name)
        return make_jobs(table, {"hsaco": list(wanted)})

    def command(self, job: Job, output: Path) -> list[str]:
        target = f"--offload-arch={job.architecture}"
        return [str(self.program), "--genco", *self.flags, target, "-x", "hip", "-o", str(output), job.source]

    def compile(self, job: Job, output: Path, root: Path) -> list[dict]:
        """The kernels in what it writes to `output`, as the code object itself tells them."""
        run_compiler(self.command(job, output), job, root, self.environment)
        try:
            output.write_bytes(code_object.unbundle(output.read_bytes(), job.architecture))
            found = code_object.read(output)
        except code_object.FormatError as error:
            raise CompileError(f"{job.file}: {error}") from None
        if found.architecture != job.architecture:
            raise CompileError(f"{job.file}: hipcc made code for {found.architecture}")
        return found.kernels

    def _version(self) -> str:
        result = subprocess.run(
            [self.program, "--version"], env=self.environment, capture_output=True, text=True, check=False
        )
        found = re.search(r"HIP version: (\S+)", result.stdout)
        if found is None:
            sys.exit(f"{self.program} --version names no HIP version: {result.stdout}{result.stderr}")
        clang = re.search(r"clang version (\d+\.\d+\.\d+)", result.stdout)
        return found[1] + (f", clang {clang[1]}" if clang else "")

    def _check_architecture(self, name: str) -> None:
        """Exits unless the compiler knows the architecture; an empty kernel tells."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "empty.hip"
            source.write_text('extern "C" __attribute__((global)) void empty() {}\n', encoding="utf-8")
            command = [self.program, "--genco", f"--offload-arch={name}", "-o", f"{folder}/empty", source]
            result = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return
        if name in DTK_ONLY and not self.dtk:
            advice = f"DTK has it: set DTK_ROOT; without it, the wheel's sources are compiled for {name} where it runs"
        else:
            advice = "choose by --architectures what it knows"
        sys.exit(f"{self.text} ({self.program}) cannot compile for {name}; {advice}\n{result.stderr.strip()}")


def find(dtk: str) -> Path:
    """hipcc, or an exit that says where it was looked for."""
    if dtk:
        for place in ("bin/hipcc", "hip/bin/hipcc"):
            if (Path(dtk) / place).is_file():
                return Path(dtk) / place
        sys.exit(f"DTK_ROOT is {dtk}, but there is no bin/hipcc and no hip/bin/hipcc; unset it to use a public hipcc")
    on_path = shutil.which("hipcc")
    if on_path is None:
        sys.exit(f"hipcc is not on PATH and DTK_ROOT is not set; on Debian: {INSTALL}")
    return Path(on_path)


def dtk_version(dtk: str) -> str:
    for name in (".info/version", ".info/rocm_version", "VERSION"):
        if (Path(dtk) / name).is_file():
            return (Path(dtk) / name).read_text(encoding="utf-8").split()[0]
    return Path(dtk).resolve().name.removeprefix("dtk-")
