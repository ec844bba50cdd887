"""`clover-ops ops`: the operators, who provides each, and why a provider does not work here."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import click

import clover_ops
from clover_ops._generated.table import OPERATORS

from . import native, output, plugins


def run(name: str | None, as_json: bool) -> int:
    """The command; returns the exit code: 1 if the native library does not work."""
    known = [operator.name for operator in OPERATORS]
    if name is not None and name not in known:
        raise click.BadParameter(unknown(name, known), param_hint="'NAME'")
    table = collect()
    if name is not None:
        table["operators"] = [operator for operator in table["operators"] if operator["name"] == name]
    if as_json:
        output.say_json(table)
    else:
        output.say("\n".join(_table_lines(table) if name is None else _operator_lines(table)))
    return 1 if table["error"] else 0


def unknown(name: str, known: list[str]) -> str:
    """What is wrong with a name that is no operator's, and what was probably meant."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or [other for other in known if name in other]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}."
    return f"there is no operator {name!r}; {hint}"


def collect() -> dict[str, Any]:
    """Operators, and for each provider whether it works and why not."""
    answer = native.ask()
    backends = plugins.list_plugins(answer["describe"])
    operators = _operators(answer["describe"])
    for backend in backends:
        for entry in backend.pop("provides"):
            _add_provider(operators, backend["name"], entry["operator"], entry["slot"], entry["name"])
    # Of two plugins with one name the active one counts.
    status = {backend["name"]: backend for backend in sorted(backends, key=lambda b: b["status"] == "active")}
    for operator in operators.values():
        operator["providers"].sort(key=lambda provider: (provider["backend"], provider["slot"]))
        for provider in operator["providers"]:
            backend = status.get(provider["backend"], {"status": "unknown", "reason": ""})
            provider["works"] = backend["status"] == "active"
            provider["reason"] = None if provider["works"] else f"{backend['status']}: {backend['reason']}"
        operator["works"] = any(provider["works"] for provider in operator["providers"])
    return {
        "schema": 1,
        "version": clover_ops.__version__,
        "error": answer["error"] or (answer["call"] and f"a call on the CPU fails: {answer['call']}"),
        "backends": [{key: backend[key] for key in ("name", "status", "reason")} for backend in backends],
        "operators": sorted(operators.values(), key=lambda operator: operator["number"]),
    }


def _operators(described: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Operators by name, with the providers that the library has loaded."""
    operators: dict[str, dict[str, Any]] = {
        operator.name: {"name": operator.name, "number": operator.number, "title": operator.title, "providers": []}
        for operator in OPERATORS
    }
    for entry in (described or {}).get("operators", []):
        for provider in entry["providers"]:
            _add_provider(operators, provider["backend"], entry["name"], provider["slot"], provider["name"])
    return operators


def _add_provider(operators: dict[str, dict[str, Any]], backend: str, operator: str, slot: int, name: str) -> None:
    provider = {"backend": backend, "slot": slot, "name": name}
    if operator in operators and provider not in operators[operator]["providers"]:
        operators[operator]["providers"].append(provider)


def _table_lines(table: dict[str, Any]) -> list[str]:
    names = list(dict.fromkeys(backend["name"] for backend in table["backends"]))
    rows = [["operator", *names]]
    for operator in table["operators"]:
        rows.append([operator["name"], *(_cell(operator, name) for name in names)])
    return [*output.table(rows), "", *_reasons(table)]


def _cell(operator: dict[str, Any], backend: str) -> str:
    """Its providers, in parentheses where they do not work here."""
    providers = [provider for provider in operator["providers"] if provider["backend"] == backend]
    return " ".join(p["name"] if p["works"] else f"({p['name']})" for p in providers) or "-"


def _reasons(table: dict[str, Any]) -> list[str]:
    lines = [f"the native library does not work: {table['error']}"] if table["error"] else []
    lines += [f"{b['name']}: {b['status']}: {b['reason']}" for b in table["backends"] if b["status"] != "active"]
    if not table["backends"]:
        lines.append("no plugin is installed: pip install 'clover-ops[cpu]' (or [nvidia], [hygon])")
    for operator in table["operators"]:
        if table["backends"] and not operator["providers"]:
            lines.append(f"{operator['name']}: no installed backend provides it")
    return lines or ["every provider works here"]


def _operator_lines(table: dict[str, Any]) -> list[str]:
    (operator,) = table["operators"]
    function = getattr(clover_ops, operator["name"])
    lines = [f"clover_ops.{operator['name']}{inspect.signature(function)}", ""]
    lines += [*(inspect.getdoc(function) or "").splitlines(), ""]
    for provider in operator["providers"]:
        state = "works here" if provider["works"] else provider["reason"]
        lines.append(f"{provider['backend']}: {provider['name']} (slot {provider['slot']}): {state}")
    if not operator["providers"]:
        lines.append("no installed backend provides it")
    return lines
