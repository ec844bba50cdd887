"""Builds the SIMT harness once for the modules of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import simt_build


@pytest.fixture(scope="session")
def simt_folder():
    """Where the plugins and programs are; made when the sources have changed."""
    import clover_ops

    return simt_build.build(clover_ops.__version__)
