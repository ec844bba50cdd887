"""The installed plugin on a stand-in driver: contexts, streams, loading, launches and failures."""

import ctypes
import os
import re
import struct
import threading

import clover_ops
import pytest
from clover_ops import CompileError, DriverError, InvalidArgument, Unsupported, _core

from .calls import TRITON, Tensor, call, call_with_workspace, every_operator, plugin, standin, topk_softmax
from .process import in_process


def expect(error, function, *words):
    """The error that `function` raises, whose message holds the words."""
    with pytest.raises(error) as caught:
        function()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@in_process()
def test_launch():
    """The grid, block and argument of a launch: the tensors' addresses and strides, and no more."""
    driver = standin()
    logits = Tensor("float32", 5, 16, strides=(24, 1), offset=32)
    ids, weights = Tensor("int32", 5, 2), Tensor("float32", 5, 2, strides=(7, 1))
    stream = driver.stream()
    call("topk_softmax", [logits, ids, weights], [2, True], stream)
    (launch,) = driver.launches()
    assert launch["kernel"] == "clover_topk_softmax_f32_8"
    assert (launch["device"], launch["stream"]) == (0, stream)
    assert launch["block"] == [128, 1, 1] and launch["grid"] == [2, 1, 1]  # a warp per token
    params = bytes.fromhex(launch["params"])
    assert struct.unpack_from("<3Q3q4i", params) == (
        logits.address, ids.address, weights.address, 24, 2, 7, 5, 16, 2, 1,
    )  # fmt: skip


@in_process()
def test_axes_of_one_element_have_plain_strides():
    driver = standin()
    call(
        "topk_softmax",
        [Tensor("float32", 1, 16, strides=(999, 1)), Tensor("int32", 1, 2), Tensor("float32", 1, 2)],
        [2, False],
    )
    (launch,) = driver.launches()
    assert struct.unpack_from("<q", bytes.fromhex(launch["params"]), 24) == (16,)


@in_process()
def test_nothing_to_do():
    driver = standin()
    topk_softmax(tokens=0)
    assert driver.launches() == []


@in_process(STANDIN_DEVICES="90,90")
def test_context_is_pushed_and_popped():
    driver = standin()
    own = driver.context(1, primary=False)
    driver.push(own)
    topk_softmax(device=0)
    topk_softmax(device=1)
    assert (driver.current(), driver.depth()) == (own, 1)
    assert driver.calls("cuCtxPushCurrent_v2") == driver.calls("cuCtxPopCurrent_v2") == 2
    assert [launch["device"] for launch in driver.launches()] == [0, 1]


@in_process()
def test_current_context_is_left_alone():
    driver = standin()
    driver.push(driver.context())
    topk_softmax(stream=driver.stream())
    assert driver.calls("cuCtxPushCurrent_v2") == 0 and driver.depth() == 1
    assert driver.calls("cuDevicePrimaryCtxRetain") == 1


@in_process(STANDIN_DEVICES="90,90")
def test_stream_of_another_device():
    driver = standin()
    stream = driver.stream(1)
    expect(InvalidArgument, lambda: topk_softmax(stream=stream), "stream belongs to cuda:1", "tensors are on cuda:0")
    assert driver.launches() == [] and driver.depth() == 0


@in_process()
def test_stream_of_another_context():
    driver = standin()
    stream = driver.stream(primary=False)
    expect(InvalidArgument, lambda: topk_softmax(stream=stream), "another context of cuda:0 than its primary one")
    assert driver.launches() == [] and driver.depth() == 0


@in_process()
def test_device_that_does_not_exist():
    expect(InvalidArgument, lambda: topk_softmax(device=7), "cuda:7 does not exist: the driver shows 1 device")


@in_process()
def test_capture_of_a_kernel_that_is_not_loaded():
    driver = standin()
    stream = driver.stream(capturing=True)
    expect(CompileError, lambda: topk_softmax(stream=stream), "clover_topk_softmax", "being captured", "warmup")
    assert driver.launches() == [] and driver.calls("cuModuleLoadData") == 0 and driver.depth() == 0

    clover_ops.warmup("cuda:0")
    topk_softmax(stream=stream)
    assert len(driver.launches()) == 1


@in_process(STANDIN_DEVICES="90,80")
def test_warmup():
    """Everything for that device is loaded, once."""
    driver = standin()
    clover_ops.warmup("cuda:0")
    loads, functions = driver.calls("cuModuleLoadData"), driver.calls("cuModuleGetFunction")
    assert loads > 0 and driver.depth() == 0
    objects, kernels = re.findall(r"(\d+) (?:code objects|Triton kernels) loaded", plugin()["details"]["cuda:0"])
    assert int(objects) + int(kernels) == loads and int(kernels) > 0
    assert " 0 code objects loaded" in plugin()["details"]["cuda:1"]
    assert driver.calls("cuFuncSetAttribute") == functions  # shared memory: opted in once per kernel
    clover_ops.warmup("cuda:0")
    topk_softmax()
    assert driver.calls("cuModuleLoadData") == loads
    assert driver.calls("cuModuleGetFunction") == driver.calls("cuFuncSetAttribute") == functions
    clover_ops.warmup("cuda:1")
    assert driver.calls("cuModuleLoadData") > loads


