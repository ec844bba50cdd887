#!/usr/bin/env python3
"""Compiles a backend's CUDA sources to the device-code artifact that its wheel embeds.

`ci/build_device_code.py nvidia` reads backends/nvidia/device_code.toml and writes build/device-code/nvidia: one cubin or
PTX file per source and architecture, and device-code.json, which says for each its kernels with registers, shared memory
and spills. Only what changed is compiled again. nvcc is looked for in CUDA_HOME, on PATH, and in the pip package
nvidia-cuda-nvcc.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "common" / "device"))
import embed  # noqa: E402
import sources  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FLAGS = ["-std=c++17", "-O3", "-Xptxas=-v", "-I."]


@dataclass(frozen=True)
class Job:
    source: str
    unit: str
    kind: str  # cubin or ptx
    architecture: str

    @property
    def file(self) -> str:
        prefix = "compute" if self.kind == "ptx" else "sm"
        return f"{self.unit.replace('/', '-')}.{prefix}_{self.architecture}.{self.kind}"

    def command(self, nvcc: Path, output: Path) -> list[str]:
        code = f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.architecture}"
        target = f"-gencode=arch=compute_{self.architecture},code={code}"
        return [str(nvcc), *FLAGS, target, f"-{self.kind}", "-o", str(output), self.source]


class CompileError(Exception):
    pass


def find_nvcc() -> Path:
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


def nvcc_version(nvcc: Path) -> str:
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    if "NVIDIA" not in text:  # vendors of other devices ship a program of this name
        sys.exit(f"{nvcc} is not NVIDIA's compiler: it calls itself {text.splitlines()[0] if text else 'nothing'}")
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    if found is None:
        sys.exit(f"{nvcc} --version names no version: {text}")
    return found[1]


def read_jobs(backend: str) -> list[Job]:
    """One job per source and architecture. A source in one of the listed folders that is not listed itself is an error."""
    path = ROOT / "backends" / backend / "device_code.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if unknown := table.keys() - {"architectures", "folders", "sources"}:
        sys.exit(f"{path}: unknown key `{sorted(unknown)[0]}`")
    listed = table["sources"]
    present = {p.relative_to(ROOT).as_posix() for folder in table["folders"] for p in (ROOT / folder).rglob("*.cu")}
    if missing := sorted(present - listed.keys()):
        sys.exit(f"{path}: does not list {', '.join(missing)}")
    jobs = []
    for source, own in listed.items():
        if not (ROOT / source).is_file():
            sys.exit(f"{path}: {source} does not exist")
        if unknown := own.keys() - {"cubin", "ptx"}:
            sys.exit(f"{path}: {source}: unknown key `{sorted(unknown)[0]}`")
        folder, stem = Path(source).parent.name, Path(source).stem
        for kind in ("cubin", "ptx"):
            for architecture in own.get(kind, table["architectures"][kind]):
                jobs.append(Job(source, f"{folder}/{stem}", kind, architecture))
    return jobs


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


def compile_one(job: Job, nvcc: Path, output: Path, key: str, digest: str) -> dict:
    """Compiles one source for one architecture; returns its entry of the record."""
    partial = output / f"{job.file}.partial"
    result = subprocess.run(job.command(nvcc, partial), cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        partial.unlink(missing_ok=True)
        raise CompileError(f"{job.file}: nvcc failed\n{result.stderr or result.stdout}")
    kernels = ptx_kernels(partial) if job.kind == "ptx" else entry_points(result.stderr + result.stdout)
    if not kernels:
        raise CompileError(f"{job.file}: {job.source} has no kernel")
    partial.replace(output / job.file)
    return {
        "unit": job.unit,
        "source": job.source,
        "source_digest": digest,
        "inputs": sources.closure(ROOT, job.source),
        "kind": job.kind,
        "architecture": job.architecture,
        "file": job.file,
        "bytes": (output / job.file).stat().st_size,
        "sha256": hashlib.sha256((output / job.file).read_bytes()).hexdigest(),
        "key": key,
        "kernels": kernels,
    }


def key_of(job: Job, version: str, digest: str) -> str:
    text = json.dumps([version, job.command(Path("nvcc"), Path(job.file)), digest])
    return hashlib.sha256(text.encode()).hexdigest()


def previous_entries(output: Path) -> dict[str, dict]:
    """Entries of an earlier run whose files are still as it left them, by key."""
    path = output / embed.RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        entries = record["objects"] if record["schema"] == embed.SCHEMA else []
    except (OSError, ValueError, KeyError):
        return {}
    kept = {}
    for entry in entries:
        file = output / entry["file"]
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == entry["sha256"]:
            kept[entry["key"]] = entry
    return kept


def remark(entry: dict) -> str:
    """What a reader of the log wants to know: the size, and kernels that spill."""
    spilling = [k["name"] for k in entry["kernels"] if k.get("spill_stores", 0)]
    text = f"{entry['bytes'] / 1000:.0f} KB, {len(entry['kernels'])} kernels"
    return text + (f", spills: {', '.join(spilling)}" if spilling else "")


def write_record(output: Path, version: str, entries: list[dict], complete: bool) -> None:
    major = int(version.split(".")[0])
    record = {
        "schema": embed.SCHEMA,
        "complete": complete,
        "toolchain": f"nvcc {version}",
        # Code of a toolkit runs on drivers of the same major version and later ones.
        "driver_version": 1000 * major,
        "flags": FLAGS,
        "objects": sorted(entries, key=lambda e: (e["unit"], e["kind"], int(re.sub(r"\D", "", e["architecture"])))),
    }
    path = output / embed.RECORD
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", choices=["nvidia"])
    parser.add_argument("--output", type=Path, help="default: build/device-code/<backend>")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    output = (arguments.output or ROOT / "build" / "device-code" / arguments.backend).resolve()
    output.mkdir(parents=True, exist_ok=True)
    jobs = read_jobs(arguments.backend)
    nvcc = find_nvcc()
    version = nvcc_version(nvcc)
    print(f"nvcc {version}; {len(jobs)} objects; {output}", flush=True)

    digests = {job.source: sources.digest(ROOT, job.source) for job in jobs}
    keys = {job: key_of(job, version, digests[job.source]) for job in jobs}
    previous = previous_entries(output)
    entries = [previous[keys[job]] for job in jobs if keys[job] in previous]
    waiting = [job for job in jobs if keys[job] not in previous]
    print(f"{len(entries)} up to date, {len(waiting)} to compile", flush=True)

    failures = []
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        start = time.monotonic()
        running = {pool.submit(compile_one, job, nvcc, output, keys[job], digests[job.source]): job for job in waiting}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            job = running[future]
            try:
                entry = future.result()
                entries.append(entry)
                text = remark(entry)
            except CompileError as error:
                failures.append(str(error))
                text = "FAILED"
            print(f"[{done}/{len(waiting)}, {time.monotonic() - start:.0f} s] {job.file}: {text}", flush=True)
            # What is compiled stays compiled when a later one fails or the run is interrupted.
            write_record(output, version, entries, complete=False)
    if failures:
        print("\n".join(failures), file=sys.stderr)
        return 1

    write_record(output, version, entries, complete=True)
    wanted = {entry["file"] for entry in entries} | {embed.RECORD}
    for path in output.iterdir():
        if path.name not in wanted:
            path.unlink()
    size = sum(entry["bytes"] for entry in entries)
    print(f"{len(entries)} objects, {size / 1e6:.2f} MB: {output / embed.RECORD}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
