"""Running the demo in this process, so that its operators can be sabotaged."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tiny products: threads would only wait for one another

import pytest
from click.testing import CliRunner, Result

SMALL = ("--blocks", "1", "--block-width", "8", "--previews", "2")


@pytest.fixture
def demo():
    """demo(*options) runs a small demo; later options win."""
    from clover_ops.cli import main

    def run(*options: str) -> Result:
        return CliRunner().invoke(main, ["demo", *SMALL, *options])

    return run
