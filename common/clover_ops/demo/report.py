"""A run as text for people and as one JSON document for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .calls import OPERATORS
from .checks import Tally
from .config import MASK
from .decode import Preview, Result

_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x5C: "\\\\"}


def escaped(data: bytes) -> str:
    """Printable ASCII as it is, every other byte escaped."""
    return "".join(_ESCAPES.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}") for b in data)


def picture(tokens: np.ndarray, noise: str = "▁", other: str = "·") -> str:
    """A block, one character a byte: noise, printable ASCII, anything else."""
    return "".join(noise if t == MASK else chr(t) if 0x20 <= t < 0x7F else other for t in tokens)


def preview_line(preview: Preview, encoding: str) -> str:
    """One line of progress, in characters that the terminal's encoding has."""
    try:
        "▁·".encode(encoding)
        drawn = picture(preview.tokens)
    except (UnicodeEncodeError, LookupError):
        drawn = picture(preview.tokens, "_", ".")
    width = len(preview.tokens)
    return f"block {preview.block + 1}  preview {preview.number + 1}  |{drawn}|  {preview.settled:>2}/{width} settled"


def verdict(result: Result) -> str:
    """The last line."""
    failures = result.checks.failures()
    unused = [name for name in OPERATORS if not result.timings[name].calls]
    if failures:
        more = f"; and {len(failures) - 1} more" if len(failures) > 1 else ""
        return f"FAIL: {failures[0].first_failure}{more}"
    if unused:
        return f"FAIL: operators that never ran: {', '.join(unused)}"
    calls = sum(timing.calls for timing in result.timings.values())
    return (
        f"PASS: {len(OPERATORS)} operators, {calls} calls within the bounds of float64; "
        f"{len(result.previews)} previews left every state bitwise as it was; "
        f"{result.checks.delta_steps.compared} layer commits equal their tokens one by one"
    )


def _tally(tally: Tally) -> dict[str, Any]:
    finite = np.isfinite(tally.worst.error)
    return {
        "name": tally.name,
        "compared": tally.compared,
        "failed": tally.failed,
        "worst": tally.worst.error if finite else str(tally.worst.error),
        "bound": tally.worst.bound,
        "unit": tally.worst.unit,
        "near_ties": tally.near_ties,
        "first_failure": tally.first_failure or None,
    }


def as_json(result: Result, version: str) -> dict[str, Any]:
    """Everything about the run."""
    c, checks = result.config, result.checks
    width = c.block_width
    return {
        "schema": 1,
        "version": version,
        "verdict": verdict(result),
        "passed": verdict(result).startswith("PASS"),
        "config": {
            "blocks": c.blocks, "block_width": width, "previews": c.previews, "seed": c.seed, "layers": c.layers,
            "hidden": c.hidden, "experts": c.experts, "experts_per_token": c.experts_per_token,
            "expert_budget": c.expert_budget,
        },
        "prompt": {"bytes": len(result.prompt), "escaped": escaped(result.prompt)},
        "generated": {"bytes": len(result.generated), "escaped": escaped(result.generated)},
        "blocks": [
            {
                "escaped": escaped(result.generated[block * width : (block + 1) * width]),
                "previews": [
                    {"settled": p.settled, "live_rows": p.live_rows, "seconds": p.seconds}
                    for p in result.previews
                    if p.block == block
                ],
            }
            for block in range(c.blocks)
        ],
        "checks": {
            "states_after_previews": _tally(checks.untouched),
            "commits": {
                "bitwise": checks.bitwise_steps,
                "layers": checks.delta_steps.compared,
                "parts": [
                    _tally(t)
                    for t in (checks.conv_steps, checks.conv_outputs, checks.delta_steps, checks.delta_outputs)
                ],
            },
            "operators": [_tally(tally) for tally in checks.operators.values()],
        },
        "operators": [
            {
                "name": name,
                "calls": timing.calls,
                "total_ms": timing.seconds * 1e3,
                "mean_us": timing.seconds / timing.calls * 1e6 if timing.calls else None,
            }
            for name, timing in result.timings.items()
        ],
        "live_rows": {"computed": result.moe_rows_computed, "reused": result.moe_rows_reused},
        "coreset": {"experts": c.experts, "mean_kept": result.coreset_size},
        "seconds": {
            "prefill": result.prefill_seconds, "decode": result.decode_seconds, "checks": checks.seconds,
        },
        "tokens_per_second": _rate(result),
    }  # fmt: skip


def _rate(result: Result) -> float:
    return len(result.generated) / result.decode_seconds if result.decode_seconds else 0.0


def as_text(result: Result) -> str:
    """What follows the progress lines, down to the verdict."""
    checks = result.checks
    lines = ["", f'generated: "{escaped(result.generated)}"', ""]
    lines += _operator_table(result)
    rows = result.moe_rows_computed + result.moe_rows_reused
    lines += [
        "",
        f"speed: {_rate(result):.1f} tokens/s ({len(result.generated)} tokens in {result.decode_seconds:.2f} s; "
        f"prefill of {len(result.prompt)} bytes {result.prefill_seconds:.2f} s; checks {checks.seconds:.2f} s, "
        "not counted)",
        f"previews: {result.moe_rows_reused} of {rows} MoE rows reused; blocks kept {result.coreset_size:.1f} of "
        f"{result.config.experts} experts",
        "",
        f"{_mark(checks.untouched)} states after previews: {checks.untouched.compared} pools and caches compared, "
        f"{checks.untouched.failed} changed",
        f"{_mark(checks.conv_steps, checks.conv_outputs, checks.delta_steps, checks.delta_outputs)} "
        f"one commit against token by token: {checks.delta_steps.compared} layer commits, "
        f"{checks.bitwise_steps} bitwise equal; worst state {_worst(checks.delta_steps)}, "
        f"worst output {_worst(checks.delta_outputs)}",
        f"{_mark(*checks.operators.values())} operators against float64: see the table",
        "",
        verdict(result),
    ]
    return "\n".join(lines)


def _mark(*tallies: Tally) -> str:
    return "FAIL" if any(tally.failed for tally in tallies) else "ok  "


def _worst(tally: Tally) -> str:
    worst = tally.worst
    return f"{worst.error:.1e} (bound {worst.bound:.1e})" if worst.bound or worst.error else "exact"


def _operator_table(result: Result) -> list[str]:
    header = f"{'operator':<25}{'calls':>7}{'total ms':>10}{'mean us':>9}  worst error against float64"
    lines = [header, "-" * len(header)]
    for name, timing in result.timings.items():
        tallies = [t for t in result.checks.operators.values() if t.name.startswith(f"{name}.")]
        errors = ", ".join(f"{t.name.rpartition('.')[2]} {_worst(t)}" for t in tallies)
        ties = sum(t.near_ties for t in tallies)
        mean = timing.seconds / timing.calls * 1e6 if timing.calls else 0.0
        lines.append(
            f"{name:<25}{timing.calls:>7}{timing.seconds * 1e3:>10.1f}{mean:>9.1f}  {errors}"
            + (f" ({ties} near ties)" if ties else "")
            + ("  FAIL" if any(t.failed for t in tallies) else "")
        )
    return lines
