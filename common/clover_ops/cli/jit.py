"""`clover-ops jit`: the Triton kernels, compiled ahead of time or on demand, and where they are kept."""

from __future__ import annotations

import errno
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import clover_ops
from clover_ops.errors import CloverError, CompileError, InvalidArgument

from . import output


def told(command: Callable[..., int | None]) -> Callable[..., None]:
    """Errors of clover-ops, and those of files and folders, as one line and exit code 1."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            code = command(*arguments, **options)
        except CloverError as error:
            output.say(f"clover-ops: {error}", err=True)
            code = 1
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read has gone; click ends quietly
                raise
            place = f"{error.filename}: " if error.filename else ""
            output.say(f"clover-ops: {place}{error.strerror or error}", err=True)
            code = 1
        raise SystemExit(code or 0)

    return run


kernels_option = click.option(
    "--kernels", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder of kernels.toml; the installed plugins' if absent.",
)  # fmt: skip
_targets = click.option(
    "--target", "targets", multiple=True, metavar="TARGET", help="cuda:90, hip:gfx906, …; repeatable."
)
_operators = click.option("--op", "operators", multiple=True, metavar="NAME", help="The kernels of this operator.")
_names = click.option("--kernel", "names", multiple=True, metavar="NAME", help="The kernel of this name.")
jobs_option = click.option("--jobs", type=click.IntRange(1, 256), help="Compilers at a time; one a core if absent.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def jit() -> None:
    """Triton kernels: compile them, ahead of time or for a request; show, verify and list what there is."""


@jit.command("compile")
@kernels_option
@_targets
@_operators
@_names
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE",
              help="A constexpr's value, with one --kernel; where configurations set it, chooses among them.")  # fmt: skip
@click.option("--x", "data", type=click.Choice(["bf16", "fp16", "fp32"]), help="The data dtype; with --set.")
@click.option("--spec", "specialised", multiple=True, metavar="NAME=16|1",
              help="Divisible by 16, or equal to 1; with --set.")  # fmt: skip
@click.option("--request", "request_file", type=click.File("rb"), metavar="FILE",
              help="Compile the request in FILE, `-` for standard input.")  # fmt: skip
@click.option("--artifact", "artifact_file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
              metavar="FILE", help="Where to write the artifact of --request; `-` for standard output.")  # fmt: skip
@click.option("--output", "place", type=click.Path(path_type=Path, file_okay=False),
              help="Write into this folder instead of the cache.")  # fmt: skip
@jobs_option
@_json
@told
def compile_(
    folder: Path | None, targets: tuple[str, ...], operators: tuple[str, ...], names: tuple[str, ...],
    values: tuple[str, ...], data: str | None, specialised: tuple[str, ...], request_file: Any,
    artifact_file: Path | None, place: Path | None, jobs: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Compile kernels, with no device: the bundled geometries of --op or --kernel, one geometry by --set, or a request."""
    if request_file is not None:
        others = (targets, operators, names, values, data, specialised, place, jobs, as_json)
        if artifact_file is None or any(others):
            raise click.UsageError("--request goes with --artifact and, if need be, --kernels, and nothing else.")
        return _serve(request_file.read(), artifact_file, folder)
    if artifact_file is not None:
        raise click.UsageError("--artifact goes with --request.")
    if not targets or not (operators or names):
        raise click.UsageError("name --target and --op or --kernel, or give a --request.")
    chosen = _chosen(folder, operators, names)
    if not values and (data or specialised):
        raise click.UsageError("--x and --spec go with --set.")
    if values:
        planned = _one_geometry(chosen, targets, values, data or "", specialised)
    else:
        planned = _planned(chosen, targets)
    return _build(planned, place, jobs, as_json)


@jit.command()
@kernels_option
@_targets
@click.option("--targets-from", "targets_file", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              metavar="FILE", help="A bundle.toml with `targets = [...]`.")  # fmt: skip
@_operators
@click.option("--output", "place", required=True, type=click.Path(path_type=Path, file_okay=False),
              help="The folder of the bundle. When all is compiled, artifacts that do not belong are removed.")  # fmt: skip
