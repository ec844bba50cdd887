"""clover/ops.h: the C++ API, a documented header-only function per operator over the C ABI, each under its switch."""

from __future__ import annotations

from .model import Attribute, Operator, Schema, Tensor
from .text import banner, c_comment, shape_text

_PREAMBLE = """\
// Clover's operators for C++. Link `Clover::ops`; nothing else is needed at link time.
//
// A function validates its call, runs it on the handle's stream and throws a clover::Error (see clover/error.h) when it
// cannot: InvalidArgument before anything is written, Unsupported when no provider takes it, MissingWorkspace. Arguments
// stand in the order inputs, attributes, outputs; std::nullopt leaves out an optional tensor or takes a default.
//
// Every operator is declared unless CLOVER_OPS_DECLARATIONS_HEADER names a header that chooses: the CMake function
// clover_ops_declarations() and `clover-ops declarations` write one. A declared operator without a provider compiles,
// answers supports() == false, and throws Unsupported when it is called; there is never a fallback.
#pragma once

#include <clover/abi_ops.h>
#include <clover/error.h>
#include <clover/handle.h>
#include <clover/registry.h>
#include <clover/tensor.h>

#include <cstdint>
#include <optional>

#ifdef CLOVER_OPS_DECLARATIONS_HEADER
#include CLOVER_OPS_DECLARATIONS_HEADER
#endif
"""


def macro(op: Operator) -> str:
    return f"CLOVER_OPS_DECLARE_{op.name.upper()}"


def emit(schema: Schema) -> str:
    parts = [banner("//"), _PREAMBLE]
    parts += ["// Without a chosen configuration every switch is on."]
    parts += [
        "#ifndef CLOVER_OPS_DECLARATIONS_CONFIGURED",
        *(f"#define {macro(op)} 1" for op in schema.operators),
        "#endif",
    ]
    parts += ["", "namespace clover {", "", "// An operator, for queries.", "enum class Op : uint32_t {"]
    parts += [f"  {_op_constant(op)} = CLOVER_OP_{op.name}," for op in schema.operators]
    parts += [
        "};",
        "",
        *_enums(schema),
        _QUERIES,
        *(_operator(op) for op in schema.operators),
        "",
        "}  // namespace clover",
        "",
    ]
    return "\n".join(parts)


_QUERIES = """\
// Whether the backend's manifest lists the operator; throws InvalidArgument for a backend that is not installed.
inline bool provides(Op op, const char* backend) {
  int32_t answer = 0;
  check(clover_provides(static_cast<uint32_t>(op), backend, &answer));
  return answer != 0;
}

// Whether an active provider exists for the operator on the device.
inline bool supports(Op op, Device device) {
  int32_t answer = 0;
  check(clover_supports(static_cast<uint32_t>(op), device.type, device.id, &answer));
  return answer != 0;
}"""


def _op_constant(op: Operator) -> str:
    return f"k{op.camel}"


def _enums(schema: Schema) -> list[str]:
    """One C++ enum per attribute name: the model has checked that its choices are the same wherever it occurs."""
    lines: dict[str, str] = {}
    for op in schema.operators:
        for a in op.attributes:
            if a.type != "enum" or a.name in lines:
                continue
            members = ", ".join(
                f"k{''.join(p.capitalize() for p in choice.split('_'))} = CLOVER_{op.name}_{a.name}_{choice}"
                for choice in a.choices
            )
            doc = c_comment(f"{a.name}: {a.doc}.")
            lines[a.name] = f"{doc}\nenum class {_enum_name(a)} : int32_t {{ {members} }};\n"
    return list(lines.values())


def _enum_name(attribute: Attribute) -> str:
    return "".join(part.capitalize() for part in attribute.name.split("_"))


def _operator(op: Operator) -> str:
    lines = ["", f"#if {macro(op)}"]
    lines += [*_documentation(op), _function(op, workspace=False)]
    if op.workspace:
        lines += ["", f"// Bytes of workspace that {op.name} with these arguments may need; no data is read."]
        lines.append(_function(op, workspace=True))
    lines.append(f"#endif  // {macro(op)}")
    return "\n".join(lines)


def _documentation(op: Operator) -> list[str]:
    lines = [c_comment(f"{op.title}. {op.summary}"), c_comment(f"  {op.equation}"), "//"]
    for t in op.tensors:
        role = {"in": "", "inout": ", in/out", "out": ", written"}[t.role]
        optional = ", optional" if t.optional else ""
        lines.append(c_comment(f"  {t.name} {shape_text(t)} {t.dtype}{role}{optional}: {t.doc}"))
    for a in op.attributes:
        lines.append(c_comment(f"  {a.name}: {a.doc}{_default_text(a)}"))
    lines.append(c_comment(f"Source: {op.source}."))
    return lines


def _default_text(a: Attribute) -> str:
    if a.default is None:
        return " (may be left out)" if a.absent else ""
    text = a.default if isinstance(a.default, str) else getattr(a.default, "text", str(a.default).lower())
    return f" (default {text})"


def _parameter(item: Tensor | Attribute) -> str:
    if isinstance(item, Tensor):
        return f"const std::optional<TensorView>& {item.name}" if item.optional else f"const TensorView& {item.name}"
    kind = {"int": "int64_t", "float": "double", "bool": "bool"}.get(item.type)
    if kind is None:
        kind = _enum_name(item)
    from_symbols = item.absent or bool(getattr(item.default, "names", ()))
    return f"std::optional<{kind}> {item.name}" if from_symbols else f"{kind} {item.name}"


def _function(op: Operator, workspace: bool) -> str:
    items = [*op.inputs, *op.attributes, *op.outputs]
    name = f"{op.name}_workspace_size" if workspace else op.name
    head = f"inline {'uint64_t' if workspace else 'void'} {name}("
    parameters = ["const Handle& handle", *(_parameter(item) for item in items)]
    lines = [head + (",\n" + " " * len(head)).join(parameters) + ") {"]
    lines += [f"  clover_{op.name}_args args{{}};", "  args.struct_size = sizeof(args);"]
    for t in op.tensors:
        value = f"{t.name} ? {t.name}->abi() : nullptr" if t.optional else f"{t.name}.abi()"
        lines.append(f"  args.{t.name} = {value};")
    for i, a in enumerate(op.attributes):
        cast = f"static_cast<int32_t>({a.name})" if a.type in ("enum", "bool") else a.name
        if _parameter(a).startswith("std::optional"):
            lines += [
                f"  if ({a.name}) {{",
                f"    args.{a.name} = *{a.name};",
                f"    args.given |= uint64_t{{1}} << {i};",
                "  }",
            ]
        else:
            lines += [f"  args.{a.name} = {cast};", f"  args.given |= uint64_t{{1}} << {i};"]
    lines.append("  const clover_handle abi_handle = handle.abi();")
    if workspace:
        lines += ["  uint64_t bytes = 0;", f"  check(clover_{name}(&abi_handle, &args, &bytes));", "  return bytes;"]
    else:
        lines.append(f"  check(clover_{name}(&abi_handle, &args));")
    return "\n".join([*lines, "}"])
