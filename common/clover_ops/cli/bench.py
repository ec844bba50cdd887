"""`clover-ops bench`: times the operators here. The works and the clocks are in clover_ops.bench."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

import clover_ops
from clover_ops.bench import plan

from . import native, ops, output


@click.command()
@click.argument("operators", nargs=-1, metavar="[OPERATOR]...")
@click.option("--device", default="cpu", show_default=True, metavar="DEVICE", help="cpu, cuda:0, rocm:0, …")
@click.option("--provider", type=click.IntRange(0, 2**31 - 1), metavar="SLOT", help="Ask this provider, no other.")
@click.option("--list", "only_list", is_flag=True, help="List the rows and run none.")
@click.option("--json", "place", type=click.Path(path_type=Path, dir_okay=False), help="Write every figure there.")
def bench(operators: tuple[str, ...], device: str, provider: int | None, only_list: bool, place: Path | None) -> None:
    """Time the operators in Clover's geometry; all of them, or the OPERATORs named.

    On a GPU: device time of a call inside a graph, inputs rotated beyond the L2. On the CPU: wall time, in smaller sizes.
    The floor is the bytes that must move over the bandwidth of a copy in the same run. Exits with 1 if a row failed.
    """
    cases = _chosen(operators)
    kind = device.partition(":")[0]
    if kind not in ("cpu", "cuda", "rocm"):
        raise click.BadParameter(f"{device!r} is none of cpu, cuda:0, rocm:0.", param_hint="'--device'")
    if only_list:
        _list(cases, kind != "cpu")
        return
    raise SystemExit(_run(cases, device, kind, provider, place))


def _chosen(names: tuple[str, ...]) -> list[plan.Case]:
    known = [case.operator for case in plan.CASES]
    for name in names:
        if name not in known:
            raise click.BadParameter(ops.unknown(name, known), param_hint="'OPERATOR'")
    return [case for case in plan.CASES if not names or case.operator in names]


def _list(cases: list[plan.Case], on_gpu: bool) -> None:
    rows = [(case.operator, sizes) for case in cases for sizes in plan.described(case, on_gpu)]
    output.say("\n".join(output.table([("operator", "sizes"), *rows])))


def _run(cases: list[plan.Case], device: str, kind: str, provider: int | None, place: Path | None) -> int:
    where = _torch_device(device, kind)
    _check_backends(cases, device, kind, provider)
    import torch

    from clover_ops.bench import timing, works

    torch.manual_seed(0)
    if kind != "cpu":
        torch.cuda.set_device(where)
    output.say("measuring the bandwidth of a copy ...", err=True)
    try:
        bandwidth = timing.copy_bandwidth(where)
    except torch.OutOfMemoryError:
        raise click.ClickException(f"{device} has too little free memory for the copy that is timed first.") from None
    results: list[dict[str, Any]] = []
    count = sum(len(_sizes(case, kind)) for case in cases)
    for case in cases:
        for sizes in _sizes(case, kind):
            entry = _measured(case, sizes, works.Place(where, provider), bandwidth)
            results.append(entry)
            shown = entry.get("error") or f"{entry['us']:.2f} us"
            output.say(f"[{len(results)}/{count}] {entry['row']}: {shown}", err=True)
    document = {
        "schema": 1,
        "version": clover_ops.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "device": device,
        "name": torch.cuda.get_device_name(where) if kind != "cpu" else "cpu",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "time": "device time inside a graph" if kind != "cpu" else "wall time",
        "copy_bandwidth_gb_s": bandwidth / 1e3,
        "results": results,
    }
    output.say("\n".join(_report(document)))
    if place is not None:
        try:
            output.write_json(place, document)
        except OSError as error:
            raise click.ClickException(f"{place} cannot be written: {error.strerror}") from None
    return 1 if any("error" in entry for entry in results) else 0


def _sizes(case: plan.Case, kind: str) -> tuple[dict[str, Any], ...]:
    return case.cpu if kind == "cpu" else case.gpu


def _torch_device(device: str, kind: str) -> Any:
    """The device as torch calls it: torch built for ROCm says cuda."""
    if find_spec("torch") is None:
        raise click.ClickException("the benchmark needs torch: pip install 'clover-ops[torch]'")
    import torch

    number = device.partition(":")[2]
    if (number and not number.isdecimal()) or (kind == "cpu" and number not in ("", "0")):
        raise click.BadParameter(f"{device!r} names no device.", param_hint="'--device'")
    if kind == "cpu":
        return torch.device("cpu")
    built = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    if built != kind:
        raise click.ClickException(f"this torch ({torch.__version__}) is built for {built}, not for {kind}.")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= found:
        raise click.ClickException(f"there is no {device}: torch finds {found} device(s).")
    return torch.device("cuda", int(number or 0))


def _check_backends(cases: list[plan.Case], device: str, kind: str, provider: int | None) -> None:
    """Refuse before anything is timed what no active backend can run, with the reasons of those that are not active."""
    error = native.ask()["error"]
    if error:
        raise click.ClickException(f"the native library does not work: {error}; clover-ops doctor tells more.")
    lacking = [case.operator for case in cases if not clover_ops.supports(case.operator, device)]
    if lacking:
        what = "an operator" if len(lacking) == len(cases) > 1 else ", ".join(lacking)
        reasons = [f"{b.name} is not active: {b.reason}" for b in clover_ops.backends() if not b.active]
        raise click.ClickException("; ".join([f"no active backend runs {what} on {device}", *reasons]))
    for case in cases if provider is not None else ():
        slots = [p.slot for p in clover_ops.providers(case.operator) if p.device_type == kind]
        if provider not in slots:
            raise click.BadParameter(
                f"{case.operator} has no provider in slot {provider} on {kind}; there are {', '.join(map(str, slots))}.",
                param_hint="'--provider'",
            )


def _measured(case: plan.Case, sizes: dict[str, Any], place: Any, bandwidth: float) -> dict[str, Any]:
    """A row's figures; a row that fails says why, and the others go on."""
    import torch

    from clover_ops.bench import timing, works

    entry: dict[str, Any] = {"operator": case.operator, "row": f"{case.operator} {sizes}"}
    try:
        work = getattr(works, case.maker)(place, **sizes)
        entry["row"] = work.name
        us = timing.wall_time(work.calls) if place.device.type == "cpu" else timing.graph_time(work.calls)
    except (clover_ops.CloverError, RuntimeError) as error:
        return {**entry, "error": str(error).splitlines()[0]}
    finally:
        if place.device.type == "cuda":
            torch.cuda.empty_cache()
    floor = work.floor_bytes / bandwidth
    return {**entry, "us": us, "floor_us": floor, "ratio": us / floor}


def _report(document: dict[str, Any]) -> list[str]:
    rows = [("operator", "row", "us", "floor", "x floor")]
    for entry in document["results"]:
        figures = ("failed", "", "") if "error" in entry else (
            f"{entry['us']:.2f}", f"{entry['floor_us']:.2f}", f"{entry['ratio']:.2f}"
        )  # fmt: skip
        rows.append((entry["operator"], entry["row"], *figures))
    return [
        f"{document['name']}, torch {document['torch']}: {document['time']} of a call; a copy moves "
        f"{document['copy_bandwidth_gb_s']:.1f} GB/s",
        "",
        *output.table(rows),
        *(f"{entry['row']}: {entry['error']}" for entry in document["results"] if "error" in entry),
    ]
