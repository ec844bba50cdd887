"""The CPU backend gives the same bits for any number of threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import harness

THREADS = (1, 2, 5)


@pytest.mark.skipif("cpu" not in harness.active_backends(), reason="backend cpu is inactive")
@pytest.mark.parametrize("operators", [harness.OPERATORS[n::3] for n in range(3)], ids=lambda names: "+".join(names))
def test_results_do_not_depend_on_the_number_of_threads(operators):
    expected = _digests(operators, THREADS[0])
    assert expected
    for threads in THREADS[1:]:
        found = _digests(operators, threads)
        differing = [name for name in expected if found.get(name) != expected[name]]
        assert not differing, f"other bits with {threads} threads than with {THREADS[0]}: {differing}"


def _digests(operators, threads):
    command = [sys.executable, "-m", "ops.digest", *operators]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    tests = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())
