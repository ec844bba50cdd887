"""Every plugin that can be found, with its state and the reason, whether or not the native library works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_UNTRIED = "the native library does not load, so nobody can try it"


def list_plugins(described: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The library's own list; and what discovery finds beyond it (all of it when the library does not work)."""
    plugins = [dict(plugin) for plugin in (described or {}).get("plugins", [])]
    for plugin in plugins:  # one whose manifest is broken has no name of its own
        plugin["name"] = plugin["name"] or Path(plugin["manifest"]).parent.name or "?"
    known = {plugin["manifest"] for plugin in plugins}
    for found in _found():
        tried = found.manifest is not None or found.origin == "CLOVER_OPS_PLUGIN_PATH"
        if described is None or not tried:
            plugin = _inspect(found.name, found.manifest, found.error)
            if not plugin["manifest"] or plugin["manifest"] not in known:
                plugins.append(plugin)
                known.add(plugin["manifest"])
    for plugin in plugins:
        if "provides" not in plugin:
            plugin["provides"] = _provides(plugin)
    return plugins


def _found() -> list[Any]:
    from clover_ops import _discovery

    return _discovery.find_manifests()


def _inspect(name: str, path: Path | None, error: str) -> dict[str, Any]:
    """A plugin as its manifest alone shows it."""
    from clover_ops import __version__, _manifest

    plugin: dict[str, Any] = {
        "name": name, "manifest": "" if path is None else os.path.realpath(path), "library": "", "status": "rejected",
        "reason": error, "device": "", "devices": 0, "version": "", "toolchain": "", "architectures": [], "details": {},
    }  # fmt: skip
    if path is None:
        return plugin
    try:
        manifest = _manifest.read(path)
    except _manifest.ManifestError as failure:
        return {**plugin, "reason": str(failure)}
    plugin.update(
        name=manifest.name, version=manifest.version, library=manifest.library, device=manifest.device,
        toolchain=manifest.toolchain, architectures=manifest.architectures,
    )  # fmt: skip
    if manifest.version != __version__:
        return {**plugin, "reason": f"plugin version {manifest.version}, core version {__version__}"}
    return {**plugin, "status": "unknown", "reason": _UNTRIED}


def _provides(plugin: dict[str, Any]) -> list[dict[str, Any]]:
    """Operators that the manifest promises; none where it cannot be read, which the plugin's reason tells."""
    from clover_ops import _manifest

    try:
        provides = _manifest.read(Path(plugin["manifest"])).provides
    except _manifest.ManifestError:
        return []
    return [{"operator": operator, "slot": slot, "name": name} for operator, slot, name in provides]
