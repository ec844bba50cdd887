"""The installed Hygon plugin on a stand-in HIP driver: devices, streams, loading, launches and failures."""

import os
import sys
import threading
from types import ModuleType, SimpleNamespace

import clover_ops
import pytest
from clover_ops import CompileError, DriverError, InvalidArgument, Unsupported, _core

from .calls import TRITON, call_with_workspace, every_operator, plugin, standin, topk_softmax
from .process import in_process as in_process_of

LANES = 64


def in_process(*macros, **variables):
    return in_process_of(*macros, backend="hygon", **variables)


def expect(error, function, *words):
    """The error that `function` raises, whose message holds the words."""
    with pytest.raises(error) as caught:
        function()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@in_process(STANDIN_DEVICES="gfx906,gfx90a")
def test_launch_on_each_device():
    """The device that was current is so again; each device runs its own architecture's code."""
    driver = standin()
    for device in (1, 0, 1):
        topk_softmax(device=device, stream=driver.stream(device))
    launches = driver.launches()
    assert [launch["device"] for launch in launches] == [1, 0, 1]
    assert all(launch["kernel"].startswith("clover_portable_route") for launch in launches)
    assert driver.calls("hipModuleLoadData") == 2
    assert driver.calls("hipSetDevice") == 4  # to device 1 and back, twice; device 0 was current


@in_process(STANDIN_DEVICES="gfx906,gfx906")
def test_stream_of_another_device():
    driver = standin()
    stream = driver.stream(1)
    expect(InvalidArgument, lambda: topk_softmax(stream=stream), "stream belongs to rocm:1", "tensors are on rocm:0")
    assert driver.launches() == []


@in_process()
def test_device_that_does_not_exist():
    expect(InvalidArgument, lambda: topk_softmax(device=7), "rocm:7 does not exist: the driver shows 1 device")


@in_process()
def test_capture_of_a_kernel_that_is_not_loaded():
    driver = standin()
    stream = driver.stream(capturing=True)
    expect(CompileError, lambda: topk_softmax(stream=stream), "clover_portable_route", "captured", "warmup")
    assert driver.launches() == [] and driver.calls("hipModuleLoadData") == 0
    clover_ops.warmup("rocm:0")
    topk_softmax(stream=stream)
    assert len(driver.launches()) == 1


@in_process()
def test_torch_for_hip_calls_its_device_cuda():
    """What torch was built for tells, not the device's name."""
    supports, warmup, driver = clover_ops.supports, clover_ops.warmup, standin()
    _core.binding()  # nothing from here on needs more of torch than its version
    torch = ModuleType("torch")
    torch.version = SimpleNamespace(hip=None)
    sys.modules["torch"] = torch
    assert not supports("topk_softmax", "cuda:0") and supports("topk_softmax", "rocm:0")
    torch.version.hip = "6.1.40091"
    assert supports("topk_softmax", "cuda:0")
    warmup("cuda:0")
    assert driver.calls("hipModuleLoadData") > 7


@in_process()
def test_cold_threads():
    driver = standin()
    plugin()
    start, errors = threading.Barrier(8), []

    def work():
        try:
            start.wait()
            for _ in range(20):
                topk_softmax()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert driver.calls("hipModuleLoadData") == 1 and len(driver.launches()) == 160


CALLS = {
    "hipStreamIsCapturing": 906,
    "hipModuleLoadData": 209,
    "hipModuleGetFunction": 500,
    "hipFuncGetAttribute": 999,
    "hipModuleLaunchKernel": 701,
    "hipGetDevice": 999,
    "hipStreamGetDevice": 400,
    "hipDeviceGetName": 999,
    "hipGetDeviceProperties": 999,
}


@pytest.mark.parametrize("name", sorted(CALLS))
@in_process()
def test_failing_call(name):
    """The error names the call and the driver's reason, nothing is left behind, and the next call may succeed."""
    driver = standin()
    _core.binding()  # plugins are found while the driver is well
    driver.fail(name, CALLS[name])

    def run():
        topk_softmax(stream=driver.stream())

    expect(DriverError, run, f"{name} failed", "(a failure that the test asked for)")
    assert driver.launches() == []
    if driver.calls("hipModuleGetFunction") and not driver.calls("hipModuleLaunchKernel"):
        assert driver.calls("hipModuleUnload") == driver.calls("hipModuleLoadData")
    driver.fail(name, 0)
    run()
    assert len(driver.launches()) == 1


@in_process("OLDER", STANDIN_NUMBERING="old")
def test_older_hip():
    topk_softmax(stream=standin().stream())
    assert len(standin().launches()) == 1


@pytest.mark.parametrize("architecture", ["gfx906", "gfx90a"])
@in_process()
def test_planners_and_kernels_agree(architecture):
    """Each launch of every operator names a kernel of the device's code, passes an argument of the size that the code object
    gives (the plugin checks it), and has a block of whole waves that the kernel takes."""
    os.environ["STANDIN_DEVICES"] = f"{architecture}:sramecc+:xnack-"
    driver = standin()
    served = set()
    for dtype in ("bfloat16", "float16", "float32"):
        for tokens in (1, 3, 40, 300, 3000):
            for operator, tensors, attributes in every_operator(dtype, tokens):
                for provider in clover_ops.providers(operator):
                    if provider.slot >= TRITON:  # test_triton.py
                        continue
                    try:
                        call_with_workspace(operator, tensors, attributes, provider.slot)
                    except Unsupported as refusal:
                        assert provider.slot == 0, refusal
                    else:
                        served.add((operator, provider.slot))
    assert {(entry["operator"], entry["slot"]) for entry in plugin()["provides"] if entry["slot"] < TRITON} == served
    launches = driver.launches()
    assert len({launch["kernel"] for launch in launches}) > 60
    for launch in launches:
        threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
        assert threads % LANES == 0 and threads <= 1024 and launch["shared"] <= 64 * 1024, launch
