"""Turns kernels.toml into C++ for a plugin: `embed.py KERNELS FAMILY OUTPUT [TARGETS BUNDLE HOW]` writes the kernels' names,
parameters, source digests and the candidates of a family (cuda or hip). A BUNDLE that lacks a kernel of these sources for
one of the targets that the file TARGETS names is refused; HOW says what renews it. Triton is not needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from clover_ops.errors import CompileError
from clover_ops.jit import kernels, prebuild, request


def constant(where: str, name: str, value: object) -> str:
    if not isinstance(value, int):
        sys.exit(f"{where}: constexpr {name} is {value!r}; a provider in C++ sets integers and truth values")
    return f"{{{int(value)}, {'true' if isinstance(value, bool) else 'false'}}}"


def config(where: str, one: kernels.Config) -> str:
    constants = ", ".join(f"{{{json.dumps(name)}, {constant(where, name, value)}}}" for name, value in one.constexprs)
    options = ", ".join(f"{{{json.dumps(key)}, {json.dumps(value)}}}" for key, value in one.options)
    return f"{{{{{constants}}}, {one.num_warps}, {one.num_stages}, {{{options}}}}}"


def row(kernel: kernels.Kernel, family: str) -> str:
    where = f"{kernel.folder / kernels.TABLE}: kernel {kernel.name}"
    candidates = dict(kernel.configs).get(family)
    if not candidates:
        sys.exit(f"{where}: no configs.{family}")
    parameters = ", ".join(f"{{{json.dumps(name)}, {json.dumps(kind)}}}" for name, kind in kernel.args)
    configs = ",\n     ".join(config(where, one) for one in candidates)
    constants = ", ".join(map(json.dumps, kernel.constexprs))
    return (
        f"    {{{json.dumps(kernel.name)},\n     {json.dumps(kernel.source())},\n     {{{parameters}}},\n"
        f"     {{{constants}}},\n     {{{configs}}},\n     {kernel.scratch}}},\n"
    )


def check_bundle(folder: Path, targets: Path, bundle: Path, how: str) -> None:
    wanted = [request.parse_target(text) for text in kernels.bundle_targets(targets)]
    if lacking := prebuild.missing(prebuild.plan(kernels.read(folder), wanted), bundle):
        first = lacking[0].request
        sys.exit(
            f"the bundle of Triton kernels at {bundle} lacks {len(lacking)} of these sources, {first.kernel} for "
            f"{first.target.text} among them: {how}"
        )


def main(folder: Path, family: str, output: Path, *bundle: str) -> None:
    try:
        if bundle:
            check_bundle(folder, Path(bundle[0]), Path(bundle[1]), bundle[2])
        rows = "".join(row(kernel, family) for kernel in kernels.read(folder))
    except CompileError as error:
        sys.exit(str(error))
    text = (
        f"// Generated from {kernels.TABLE} by common/jit/embed.py. Do not edit.\n"
        '#include "common/jit/kernel_table.hpp"\n\nnamespace clover::jit {\n\n'
        "const std::vector<KernelRow>& kernel_table() {\n"
        f"  static const auto* table = new std::vector<KernelRow>{{\n{rows}  }};\n  return *table;\n}}\n\n"
        "}  // namespace clover::jit\n"
    )
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
