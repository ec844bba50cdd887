"""CloverOpsOperators.cmake: the operator names, for clover_ops_declarations()."""

from __future__ import annotations

from .model import Schema
from .text import banner


def emit(schema: Schema) -> str:
    names = "\n".join(f"    {op.name}" for op in schema.operators)
    return f"{banner('#')}\nset(CloverOps_OPERATORS\n{names}\n)\n"
