"""What the Hygon plugin's probe says of machines on which it cannot run. None of it is a fault: import works and doctor stays
well."""

import json
import subprocess
import sys

import pytest

from .conftest import child_environment

pytestmark = pytest.mark.smoke

LOOK = "import clover_ops, sys; sys.exit(any(p['status'] == 'rejected' for p in clover_ops.describe()['plugins']))"


@pytest.fixture
def inspect(hygon_plugin):
    """inspect(folder, **environment) -> the plugin's entry in `clover-ops doctor --json`; import and doctor must work."""

    def run(folder, **variables):
        environment = child_environment(folder, **variables)
        subprocess.run([sys.executable, "-c", LOOK], env=environment, timeout=60, check=True)
        command = [sys.executable, "-m", "clover_ops", "doctor", "--json"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        report = json.loads(result.stdout)
        (plugin,) = (entry for entry in report["plugins"] if entry["name"] == "hygon")
        assert not any("hygon" in problem for problem in report["problems"]), report["problems"]
        return plugin

    return run


def expect_inactive(plugin, *words):
    assert plugin["status"] == "inactive", plugin
    for word in words:
        assert word in plugin["reason"], plugin["reason"]


def test_active(inspect, hip_standin):
    plugin = inspect(hip_standin(), STANDIN_DEVICES="gfx906:sramecc+:xnack-,gfx936:sramecc+:xnack-")
    assert (plugin["status"], plugin["devices"], plugin["device"]) == ("active", 2, "rocm"), plugin
    details = plugin["details"]
    assert details["driver"].startswith("HIP 50422803, ") and "libamdhip64.so.5" in details["driver"]
    assert "architecture gfx906:sramecc+:xnack-" in details["rocm:0"]
    assert "architecture gfx936:sramecc+:xnack-" in details["rocm:1"]
    # Toolchain, architectures and the size of a wave of the code objects, from the plugin and from its manifest.
    assert "hipcc" in details["device code"] and "gfx906 (64 lanes)" in details["device code"]
    assert "hipcc" in plugin["toolchain"] and "gfx906 (64 lanes)" in plugin["toolchain"]
    assert "gfx906" in plugin["architectures"]
    assert details["compiler for other architectures"]


def test_no_hip_library(inspect, hidden):
    expect_inactive(inspect(None, LD_PRELOAD=hidden), "there is no HIP driver (set DTK_ROOT if DTK is installed)")


def test_library_that_does_not_load(inspect, hidden, tmp_path):
    """What is wrong with DTK's own library is said, not that others are missing."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libgalaxyhip.so.5").write_text("not a library")
    plugin = inspect(None, LD_PRELOAD=hidden, DTK_ROOT=str(tmp_path))
    expect_inactive(plugin, "there is no HIP driver", f"{tmp_path}/lib/libgalaxyhip.so.5")


def test_too_old_by_what_it_lacks(inspect, hip_standin):
    expect_inactive(inspect(hip_standin("OMIT_CAPTURE")), "the driver is too old", "lacks hipStreamIsCapturing")


def test_nvidias_driver_alone(inspect, cuda_standin, hidden):
    expect_inactive(inspect(cuda_standin(), LD_PRELOAD=hidden), "there is no HIP driver")


def test_both_drivers(inspect, hip_standin, cuda_standin):
    plugin = inspect(f"{cuda_standin()}:{hip_standin()}")
    assert plugin["status"] == "active" and plugin["device"] == "rocm"


def test_no_device(inspect, hip_standin):
    expect_inactive(inspect(hip_standin(), STANDIN_DEVICES=""), "the driver shows no device")
    plugin = inspect(hip_standin(), STANDIN_DEVICES="", HIP_VISIBLE_DEVICES="")
    expect_inactive(plugin, "no device is visible: HIP_VISIBLE_DEVICES is ``")


@pytest.mark.parametrize("status", [100, 101])
def test_machine_without_a_card(inspect, hip_standin, status):
    expect_inactive(inspect(hip_standin(), STANDIN_FAIL=f"hipInit:{status}"), "the driver shows no device")


def test_device_of_narrow_warps(inspect, hip_standin):
    plugin = inspect(hip_standin(), STANDIN_DEVICES="gfx1100", STANDIN_WARP="32")
    expect_inactive(plugin, "needs a device whose warps have 64 lanes; here: gfx1100 (32 lanes)")


def test_unknown_numbering(inspect, hip_standin):
    expect_inactive(inspect(hip_standin(), STANDIN_NUMBERING="other"), "numbers device attributes in a way")


@pytest.mark.parametrize("call", ["hipInit", "hipGetDeviceCount"])
def test_failing_driver(inspect, hip_standin, call):
    plugin = inspect(hip_standin(), STANDIN_FAIL=f"{call}:999")
    expect_inactive(plugin, f"{call} failed: hipErrorDrv (a failure that the test asked for)")
