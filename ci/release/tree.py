"""A copy of the checkout with what git knows and nothing else, so that a build sees what a clean clone would."""

from __future__ import annotations

import filecmp
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from .projects import ROOT

_COMPILERS = {"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "SKBUILD_CMAKE_ARGS", "CUDA_HOME", "DTK_ROOT"}


def tracked(root: Path = ROOT) -> list[str]:
    """Tracked files, and new ones that are not ignored; deleted ones are left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and os.path.lexists(root / name)]


def dirty(root: Path = ROOT) -> bool:
    return bool(
        subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True).stdout.strip()
    )


def digest(root: Path = ROOT) -> str:
    """Of all that a build can read: what git knows and does not ignore, the device code, and what the environment says to
    compilers. Two builds with the same digest make the same wheel."""
    total = hashlib.sha256()
    code = root / "build" / "device-code"
    compiled = [path.relative_to(root).as_posix() for path in code.rglob("*") if path.is_file()]
    for name in sorted({*tracked(root), *compiled}):
        path = root / name
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    for name in sorted(os.environ):
        if name.startswith("CMAKE_") or name in _COMPILERS:
            total.update(f"{name}={os.environ[name]}\0".encode())
    return total.hexdigest()


def commit_time(root: Path = ROOT) -> str:
    """SOURCE_DATE_EPOCH of a build: the commit's own time."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def set_version(target: Path, version: str) -> None:
    """Makes the copy another version's; the checkout stays as it is."""
    file = target / "common" / "clover_ops" / "_version.py"
    file.write_text(re.sub(r'"[^"]+"(\s*)$', f'"{version}"\\1', file.read_text(encoding="utf-8")), encoding="utf-8")


def stamp(target: Path, folders: list[str], repository: str, version: str) -> None:
    """Project links and the readme's, which need the address that a release is made at; nothing in the checkout has one."""
    links = {"Repository": "", "Documentation": f"/tree/v{version}/docs", "Changelog": f"/blob/v{version}/CHANGELOG.md"}
    lines = "".join(f'{name} = "{repository}{path}"\n' for name, path in links.items())
    for folder in folders:
        project = target / folder / "pyproject.toml"
        project.write_text(f"{project.read_text(encoding='utf-8')}\n[project.urls]\n{lines}", encoding="utf-8")
    readme = target / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(re.sub(r"\]\((?!\w+:|#)", f"]({repository}/blob/v{version}/", text), encoding="utf-8")


def export(target: Path, root: Path = ROOT) -> None:
    """Makes `target` a copy. Unchanged files keep their times, so that a build there goes on where it was."""
    target.mkdir(parents=True, exist_ok=True)
    names = set(tracked(root))
    for name in sorted(names):
        source, copy = root / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            if not copy.is_symlink() or os.readlink(copy) != os.readlink(source):
                copy.unlink(missing_ok=True)
                copy.symlink_to(os.readlink(source))
        elif not copy.is_file() or copy.is_symlink() or not filecmp.cmp(source, copy, shallow=False):
            copy.unlink(missing_ok=True)
            shutil.copy(source, copy)
    for path in sorted(target.rglob("*"), reverse=True):
        name = path.relative_to(target).as_posix()
        if name.split("/")[0] in ("build", ".git") or name in names:
            continue
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        else:
            path.unlink()
    # What `nox -s device-code` compiled is no part of the checkout: builds embed it from where it is.
    code = root / "build" / "device-code"
    link = target / "build" / "device-code"
    link.parent.mkdir(exist_ok=True)
    if code.is_dir() and not link.exists():
        link.symlink_to(code.resolve())
