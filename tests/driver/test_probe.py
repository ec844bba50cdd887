"""What the probe says of machines on which the plugin cannot run. None of it is a fault of the plugin: doctor stays well."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .conftest import child_environment

pytestmark = pytest.mark.smoke


@pytest.fixture
def inspect(nvidia_plugin):
    """inspect(folder, **environment) -> the plugin's entry in `clover-ops doctor --json`; doctor must exit well."""

    def run(folder, **variables):
        environment = child_environment(folder, **variables)
        command = [sys.executable, "-m", "clover_ops", "doctor", "--json"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        report = json.loads(result.stdout)
        (plugin,) = (entry for entry in report["plugins"] if entry["name"] == "nvidia")
        if plugin["status"] == "inactive":
            assert not any("nvidia" in problem for problem in report["problems"]), report["problems"]
        return plugin

    return run


def expect_inactive(plugin, *words):
    assert plugin["status"] == "inactive", plugin
    for word in words:
        assert word in plugin["reason"], plugin["reason"]


def has_real_driver():
    folders = ["/usr/lib64", "/lib64", f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}", "/usr/local/nvidia/lib64"]
    return any((Path(folder) / "libcuda.so.1").exists() for folder in folders)


def test_active(inspect, cuda_standin):
    plugin = inspect(cuda_standin(), STANDIN_DEVICES="90,80")
    assert (plugin["status"], plugin["devices"]) == ("active", 2), plugin
    assert plugin["details"]["driver"].startswith("CUDA 13.0, "), plugin["details"]
    assert "architecture 90" in plugin["details"]["cuda:0"] and "architecture 80" in plugin["details"]["cuda:1"]


@pytest.mark.skipif(has_real_driver(), reason="this machine has an NVIDIA driver")
def test_no_driver(inspect):
    expect_inactive(inspect(None), "there is no NVIDIA driver", "libcuda.so.1")


def test_driver_that_does_not_load(inspect, tmp_path):
    (tmp_path / "libcuda.so.1").write_text("not a library")
    expect_inactive(inspect(tmp_path), "there is no NVIDIA driver", "libcuda.so.1")


def test_too_old_by_its_version(inspect, cuda_standin):
    expect_inactive(
        inspect(cuda_standin(), STANDIN_VERSION="12040"),
        "the driver is too old: it is for CUDA 12.4, this plugin needs 13.0",
    )


def test_too_old_by_what_it_lacks(inspect, cuda_standin):
    expect_inactive(inspect(cuda_standin("OMIT_CAPTURE")), "the driver is too old", "lacks cuStreamIsCapturing")


def test_no_device(inspect, cuda_standin):
    expect_inactive(inspect(cuda_standin(), STANDIN_DEVICES=""), "the driver shows no device")


def test_no_visible_device(inspect, cuda_standin):
    plugin = inspect(cuda_standin(), STANDIN_DEVICES="", CUDA_VISIBLE_DEVICES="")
    expect_inactive(plugin, "no device is visible: CUDA_VISIBLE_DEVICES is ``")


def test_devices_that_are_too_old(inspect, cuda_standin):
    plugin = inspect(cuda_standin(), STANDIN_DEVICES="75,61")
    expect_inactive(plugin, "needs a device of compute capability 8.0 or higher; here: 7.5, 6.1")


@pytest.mark.parametrize("call", ["cuInit", "cuDeviceGetCount", "cuDriverGetVersion"])
def test_failing_driver(inspect, cuda_standin, call):
    plugin = inspect(cuda_standin(), STANDIN_FAIL=f"{call}:802")
    expect_inactive(plugin, f"{call} failed: STANDIN_ERROR_802 (a failure that the test asked for)")


def test_library_that_stands_on_hip(inspect, cuda_standin):
    expect_inactive(inspect(cuda_standin("ON_HIP")), "is not NVIDIA's driver, it stands on HIP", "clover-ops-hygon")


def test_library_of_dtk(inspect, cuda_standin):
    folder = cuda_standin()
    expect_inactive(inspect(folder, DTK_ROOT=str(folder)), "is not NVIDIA's driver, it stands on HIP")
