"""Wheels stay within their budgets."""

from __future__ import annotations

from . import Release, Result

NAME = "size"
RULE = "within the budget of ci/release/release.toml"


def check(release: Release) -> Result:
    result, sizes = Result(), []
    limit = release.data.table["limits"]["any_wheel_mb"]
    for wheel in release.wheels:
        size, budget = wheel.path.stat().st_size / 1e6, release.data.of(wheel.name, "wheel_mb")
        sizes.append(f"{wheel.name} {size:.2f}")
        if size > min(budget, limit):
            result.fail(wheel.path.name, f"{size:.2f} MB, its budget is {min(budget, limit)} MB")
    result.checked = ", ".join(sizes) + " MB"
    return result
