"""`clover-ops declarations`: writes the header that chooses which operators <clover/ops.h> declares, for builds without
CMake. It is what clover_ops_declarations() in CMake writes."""

from __future__ import annotations

from pathlib import Path

import click

from . import output


@click.command()
@click.option("--backends", multiple=True, metavar="NAMES", help="Declare what these backends provide.")
@click.option("--declare", multiple=True, metavar="NAMES", help="Declare these operators too, or `all` of them.")
@click.option("--manifest", "manifests", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="The plugin.manifest of a backend that is not installed.")  # fmt: skip
@click.option(
    "--output", "target", type=click.Path(path_type=Path), help="The file to write; standard output if absent."
)
def declarations(
    backends: tuple[str, ...], declare: tuple[str, ...], manifests: tuple[Path, ...], target: Path | None
) -> None:
    """Write the header that chooses which operators <clover/ops.h> declares.

    NAMES are separated by commas. Name the file to the compiler with -DCLOVER_OPS_DECLARATIONS_HEADER='"FILE"'. An
    operator that is declared without a provider compiles, and throws clover::Unsupported when it is called.
    """
    header = _header(_chosen(_split(backends), _split(declare), manifests))
    if target is None:
        output.say(header.rstrip("\n"))
        return
    if not (target.is_file() and target.read_text(encoding="utf-8") == header):  # what is up to date is not rebuilt
        try:
            target.write_text(header, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{target} cannot be written: {error.strerror}") from None


def _split(values: tuple[str, ...]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _operators() -> list[str]:
    from clover_ops._generated.table import OPERATORS

    return [operator.name for operator in OPERATORS]


def _chosen(backends: list[str], declare: list[str], manifests: tuple[Path, ...]) -> set[str]:
    if not backends and not declare:
        raise click.UsageError("name --backends, --declare, or both.")
    known = _operators()
    for name in declare:
        if name != "all" and name not in known:
            raise click.UsageError(f"`{name}` is no operator; there are {', '.join(known)}")
    chosen = set(known if "all" in declare else declare)
    for backend in backends:
        chosen |= _provided(backend, manifests)
    return chosen


def _provided(backend: str, manifests: tuple[Path, ...]) -> set[str]:
    """The operators in a backend's manifest; the first of that name counts."""
    from clover_ops import _core, _discovery, _manifest

    search = [*manifests, *(found.manifest for found in _discovery.find_manifests() if found.manifest is not None)]
    beside = _core.package_dir().parent / f"clover_ops_{backend}" / _discovery.MANIFEST
    if beside.is_file():
        search.append(beside)
    for path in search:
        try:
            manifest = _manifest.read(path)
        except _manifest.ManifestError as error:
            if path in manifests:
                raise click.ClickException(str(error)) from None
            continue
        if manifest.name == backend:
            return {operator for operator, _, _ in manifest.provides}
    raise click.UsageError(
        f"backend `{backend}` is not installed: no plugin.manifest of that name among the installed packages, in "
        "--manifest or in CLOVER_OPS_PLUGIN_PATH"
    )


def _header(chosen: set[str]) -> str:
    lines = [
        "// Which operators <clover/ops.h> declares; from clover_ops_declarations() or `clover-ops declarations`.",
        "#define CLOVER_OPS_DECLARATIONS_CONFIGURED 1",
        *(f"#define CLOVER_OPS_DECLARE_{name.upper()} {int(name in chosen)}" for name in _operators()),
    ]
    return "\n".join(lines) + "\n"
