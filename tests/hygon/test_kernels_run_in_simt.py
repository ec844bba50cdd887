"""Every kernel in the code objects is one that the harness in tests/simt executes, at 64 lanes, and the other way round.

That the harness has executed all of its kernels is a check of tests/simt (test_smoke_cases_of_all_operators).
"""

import re
import subprocess

import pytest
import simt_build

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def harness_kernels():
    import clover_ops

    folder = simt_build.build(clover_ops.__version__)
    symbols = subprocess.run(
        ["nm", "-C", folder / "simt64" / "libclover_ops_simt64.so"], capture_output=True, text=True, check=True
    ).stdout
    return set(re.findall(r" [bBdDrR] entry_of_(\w+)$", symbols, re.MULTILINE))


def test_same_kernels(content, harness_kernels):
    for entry in content.record["objects"]:
        assert {kernel["name"] for kernel in entry["kernels"]} <= harness_kernels, entry["file"]
    by_architecture = {}
    for entry in content.record["objects"]:
        by_architecture.setdefault(entry["architecture"], set()).update(kernel["name"] for kernel in entry["kernels"])
    for architecture, names in by_architecture.items():
        assert names == harness_kernels, architecture
