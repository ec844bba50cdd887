"""`python -m declgen files [--check]` renews or checks what is generated from the schema; `plugin` serves a backend's build."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import emit_abi, emit_api, emit_cmake, emit_docs, emit_exports, emit_plugin, emit_python, emit_specs, emit_torch
from .model import Schema, SchemaError, load

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "common/schema/operators.toml"


def generated(schema: Schema) -> dict[str, str]:
    """Every generated file that is checked in: path below the root -> text."""
    return {
        "common/include/clover/abi_ops.h": emit_abi.emit(schema),
        "common/include/clover/ops.h": emit_api.emit(schema),
        "common/src/generated/specs.cpp": emit_specs.emit(schema),
        "common/src/generated/exports.cpp": emit_exports.emit(schema),
        "common/cmake/package/CloverOpsOperators.cmake": emit_cmake.emit(schema),
        "common/clover_ops/_generated/functions.py": emit_python.emit_functions(schema),
        "common/clover_ops/_generated/table.py": emit_python.emit_table(schema),
        "common/clover_ops/_generated/torch_ops.py": emit_torch.emit(schema),
        "common/clover_ops/__init__.pyi": emit_python.emit_stub(schema),
        "docs/generated/operators.md": emit_docs.emit_reference(schema),
        "docs/generated/capabilities.md": emit_docs.emit_capabilities(schema, backends(schema)),
    }


def backends(schema: Schema) -> list[emit_plugin.Backend]:
    return [emit_plugin.load_backend(path, schema) for path in sorted((ROOT / "backends").glob("*/backend.toml"))]


def write_files(check: bool) -> int:
    stale = []
    for name, text in sorted(generated(load(SCHEMA)).items()):
        path = ROOT / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if check and stale:
        print("stale: " + ", ".join(stale) + "; run `nox -s gen`", file=sys.stderr)
        return 1
    print(f"{len(generated(load(SCHEMA)))} generated files are up to date")
    return 0


def write_plugin(arguments: argparse.Namespace) -> int:
    backend = emit_plugin.load_backend(arguments.backend_toml, load(SCHEMA))
    header = arguments.folder / "include/clover_backend/registration.hpp"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(emit_plugin.registration_header(), encoding="utf-8")
    source = emit_plugin.registration_source(backend, arguments.version)
    (arguments.folder / "registration.cpp").write_text(source, encoding="utf-8")
    text = emit_plugin.manifest(backend, arguments.version, arguments.toolchain, arguments.architectures)
    (arguments.folder / "plugin.manifest").write_text(text, encoding="utf-8")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m declgen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    files = commands.add_parser("files", help="renew the generated files")
    files.add_argument("--check", action="store_true", help="change nothing; fail when a file is stale")
    plugin = commands.add_parser("plugin", help="write a backend's provider table and manifest")
    plugin.add_argument("backend_toml", type=Path)
    plugin.add_argument("folder", type=Path)
    plugin.add_argument("--version", required=True)
    plugin.add_argument("--toolchain", required=True)
    plugin.add_argument("--architectures", nargs="*", default=[])
    arguments = parser.parse_args()
    try:
        return write_files(arguments.check) if arguments.command == "files" else write_plugin(arguments)
    except SchemaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
