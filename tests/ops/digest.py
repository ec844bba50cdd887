"""Bits of a sample of cases, one line per case: `python -m ops.digest <operator> ...` in the tests folder."""

import hashlib
import importlib
import sys

from . import harness
from .runner import Call

EVERY = 7  # one in so many smoke cases


def digests(operator):
    suite = importlib.import_module(f".test_{operator}", __package__)
    sample = [case for case in suite.CASES if case.smoke][::EVERY]
    for target in harness.targets(operator):
        if target.device_type == "cpu":
            for case in sample:
                yield f"{operator} {target} {case}", _digest(Call(suite.build(case), target))


def _digest(call):
    try:
        values = call.functional()
    except harness.Unsupported:
        return "refused"
    hashed = hashlib.sha256()
    for name in sorted(values):
        hashed.update(values[name].tobytes())
    return hashed.hexdigest()


if __name__ == "__main__":
    for operator in sys.argv[1:]:
        for name, digest in digests(operator):
            print(f"{name}\t{digest}")
