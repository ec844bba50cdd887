"""One compile of one kernel at a time, over threads and processes.

flock, held by an open file: the kernel lets it go when its holder dies, however it dies. The file itself stays; removing
it would let two holders in.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Waits for the lock and holds it. Raises OSError where the file cannot be made."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Closing is not enough: a process that was forked in between holds the same open file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
