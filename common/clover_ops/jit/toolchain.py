"""Which Triton is installed, found without importing it: an import takes a second, and every process asks."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .errors import ToolchainError

MINIMUM = (3, 5)
_HOW = "pip install 'triton>=3.5' (for a Hygon DCU, the Triton of DTK)"


@dataclass(frozen=True)
class Toolchain:
    version: str
    backend: str  # tells apart builds of one version
    path: str

    def text(self) -> str:
        """The lines that follow a request's text in its identity."""
        return f"triton {self.version}\nbackend {self.backend}\n"


def toolchain() -> Toolchain:
    """The installed Triton; raises ToolchainError where it is missing or too old."""
    try:
        spec = find_spec("triton")
    except (ImportError, ValueError) as error:
        raise ToolchainError(f"Triton cannot be located: {error}; {_HOW}") from None
    if spec is None or not spec.origin:
        raise ToolchainError(f"Triton is not installed: {_HOW}")
    return _inspect(Path(spec.origin))


@functools.lru_cache(maxsize=4)
def _inspect(origin: Path) -> Toolchain:
    version = _version(origin)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < MINIMUM:
        raise ToolchainError(f"Triton {version or 'of unknown version'} in {origin.parent} is too old: {_HOW}")
    return Toolchain(version, _digest(origin.parent), str(origin.parent))


def _version(origin: Path) -> str:
    for node in ast.parse(origin.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "__version__" in names:
                return str(node.value.value)
    return ""


def _digest(package: Path) -> str:
    """RECORD holds the hash of every file of the installed package, its compilers included."""
    records = [path / "RECORD" for path in sorted(package.parent.glob("*triton*.dist-info"))]
    files = [path for path in records if path.is_file() and b"\ntriton/__init__.py," in b"\n" + path.read_bytes()]
    files = files or sorted(package.glob("backends/*/*.py"))
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(path.name.encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()[:16]