@click.option(
    "--missing", "only_missing", is_flag=True, help="Print how many kernels the folder lacks, and compile none."
)
@jobs_option
@_json
@told
def bundle(
    folder: Path | None, targets: tuple[str, ...], targets_file: Path | None, operators: tuple[str, ...], place: Path,
    only_missing: bool, jobs: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Compile every bundled geometry for the targets into a folder; what is up to date there is skipped."""
    from clover_ops.jit import kernels, prebuild

    if targets_file is not None:
        targets = (*targets, *kernels.bundle_targets(targets_file))
    if not targets:
        raise click.UsageError("name at least one --target.")
    planned = _planned(_chosen(folder, operators, ()), targets)
    if only_missing:
        output.say(str(len(prebuild.missing(planned, place))))
        return 0
    return _build(planned, place, jobs, as_json, whole=True)


@jit.command()
@kernels_option
@_targets
@click.option("--device", "devices", multiple=True, metavar="DEVICE",
              help="A device of this machine, as rocm:0: its target, and its native kernels too.")  # fmt: skip
@_operators
@jobs_option
@_json
@told
def prebuild(
    folder: Path | None, targets: tuple[str, ...], devices: tuple[str, ...], operators: tuple[str, ...], jobs: int | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Compile every bundled geometry with every configuration into the cache, so that no call waits for a compiler. For a
    device also the native kernels of an architecture that its plugin holds no code for."""
    from clover_ops.jit import service

    if not targets and not devices:
        raise click.UsageError("name at least one --target or --device.")
    service.lasting_cache()  # refuses before the native kernels are compiled
    for device in devices:
        clover_ops.warmup(device)  # which compiles what is missing, and says so
        targets = (*targets, _target_of(device))
    return _build(_planned(_chosen(folder, operators, ()), targets), None, jobs, as_json)


@jit.command()
@told
def toolchain() -> None:
    """Print the two lines that tell the installed Triton from any other."""
    from clover_ops.jit import toolchain

    output.say(toolchain.toolchain().text().rstrip("\n"))


@jit.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_json
@told
def show(file: Path, as_json: bool) -> None:
    """Show the header of a compiled kernel."""
    from clover_ops.jit import artifact

    try:
        data = file.read_bytes()
    except OSError as error:  # which names no file where reading fails
        raise CompileError(f"{file} cannot be read: {error.strerror}") from None
    found = artifact.load(data, str(file))
    facts = {**dict(found.header), "binary_bytes": len(found.binary), "block": found.block}
    if as_json:
        output.say_json(facts)
    else:
        output.say("\n".join(f"{key:<26} {value}" for key, value in facts.items()))


@jit.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@told
def verify(folder: Path) -> int:
    """Check every compiled kernel in FOLDER. Exits with 1 if one is damaged, or if there is none."""
    from clover_ops.jit import artifact
    from clover_ops.jit.errors import ArtifactError

    paths = sorted(folder.glob(f"*{artifact.SUFFIX}"))
    wrong = 0
    for path in paths:
        try:
            found = artifact.load(path.read_bytes(), str(path))
            if path.stem not in (found["request"], found["identity"]):
                raise ArtifactError(f"{path}: its name is neither its request's digest nor its identity")
        except (ArtifactError, OSError) as error:
            wrong += 1
            output.say(f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error), err=True)
    output.say(f"{folder}: {len(paths)} compiled kernel(s), {wrong} wrong")
    return 1 if wrong or not paths else 0


