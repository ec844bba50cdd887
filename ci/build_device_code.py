#!/usr/bin/env python3
"""Compiles a backend's device sources to the device-code artifact that its wheel embeds.

`ci/build_device_code.py nvidia` reads backends/nvidia/device_code.toml and writes build/device-code/nvidia: one file per
source and architecture (cubin, PTX or HIP code object), and device-code.json, which names the toolchain and says for each
file its kernels with registers, shared memory and spills. Only what changed is compiled again. Where the toolchains are
looked for stands in ci/device_code/nvcc.py and ci/device_code/hip.py.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import re
import sys
import time
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "common" / "device"))
import embed  # noqa: E402
import sources  # noqa: E402
from device_code.jobs import CompileError, Job, read_table  # noqa: E402

TOOLCHAINS = {"nvidia": "nvcc", "hygon": "hip"}


def compile_one(toolchain, job: Job, output: Path, key: str, digest: str) -> dict:
    """Compiles one source for one architecture; returns its entry of the record."""
    partial = output / f"{job.file}.partial"
    try:
        kernels = toolchain.compile(job, partial, ROOT)
    except CompileError:
        partial.unlink(missing_ok=True)
        raise
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


def key_of(toolchain, job: Job, digest: str) -> str:
    """The same wherever the compiler lies."""
    program, *arguments = toolchain.command(job, Path(job.file))
    text = json.dumps([toolchain.version, [Path(program).name, *arguments], digest])
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
    spilling = [k["name"] for k in entry["kernels"] if k.get("spill_stores", 0) or k.get("vgpr_spills", 0)]
    text = f"{entry['bytes'] / 1000:.0f} KB, {len(entry['kernels'])} kernels"
    return text + (f", spills: {', '.join(spilling)}" if spilling else "")


def order_of(architecture: str) -> tuple:
    """80 before 90 before 90a before 100; gfx906 before gfx90a."""
    number = 0 if architecture.startswith("gfx") else int(re.sub(r"\D", "", architecture))
    return (number, architecture)


def write_record(output: Path, toolchain, entries: list[dict], complete: bool) -> None:
    record = {
        "schema": embed.SCHEMA,
        "complete": complete,
        "toolchain": toolchain.text,
        "driver_version": toolchain.driver_version,
        "flags": list(toolchain.flags),
        "objects": sorted(entries, key=lambda e: (e["unit"], e["kind"], order_of(e["architecture"]))),
    }
    path = output / embed.RECORD
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", choices=list(TOOLCHAINS))
    parser.add_argument("--output", type=Path, help="default: build/device-code/<backend>")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--architectures", type=lambda text: text.split(","), help="for HIP, in place of the list in device_code.toml"
    )
    arguments = parser.parse_args()

    output = (arguments.output or ROOT / "build" / "device-code" / arguments.backend).resolve()
    output.mkdir(parents=True, exist_ok=True)
    table = read_table(ROOT, arguments.backend)
    toolchain = import_module(f"device_code.{TOOLCHAINS[arguments.backend]}").Toolchain()
    jobs = toolchain.jobs(table, arguments.architectures)
    print(f"{toolchain.text}; {len(jobs)} objects; {output}", flush=True)

    digests = {job.source: sources.digest(ROOT, job.source) for job in jobs}
    keys = {job: key_of(toolchain, job, digests[job.source]) for job in jobs}
    previous = previous_entries(output)
    entries = [previous[keys[job]] for job in jobs if keys[job] in previous]
    waiting = [job for job in jobs if keys[job] not in previous]
    print(f"{len(entries)} up to date, {len(waiting)} to compile", flush=True)

    failures = []
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        start = time.monotonic()
        running = {
            pool.submit(compile_one, toolchain, job, output, keys[job], digests[job.source]): job for job in waiting
        }
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
            write_record(output, toolchain, entries, complete=False)
    if failures:
        print("\n".join(failures), file=sys.stderr)
        return 1

    write_record(output, toolchain, entries, complete=True)
    wanted = {entry["file"] for entry in entries} | {embed.RECORD}
    for path in output.iterdir():
        if path.name not in wanted and not path.is_dir():  # a folder: the bundle of Triton kernels
            path.unlink()
    size = sum(entry["bytes"] for entry in entries)
    print(f"{len(entries)} objects, {size / 1e6:.2f} MB: {output / embed.RECORD}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
