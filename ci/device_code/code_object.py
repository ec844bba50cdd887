"""Reads an AMDGPU code object: for which architecture it is, and its kernels with arguments, wave size, registers and LDS.

All of it stands in the ELF file itself: the architecture and the kernels in a note in MessagePack, as LLVM's "User Guide for
AMDGPU Backend" describes it.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_METADATA_NOTE = 32  # NT_AMDGPU_METADATA


class FormatError(Exception):
    pass


@dataclass(frozen=True)
class CodeObject:
    architecture: str  # gfx906
    features: str  # sramecc+:xnack-, where the code needs them so
    kernels: list[dict]  # sorted by name


def unbundle(data: bytes, architecture: str) -> bytes:
    """The code object of an architecture from what `hipcc --genco` writes, which may hold several, or one bare."""
    if data.startswith(b"\x7fELF"):
        return data
    if not data.startswith(_MAGIC):
        raise FormatError("neither an ELF file nor clang's offload bundle")
    (count,) = struct.unpack_from("<Q", data, len(_MAGIC))
    position = len(_MAGIC) + 8
    names = []
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", data, position)
        name = data[position + 24 : position + 24 + length].decode()
        position += 24 + length
        names.append(name)
        if name.startswith("hip") and name.rsplit("--", 1)[-1].split(":")[0] == architecture:
            return data[offset : offset + size]
    raise FormatError(f"the bundle holds nothing for {architecture}: {', '.join(names)}")


def read(path: Path) -> CodeObject:
    import msgpack
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(path.read_bytes()))
        machine = elf["e_machine"]
        notes = [n for s in elf.iter_segments("PT_NOTE") for n in s.iter_notes() if n["n_name"] == "AMDGPU"]
    except ELFError as error:
        raise FormatError(f"{path}: {error}") from None
    if machine != "EM_AMDGPU":
        raise FormatError(f"{path}: an ELF file for {machine}, not for an AMD GPU")
    found = [note["n_descdata"] for note in notes if note["n_type"] in (_METADATA_NOTE, "NT_AMDGPU_METADATA")]
    if len(found) != 1:
        raise FormatError(f"{path}: {len(found)} notes of metadata, there must be one")
    metadata = msgpack.unpackb(found[0])
    architecture, _, features = metadata["amdhsa.target"].rsplit("--", 1)[-1].partition(":")
    kernels = [_kernel(kernel) for kernel in metadata["amdhsa.kernels"]]
    return CodeObject(architecture, features, sorted(kernels, key=lambda kernel: kernel["name"]))


def _kernel(kernel: dict) -> dict:
    # What the compiler adds behind the source's own arguments begins with `hidden_`.
    own = [argument for argument in kernel[".args"] if not argument[".value_kind"].startswith("hidden_")]
    return {
        "name": kernel[".name"],
        "warp_size": kernel[".wavefront_size"],
        "arguments": [[a[".value_kind"], a[".offset"], a[".size"]] for a in own],
        "threads": kernel[".max_flat_workgroup_size"],
        "shared": kernel[".group_segment_fixed_size"],
        "scratch": kernel[".private_segment_fixed_size"],
        "vgprs": kernel[".vgpr_count"],
        "sgprs": kernel[".sgpr_count"],
        "vgpr_spills": kernel[".vgpr_spill_count"],
        "sgpr_spills": kernel[".sgpr_spill_count"],
    }
