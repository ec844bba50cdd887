"""`clover-ops tune`: times kernels and providers on this machine's device and writes its tuned table."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from . import output
from .jit import told


@click.command()
@click.argument("workload", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--backend", required=True, metavar="NAME", help="The backend whose table it is: nvidia or hygon.")
@click.option("--output", "place", type=click.Path(path_type=Path, dir_okay=False),
              help="The table to write; the user's own, which wins over the wheel's, if absent.")  # fmt: skip
@click.option("--again", is_flag=True, help="Time also what an earlier run has timed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with every trial.")
@told
def tune(workload: Path, backend: str, place: Path | None, again: bool, as_json: bool) -> int:
    """Time what WORKLOAD lists on the current device and write the tuned table.

    WORKLOAD is a Python file with `problems()`, which yields clover_ops.jit.autotune.Problem, `comparisons()`, which yields
    clover_ops.jit.autotune.Comparison, or both. Lines of the table for other kernels and operators are kept.
    """
    from clover_ops.jit import autotune, driver, toolchain, tuned

    _check_backend(backend)
    toolchain.toolchain()  # Triton's driver times everything; the workload may need it, too
    listed = _load(workload)
    problems = list(getattr(listed, "problems", tuple)())
    comparisons = list(getattr(listed, "comparisons", tuple)())
    if not problems and not comparisons:
        raise click.UsageError(f"{workload} lists nothing: it has neither problems() nor comparisons().")
    target = problems[0].target if problems else autotune.current_target()
    chosen = driver.active(target)
    rows: list[dict[str, Any]] = []
    settings, failed = _settings(problems, rows, again)
    choices, lost = _choices(comparisons, chosen, rows)
    name = autotune.device_name(chosen)
    path = place or tuned.user_table(backend, name)
    if found := bool(settings or choices):
        _write(path, _merged(path, name, target.arch, choices, settings), own=place is None)
    if as_json:
        output.say_json({"device": name, "table": str(path) if found else None, "measured": rows})
    elif found:
        output.say(f"{path}: {len(settings)} configuration(s), {len(choices)} choice(s)")
    if failed + lost:
        output.say(f"{failed + lost} of {len(problems) + len(comparisons)} failed" + ("" if found else "; no table is written"),
                   err=True)  # fmt: skip
    return 1 if failed + lost else 0


def _check_backend(name: str) -> None:
    """Only an installed one reads a table; and the name becomes part of the table's."""
    from .plugins import list_plugins

    known = sorted({plugin["name"] for plugin in list_plugins(None) if plugin["device"] not in ("", "cpu")})
    if name not in known:
        raise click.UsageError(
            f"there is no backend {name!r} that has tuned tables; installed: {', '.join(known) or 'none'}."
        )


def _write(path: Path, table: Any, own: bool) -> None:
    """`own`: the user's table, in the cache, whose folders are made."""
    from clover_ops.jit import cache

    if own and (reason := cache.ensure(path.parent.parent, path.parent)):
        raise click.ClickException(f"the table cannot be written: {reason}")
    try:
        cache.write_atomically(path, table.text().encode())
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("clover_ops_workload", path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _settings(problems: Iterable[Any], rows: list[dict[str, Any]], again: bool) -> tuple[tuple[Any, ...], int]:
    """The best configuration of each problem; a problem of which none works is told, and the others go on."""
    from clover_ops.errors import CompileError
    from clover_ops.jit import autotune, tuned

    settings, failed = [], 0
    for problem in problems:
        key = dict(problem.key if problem.key is not None else problem.constexprs)
        try:
            result = autotune.autotune(problem, again=again)
        except CompileError as error:
            output.say(f"{problem.kernel.name} {key}: {error}", err=True)
            rows.append({"kernel": problem.kernel.name, "key": key, "error": str(error)})
            failed += 1
            continue
        best = result.best
        for trial in result.trials:
            output.say(
                f"{problem.kernel.name} [{trial.config.text()}] {trial.microseconds:9.2f} us  {trial.status}  {trial.reason}",
                err=True,
            )
        rows.append({
            "kernel": problem.kernel.name, "key": key, "cached": result.cached,
            "trials": [{"config": t.config.text(), "status": t.status, "microseconds": t.microseconds, "reason": t.reason}
                       for t in result.trials],
        })  # fmt: skip
        conditions = tuple(tuned.Condition(name, "==", value) for name, value in key.items())
        values = (*best.constexprs, ("num_warps", best.num_warps), ("num_stages", best.num_stages), *best.options)
        settings.append(tuned.Setting(problem.kernel.name, conditions, values))
    return tuple(settings), failed


def _choices(comparisons: Iterable[Any], chosen: Any, rows: list[dict[str, Any]]) -> tuple[tuple[Any, ...], int]:
    """For each call the fastest provider that takes it, and the number of calls that none takes."""
    from clover_ops.jit import autotune, tuned

    choices, failed = [], 0
    for comparison in comparisons:
        found = autotune.compare(comparison, chosen)
        times = {slot: time for slot, time in found.items() if isinstance(time, float)}
        for slot, time in found.items():
            shown = f"{time:9.2f} us" if isinstance(time, float) else str(time)
            output.say(f"{comparison.operator} {dict(comparison.sizes)} slot {slot} {shown}", err=True)
        rows.append({"operator": comparison.operator, "sizes": dict(comparison.sizes), "slots": found})
        failed += not times
        if times:
            exactly = " ".join(f"{name}=={value}" for name, value in comparison.sizes.items())
            conditions = tuned.conditions(comparison.stands_for or exactly)
            choices.append(tuned.Choice(comparison.operator, conditions, _fastest(times)))
    return tuple(choices), failed


def _fastest(times: dict[int, float]) -> int:
    """A later slot must be 3% faster than an earlier one: two runs differ by as much."""
    best = min(times)
    for slot in sorted(times):
        if times[slot] < 0.97 * times[best]:
            best = slot
    return best


def _merged(path: Path, device: str, architecture: str, choices: tuple[Any, ...], settings: tuple[Any, ...]) -> Any:
    """The new lines, and what the table said of other operators and kernels."""
    from clover_ops.jit import tuned

    old = tuned.read(path) if path.exists() else tuned.Table(device, architecture)
    if (old.device, old.architecture) != (device, architecture):
        raise click.ClickException(f"{path} is of {old.device} ({old.architecture}), this is {device} ({architecture})")
    operators, kernels = {c.operator for c in choices}, {s.kernel for s in settings}
    return tuned.Table(
        device, architecture,
        (*choices, *(c for c in old.choices if c.operator not in operators)),
        (*settings, *(s for s in old.settings if s.kernel not in kernels)),
    )  # fmt: skip
