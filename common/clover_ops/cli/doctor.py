"""`clover-ops doctor`: what works on this machine and, for what does not, why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import native, output, plugins, probes


def run(as_json: bool) -> int:
    """The command; returns the exit code: 1 if something is broken."""
    report = examine()
    if as_json:
        output.say_json(report)
    else:
        output.say("\n".join(as_lines(report)))
    return 0 if report["ok"] else 1


def examine() -> dict[str, Any]:
    """Run every probe. One that fails leaves a warning and an empty place, never a traceback."""
    warnings: list[str] = []

    def guarded(name: str, probe: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return probe()
        except Exception as error:  # whatever is wrong with the machine, the other lines are still worth reading
            warnings.append(f"the probe of {name} failed: {type(error).__name__}: {error}")
            return otherwise

    answer = guarded("the native library", native.ask, {"error": "the probe failed", "describe": None, "call": None})
    report = {
        "schema": 1,
        "ok": True,
        "problems": [],
        "warnings": warnings,
        "platform": guarded("the platform", probes.platform_facts, {}),
        "packages": guarded("the packages", probes.packages, {}),
        "native_library": {
            "ok": answer["error"] is None,
            "error": answer["error"],
            "call_error": answer["call"],
            **guarded("the package", probes.library, {}),
        },
        "plugins": guarded("the plugins", lambda: plugins.list_plugins(answer["describe"]), []),
        "devices": guarded("the devices", probes.devices, {}),
        "cpu": guarded("the CPU", probes.cpu, {}),
        "cache": guarded("the cache directory", probes.cache, {}),
        "jit": guarded("the JIT", probes.jit, {}),
        "environment": guarded("the environment", probes.environment, {}),
    }
    report["problems"] = _problems(report)
    report["ok"] = not report["problems"]
    warnings += guarded("the environment", probes.unknown_variables, [])
    if report["cache"] and not report["cache"]["writable"]:
        warnings.append(f"compiled kernels are not kept: {report['cache']['path']}: {report['cache']['reason']}")
    if report["plugins"] and not any(p["status"] in ("active", "rejected", "unknown") for p in report["plugins"]):
        warnings.append("no plugin is active: no operator can run here")
    return report


def _problems(report: dict[str, Any]) -> list[str]:
    problems = []
    if not report["native_library"]["ok"]:
        problems.append(f"the native library does not work: {report['native_library']['error']}")
    if report["native_library"]["call_error"]:
        problems.append(f"a call on the CPU fails: {report['native_library']['call_error']}")
    if not report["plugins"]:
        problems.append("no plugin is installed: pip install 'clover-ops[cpu]' (or [nvidia], [hygon])")
    problems += [f"plugin {p['name']}: {p['reason']}" for p in report["plugins"] if p["status"] == "rejected"]
    if report["jit"].get("mode_error"):
        problems.append(report["jit"]["mode_error"])
    return problems


def as_lines(report: dict[str, Any]) -> list[str]:
    """The report for people."""
    facts = report["platform"]
    lines = [
        f"clover-ops {facts.get('clover_ops', '?')}",
        f"  python    {facts.get('python', '?')} ({facts.get('implementation', '?')}, {facts.get('executable', '?')})",
        f"  platform  {facts.get('system', '?')}, {facts.get('machine', '?')}, {facts.get('libc', '?')}",
        "",
        "native library",
        "  works" if report["native_library"]["ok"] else f"  BROKEN    {report['native_library']['error']}",
        f"  {report['native_library'].get('path', '?')}",
        "",
        "plugins",
        *(_plugin_lines(report["plugins"]) or ["  none found"]),
        "",
        "devices",
        *_device_lines(report),
        "",
        "packages",
        *(_package_line(name, package) for name, package in report["packages"].items()),
        "",
        "cache directory",
        f"  {report['cache'].get('path', '?')} (from {report['cache'].get('source', '?')}), "
        + ("writable" if report["cache"].get("writable") else f"NOT WRITABLE: {report['cache'].get('reason', '?')}"),
        "",
        "Triton kernels",
        *_jit_lines(report["jit"]),
        "",
        "environment",
        *([f"  {name}={value}" for name, value in report["environment"].items()] or ["  nothing set"]),
        "",
    ]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    lines += [f"PROBLEM: {problem}" for problem in report["problems"]]
    return [*lines, "all right" if report["ok"] else "something is broken"]


def _plugin_lines(found: list[dict[str, Any]]) -> list[str]:
    lines = []
    for plugin in found:
        status = {"active": "active", "inactive": "inactive", "rejected": "REJECTED"}.get(plugin["status"], "unknown")
        reason = f"  {plugin['reason']}" if plugin["reason"] else ""
        lines.append(f"  {plugin['name']:<8}  {status}{reason}")
        architectures = " ".join(plugin["architectures"])
        facts = [
            f"version {plugin['version']}" if plugin["version"] else "",
            f"{plugin['devices']} {plugin['device']} device(s)" if plugin["device"] else "",
            f"built with {plugin['toolchain']}" if plugin["toolchain"] else "",
            f"for {architectures}" if architectures else "",
            *(f"{name} {value}" for name, value in plugin["details"].items()),
        ]
        if any(facts):
            lines.append(f"            {', '.join(fact for fact in facts if fact)}")
        if plugin["manifest"]:
            lines.append(f"            {plugin['manifest']}")
    return lines


def _device_lines(report: dict[str, Any]) -> list[str]:
    cpu, devices = report["cpu"], report["devices"]
    features = cpu.get("features", {})
    has = " ".join(name for name, there in features.items() if there) or "none of interest"
    lacks = " ".join(name for name, there in features.items() if not there)
    lines = [
        f"  cpu       {cpu.get('model', '?')}, {cpu.get('usable_cores', '?')} of {cpu.get('cores', '?')} cores usable",
        f"            has {has}" + (f"; lacks {lacks}" if lacks else ""),
    ]
    for name, facts in devices.items():
        nodes = f"device nodes {' '.join(facts['nodes'])}" if facts["nodes"] else "no device node"
        lines.append(f"  {name:<8}  {nodes}, kernel driver {'present' if facts['driver'] else 'absent'}")
    return lines


def _jit_lines(jit: dict[str, Any]) -> list[str]:
    if not jit:
        return ["  unknown"]
    return [
        f"  mode      {jit['mode'] or 'WRONG'}",
        f"  compiler  {'Triton ' + jit['triton'] if jit['triton'] else jit['triton_error']}",
        f"  cache     {jit['cache']}, {jit['cached']} compiled kernel(s)"
        + (f"; NOT USED: {jit['cache_error']}" if jit["cache_error"] else ""),
        f"  bundles   {jit['bundled']} compiled kernel(s), {len(jit['kernels'])} plugin(s) with Triton kernels",
    ]


def _package_line(name: str, package: dict[str, Any]) -> str:
    if not package["found"]:
        return f"  {name:<15} not installed"
    build = [f"{key} {package[key]}" for key in ("cuda", "hip") if package.get(key)]
    if name == "torch" and not build:
        build = ["CPU only"]
    return f"  {name:<15} {package['version'] or 'of unknown version'}" + (f" ({', '.join(build)})" if build else "")
