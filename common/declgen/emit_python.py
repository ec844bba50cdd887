"""The Python surface: functions, the table of operators that tools read, and the stub of the package."""

from __future__ import annotations

import json
import textwrap

from .emit_specs import signature
from .expr import Expression
from .model import Attribute, Operator, Schema, Tensor
from .text import WIDTH, banner, python_call, python_docstring, python_tuple, shape_text

_PYTHON_TYPES = {"int": "int", "float": "float", "bool": "bool", "enum": "str"}
KEYWORDS = ("out", "workspace", "provider", "stream")


# --- shared with emit_torch -----------------------------------------------------------------------------------------


def parameters(op: Operator) -> list[Tensor | Attribute]:
    """What a caller passes by position: inputs, attributes; outputs too when there is no functional form."""
    return [*op.inputs, *(() if op.functional else op.outputs), *op.attributes]


def default_text(op: Operator, item: Tensor | Attribute) -> str | None:
    """The default of a parameter, or None: an optional tensor has one only where everything behind it has one too."""
    items = parameters(op)
    behind = items[items.index(item) :]
    if any(_required(other) for other in behind):
        return None
    if isinstance(item, Tensor) or item.absent or getattr(item.default, "names", ()):
        return "None"
    if isinstance(item.default, Expression):
        return item.default.text
    return f'"{item.default}"' if isinstance(item.default, str) else repr(item.default)


def _required(item: Tensor | Attribute) -> bool:
    return not item.optional if isinstance(item, Tensor) else item.required


def symbol_sources(op: Operator) -> dict[str, str]:
    """For each symbol a Python expression over the arguments that gives it."""
    sources: dict[str, str] = {a.name: a.name for a in op.attributes if a.name in op.symbols}
    for tensor in op.inputs:
        if tensor.optional:
            continue
        for i, axis in enumerate(tensor.shape or ()):
            if axis.symbol is None or axis.symbol in sources:
                continue
            text = f"{tensor.name}.shape[{i}]"
            if axis.add:
                text = f"{text} {'-' if axis.add > 0 else '+'} {abs(axis.add)}"
            if axis.mul != 1:
                text = f"({text}) // {axis.mul}"
            sources[axis.symbol] = text
    return sources


def output_shape(op: Operator, tensor: Tensor) -> str:
    sources = symbol_sources(op)
    axes = []
    for axis in tensor.shape or ():
        if axis.symbol is None:
            axes.append(str(axis.add))
        else:
            assert axis.mul == 1 and axis.add == 0, f"{op.name}: output axis {axis.text} is not a symbol"
            axes.append(sources[axis.symbol])
    return python_tuple(axes)


def like(op: Operator, tensor: Tensor) -> str:
    """The first input that has the output's dtype variable, or the first input of all."""
    return next((t.name for t in op.inputs if t.dtype == tensor.dtype and not t.optional), op.inputs[0].name)


def fixed_dtype(schema: Schema, tensor: Tensor) -> str | None:
    return None if tensor.dtype in schema.types else tensor.dtype


# --- functions.py ----------------------------------------------------------------------------------------------------


def emit_functions(schema: Schema) -> str:
    names = [op.name for op in schema.operators]
    names += [f"{op.name}_workspace_size" for op in schema.operators if op.workspace]
    lines = [banner("#"), '"""Clover\'s operators on torch, NumPy and DLPack tensors."""', ""]
    lines += [
        "from .. import _runtime as _rt",
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in sorted(names)),
        "]",
        "",
    ]
    for op in schema.operators:
        lines += ["", *_function(op, schema), ""]
        if op.workspace:
            lines += ["", *_workspace_function(op), ""]
    return "\n".join(lines).rstrip() + "\n"


def _signature(op: Operator, keywords: list[str]) -> list[str]:
    items = []
    for item in parameters(op):
        default = default_text(op, item)
        items.append(item.name if default is None else f"{item.name}={default}")
    return [*items, "*", *keywords]


def _keywords(op: Operator) -> list[str]:
    names = [
        k for k in KEYWORDS if (k != "out" or (op.functional and op.outputs)) and (k != "workspace" or op.workspace)
    ]
    return [f"{name}=None" for name in names]


