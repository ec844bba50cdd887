"""What a refusal must look like."""

import re

import pytest
from clover_ops import InvalidArgument


def refused(call, surface, *words, kind=InvalidArgument):
    """Runs the call, which must be refused with exactly that class, by a message that names the operator and holds each
    of `words` (regular expressions) as a word. Returns the message."""
    runner = call.run if hasattr(call, "operands") else lambda _: call.run()
    with pytest.raises(Exception) as caught:
        runner(surface)
    error, message = caught.value, str(caught.value)
    assert type(error) is kind, f"{type(error).__name__}: {message}"
    assert message.startswith(f"{call.op.name}: "), message
    for word in words:
        assert re.search(rf"(?<!\w){word}(?!\w)", message), f"{word!r} is not in: {message}"
    assert "\n" not in message, message
    return message


class Faults:
    """Runs many small checks in one test, and fails at its end with each that failed."""

    def __init__(self):
        self.failures, self.count = [], 0

    def check(self, label, function, *arguments, **keywords):
        self.count += 1
        try:
            function(*arguments, **keywords)
        except (AssertionError, pytest.fail.Exception) as failure:
            self.failures.append(f"{label}: {str(failure).splitlines()[0]}")

    def done(self, at_least=1):
        assert not self.failures, f"{len(self.failures)} of {self.count} failed:\n" + "\n".join(self.failures[:20])
        assert self.count >= at_least, f"only {self.count} checks"
