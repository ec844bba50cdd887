"""Autotuning with stand-in drivers: which driver is used, what is written, and what is remembered."""

from __future__ import annotations

import ctypes
import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from clover_ops.errors import CompileError, InvalidArgument
from clover_ops.jit import autotune, driver, kernels, request, service

from .conftest import KERNELS, needs_triton

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = needs_triton
TARGET = request.parse_target("cuda:90")


class Clock:
    """A device of which one launch takes as long as the test says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.capturing = False
        self.lost = False

    def Event(self, enable_timing: bool) -> Any:
        event = SimpleNamespace(at=0.0, synchronize=lambda: None)
        event.record = lambda: setattr(event, "at", self.now)
        event.elapsed_time = lambda other: other.at - event.at
        return event

    def synchronize(self) -> None:
        if self.lost:
            raise RuntimeError("an illegal memory access was encountered")

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def get_device_name(self, device: int) -> str:
        return "Stand-in 9000"


class StandIn:
    """A Triton driver of a kind of device."""

    def __init__(self, backend: str, arch: Any, warp: int) -> None:
        self.target = (backend, arch, warp)
        self.clock = Clock()
        self.loaded: list[tuple] = []
        self.unloaded: list[int] = []
        self.utils = SimpleNamespace(load_binary=self.load, unload_module=self.unloaded.append)

    def load(self, name: str, binary: bytes, shared: int, device: int) -> tuple:
        self.loaded.append((name, binary, shared, device))
        return len(self.loaded), 1000 + len(self.loaded), 32, 0, 1024

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(*self.target)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 77

    def get_device_interface(self) -> Clock:
        return self.clock


@pytest.fixture
def triton_drivers(monkeypatch: pytest.MonkeyPatch):
    """use(*stand-ins active, chosen=…): Triton as it is with these drivers; returns its configuration."""
    import triton.backends

    runtime = importlib.import_module("triton.runtime.driver")  # the package has an attribute of the same name

    def use(*active: StandIn, chosen: StandIn | None = None) -> Any:
        config = runtime.DriverConfig()
        if chosen is not None:
            config.set_active(chosen)
        monkeypatch.setattr(runtime, "driver", config)
        present = {
            f"backend{at}": SimpleNamespace(
                driver=type("Driver", (), {"is_active": staticmethod(lambda: True), "__new__": lambda cls, it=it: it}),
                compiler=SimpleNamespace(supports_target=lambda target, it=it: target.backend == it.target[0]),
            )
            for at, it in enumerate(active)
        }
        monkeypatch.setattr(triton.backends, "backends", present)
        monkeypatch.setattr(runtime, "backends", present)
        return config

    return use


def cuda() -> StandIn:
    return StandIn("cuda", 90, 32)


def problem(**changes: Any) -> autotune.Problem:
    n = 1000
    arguments = {
        "x": torch.ones(n, dtype=torch.bfloat16), "y": torch.ones(n, dtype=torch.bfloat16),
        "out": torch.zeros(2 * n, dtype=torch.bfloat16)[::2], "n": n, "stride": 1,
    }  # fmt: skip
    facts = {
        "kernel": kernels.find("vector_add", given=KERNELS), "target": TARGET, "arguments": arguments, "constexprs": {},
        "grid": lambda values: (-(-values["n"] // values["BLOCK"]), 1, 1), "data": "bf16", "specialised": {"stride": "1"},
    }  # fmt: skip
    return autotune.Problem(**{**facts, **changes})


class Launches:
    """Writes to the output as a kernel would, takes its time, and may fail."""

    def __init__(self, device: StandIn, milliseconds: dict[int, float], fail: int = 0) -> None:
        self.device, self.milliseconds, self.fail = device, milliseconds, fail
        self.seen: list[tuple] = []

    def __call__(self, function: int, grid: tuple, block: int, shared: int, stream: int, values: list) -> None:
        if block == self.fail:
            raise RuntimeError("too many resources requested")
        assert stream == 77
        self.seen.append((function, grid, block, len(values)))
        ctypes.memset(values[2].value, 0xFF, 64)
        self.device.clock.now += self.milliseconds[block]


def test_zero_active_drivers_is_refused(triton_drivers):
    config = triton_drivers()
    with pytest.raises(CompileError, match="active drivers are: none"):
        autotune.autotune(problem(), flush=1)
    assert (config._active, config._default) == (None, None)


@pytest.mark.parametrize("others", [0, 1])
def test_one_or_two_active_drivers_and_the_fitting_one_is_used(triton_drivers, others: int):
    device, other = cuda(), StandIn("hip", "gfx906", 64)
    config = triton_drivers(*([other] * others), device)
    result = autotune.autotune(problem(), Launches(device, {128: 2.0, 256: 1.0}), flush=1)
    assert result.best.num_warps == 8
    assert len(device.loaded) == len(device.unloaded) == 2 and not other.loaded
    assert (config._active, config._default) == (None, None)  # Triton's own choice is still to be made


def test_the_driver_that_was_chosen_stays(triton_drivers):
    """Between two candidates Triton refuses to choose; a vendor's plugin has done so, and keeps its place."""
    vendor, other = cuda(), cuda()
    config = triton_drivers(vendor, other, chosen=vendor)
    autotune.autotune(problem(), Launches(vendor, {128: 1.0, 256: 2.0}), flush=1)
    assert config._active is vendor and config._default is None
    assert vendor.loaded and not other.loaded


