"""Markdown for the documentation: the operator reference and the capability table."""

from __future__ import annotations

from .emit_plugin import Backend
from .emit_python import default_text
from .emit_specs import signature
from .model import Attribute, Operator, Schema
from .text import SOURCE, markdown_cell, shape_text

_BANNER = f"<!-- Generated from {SOURCE} by common/declgen; run `nox -s gen` to renew. Do not edit. -->"


def emit_reference(schema: Schema) -> str:
    lines = [_BANNER, "", "# Operator reference", ""]
    lines += ["X and Y stand for bfloat16, float16 or float32, each the same throughout a call.", ""]
    for family in dict.fromkeys(op.family for op in schema.operators):
        lines += [f"## {family}", ""]
        for op in schema.operators:
            if op.family == family:
                lines += [*_operator(op), ""]
    return "\n".join(lines).rstrip() + "\n"


def _operator(op: Operator) -> list[str]:
    lines = [f"### {op.name}", "", f"`{signature(op)}`", "", op.summary, "", *_equation(op), ""]
    lines += ["| tensor | shape | dtype | role | meaning |", "| --- | --- | --- | --- | --- |"]
    for t in op.tensors:
        role = {"in": "read", "inout": "in/out", "out": "written"}[t.role] + (", optional" if t.optional else "")
        cells = [f"`{t.name}`", f"`{shape_text(t)}`", t.dtype, role, markdown_cell(t.doc)]
        lines.append(f"| {' | '.join(cells)} |")
    if op.attributes:
        lines += ["", "| attribute | type | default | meaning |", "| --- | --- | --- | --- |"]
        for a in op.attributes:
            kind = ", ".join(f"`{c}`" for c in a.choices) or a.type
            cells = [f"`{a.name}`", kind + _domain(a), _default(op, a), markdown_cell(a.doc)]
            lines.append(f"| {' | '.join(cells)} |")
    notes = [f"Needs {', '.join(f'`{rule.text}`' for rule in op.require)}."] if op.require else []
    notes += [f"{' and '.join(f'`{name}`' for name in group)} come together." for group in op.together]
    notes += [f"`{a}` needs `{b}`." for a, b in op.needs]
    notes += [f"Takes a workspace: `{op.name}_workspace_size` says how large."] if op.workspace else []
    if notes:
        lines += ["", " ".join(notes)]
    return [*lines, "", f"Interface: {op.aligned}. Source: {op.source}. Operator number {op.number}."]


def _equation(op: Operator) -> list[str]:
    return ["$$", op.math, "$$"] if op.math else ["```text", op.equation, "```"]


def _domain(a: Attribute) -> str:
    parts = [f"> {a.above}"] if a.above is not None else [f"≥ {a.min}"] if a.min is not None else []
    parts += [f"≤ {a.max}"] if a.max is not None else []
    return f" {', '.join(parts)}" if parts else ""


def _default(op: Operator, a: Attribute) -> str:
    if a.required:
        return "required"
    if getattr(a.default, "names", ()):
        return f"`{a.default.text}`"
    return f"`{default_text(op, a)}`"


def emit_capabilities(schema: Schema, backends: list[Backend]) -> str:
    names = [backend.name for backend in backends]
    lines = [_BANNER, "", "# Operators and backends", ""]
    lines += [
        "Providers of each operator as slot (name), from each backend's `backend.toml`. Slots 0–9 are native, 10–19"
    ]
    lines += ["Triton.", "", f"| operator | {' | '.join(names)} |", f"| --- {'| --- ' * len(names)}|"]
    for op in schema.operators:
        cells = []
        for backend in backends:
            found = [f"{p.slot} ({p.name})" for p in backend.providers if p.op == op.name]
            cells.append(", ".join(found) or "–")
        lines.append(f"| `{op.name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
