"""clover/abi_ops.h: the argument structs and the exported C functions, one pair per operator."""

from __future__ import annotations

from .model import Attribute, Operator, Schema, Tensor
from .text import banner, shape_text

C_TYPES = {"int": "int64_t", "float": "double", "bool": "int32_t", "enum": "int32_t"}


def emit(schema: Schema) -> str:
    return "\n".join(
        [
            f"/* {banner('').strip()} */",
            "#ifndef CLOVER_ABI_OPS_H_",
            "#define CLOVER_ABI_OPS_H_",
            "",
            "#include <clover/abi.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            "/* Permanent operator numbers. */",
            "enum {",
            *(f"  CLOVER_OP_{o.name} = {o.number}," for o in schema.operators),
            "};",
            "",
            "/* In every struct `given` says which attributes the caller set (bit i: attribute i, in order); the others take",
            " * their defaults. Providers receive a copy with the defaults filled in. In `dims` is each symbol's value. */",
            *(_operator(o) for o in schema.operators),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif /* CLOVER_ABI_OPS_H_ */",
            "",
        ]
    )


def _operator(op: Operator) -> str:
    lines = ["", *(_enum(op, a) for a in op.attributes if a.type == "enum")]
    lines += [
        f"typedef struct clover_{op.name}_args {{",
        "  uint64_t struct_size;",
        "  uint64_t given;",
        *(_tensor(t) for t in op.tensors),
        *(_attribute(i, a) for i, a in enumerate(op.attributes)),
        f"}} clover_{op.name}_args;",
        "",
        f"typedef struct clover_{op.name}_dims {{",
        *(f"  int64_t {symbol};" for symbol in op.symbols or ("none",)),
        f"}} clover_{op.name}_dims;",
        "",
        f"CLOVER_EXPORT int32_t clover_{op.name}(const clover_handle* handle, const clover_{op.name}_args* args);",
    ]
    if op.workspace:
        name = f"clover_{op.name}_workspace_size"
        lines.append(
            f"CLOVER_EXPORT int32_t {name}(const clover_handle* handle, const clover_{op.name}_args* args,\n"
            f"{' ' * (len('CLOVER_EXPORT int32_t ') + len(name) + 1)}uint64_t* bytes);"
        )
    return "\n".join(lines)


def _enum(op: Operator, attribute: Attribute) -> str:
    prefix = f"CLOVER_{op.name}_{attribute.name}"
    values = ", ".join(f"{prefix}_{choice} = {i}" for i, choice in enumerate(attribute.choices))
    return f"enum {{ {values} }};"


def _tensor(tensor: Tensor) -> str:
    notes = [shape_text(tensor), tensor.dtype, {"in": "const", "inout": "in/out", "out": "out"}[tensor.role]]
    if tensor.optional:
        notes.append("or null")
    return f"  const clover_tensor* {tensor.name}; /* {', '.join(notes)} */"


def _attribute(index: int, attribute: Attribute) -> str:
    return f"  {C_TYPES[attribute.type]} {attribute.name}; /* given: bit {index} */"
