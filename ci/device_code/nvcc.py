"""CUDA: nvcc from CUDA_HOME, PATH or the pip package nvidia-cuda-nvcc, to cubins and PTX."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

from .jobs import Job, make_jobs, run_compiler


class Toolchain:
    flags = ("-std=c++17", "-O3", "-Xptxas=-v", "-I.")

    def __init__(self) -> None:
        self.program = find()
        self.version = version_of(self.program)
        self.text = f"nvcc {self.version}"
        # Code of a toolkit runs on drivers of the same major version and later ones.
        self.driver_version = 1000 * int(self.version.split(".")[0])

    def jobs(self, table: dict, architectures: list[str] | None) -> list[Job]:
        if architectures is not None:
            sys.exit("--architectures is for HIP; CUDA's stand in device_code.toml")
        return make_jobs(table, table["architectures"])

    def command(self, job: Job, output: Path) -> list[str]:
        target = f"-gencode=arch=compute_{job.architecture},code={job.target}"
        return [str(self.program), *self.flags, target, f"-{job.kind}", "-o", str(output), job.source]

    def compile(self, job: Job, output: Path, root: Path) -> list[dict]:
        """The kernels in what it writes to `output`."""
        text = run_compiler(self.command(job, output), job, root)
        return ptx_kernels(output) if job.kind == "ptx" else entry_points(text)


def find() -> Path:
    """nvcc, or an exit that says where it was looked for."""
    places = []
    if home := os.environ.get("CUDA_HOME"):
        places.append(Path(home) / "bin" / "nvcc")
    if on_path := shutil.which("nvcc"):
        places.append(Path(on_path))
    for folder in [*site.getsitepackages(), site.getusersitepackages()]:
        places += sorted(Path(folder).glob("nvidia/*/bin/nvcc"), reverse=True)
    for place in places:
        if place.is_file():
            return place
    sys.exit(
        "nvcc was not found in CUDA_HOME, on PATH or as a pip package; install the CUDA toolkit 13.0 or newer, or "
        "`pip install 'nvidia-cuda-nvcc>=13'`"
    )


def version_of(nvcc: Path) -> str:
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    if "NVIDIA" not in text:  # vendors of other devices ship a program of this name
        sys.exit(f"{nvcc} is not NVIDIA's compiler: it calls itself {text.splitlines()[0] if text else 'nothing'}")
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    if found is None:
        sys.exit(f"{nvcc} --version names no version: {text}")
    return found[1]


def entry_points(text: str) -> list[dict]:
    """The kernels that ptxas reports, with what they use."""
    kernels: dict[str, dict] = {}
    current: dict | None = None
    for line in text.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            current = kernels.setdefault(found[1], {"name": found[1]})
        elif current is not None:
            if found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
                current.update(stack=int(found[1]), spill_stores=int(found[2]), spill_loads=int(found[3]))
            if found := re.search(r"Used (\d+) registers", line):
                current["registers"] = int(found[1])
                shared = re.search(r"(\d+) bytes smem", line)
                current["shared"] = int(shared[1]) if shared else 0
                current = None
    return sorted(kernels.values(), key=lambda kernel: kernel["name"])


def ptx_kernels(path: Path) -> list[dict]:
    names = re.findall(r"\.entry\s+(\w+)", path.read_text(encoding="utf-8"))
    return [{"name": name} for name in sorted(names)]
