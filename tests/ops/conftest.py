"""Pairs cases with providers, and counts what ran.

A suite is a module with OPERATOR, CASES, `build(case) -> Problem` and one test that takes `case` and `target`. An
inactive backend is one skipped test per operator; an active backend without a provider of the operator fails one.
A module without OPERATOR has cases of several operators, each of which names its own.
"""

import os
from collections import Counter
from functools import lru_cache

import pytest

from . import harness, shards
from .runner import run


@lru_cache(maxsize=2)
def _problem(build, case):
    """Inputs and reference, made once for all providers: their tests follow one another."""
    return build(case)


@pytest.fixture
def check(request, case, target):
    def check_against_reference(build):
        notes = run(_problem(build, case), target)
        properties = request.node.user_properties
        properties.append(("near ties", notes.near_ties))
        properties.append(("other choices", notes.other_choices))

    return check_against_reference


def pytest_generate_tests(metafunc):
    if not {"case", "target"} <= set(metafunc.fixturenames):
        return
    module = metafunc.module
    if hasattr(module, "OPERATOR"):
        parameters = _on_every_target(module.OPERATOR, module.CASES) + _missing_backends(module.OPERATOR)
    else:
        parameters = [p for case in module.CASES for p in _on_every_target(case.operator, [case])]
    metafunc.parametrize("case, target", parameters)


def _on_every_target(operator, cases):
    targets = harness.targets(operator)
    return [
        pytest.param(case, target, id=f"{target}-{case}", marks=[pytest.mark.smoke] if case.smoke else [])
        for case in cases
        for target in targets
    ]


def _missing_backends(operator):
    parameters = []
    for name, reason in harness.inactive_backends():
        marks = [pytest.mark.smoke, pytest.mark.skip(reason=f"backend {name} is inactive: {reason}")]
        parameters.append(pytest.param(None, name, id=f"{name}-inactive", marks=marks))
    served = {target.backend for target in harness.targets(operator)}
    for name in harness.active_backends():
        if name not in served:
            parameters.append(pytest.param(None, name, id=f"{name}-no-provider", marks=pytest.mark.smoke))
    return parameters


@pytest.fixture(autouse=True)
def _needs_a_provider(request):
    parameters = getattr(request.node, "callspec", None)
    if parameters and parameters.params.get("case", ...) is None:
        pytest.fail(f"backend {parameters.params['target']} is active and has no provider of this operator")


def pytest_collection_modifyitems(config, items):
    """Leaves the other parts of the matrix out; reports carry the operator and the backend, also those that come from
    another process."""
    if text := os.environ.get(shards.VARIABLE):
        try:
            items[:], others = shards.select(items, text)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        config.hook.pytest_deselected(items=others)
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if "target" in parameters and "case" in parameters:  # other suites have targets of their own
            case, target = parameters["case"], parameters["target"]
            operator = getattr(item.module, "OPERATOR", None) or case.operator
            item.user_properties.append(("operator", operator))
            item.user_properties.append(("backend", getattr(target, "backend", target)))


def pytest_terminal_summary(terminalreporter):
    counts, reasons = Counter(), Counter()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            _count(report, outcome, counts, reasons)
    if counts:
        _write_summary(terminalreporter, counts, reasons)


def _count(report, outcome, counts, reasons):
    properties = dict(getattr(report, "user_properties", ()))
    if "operator" not in properties:
        return
    column = {"error": "failed"}.get(outcome, outcome)
    if outcome == "skipped":
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        column = "inactive" if "is inactive" in reason else "refused"
        reasons[reason] += 1
    key = properties["operator"], properties["backend"]
    counts[(*key, column)] += 1
    for ties in ("near ties", "other choices"):
        counts[(*key, ties)] += properties.get(ties, 0)


def _write_summary(terminalreporter, counts, reasons):
    columns = ("passed", "failed", "refused", "inactive", "near ties", "other choices")
    write = terminalreporter.write_line
    terminalreporter.section("numerical cases by operator and backend")
    write(f"{'operator':<26}{'backend':<9}" + "".join(f"{column:>15}" for column in columns))
    for operator, backend in sorted({key[:2] for key in counts}):
        values = [counts[operator, backend, column] for column in columns]
        write(f"{operator:<26}{backend:<9}" + "".join(f"{value:>15}" for value in values))
    totals = [sum(n for key, n in counts.items() if key[2] == column) for column in columns]
    write(f"{'all':<35}" + "".join(f"{value:>15}" for value in totals))
    for reason, times in reasons.most_common():
        write(f"skipped {times} times: {reason}")
