"""Finds plugin manifests without the native library: entry points first, then CLOVER_OPS_PLUGIN_PATH."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

GROUP = "clover_ops.backends"
MANIFEST = "plugin.manifest"


@dataclass(frozen=True)
class FoundPlugin:
    name: str
    manifest: Path | None
    origin: str  # "entry point" or "CLOVER_OPS_PLUGIN_PATH"
    error: str  # why there is no manifest


def find_manifests() -> list[FoundPlugin]:
    found = [_from_entry_point(entry) for entry in sorted(importlib.metadata.entry_points(group=GROUP))]
    for item in filter(None, os.environ.get("CLOVER_OPS_PLUGIN_PATH", "").split(":")):
        found += _from_path(Path(item))
    return found


def _from_entry_point(entry: importlib.metadata.EntryPoint) -> FoundPlugin:
    """The entry point names the plugin's package, which is located but not imported."""
    try:
        spec = importlib.util.find_spec(entry.value)
    except (ImportError, ValueError) as error:
        return FoundPlugin(entry.name, None, "entry point", f"package {entry.value} cannot be located: {error}")
    try:
        rebuild_if_editable(entry.value, spec)
    except RuntimeError as error:
        return FoundPlugin(entry.name, None, "entry point", str(error))
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / MANIFEST).is_file():
            return FoundPlugin(entry.name, Path(folder) / MANIFEST, "entry point", "")
    return FoundPlugin(entry.name, None, "entry point", f"package {entry.value} holds no {MANIFEST}")


def rebuild_if_editable(package: str, spec: importlib.machinery.ModuleSpec | None) -> None:
    """An editable install builds what changed before its library is opened: no import system sees that happen."""
    rebuild = getattr(spec.loader, "rebuild", None) if spec else None
    if rebuild is None:
        return
    import subprocess

    try:
        rebuild()
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        raise RuntimeError(f"the editable install of {package} does not build: {error}") from None


def _from_path(path: Path) -> list[FoundPlugin]:
    origin = "CLOVER_OPS_PLUGIN_PATH"
    candidates = [path, path / MANIFEST, *sorted(path.glob(f"clover_ops_*/{MANIFEST}"))]
    files = [candidate for candidate in candidates if candidate.is_file()]
    if not files:
        return [FoundPlugin(path.name, None, origin, f"{path} holds no {MANIFEST}")]
    return [FoundPlugin(file.parent.name, file, origin, "") for file in files]
