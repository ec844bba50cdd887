#!/usr/bin/env python3
"""Opens the HIP code objects that a wheel carries and says what is wrong with them: `ci/check_device_code.py WHEEL...`.

Each object that device-code.json lists must be in the plugin's library byte for byte, and say of itself what the record says:
architecture, lanes of a wave, kernels, layout of the argument. Each kernel must stay within what its device has, without
spilling to memory. The HIP sources must be there too. `--table FILE` writes the table of kernels for the documentation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from device_code import code_object

PACKAGE = "clover_ops_hygon"
LANES = 64
LDS_BYTES = 64 * 1024
BLOCK_THREADS = 1024
ARGUMENT_BYTES = 512  # of a launch, see common/kernels/native/launch.h
# Per lane, accumulation registers included.
VECTOR_REGISTERS = {"gfx90a": 512}
# 102 that a kernel can name, and six that the count includes: VCC, FLAT_SCRATCH and XNACK_MASK.
SCALAR_REGISTERS = 108


@dataclass(frozen=True)
class Content:
    """What a wheel holds of device code."""

    record: dict
    library: bytes
    sources: dict[str, bytes]


def open_wheel(path: Path) -> Content:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        if f"{PACKAGE}/device-code.json" not in names:
            sys.exit(f"{path}: holds no {PACKAGE}/device-code.json")
        return Content(
            json.loads(wheel.read(f"{PACKAGE}/device-code.json")),
            wheel.read(f"{PACKAGE}/lib{PACKAGE}.so"),
            {Path(name).name: wheel.read(name) for name in names if name.startswith(f"{PACKAGE}/hip/")},
        )


def open_installed() -> Content:
    from importlib.util import find_spec

    spec = find_spec(PACKAGE)
    folder = Path(spec.origin).parent
    return Content(
        json.loads((folder / "device-code.json").read_text(encoding="utf-8")),
        (folder / f"lib{PACKAGE}.so").read_bytes(),
        {path.name: path.read_bytes() for path in (folder / "hip").glob("*.hip")},
    )


def embedded(library: bytes) -> dict[str, int]:
    """Places of what may be an ELF file of an AMD GPU in the library."""
    places, at = [], library.find(b"\x7fELF", 1)
    while at >= 0:
        if int.from_bytes(library[at + 18 : at + 20], "little") == 224:
            places.append(at)
        at = library.find(b"\x7fELF", at + 1)
    return places


def find_object(library: bytes, entry: dict) -> bytes | None:
    for at in embedded(library):
        code = library[at : at + entry["bytes"]]
        if hashlib.sha256(code).hexdigest() == entry["sha256"]:
            return code
    return None


def problems(content: Content) -> list[str]:
    found = []
    objects = content.record["objects"]
    architectures = {entry["architecture"] for entry in objects}
    for unit in sorted({entry["unit"] for entry in objects}):
        if missing := architectures - {entry["architecture"] for entry in objects if entry["unit"] == unit}:
            found.append(f"{unit}: nothing for {', '.join(sorted(missing))}")
        if unit.replace("/", "-") + ".hip" not in content.sources:
            found.append(f"{unit}: its HIP source is not in the wheel")
    for entry in objects:
        code = find_object(content.library, entry)
        if code is None:
            found.append(f"{entry['file']}: the plugin's library does not hold it")
            continue
        with tempfile.NamedTemporaryFile() as file:
            file.write(code)
            file.flush()
            opened = code_object.read(Path(file.name))
        found += object_problems(entry, opened)
    if not objects:
        found.append("there are no code objects")
    return found


def object_problems(entry: dict, opened: code_object.CodeObject) -> list[str]:
    found = []
    if opened.architecture != entry["architecture"] or opened.features:
        target = opened.architecture + opened.features
        found.append(f"{entry['file']}: is for {target}, must be for any {entry['architecture']}")
    if opened.kernels != entry["kernels"]:
        found.append(f"{entry['file']}: its kernels are not those of the record")
    for kernel in opened.kernels:
        found += [
            f"{entry['file']}: {kernel['name']}: {text}" for text in kernel_problems(kernel, entry["architecture"])
        ]
    return found


def kernel_problems(kernel: dict, architecture: str) -> list[str]:
    found = []
    if kernel["warp_size"] != LANES:
        found.append(f"waves of {kernel['warp_size']} lanes, a DCU's have {LANES}")
    if [argument[:2] for argument in kernel["arguments"]] != [["by_value", 0]]:
        found.append(f"must take one argument by value, takes {kernel['arguments']}")
    elif kernel["arguments"][0][2] > ARGUMENT_BYTES:
        found.append(f"an argument of {kernel['arguments'][0][2]} bytes, a launch has {ARGUMENT_BYTES}")
    for what, limit in (
        ("shared", LDS_BYTES),
        ("threads", BLOCK_THREADS),
        ("vgprs", VECTOR_REGISTERS.get(architecture, 256)),
        ("sgprs", SCALAR_REGISTERS),
        # What spills to memory shows here; what spills to other registers (on gfx90a, accumulation registers) does not.
        ("scratch", 0),
    ):
        if kernel[what] > limit:
            found.append(f"{what} {kernel[what]}, at most {limit}")
    return found


def table(record: dict) -> str:
    """For the documentation: one line for each kernel and architecture."""
    lines = [
        "<!-- Generated by ci/check_device_code.py from the Hygon wheel; see docs/clover-hygon.md. Do not edit. -->",
        "",
        "# Code objects of the Hygon wheel",
        "",
        f"Compiled by {record['toolchain']}; never run on a card. Argument and LDS of a block are in bytes. No kernel has",
        "memory of its own: registers spill to other registers, scalar ones to lanes of a vector register, vector ones to",
        "accumulation registers (gfx90a).",
        "",
        "| kernel | architecture | lanes | argument | threads | LDS | VGPRs | SGPRs | SGPR spills | VGPR spills |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows = [(kernel, entry["architecture"]) for entry in record["objects"] for kernel in entry["kernels"]]
    for kernel, architecture in sorted(rows, key=lambda row: (row[0]["name"], row[1])):
        cells = [
            f"`{kernel['name']}`", architecture, kernel["warp_size"], kernel["arguments"][0][2], kernel["threads"],
            kernel["shared"], kernel["vgprs"], kernel["sgprs"], kernel["sgpr_spills"], kernel["vgpr_spills"],
        ]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    failed = False
    for path in arguments.wheels:
        content = open_wheel(path)
        found = problems(content)
        failed = failed or bool(found)
        objects = content.record["objects"]
        print(f"{path}: {len(objects)} code objects, {sum(len(o['kernels']) for o in objects)} kernels by "
              f"{content.record['toolchain']}: {f'{len(found)} problems' if found else 'sound'}")  # fmt: skip
        for problem in found:
            print(f"  {problem}")
        if arguments.table:
            arguments.table.write_text(table(content.record), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
