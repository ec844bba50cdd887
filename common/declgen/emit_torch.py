"""The torch surface: torch.ops.clover.*, their fake kernels, and the functions that torch.compile traces through.

An operator that changes no input has a functional form that returns new tensors and an overload `into` that fills the
caller's. One that does returns nothing and takes its outputs as keyword arguments: torch refuses outputs that alias inputs,
and a mutating operator with results cannot be functionalised.
"""

from __future__ import annotations

import json
import textwrap

from .emit_python import default_text, fixed_dtype, like, output_shape, parameters
from .model import Operator, Schema, Tensor
from .text import WIDTH, banner, python_call, python_tuple

_TYPES = {"int": "int", "float": "float", "bool": "bool", "enum": "str"}


# torch hands the arguments of a mutating operator through functions of its own by name, beside arguments with these names.
_TORCHS_OWN = ("ctx", "mode", "self")


def emit(schema: Schema) -> str:
    lines = [
        banner("#"),
        '"""torch.ops.clover.*; importing this module registers them."""',
        "",
        "import torch",
        "",
        "from .._torch_library import index, new, refuse_stream, register, returns_nothing",
        "from . import functions as _functions",
        "",
    ]
    for op in schema.operators:
        lines += ["", *_registrations(op, schema), *_traced(op, schema), ""]
    return "\n".join(lines).rstrip() + "\n"


def _pure(op: Operator) -> bool:
    return op.functional and not op.mutable and bool(op.outputs)


def _schema_text(op: Operator, outputs: bool) -> str:
    """The operator in torch's schema language; with `outputs`, as keyword arguments that are written."""
    letters = iter("abcdefgh")
    items = []
    for item in parameters(op):
        if isinstance(item, Tensor):
            kind = f"Tensor({next(letters)}!)" if item.written else "Tensor?" if item.optional else "Tensor"
        else:
            nullable = item.absent or bool(getattr(item.default, "names", ()))
            kind = _TYPES[item.type] + ("?" if nullable else "")
        default = default_text(op, item)
        name = f"{item.name}_" if item.name in _TORCHS_OWN and (outputs or op.mutable) else item.name
        items.append(f"{kind} {name}" + ("" if default is None else f"={default}"))
    written = [f"Tensor({next(letters)}!) {t.name}" for t in op.outputs] if outputs else []
    return ", ".join([*items, "*", *written, "int? provider=None"])


def _registrations(op: Operator, schema: Schema) -> list[str]:
    names = [item.name for item in parameters(op)]
    outputs = [t.name for t in op.outputs] if op.functional else []
    lines = []
    if _pure(op):
        returns = "Tensor" if len(outputs) == 1 else python_tuple(["Tensor"] * len(outputs))
        lines += python_call(f"def _{op.name}_fake(", [*_defaulted(op), "*", "provider=None"], "):", 0)
        news = [_new(op, t, schema) for t in op.outputs]
        lines += python_call("return (", news, ")", 4) if len(news) > 1 else [f"    return {news[0]}"]
        lines += _register(
            op.name, f"({_schema_text(op, False)}) -> {returns}", f"_functions.{op.name}", f"_{op.name}_fake"
        )
    arguments = [*_defaulted(op), "*", *outputs, "provider=None"]
    call = [*names, *([f"out={outputs[0] if len(outputs) == 1 else python_tuple(outputs)}"] if outputs else [])]
    if op.workspace:
        # Traced code gives no workspace: it comes from torch's allocator on the current stream.
        call.append("workspace=_functions._rt.ALLOCATE")
    call.append("provider=provider")
    lines += python_call(f"def _{op.name}_into(", arguments, "):", 0)
    lines += python_call(f"_functions.{op.name}(", call, ")", 4)
    name = f"{op.name}.into" if _pure(op) else op.name
    return lines + _register(name, f"({_schema_text(op, bool(outputs))}) -> ()", f"_{op.name}_into", "returns_nothing")


def _defaulted(op: Operator) -> list[str]:
    """Parameters with their defaults: torch leaves out an argument that equals its schema's default."""
    defaults = [(item.name, default_text(op, item)) for item in parameters(op)]
    return [name if default is None else f"{name}={default}" for name, default in defaults]


def _register(name: str, schema: str, function: str, fake: str) -> list[str]:
    text = textwrap.wrap(schema, WIDTH - 12, break_long_words=False, drop_whitespace=False)
    quoted = [json.dumps(part) for part in text]
    return ["", "", "register(", f'    "{name}",', *(f"    {part}" for part in quoted[:-1]), f"    {quoted[-1]},",
            f"    {function},", f"    {fake},", ")", "", ""]  # fmt: skip


def _new(op: Operator, tensor: Tensor, schema: Schema) -> str:
    dtype = fixed_dtype(schema, tensor)
    return f"new({like(op, tensor)}, {output_shape(op, tensor)}, {dtype and 'torch.' + dtype}, {tensor.fill})"


def _traced(op: Operator, schema: Schema) -> list[str]:
    """What the public function becomes while torch.compile or torch.export looks."""
    names = [item.name for item in parameters(op)]
    outputs = [t.name for t in op.outputs] if op.functional else []
    lines = python_call(f"def {op.name}(", [*names, *(["out"] if outputs else []), "provider", "stream"], "):", 0)
    lines.append(f'    refuse_stream("{op.name}", stream)')
    lines += [f"    {t.name} = index({t.name})" for t in op.inputs if t.dtype == "int32"]
    if not outputs:
        return [*lines, *python_call(f"torch.ops.clover.{op.name}(", [*names, "provider=provider"], ")", 4)]
    unpacked = ", ".join(outputs)
    lines.append("    if out is None:")
    if _pure(op):
        call = python_call(f"return torch.ops.clover.{op.name}(", [*names, "provider=provider"], ")", 8)
        lines += [*call, f"    {unpacked} = out"]
    else:
        lines += [f"        {t.name} = {_new(op, t, schema)}" for t in op.outputs]
        lines += [] if unpacked == "out" else ["    else:", f"        {unpacked} = out"]
    overload = f"torch.ops.clover.{op.name}{'.into' if _pure(op) else ''}"
    keywords = [f"{name}={name}" for name in (*outputs, "provider")]
    lines += python_call(f"{overload}(", [*names, *keywords], ")", 4)
    return [*lines, f"    return {unpacked}"]