@in_process(STANDIN_DEVICES="90,90")
def test_cold_threads():
    """Eight threads whose first calls meet: each module is loaded once per device, each call runs on its own device."""
    driver = standin()
    plugin()  # the registry is ready, the device is not
    start, errors = threading.Barrier(8), []

    def work(number):
        try:
            start.wait()
            for turn in range(20):
                topk_softmax(device=(number + turn) % 2)
                merge = [Tensor("bfloat16", 4, 8, device=number % 2) for _ in range(2)]
                call(
                    "merge_live_rows",
                    [*merge, Tensor("bool", 4, device=number % 2), Tensor("bfloat16", 4, 8, device=number % 2)],
                )
            assert driver.depth() == 0
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert driver.calls("cuModuleLoadData") == 4  # two code objects, two devices
    assert driver.calls("cuDevicePrimaryCtxRetain") == 2
    assert len(driver.launches()) == 320


CALLS = {
    "cuDevicePrimaryCtxRetain": 2,
    "cuCtxGetCurrent": 201,
    "cuCtxPushCurrent_v2": 201,
    "cuStreamGetCtx": 400,
    "cuStreamIsCapturing": 906,
    "cuModuleLoadData": 209,
    "cuModuleGetFunction": 500,
    "cuFuncGetAttribute": 999,
    "cuFuncSetAttribute": 1,
    "cuLaunchKernel": 701,
    "cuDeviceGetAttribute": 999,
    "cuDeviceGetName": 999,
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

    expect(DriverError, run, f"{name} failed", f"STANDIN_ERROR_{CALLS[name]} (a failure that the test asked for)")
    assert driver.launches() == [] and driver.depth() == 0
    if driver.calls("cuModuleGetFunction") and not driver.calls("cuLaunchKernel"):
        assert driver.calls("cuModuleUnload") == driver.calls("cuModuleLoadData")
    driver.fail(name, 0)
    run()
    assert len(driver.launches()) == 1 and driver.depth() == 0


@in_process()
def test_advice():
    driver = standin()
    driver.fail("cuLaunchKernel", 700)
    expect(DriverError, topk_softmax, "for kernel clover_topk_softmax_f32_8", "an earlier kernel on this device failed")


@in_process()
def test_relaxed_capture_while_loading():
    """Another thread's capture is not disturbed, and the thread's own mode is back afterwards."""
    driver = standin()
    topk_softmax()
    assert driver.calls("cuThreadExchangeStreamCaptureMode") == 2
    mode = ctypes.c_int(77)
    driver.library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == 0


def coreset(cu_seqlens, stream=0):
    tokens, experts, blocks = 6, 8, len(cu_seqlens) - 1
    tensors = [Tensor("float32", tokens, experts), Tensor("int32", blocks + 1, values=cu_seqlens), None]
    tensors += [Tensor("bool", blocks, experts), Tensor("int32", tokens, 2), Tensor("float32", tokens, 2)]
    call("block_coreset", tensors, [2, 4, "vote", None, False], stream)


@in_process(CLOVER_OPS_DEBUG="1")
def test_debug_mode_reads_index_values():
    driver = standin()
    coreset([0, 2, 6])
    assert driver.calls("cuMemcpyDtoHAsync_v2") == driver.calls("cuStreamSynchronize") == 1
    assert len(driver.launches()) == 1
    expect(InvalidArgument, lambda: coreset([0, 4, 2]), "cu_seqlens[2]")
    expect(InvalidArgument, lambda: coreset([0, 2, 7]), "cu_seqlens[2]", "at most T = 6")
    assert len(driver.launches()) == 1 and driver.depth() == 0


@in_process()
def test_index_values_stay_on_the_device_otherwise():
    driver = standin()
    coreset([0, 4, 2])
    assert driver.calls("cuMemcpyDtoHAsync_v2") == 0 and len(driver.launches()) == 1


@in_process(CLOVER_OPS_DEBUG="1")
def test_debug_mode_in_a_capture():
    driver = standin()
    clover_ops.warmup("cuda:0")
    stream = driver.stream(capturing=True)
    expect(Unsupported, lambda: coreset([0, 2, 6], stream), "CLOVER_OPS_DEBUG=1", "captured")
    assert driver.calls("cuMemcpyDtoHAsync_v2") == 0 and driver.launches() == []


@in_process(CLOVER_OPS_DEBUG="1")
def test_debug_mode_with_a_failing_copy():
    driver = standin()
    for name in ("cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"):
        driver.fail(name, 700)
        expect(DriverError, lambda: coreset([0, 2, 6]), "while reading index values")
        driver.fail(name, 0)
    assert driver.launches() == []


@pytest.mark.parametrize("capability", ["80", "86", "89", "90", "100", "103", "110", "120", "121"])
@in_process()
def test_code_for_every_device(capability):
    """Warming up loads code that the device runs; the stand-in refuses foreign code and unknown kernels."""
    os.environ["STANDIN_DEVICES"] = capability
    clover_ops.warmup("cuda:0")
    assert re.search(r"[1-9]\d* code objects loaded", plugin()["details"]["cuda:0"])


@pytest.mark.parametrize("capability", ["80", "89", "90", "100", "120"])
@in_process()
def test_planners_and_kernels_agree(capability):
    """Each launch names a kernel of the device's code and passes an argument of the kernel's own size: for every operator,
    and every provider that takes the call."""
    os.environ["STANDIN_DEVICES"] = capability
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
    unserved = {(entry["operator"], entry["slot"]) for entry in plugin()["provides"] if entry["slot"] < TRITON} - served
    # A block of the tuned preview_gdn does not fit these devices' shared memory.
    assert unserved == ({("preview_gdn", 0)} if capability == "89" else set()), unserved
    launches = driver.launches()
    assert len({launch["kernel"] for launch in launches}) > 100
    assert all(launch["params"] for launch in launches)