@jit.command("list")
@kernels_option
@_json
@told
def list_(folder: Path | None, as_json: bool) -> None:
    """List the kernels of the installed plugins, with their candidates and what is bundled."""
    from clover_ops.jit import kernels

    rows = [
        {
            "kernel": kernel.name, "operator": kernel.operator, "module": kernel.module, "folder": str(kernel.folder),
            "source": kernel.source(), "geometries": len(kernel.bundle),
            "candidates": {family: len(configs) for family, configs in kernel.configs},
        }
        for place in kernels.folders(folder) for kernel in kernels.read(place)
    ]  # fmt: skip
    if as_json:
        output.say_json({"kernels": rows})
    for row in rows if not as_json else ():
        candidates = ", ".join(f"{count} for {family}" for family, count in row["candidates"].items()) or "no"
        output.say(
            f"{row['kernel']:<28} {row['operator']:<28} {candidates} candidate(s), {row['geometries']} geometries"
        )
    if not rows and not as_json:
        output.say("no installed plugin has Triton kernels")


@jit.group()
def cache() -> None:
    """The cache of compiled kernels."""


@cache.command("show")
@_json
@told
def cache_show(as_json: bool) -> int:
    """Show what is in the cache. Exits with 1 if something there is damaged."""
    from clover_ops.jit import service
    from clover_ops.jit.artifact import Artifact

    store = service.user_cache()
    entries = store.entries()
    rows = [
        {"file": path.name, "bytes": path.stat().st_size, "error": None, "kernel": found["kernel"],
         "target": found["target"], "triton": found["triton"]}
        if isinstance(found, Artifact) else {"file": path.name, "bytes": path.stat().st_size, "error": str(found)}
        for path, found in entries
    ]  # fmt: skip
    if as_json:
        output.say_json({"path": str(store.folder), "reason": store.reason, "artifacts": rows})
    else:
        for row in rows:
            what = row["error"] or f"{row['kernel']}  {row['target']}  Triton {row['triton']}"
            output.say(f"{row['file'][:16]}  {row['bytes']:>8}  {what}")
        output.say(
            f"{store.folder}: {len(rows)} compiled kernel(s)" + (f"; unusable: {store.reason}" if store.reason else "")
        )
    return 1 if any(row["error"] for row in rows) else 0


@cache.command("clear")
@told
def cache_clear() -> None:
    """Remove every compiled kernel, native ones too, and every tuning result from the cache. Tuned tables stay."""
    from clover_ops.jit import service

    store = service.user_cache()
    if store.reason:
        raise CompileError(f"the cache is not emptied: {store.reason}")
    output.say(f"{store.base}: {store.clear()} compiled kernel(s) and tuning result(s) removed")


