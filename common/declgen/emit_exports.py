"""common/src/generated/exports.cpp: the exported C function of each operator, one line of dispatch each."""

from __future__ import annotations

from .model import Operator, Schema
from .text import banner


def emit(schema: Schema) -> str:
    lines = [banner("//"), "#include <clover/abi_ops.h>", "", '#include "dispatch.hpp"', '#include "error.hpp"', ""]
    lines += ['extern "C" {', *(_operator(op) for op in schema.operators), "", '}  // extern "C"', ""]
    return "\n".join(lines)


def _operator(op: Operator) -> str:
    text = f"""
int32_t clover_{op.name}(const clover_handle* handle, const clover_{op.name}_args* args) {{
  return clover::guarded([&] {{ clover::run_operator(CLOVER_OP_{op.name}, handle, args); }});
}}"""
    if op.workspace:
        text += f"""

int32_t clover_{op.name}_workspace_size(const clover_handle* handle, const clover_{op.name}_args* args, uint64_t* bytes) {{
  return clover::guarded([&] {{ *bytes = clover::operator_workspace_size(CLOVER_OP_{op.name}, handle, args); }});
}}"""
    return text
