"""Text helpers that every emitter shares: banners, string literals that survive any summary, wrapping."""

from __future__ import annotations

import json
import textwrap

WIDTH = 120
SOURCE = "common/schema/operators.toml"


def banner(comment: str) -> str:
    return f"{comment} Generated from {SOURCE} by common/declgen; run `nox -s gen` to renew. Do not edit."


def c_string(text: str) -> str:
    """A C string literal; JSON's escapes are C's, apart from the slash of `*/`, `//` and trigraphs, harmless in a string."""
    return json.dumps(text, ensure_ascii=True).replace("?", "\\?")


def c_comment(text: str, indent: str = "") -> str:
    """`//` comment lines. A backslash at the end of a line, or its trigraph, would swallow the next: it gets a full stop."""
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False)
    return "\n".join(f"{indent}// {line + '.' if line.endswith((chr(92), '??/')) else line}" for line in lines)


def python_docstring(text: str) -> str:
    """Text that is safe between triple double quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def markdown_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def shape_text(tensor) -> str:
    return "[...]" if tensor.shape is None else "[" + ", ".join(axis.text for axis in tensor.shape) + "]"


def python_tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def python_call(head: str, items: list[str], tail: str, indent: int) -> list[str]:
    """`head` items `tail` on one line, or the items wrapped between them where that is too long."""
    space = " " * indent
    line = f"{space}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return [line]
    wrapped = textwrap.wrap(", ".join(items), WIDTH - indent - 4, break_long_words=False, break_on_hyphens=False)
    return [f"{space}{head}", *(f"{space}    {part}" for part in wrapped), f"{space}{tail}"]