def _function(op: Operator, schema: Schema) -> list[str]:
    lines = python_call(f"def {op.name}(", _signature(op, _keywords(op)), "):", 0)
    lines += _docstring(op)
    has_out = op.functional and bool(op.outputs)
    arguments = [*(item.name for item in parameters(op)), *(["out"] if has_out else []), "provider", "stream"]
    lines += ["    if _rt.compiling():", *python_call(f"return _rt.traced.{op.name}(", arguments, ")", 8)]
    if has_out:
        lines += _outputs(op, schema)
    lines += python_call("tensors = (", [t.name for t in op.tensors], ")", 4)
    items = [f'"{op.name}"', "tensors", _index_positions(op), python_tuple([a.name for a in op.attributes])]
    items += ["provider", "stream"]
    if op.workspace:
        lines += python_call("_rt.run_with_workspace(", [*items, "workspace", "out is None"], ")", 4)
    else:
        lines += python_call("_rt.run(", items, ")", 4)
    if has_out:
        lines.append(f"    return {', '.join(t.name for t in op.outputs)}")
    return lines


def _index_positions(op: Operator) -> str:
    """Which tensors are index tensors that a caller may give as int64."""
    return python_tuple([str(i) for i, t in enumerate(op.tensors) if t.dtype == "int32" and t.role == "in"])


def _outputs(op: Operator, schema: Schema) -> list[str]:
    names = ", ".join(t.name for t in op.outputs)
    lines = ["    if out is None:", "        try:"]
    for t in op.outputs:
        lines.append(
            f"            {t.name} = _rt.new({like(op, t)}, {output_shape(op, t)}, {fixed_dtype(schema, t)!r}, {t.fill})"
        )
    targets = " = ".join(t.name for t in op.outputs)
    lines += ["        except _rt.UNSIZED as error:", f"            {targets} = _rt.Unsized(error)"]
    if names == "out":
        return lines
    lines.append("    else:")
    if len(op.outputs) == 1:
        lines.append(f"        {names} = out")
    else:
        wanted = python_tuple([f'"{t.name}"' for t in op.outputs])
        lines.append(f'        {names} = _rt.unpack("{op.name}", out, {wanted})')
    return lines


def _workspace_function(op: Operator) -> list[str]:
    """The same arguments, outputs included where the caller has them; shapes decide, so they may be left out."""
    lines = python_call(f"def {op.name}_workspace_size(", _signature(op, ["provider=None"]), "):", 0)
    lines += [f'    """Bytes of workspace that `{op.name}` with these arguments may need. Reads no data."""']
    lines += python_call("inputs = (", [t.name for t in op.inputs], ")", 4)
    items = [f'"{op.name}"', "inputs", _index_positions(op), python_tuple([a.name for a in op.attributes]), "provider"]
    lines += python_call("return _rt.workspace_size(", items, ")", 4)
    return lines


