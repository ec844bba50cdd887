"""A library exports the ABI and nothing else: what the headers in the core wheel declare."""

from __future__ import annotations

import re

from .. import elf
from ..projects import CORE
from . import Release, Result, each_library, place

NAME = "exports"
RULE = "exported symbols are the C ABI of the installed headers, all of it in the core, the plugin's entry in a plugin"
_DECLARED = re.compile(r"CLOVER_EXPORT\b[^;{]*?\b(clover_\w+)\s*\(")
_PLUGIN = "clover_plugin_"  # of the headers' functions, those that a plugin defines


def check(release: Release) -> Result:
    declared = _declared(release)
    of_plugins = {name for name in declared if name.startswith(_PLUGIN)}
    result, count = Result(), 0
    for wheel, member, data in each_library(release):
        exports = set(elf.read(data).exports)
        count += len(exports)
        file = member.split("/")[-1]
        if wheel.name != CORE:
            allowed, wanted = of_plugins, {_PLUGIN + ("probe" if file.endswith("_probe.so") else "entry")}
        elif file == "libclover_ops.so":
            allowed = wanted = declared - of_plugins
        else:
            allowed = wanted = set()
        if extra := sorted(exports - allowed):
            more = " ..." if len(extra) > 5 else ""
            result.fail(place(wheel, member), f"exports {', '.join(extra[:5])}{more}: no part of the ABI")
        if absent := sorted(wanted - exports):
            result.fail(place(wheel, member), f"does not export {', '.join(absent[:5])}, which the headers declare")
    result.checked = f"{count} symbols"
    return result


def _declared(release: Release) -> set[str]:
    """From the core wheel's headers; from the checkout's when the core is not among the wheels."""
    texts = [
        data.decode() for w in release.wheels if w.name == CORE for m, data in w.members.items() if m.endswith(".h")
    ] or [path.read_text(encoding="utf-8") for path in (release.data.root / "common/include/clover").glob("*.h")]
    return {name for text in texts for name in _DECLARED.findall(text)}
