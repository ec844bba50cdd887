"""common/src/generated/specs.cpp: the schema as constant data for validation and dispatch."""

from __future__ import annotations

from .expr import Expression
from .model import Attribute, Operator, Schema, Tensor
from .text import banner, c_string, shape_text

_BITS = {
    "bfloat16": "kBitBFloat16", "float16": "kBitFloat16", "float32": "kBitFloat32", "int32": "kBitInt32",
    "bool": "kBitBool", "element": "kBitElement",
}  # fmt: skip


def emit(schema: Schema) -> str:
    lines = [banner("//"), '#include "spec.hpp"', "", "#include <cmath>", "#include <limits>", "", "namespace clover {"]
    lines += ["namespace {", "", "constexpr double kInfinity = std::numeric_limits<double>::infinity();"]
    for op in schema.operators:
        lines += ["", *_operator_data(op, schema)]
    lines += ["", "const OperatorSpec kOperators[] = {", *(_operator_row(op) for op in schema.operators), "};", ""]
    lines += [
        "}  // namespace",
        "",
        f"Span<OperatorSpec> all_operators() {{ return {{kOperators, {len(schema.operators)}}}; }}",
        "",
        "const OperatorSpec* find_operator(uint32_t number) {",
        "  for (const OperatorSpec& op : all_operators())",
        "    if (op.number == number) return &op;",
        "  return nullptr;",
        "}",
        "",
        "}  // namespace clover",
        "",
    ]
    return "\n".join(lines)


def signature(op: Operator) -> str:
    """`cast(src, dst)`: as OPERATORS.md writes an operator, outputs behind an arrow."""
    optional = {t.name for t in op.tensors if t.optional}
    names = [t.name + ("?" if t.name in optional else "") for t in op.inputs] + [a.name for a in op.attributes]
    return f"{op.name}({', '.join(names)}) -> {', '.join(t.name for t in op.outputs) or 'nothing'}"


def _operator_data(op: Operator, schema: Schema) -> list[str]:
    lines = [f"namespace {op.name} {{"]
    variables = {name: i for i, name in enumerate([*schema.types, "element"])}
    if op.symbols:
        lines.append(f"const char* const symbols[] = {{{', '.join(c_string(s) for s in op.symbols)}}};")
    lines += ["const TensorSpec tensors[] = {", *(_tensor(op, t, schema, variables) for t in op.tensors), "};"]
    for attribute in op.attributes:
        if attribute.choices:
            choices = ", ".join(c_string(c) for c in attribute.choices)
            lines.append(f"const char* const {attribute.name}_choices[] = {{{choices}}};")
    if op.attributes:
        lines += ["const AttributeSpec attributes[] = {", *(_attribute(op, a) for a in op.attributes), "};"]
    if op.derived:
        rows = [
            f"    {{{op.symbols.index(s)}, {c_string(e.text)}, {_lambda(op, e, 'int64_t')}}}," for s, e in op.derived
        ]
        lines += ["const DerivedSpec derived[] = {", *rows, "};"]
    for i, rule in enumerate(op.require):
        names = ", ".join(str(op.symbols.index(n)) for n in rule.names)
        lines.append(f"const int16_t rule{i}_symbols[] = {{{names}}};")
    if op.require:
        rows = [
            f"    {{{c_string(r.text)}, {_lambda(op, r, 'bool')}, rule{i}_symbols, {len(r.names)}}},"
            for i, r in enumerate(op.require)
        ]
        lines += ["const RuleSpec rules[] = {", *rows, "};"]
    if needs := _needs(op):
        lines += ["const NeedSpec needs[] = {", *(f"    {{{a}, {b}}}," for a, b in needs), "};"]
    lines.append(f"}}  // namespace {op.name}")
    return lines


def _needs(op: Operator) -> list[tuple[int, int]]:
    index = {t.name: i for i, t in enumerate(op.tensors)}
    pairs = [(index[a], index[b]) for group in op.together for a in group for b in group if a != b]
    return pairs + [(index[a], index[b]) for a, b in op.needs]


def _lambda(op: Operator, expression: Expression, result: str) -> str:
    text = _indexed(op, expression)
    used = "d" if expression.names else ""
    return f"[](const int64_t* {used}) -> {result} {{ return {text}; }}"


def _indexed(op: Operator, expression: Expression) -> str:
    text = expression.cpp("d[@{}@]")
    for i, symbol in enumerate(op.symbols):
        text = text.replace(f"@{symbol}@", str(i))
    return text


def _tensor(op: Operator, t: Tensor, schema: Schema, variables: dict[str, int]) -> str:
    axes = ", ".join(
        f"{{{-1 if a.symbol is None else op.symbols.index(a.symbol)}, {a.mul}, {a.add}, {c_string(a.text)}}}"
        for a in t.shape or ()
    )
    bits = " | ".join(_BITS[d] for d in schema.dtypes(t))
    role = {"in": "kIn", "inout": "kInOut", "out": "kOut"}[t.role]
    values = "k" + "".join(p.capitalize() for p in (t.values or "none").split("_"))
    pools = [op.symbols.index(p) for p in t.pools] + [-1, -1]
    return (
        f"    {{{c_string(t.name)}, {c_string(shape_text(t))}, offsetof(clover_{op.name}_args, {t.name}), Role::{role}, "
        f"Strides::k{t.strides.capitalize()}, Values::{values}, {str(t.optional).lower()}, "
        f"{-1 if t.shape is None else len(t.shape)},\n     {{{axes}}}, "
        f"{{{c_string(t.dtype)}, {variables.get(t.dtype, -1)}, {bits}}}, {{{pools[0]}, {pools[1]}}}}},"
    )


def _attribute(op: Operator, a: Attribute) -> str:
    low = a.min if a.min is not None else a.above
    symbol = op.symbols.index(a.name) if a.type == "int" and a.name in op.symbols else -1
    if isinstance(a.default, Expression):
        default = (
            _lambda(op, a.default, "double").replace("return ", "return static_cast<double>(").replace("; }", "); }")
        )
    elif a.default is not None:
        number = a.choices.index(a.default) if a.type == "enum" else int(a.default)
        default = f"[](const int64_t*) -> double {{ return {number}; }}"
    else:
        default = "nullptr"
    return (
        f"    {{{c_string(a.name)}, offsetof(clover_{op.name}_args, {a.name}), "
        f"AttributeType::k{a.type.capitalize()}, {str(a.required).lower()}, {symbol}, "
        f"{'-kInfinity' if low is None else low}, {'kInfinity' if a.max is None else a.max}, "
        f"{str(a.above is not None).lower()},\n     "
        f"{f'{a.name}_choices' if a.choices else 'nullptr'}, {len(a.choices)}, {default}}},"
    )


def _operator_row(op: Operator) -> str:
    def span(name: str, count: int) -> str:
        return f"{{{op.name}::{name}, {count}}}" if count else "{nullptr, 0}"

    return (
        f"    {{{op.number}, {c_string(op.name)}, {c_string(signature(op))}, sizeof(clover_{op.name}_args), "
        f"{str(op.workspace).lower()},\n     {span('tensors', len(op.tensors))}, "
        f"{span('attributes', len(op.attributes))}, {span('symbols', len(op.symbols))}, "
        f"{span('derived', len(op.derived))}, {span('rules', len(op.require))}, {span('needs', len(_needs(op)))}}},"
    )
