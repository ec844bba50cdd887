"""The device code of the installed Hygon plugin."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "tests" / "simt")]


@pytest.fixture(scope="session")
def content():
    """Skips where the plugin is not installed."""
    import importlib.util

    if importlib.util.find_spec("clover_ops_hygon") is None:
        pytest.skip("clover-ops-hygon is not installed")
    import check_device_code

    return check_device_code.open_installed()