def _docstring(op: Operator) -> list[str]:
    text = [f"{op.title}. {op.summary}", "", f"    {op.equation}", "", "Args:"]
    for t in [*op.inputs, *(() if op.functional else op.outputs)]:
        notes = [shape_text(t), t.dtype] + (["or None"] if t.optional else [])
        notes += ["in/out"] if t.role == "inout" else ["written"] if t.role == "out" else []
        text.append(f"    {t.name}: {', '.join(notes)}: {t.doc}.")
    for a in op.attributes:
        kind = ", ".join(repr(c) for c in a.choices) or _PYTHON_TYPES[a.type]
        default = f" Default: {a.default.text}." if getattr(a.default, "names", ()) else ""
        text.append(f"    {a.name}: {kind}: {a.doc}.{default}")
    if op.functional and op.outputs:
        text.append("    out: where to write instead of new tensors" + (", in order." if len(op.outputs) > 1 else "."))
    if op.workspace:
        text.append(
            f"    workspace: scratch of `{op.name}_workspace_size(...)` bytes; made when None, unless `out` is given."
        )
    text += [
        "    provider: slot of the provider that must run the call; None chooses.",
        "    stream: raw stream handle; None takes the tensors' current stream.",
    ]
    if op.functional and op.outputs:
        text += ["", "Returns:"]
        for t in op.outputs:
            filled = f" ({t.fill} in rows of no sequence)" if t.fill is not None else ""
            text.append(f"    {t.name}: {shape_text(t)}, {t.dtype}: {t.doc}{filled}.")
    text += ["", "Raises:", "    InvalidArgument: the call is wrong; nothing has been written."]
    text.append("    Unsupported: no provider on the tensors' device takes it.")
    if op.workspace:
        text.append("    MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.")
    types = {t.dtype for t in op.tensors if t.dtype in ("X", "Y")}
    if types:
        text += ["", f"{' and '.join(sorted(types))}: bfloat16, float16 or float32, each the same throughout a call."]
    text.append(f"Source: {op.source}.")
    head = textwrap.wrap(text[0], WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    lines = [f'    """{python_docstring(head[0])}', *(f"    {python_docstring(line)}" for line in head[1:])]
    lines += [f"    {python_docstring(line)}".rstrip() for line in text[1:]]
    return [*lines, '    """']


# --- table.py --------------------------------------------------------------------------------------------------------


def emit_table(schema: Schema) -> str:
    lines = [
        banner("#"),
        '"""The operators as data, for tools: no native library is needed to read it."""',
        "",
        "from .._schema import Attribute, Operator, Tensor",
        "",
        "OPERATORS = (",
    ]
    for op in schema.operators:
        lines += [
            "    Operator(",
            f"        number={op.number},",
            f"        name={_text(op.name)},",
            f"        title={_text(op.title)},",
            f"        family={_text(op.family)},",
            f"        signature={_text(signature(op))},",
            f"        workspace={op.workspace},",
            "        tensors=(",
        ]
        for t in op.tensors:
            shape = _text(shape_text(t))
            lines.append(
                f"            Tensor({_text(t.name)}, {_text(t.role)}, {shape}, {_text(t.dtype)}, {t.optional}),"
            )
        lines += ["        ),", "        attributes=("]
        for a in op.attributes:
            choices = python_tuple([_text(c) for c in a.choices])
            lines.append(f"            Attribute({_text(a.name)}, {_text(a.type)}, {choices}),")
        lines += ["        ),", "    ),"]
    return "\n".join([*lines, ")", ""])


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # escapes beyond the BMP would be two surrogates to Python


# --- __init__.pyi ----------------------------------------------------------------------------------------------------


def emit_stub(schema: Schema) -> str:
    lines = [
        banner("#"),
        "from typing import Any",
        "",
        "from ._api import backends as backends",
        "from ._api import describe as describe",
        "from ._api import providers as providers",
        "from ._api import provides as provides",
        "from ._api import supports as supports",
        "from ._api import warmup as warmup",
        "from ._version import __version__ as __version__",
        "from .errors import AbiMismatch as AbiMismatch",
        "from .errors import CloverError as CloverError",
        "from .errors import CompileError as CompileError",
        "from .errors import DriverError as DriverError",
        "from .errors import InternalError as InternalError",
        "from .errors import InvalidArgument as InvalidArgument",
        "from .errors import MissingWorkspace as MissingWorkspace",
        "from .errors import Unsupported as Unsupported",
        "",
        "# torch.Tensor, numpy.ndarray, or anything with __dlpack__.",
        "Tensor = Any",
    ]
    for op in schema.operators:
        keywords = [k.split("=")[0] for k in _keywords(op)]
        lines += _stub(op, op.name, keywords, _returns(op))
        if op.workspace:
            lines += _stub(op, f"{op.name}_workspace_size", ["provider"], "int")
    return "\n".join(lines) + "\n"


def _returns(op: Operator) -> str:
    if not op.functional or not op.outputs:
        return "None"
    return "Tensor" if len(op.outputs) == 1 else f"tuple[{', '.join(['Tensor'] * len(op.outputs))}]"


def _stub(op: Operator, name: str, keywords: list[str], returns: str) -> list[str]:
    lines = ["", f"def {name}("]
    for item in parameters(op):
        if isinstance(item, Tensor):
            kind = "Tensor | None" if item.optional else "Tensor"
        else:
            nullable = item.absent or bool(getattr(item.default, "names", ()))
            kind = _PYTHON_TYPES[item.type] + (" | None" if nullable else "")
        lines.append(f"    {item.name}: {kind}{'' if default_text(op, item) is None else ' = ...'},")
    kinds = {"out": "Any | None", "workspace": "Tensor | None", "provider": "int | None", "stream": "int | None"}
    lines += ["    *,", *(f"    {k}: {kinds[k]} = ..., ".rstrip() for k in keywords)]
    return [*lines, f") -> {returns}: ..."]
