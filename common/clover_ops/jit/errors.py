"""Why a kernel cannot be had. Each is a CompileError, so a caller who does not care catches one class."""

from __future__ import annotations

from clover_ops.errors import CompileError


class MalformedRequest(CompileError):
    """The text of a request is not one; the message names the line."""


class KernelTableError(CompileError):
    """kernels.toml, or the module it speaks of, is wrong."""


class ToolchainError(CompileError):
    """Triton is missing, too old, or does not know the target."""


class ArtifactError(CompileError):
    """A compiled kernel's file cannot be used."""


class TruncatedArtifact(ArtifactError):
    """The file ends too early."""


class DamagedArtifact(ArtifactError):
    """The file's bytes are not those that were written."""


class ForeignArtifact(ArtifactError):
    """The file is sound, but of another kernel, target or toolchain."""
