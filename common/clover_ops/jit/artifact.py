"""A compiled kernel as one file that checks itself: magic, header, binary, and the SHA-256 of all that."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from .errors import ArtifactError, DamagedArtifact, ForeignArtifact, TruncatedArtifact
from .request import Request, Target

MAGIC = b"CLOVERJ1"
SUFFIX = ".clvk"
EXTRA_ARGUMENTS = ("global_scratch", "profile_scratch")
_NUMBERS = (
    "global_scratch_alignment", "global_scratch_bytes", "num_stages", "num_warps", "profile_scratch_alignment",
    "profile_scratch_bytes", "shared_bytes", "warp_size",
)  # fmt: skip
_TEXTS = (
    "architecture", "arguments", "binary_kind", "extra_arguments", "features", "identity", "kernel", "request", "source",
    "symbol", "target", "triton",
)  # fmt: skip
KEYS = tuple(sorted((*_NUMBERS, *_TEXTS)))
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Artifact:
    header: tuple[tuple[str, str], ...]  # every key of KEYS, sorted
    binary: bytes

    def __getitem__(self, key: str) -> str:
        return dict(self.header)[key]

    def number(self, key: str) -> int:
        return int(self[key])

    @property
    def block(self) -> int:
        """Threads of a block: the warps that it was compiled for, of the size that the target has."""
        return self.number("num_warps") * self.number("warp_size")

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self["arguments"].split())


def build(header: dict[str, str], binary: bytes) -> Artifact:
    if missing := sorted(set(KEYS) ^ header.keys()):
        raise ArtifactError(f"an artifact's header has exactly the keys {' '.join(KEYS)}; wrong: {' '.join(missing)}")
    for key, value in header.items():
        if "\n" in value:
            raise ArtifactError(f"{key} holds a line break")
    return Artifact(tuple(sorted(header.items())), binary)


def dump(artifact: Artifact) -> bytes:
    header = "".join(f"{key}: {value}\n" for key, value in artifact.header).encode()
    body = MAGIC + struct.pack("<I", len(header)) + header + struct.pack("<Q", len(artifact.binary)) + artifact.binary
    return body + hashlib.sha256(body).digest()


def load(data: bytes, where: str = "artifact") -> Artifact:
    """The artifact that `data` is; raises TruncatedArtifact or DamagedArtifact."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise DamagedArtifact(
            f"{where}: does not begin with {MAGIC.decode()}: no compiled kernel, or of another format"
        )
    header_at = len(MAGIC) + 4
    header_end = header_at + struct.unpack_from("<I", _enough(data, header_at, where), len(MAGIC))[0]
    # A flipped bit in a length would read as a truncation; the checksum, where it is in place, tells.
    sound = len(data) > _DIGEST_BYTES and hashlib.sha256(data[:-_DIGEST_BYTES]).digest() == data[-_DIGEST_BYTES:]
    binary_at = header_end + 8
    binary_end = binary_at + struct.unpack_from("<Q", _enough(data, binary_at, where), header_end)[0]
    _enough(data, binary_end + _DIGEST_BYTES, where)
    if not sound or len(data) != binary_end + _DIGEST_BYTES:
        raise DamagedArtifact(f"{where}: the checksum does not match: the file is damaged")
    return Artifact(_header(data[header_at:header_end], where), data[binary_at:binary_end])


def _enough(data: bytes, size: int, where: str) -> bytes:
    if len(data) < size:
        raise TruncatedArtifact(f"{where}: truncated: {len(data)} bytes, at least {size} expected")
    return data


def _header(raw: bytes, where: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = [tuple(line.split(": ", 1)) for line in raw.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError:
        raise DamagedArtifact(f"{where}: the header is not UTF-8") from None
    if tuple(pair[0] for pair in pairs) != KEYS or any(len(pair) != 2 for pair in pairs):
        raise DamagedArtifact(f"{where}: the header must have the keys {' '.join(KEYS)}, in this order")
    for key, value in pairs:
        if key in _NUMBERS and not (value.isascii() and value.isdigit()):
            raise DamagedArtifact(f"{where}: {key} must be a number, got {value!r}")
    return tuple(pairs)


def check_request(artifact: Artifact, request: Request, where: str = "artifact") -> None:
    """Raises ForeignArtifact unless this is the request's kernel, for its target."""
    expected = {
        "kernel": request.kernel,
        "target": request.target.text,
        "features": request.target.features,
        "architecture": request.target.arch,
        "warp_size": str(request.target.warp_size),
        "binary_kind": request.target.binary_kind,
        "source": request.source,
        "arguments": " ".join(request.passed_types),
        "request": request.digest(),
    }
    _check(artifact, expected, where)


def check_target(artifact: Artifact, target: Target, where: str = "artifact") -> None:
    _check(artifact, {"target": target.text, "features": target.features}, where)


def check_identity(artifact: Artifact, identity: str, where: str = "artifact") -> None:
    _check(artifact, {"identity": identity}, where)


def _check(artifact: Artifact, expected: dict[str, str], where: str) -> None:
    for key, value in expected.items():
        if artifact[key] != value:
            raise ForeignArtifact(f"{where}: of another {key}: {artifact[key]!r}, asked for {value!r}")