def _serve(raw: bytes, target: Path, folder: Path | None) -> int:
    """One request's artifact; standard output carries nothing else."""
    from clover_ops.jit import service
    from clover_ops.jit.errors import MalformedRequest

    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"the request is not UTF-8: {error}") from None
    data = service.get(text, folder)
    try:
        if str(target) == "-":
            _print_bytes(data)
        else:
            target.write_bytes(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = "standard output" if str(target) == "-" else target
        raise CompileError(f"the artifact cannot be written to {place}: {error.strerror}") from None
    return 0


def _print_bytes(data: bytes) -> None:
    """Past Python's buffer, which would try again at exit what has failed."""
    sys.stdout.flush()
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


def _chosen(folder: Path | None, operators: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The kernels that are meant; a name that means nothing is refused with what there is."""
    from clover_ops.jit import kernels

    every = [kernel for place in kernels.folders(folder) for kernel in kernels.read(place)]
    if not every:
        raise click.UsageError("no installed plugin has Triton kernels; name their folder with --kernels.")
    for wanted, known, what in (
        (names, {kernel.name for kernel in every}, "kernel"),
        (operators, {kernel.operator for kernel in every}, "operator with Triton kernels"),
    ):
        for name in wanted:
            if name not in known:
                raise click.UsageError(f"there is no {what} {name!r}; there are {', '.join(sorted(known))}.")
    operators, names = set(operators), set(names)
    return [k for k in every if not (operators or names) or k.operator in operators or k.name in names]


def _planned(chosen: list[Any], targets: Iterable[str]) -> list[Any]:
    from clover_ops.jit import prebuild, request

    return prebuild.plan(chosen, [request.parse_target(text) for text in targets])


def _target_of(device: str) -> str:
    """A device's target, as its plugin tells it: `hip:gfx906:sramecc+:xnack-`."""
    from clover_ops import _api

    kind, index = _api._device(device)
    family, name = {2: ("cuda", "cuda"), 10: ("hip", "rocm")}.get(kind, ("", ""))
    for plugin in clover_ops.describe()["plugins"]:
        if found := re.search(r", architecture ([^,]+),", plugin["details"].get(f"{name}:{index}", "")):
            return f"{family}:{found[1]}"
    raise InvalidArgument(
        f"{device} runs no Triton kernels; name a device of CUDA or HIP that `clover-ops doctor` shows"
    )


def _one_geometry(chosen: list[Any], targets: Iterable[str], values: Iterable[str], data: str,
                  specialised: Iterable[str]) -> list[Any]:  # fmt: skip
    from clover_ops.jit import prebuild, request

    if len(chosen) != 1:
        raise click.UsageError("--set goes with one --kernel.")
    (kernel,) = chosen
    constants = {key: request.parse_value(text, f"--set {key}") for key, text in map(_pair, values)}
    special = dict(map(_pair, specialised))
    jobs = []
    for target in map(request.parse_target, targets):
        for config in _agreeing(kernel, target, constants):
            jobs.append(prebuild.Job(kernel, kernel.request(target, config, constants, data, special)))
    return jobs


def _agreeing(kernel: Any, target: Any, constants: dict[str, Any]) -> list[Any]:
    """The configurations that set nothing to another value than is asked for."""
    from clover_ops.jit.request import format_value

    candidates = kernel.candidates(target)
    if not candidates:
        raise click.UsageError(f"kernel {kernel.name} has no configurations for {target.backend}.")
    wanted = {name: format_value(value) for name, value in constants.items()}  # as text: 1 is not true
    own = [{name: format_value(value) for name, value in one.constexprs if name in wanted} for one in candidates]
    found = [one for one, values in zip(candidates, own) if values.items() <= wanted.items()]
    if not found:
        asked = _pairs({name: value for name, value in wanted.items() if any(name in values for values in own)})
        known = ", ".join(dict.fromkeys(map(_pairs, own)))
        raise click.UsageError(
            f"kernel {kernel.name} has no configuration for {target.backend} with {asked}; there are {known}."
        )
    return found


def _pairs(values: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise click.UsageError(f"{text!r} must read NAME=VALUE.")
    return key, value


def _build(jobs: list[Any], place: Path | None, workers: int | None, as_json: bool, whole: bool = False) -> int:
    """Compiles, with a line for each kernel as it is done, and says what came of it; with `whole` the place is a bundle and
    holds nothing else afterwards. Returns the exit code."""
    from clover_ops.jit import mode, prebuild

    mode.mode()  # refuses a value that is none

    def progress(done: int, total: int, outcome: Any) -> None:
        request = outcome.job.request
        size = f", {len(outcome.data)} bytes" if outcome.data else ""
        output.say(
            f"[{done}/{total}] {request.kernel} {request.target.text} {outcome.status}{size}"
            + (f": {outcome.reason}" if outcome.reason else ""),
            err=True,
        )

    if place is None:
        outcomes = prebuild.into_cache(jobs, progress, workers, lasting=True)
    else:
        outcomes = (prebuild.into_bundle if whole else prebuild.into_folder)(jobs, place, progress, workers)
    count = {status: sum(o.status == status for o in outcomes) for status in ("compiled", "up to date", "failed")}
    if as_json:
        rows = [
            {"kernel": o.job.request.kernel, "target": o.job.request.target.text, "request": o.job.request.digest(),
             "status": o.status, "reason": o.reason, "bytes": len(o.data)}
            for o in outcomes
        ]  # fmt: skip
        output.say_json({"output": str(place) if place else "cache", **count, "kernels": rows})
    else:
        output.say(", ".join(f"{number} {status}" for status, number in count.items()))
    if not jobs:
        output.say("nothing is bundled for these kernels and targets: kernels.toml has no [[kernel.bundle]]", err=True)
    return 1 if count["failed"] or not jobs else 0