def test_an_active_driver_of_another_device_is_refused_and_stays(triton_drivers):
    hip = StandIn("hip", "gfx906", 64)
    config = triton_drivers(hip, cuda(), chosen=hip)
    with pytest.raises(CompileError, match="cuda:90:32 cannot be timed: Triton's active driver has hip:gfx906:64"):
        driver.active(TARGET)
    assert config._active is hip


def test_live_tensors_are_never_written(triton_drivers):
    device = cuda()
    triton_drivers(device)
    asked = problem()
    before = {name: value.clone() for name, value in asked.arguments.items() if hasattr(value, "clone")}
    launches = Launches(device, {128: 1.0, 256: 2.0})
    autotune.autotune(asked, launches, flush=1)
    for name, value in before.items():
        assert torch.equal(asked.arguments[name], value), name
    (first, *_) = launches.seen
    assert first == (1001, (4, 1, 1), 128, 6)  # three pointers, n, two of scratch: `stride` is 1 and not passed
    assert {grid for _, grid, _, _ in launches.seen} == {(4, 1, 1), (1, 1, 1)}


def test_copies_keep_sizes_strides_and_values():
    whole = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    for tensor in (whole, whole[1:, ::2, 1:4], whole.transpose(0, 2), whole[:0], whole[:1].expand(3, 4, 5)):
        copy = autotune._copy(tensor)
        assert copy.shape == tensor.shape and copy.stride() == tensor.stride() and torch.equal(copy, tensor)
        assert copy.data_ptr() != tensor.data_ptr() or not tensor.numel()


def test_losers_and_failures_are_recorded_with_the_reason(triton_drivers):
    device = cuda()
    triton_drivers(device)
    result = autotune.autotune(problem(), Launches(device, {128: 3.0, 256: 1.0}), flush=1)
    assert [(t.status, t.microseconds, t.reason) for t in result.trials] == [
        ("slower", 3000.0, "3.00 times the best"), ("best", 1000.0, ""),
    ]  # fmt: skip
    result = autotune.autotune(problem(), Launches(device, {128: 3.0}, fail=256), flush=1, again=True)
    assert [t.status for t in result.trials] == ["best", "failed"]
    assert "too many resources requested" in result.trials[1].reason


def test_no_candidate_works(triton_drivers):
    device = cuda()
    triton_drivers(device)
    with pytest.raises(CompileError, match=r"no candidate works: \[BLOCK=256 .* no \w+ is that fast"):
        autotune.autotune(problem(), no_launch, flush=1)


def no_launch(*_: Any) -> None:
    raise RuntimeError("no device is that fast")


def test_a_lost_device_ends_the_tuning(triton_drivers):
    device = cuda()
    triton_drivers(device)

    def lose(*_: Any) -> None:
        device.clock.lost = True

    with pytest.raises(CompileError, match="the device failed while it was timed: an illegal memory access"):
        autotune.autotune(problem(), lose, flush=1)


def test_results_are_remembered_and_damage_is_found(triton_drivers, capfd: pytest.CaptureFixture):
    device = cuda()
    triton_drivers(device)
    launches = Launches(device, {128: 1.0, 256: 2.0})
    first = autotune.autotune(problem(), launches, flush=1)
    count = len(launches.seen)
    again = autotune.autotune(problem(), launches, flush=1)
    assert again.cached and again.trials == first.trials and len(launches.seen) == count
    (path,) = service.user_cache().folder.glob("*.tuning")
    path.write_bytes(path.read_bytes().replace(b"1000.0", b"9000.0"))
    assert not autotune.autotune(problem(), launches, flush=1).cached
    assert "checksum" in capfd.readouterr().err
    assert autotune.autotune(problem(), launches, flush=1).cached
    other = problem(arguments={**problem().arguments, "n": 999})
    assert not autotune.autotune(other, launches, flush=1).cached


def test_never_during_capture(triton_drivers):
    device = cuda()
    triton_drivers(device)
    device.clock.capturing = True
    with pytest.raises(InvalidArgument, match="while the stream is captured"):
        autotune.autotune(problem(), no_launch, flush=1)
    assert not device.loaded


def test_comparing_providers_keeps_refusals(triton_drivers, monkeypatch: pytest.MonkeyPatch):
    device = cuda()
    triton_drivers(device)

    def call(slot: int) -> None:
        if slot == 10:
            raise NotImplementedError("not this shape")
        device.clock.now += 0.25

    found = autotune.compare(autotune.Comparison("cast", {"T": 4}, call, (0, 10)), device, flush=1, device="cpu")
    assert found == {0: 250.0, 10: "NotImplementedError: not this shape"}
