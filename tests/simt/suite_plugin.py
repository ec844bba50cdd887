"""A pytest plugin (`-p suite_plugin`) that lets tests/ops run over a SIMT plugin.

It adds the backend that CLOVER_SIMT_BACKEND names to those that the suite knows, and keeps only its cases.
"""

import os
import sys
from pathlib import Path

NAME = os.environ["CLOVER_SIMT_BACKEND"]


def pytest_configure(config):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from ops import harness

    harness.BACKENDS = (*harness.BACKENDS, NAME)


def pytest_collection_modifyitems(config, items):
    """Last of all, when the suite itself has looked at its items."""
    own = [item for item in items if f"[{NAME}." in item.name or item.path.parent == Path(__file__).resolve().parent]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(own)])
    items[:] = own
