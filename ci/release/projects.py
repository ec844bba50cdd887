"""The distributions: the core, and every project file under packaging/ and backends/. A new one is found by being there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = "core"


def find(root: Path = ROOT) -> dict[str, str]:
    """Short name -> folder of its project file, relative to the root; the core first."""
    files = [*root.glob("packaging/*/pyproject.toml"), *root.glob("backends/*/pyproject.toml")]
    plugins = {path.parent.name: path.parent.relative_to(root).as_posix() for path in files}
    return {CORE: ".", **dict(sorted(plugins.items()))}


def distribution(name: str) -> str:
    """The name on an index."""
    return "clover-ops" if name == CORE else f"clover-ops-{name}"
