"""Renews what the tests know of real compiles: `python tests/jit/recorded/renew.py`, with the Triton that ci/constraints.txt
pins. One file for each target, with the artifacts' headers and the digests of their binaries."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from clover_ops.jit import artifact, kernels, prebuild, request, toolchain
from clover_ops.jit.worker import Worker

TARGETS = ("cuda:90", "hip:gfx906", "hip:gfx90a")
HERE = Path(__file__).parent


def record(target: str) -> dict:
    jobs = prebuild.plan(kernels.read(HERE.parent / "kernels"), [request.parse_target(target)])
    tools = toolchain.toolchain()
    rows = []
    with Worker() as worker:
        for job in jobs:
            found = artifact.load(worker.compile(job.request, job.kernel, tools))
            header = {key: value for key, value in found.header if key != "identity"}  # that follows the installation
            rows.append({"request": job.request.text(), "header": header,
                         "binary": hashlib.sha256(found.binary).hexdigest(), "bytes": len(found.binary)})  # fmt: skip
    return {"triton": tools.version, "target": target, "artifacts": rows}


if __name__ == "__main__":
    for target in TARGETS:
        path = HERE / f"{target.replace(':', '-')}.json"
        path.write_text(json.dumps(record(target), indent=1) + "\n", encoding="utf-8")
        print(path)
