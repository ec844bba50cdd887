"""What the gates ask of a shared library."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}
_CUDA, _AMDGPU = 190, 224
# Triton's LLVM writes amdgpu9.06-amd-amdhsa-unknown-gfx906, others amdgcn-amd-amdhsa--gfx906.
_GFX = re.compile(rb"amd(?:gcn|gpu[\w.]*)-amd-amdhsa-(?:-|unknown-)(gfx[0-9a-f]+)")
_NOTED = re.compile(rb"-arch sm_(\d+[af]?)\b")
_PTX = re.compile(rb"\.version \d+\.\d+\s+\.target (sm_\d+[af]?)")


@dataclass(frozen=True)
class Library:
    machine: str
    needed: list[str]
    rpath: list[str]
    exports: list[str]
    comments: list[str]  # the compilers and linkers that made it


def read(data: bytes) -> Library:
    elf = ELFFile(io.BytesIO(data))
    needed, rpath = [], []
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag == "DT_NEEDED":
            needed.append(tag.needed)
        elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            rpath += (tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath).split(":")
    exports = []
    symbols = elf.get_section_by_name(".dynsym")
    if isinstance(symbols, SymbolTableSection):
        exports = [
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
        ]
    section = elf.get_section_by_name(".comment")
    comments = [text.decode() for text in section.data().split(b"\0") if text] if section else []
    return Library(
        MACHINES.get(elf["e_machine"], elf["e_machine"]), needed, rpath, sorted(exports), sorted(set(comments))
    )


def code_objects(data: bytes) -> list[str]:
    """The GPU architectures of the code objects and PTX embedded in a library, one entry for each object."""
    found = [f"compute_{match[1].decode().removeprefix('sm_')}" for match in _PTX.finditer(data)]
    start = data.find(b"\x7fELF", 4)
    while start >= 0:
        after = data.find(b"\x7fELF", start + 4)
        image = data[start : after if after >= 0 else len(data)]
        machine = struct.unpack_from("<H", image, 18)[0] if len(image) >= 52 else 0
        if machine == _CUDA:
            found.append(f"sm_{_cuda_architecture(image)}")
        elif machine == _AMDGPU:
            match = _GFX.search(image)
            found.append(match[1].decode() if match else "gfx?")
        start = after
    return sorted(found)


def _cuda_architecture(image: bytes) -> str:
    """As the assembler noted it, `90a` included; else from the flags: the second byte since ABI 8, the first before."""
    if noted := _NOTED.search(image):
        return noted[1].decode()
    flags = struct.unpack_from("<I", image, 48)[0]
    return str(flags >> 8 & 0xFF if image[8] >= 8 else flags & 0xFF)
