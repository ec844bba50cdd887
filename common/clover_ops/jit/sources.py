"""The digest of a kernel's sources: its module and every module of the same folder that it imports, transitively.

By syntax alone, so that a build without Triton finds the same digest. Coarser than by function: an edit to a neighbour
in the same file compiles anew what has not changed, and never misses what has.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from .errors import KernelTableError

_ALLOWED = ("triton", "__future__")


def parse_module(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise KernelTableError(f"{path} cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise KernelTableError(f"{path} is no Python: {error}") from None


def imports(path: Path) -> list[str]:
    """The modules of the same folder that a module imports. Others than Triton are refused: they would go unseen."""
    found: set[str] = set()
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _check_outer(path, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            _check_outer(path, node.lineno, node.module or "")
        elif isinstance(node, ast.ImportFrom):
            if node.level > 1:
                raise KernelTableError(f"{path}:{node.lineno}: kernels import from their own folder, not from above it")
            names = [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]
            for name in names:
                if not (path.parent / f"{name}.py").is_file():
                    raise KernelTableError(f"{path}:{node.lineno}: there is no {name}.py in {path.parent}")
                found.add(name)
    return sorted(found)


def _check_outer(path: Path, line: int, name: str) -> None:
    top = name.partition(".")[0]
    if top in _ALLOWED:
        return
    if (path.parent / f"{top}.py").is_file():
        raise KernelTableError(f"{path}:{line}: write `from .{top} import …`; kernels are a package")
    raise KernelTableError(f"{path}:{line}: kernels import Triton and one another alone, not {name}")


def closure(folder: Path, module: str) -> list[str]:
    """`module` and what it reaches, sorted."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports(folder / f"{name}.py")
    return sorted(seen)


def digest(folder: Path, module: str) -> str:
    hashed = hashlib.sha256()
    for name in closure(folder, module):
        hashed.update(name.encode() + b"\0" + (folder / f"{name}.py").read_bytes())
    return hashed.hexdigest()
