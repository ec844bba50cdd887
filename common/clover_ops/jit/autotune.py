"""Finds a kernel's best configuration by timing every candidate, on copies: the caller's tensors are never written.

Candidates come from kernels.toml. All are compiled first, on every core; then each is launched on the caller's device and
stream, through the driver that Triton has active. The result is kept beside the compiled kernels.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clover_ops.errors import CompileError, InvalidArgument

from . import artifact, cache, driver, prebuild, service
from .artifact import Artifact
from .kernels import Config, Kernel
from .request import Argument, Request, Target, Value, parse_target
from .toolchain import toolchain

_ROUNDS = 20
_FLUSH = 256 << 20  # bytes; three times the largest L2 that is served, and then some
_SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}

Grid = Callable[[Mapping[str, Value]], tuple[int, int, int]]  # from constexprs and integer arguments
Launch = Callable[[Any, tuple[int, int, int], int, int, int, list[Any]], None]


@dataclass(frozen=True)
class Problem:
    """One launch to tune: a kernel, what it is given, and the sizes by which a tuned table will know it again."""

    kernel: Kernel
    target: Target
    arguments: Mapping[str, Any]  # tensors and numbers by parameter
    constexprs: Mapping[str, Value]  # what the configurations do not set
    grid: Grid
    data: str = ""
    specialised: Mapping[str, str] | None = None
    written: frozenset[str] | None = None  # tensors that the kernel writes; None: any of them may be
    key: Mapping[str, Value] | None = None


@dataclass(frozen=True)
class Trial:
    config: Config
    status: str  # "best", "slower" or "failed"
    microseconds: float  # 0 where it failed
    reason: str


@dataclass(frozen=True)
class Result:
    best: Config
    trials: tuple[Trial, ...]
    cached: bool


def autotune(problem: Problem, launch: Launch | None = None, flush: int = _FLUSH, again: bool = False) -> Result:
    """Times every candidate, or returns what an earlier run found. Raises CompileError where none works."""
    chosen = driver.active(problem.target)
    _refuse_capture(chosen.get_device_interface(), problem.kernel.name)
    candidates = problem.kernel.candidates(problem.target)
    if not candidates:
        raise CompileError(f"kernel {problem.kernel.name} has no candidates for {problem.target.backend}")
    requests = [_request(problem, config) for config in candidates]
    store = service.user_cache()
    identity = _identity(problem, requests, chosen)
    with store.locked(identity):
        if not again and (trials := _recall(store, identity, candidates)) is not None:
            return Result(_best(trials).config, trials, True)
        trials = _time_all(problem, candidates, requests, chosen, launch, flush)
        _best(trials)
        _remember(store, identity, trials)
    return Result(_best(trials).config, trials, False)


def _request(problem: Problem, config: Config) -> Request:
    special = dict(problem.specialised or {})
    return problem.kernel.request(problem.target, config, dict(problem.constexprs), problem.data, special)


def _refuse_capture(interface: Any, name: str) -> None:
    if interface.is_current_stream_capturing():
        raise InvalidArgument(f"kernel {name} cannot be tuned while the stream is captured: tune before, then capture")


def _time_all(problem: Problem, candidates: tuple[Config, ...], requests: list[Request], chosen: Any,
              launch: Launch | None, flush: int) -> tuple[Trial, ...]:  # fmt: skip
    jobs = [prebuild.Job(problem.kernel, request) for request in requests]
    built = prebuild.into_cache(jobs, _progress)
    timer = _Timer(problem, chosen, launch or driver.Launcher(problem.target.backend), flush)
    measured: list[tuple[float, str]] = []
    for request, outcome in zip(requests, built):
        measured.append((0.0, outcome.reason) if outcome.status == "failed" else timer.time(request, outcome.data))
    works = [time for time, reason in measured if not reason]
    fastest = min(works, default=0.0)
    trials = []
    for config, (time, reason) in zip(candidates, measured):
        if reason:
            trials.append(Trial(config, "failed", 0.0, reason))
        elif time == fastest and not any(trial.status == "best" for trial in trials):
            trials.append(Trial(config, "best", time, ""))
        else:
            trials.append(Trial(config, "slower", time, f"{time / fastest:.2f} times the best"))
    return tuple(trials)


def _progress(done: int, total: int, outcome: prebuild.Outcome) -> None:
    print(
        f"clover-ops: tuning {outcome.job.request.kernel}: candidate {done} of {total} {outcome.status}",
        file=sys.stderr,
    )


def _best(trials: tuple[Trial, ...]) -> Trial:
    for trial in trials:
        if trial.status == "best":
            return trial
    reasons = "; ".join(f"[{trial.config.text()}] {trial.reason}" for trial in trials)
    raise CompileError(f"no candidate works: {reasons}")


class _Timer:
    """Launches one compiled kernel after the other, on the same copies."""

    def __init__(self, problem: Problem, chosen: Any, launch: Launch, flush: int) -> None:
        self.problem = problem
        self.driver = chosen
        self.interface = chosen.get_device_interface()
        self.launch = launch
        self.device = chosen.get_current_device()
        tensors = {name: value for name, value in problem.arguments.items() if hasattr(value, "data_ptr")}
        for name, tensor in tensors.items():
            if tensor.device.index not in (None, self.device):
                raise InvalidArgument(
                    f"kernel {problem.kernel.name}: {name} is on {tensor.device}, the current device is {self.device}"
                )
        written = tensors.keys() if problem.written is None else problem.written
        self.originals = {name: tensor for name, tensor in tensors.items() if name in written}
        self.copies = {name: _copy(tensor) for name, tensor in self.originals.items()}
        any_tensor = next(iter(tensors.values()), None)
        if any_tensor is None:
            raise InvalidArgument(f"kernel {problem.kernel.name}: there is no tensor among its arguments")
        self.any_tensor = any_tensor
        self.flush = _bytes(any_tensor, flush)

    def time(self, request: Request, data: bytes) -> tuple[float, str]:
        """Microseconds, and why it does not work. A device that is lost ends the tuning."""
        compiled = artifact.load(data)
        try:
            answer = self._measure(request, compiled), ""
        except Exception as error:
            answer = 0.0, f"{type(error).__name__}: {error}"
        try:
            self.interface.synchronize()
        except Exception as error:
            raise CompileError(f"kernel {request.kernel}: the device failed while it was timed: {error}") from error
        return answer

    def _measure(self, request: Request, compiled: Artifact) -> float:
        shared = compiled.number("shared_bytes")
        # Older drivers return four values, newer ones also the largest block.
        module, function, *_ = self.driver.utils.load_binary(compiled["symbol"], compiled.binary, shared, self.device)
        try:
            names = {argument.name: self.problem.arguments[argument.name] for argument in request.arguments}
            numbers = {name: value for name, value in names.items() if isinstance(value, int)}
            grid = self.problem.grid({**numbers, **dict(request.constexprs)})
            scratch = [
                _bytes(self.any_tensor, compiled.number(f"{kind}_bytes") * grid[0] * grid[1] * grid[2])
                if compiled.number(f"{kind}_bytes") else None
                for kind in artifact.EXTRA_ARGUMENTS
            ]  # fmt: skip
            values = [self._value(argument) for argument in request.arguments if argument.passed]
            values += [ctypes.c_void_p(memory.data_ptr() if memory is not None else None) for memory in scratch]
            return self._median(function, grid, compiled.block, shared, values)
        finally:
            # What was launched with the scratch memory is over before that is given back.
            self.interface.synchronize()
            unload = getattr(self.driver.utils, "unload_module", None)
            if unload is not None:
                unload(module)

    def _value(self, argument: Argument) -> Any:
        value = self.problem.arguments[argument.name]
        if argument.type.startswith("*"):
            return ctypes.c_void_p(self.copies.get(argument.name, value).data_ptr())
        return _SCALARS[argument.type](value)

    def _median(self, function: Any, grid: tuple[int, int, int], block: int, shared: int, values: list[Any]) -> float:
        stream = self.driver.get_current_stream(self.device)
        times = []
        for turn in range(_ROUNDS + 2):  # the first two warm up
            for name, copy in self.copies.items():
                copy.copy_(self.originals[name])
            self.flush.zero_()
            before, after = self.interface.Event(enable_timing=True), self.interface.Event(enable_timing=True)
            before.record()
            self.launch(function, grid, block, shared, stream, values)
            after.record()
            after.synchronize()
            if turn >= 2:
                times.append(before.elapsed_time(after) * 1e3)
        return statistics.median(times)


def _copy(tensor: Any) -> Any:
    """As the original in sizes and strides, in memory of its own."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    whole = tensor.as_strided((span,), (1,), tensor.storage_offset()).clone()
    return whole.as_strided(tuple(tensor.shape), tuple(tensor.stride()), 0)


def _bytes(like: Any, size: int) -> Any:
    import torch

    return torch.empty(max(size, 1), dtype=torch.uint8, device=like.device)


def _identity(problem: Problem, requests: list[Request], chosen: Any) -> str:
    """What a result holds for: candidates, toolchain, device, and the arguments' sizes and strides."""
    hashed = hashlib.sha256(b"clover-tuning 1\n" + toolchain().text().encode())
    for request in requests:
        hashed.update(request.text().encode())
    for name, value in problem.arguments.items():
        facts = (tuple(value.shape), tuple(value.stride()), str(value.dtype)) if hasattr(value, "data_ptr") else value
        hashed.update(f"{name} {facts}\n".encode())
    hashed.update(f"device {device_name(chosen)}\n".encode())
    return hashed.hexdigest()


def current_target() -> Target:
    """The current device's, from torch."""
    try:
        import torch
    except ImportError as error:
        raise CompileError(f"tuning needs torch, to know the device: {error}") from None
    if not torch.cuda.is_available():
        raise CompileError(f"tuning needs a GPU, and torch {torch.__version__} sees none")
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    if torch.version.hip:
        return parse_target(f"hip:{properties.gcnArchName}")
    return parse_target(f"cuda:{properties.major}{properties.minor}")


def device_name(chosen: Any) -> str:
    return str(chosen.get_device_interface().get_device_name(chosen.get_current_device()))


def _path(store: cache.Cache, identity: str) -> Path:
    return store.folder / f"{identity}.tuning"


def _remember(store: cache.Cache, identity: str, trials: tuple[Trial, ...]) -> None:
    if store.reason:
        return
    rows = [[trial.config.text(), trial.status, trial.microseconds, trial.reason] for trial in trials]
    body = json.dumps({"identity": identity, "trials": rows}).encode() + b"\n"
    try:
        cache.write_atomically(_path(store, identity), body + hashlib.sha256(body).hexdigest().encode())
    except OSError as error:
        cache.warn_once(f"what tuning found is not kept: {store.folder}: {error.strerror or error}")


def _recall(store: cache.Cache, identity: str, candidates: tuple[Config, ...]) -> tuple[Trial, ...] | None:
    """What an earlier run found; None where there is none or it is damaged: then it is timed again."""
    if store.reason:
        return None
    try:
        body, _, digest = _path(store, identity).read_bytes().rpartition(b"\n")
        body += b"\n"
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise ValueError("the checksum does not match")
        found = json.loads(body)
        by_text = {config.text(): config for config in candidates}
        if found["identity"] != identity:
            raise ValueError("it is of another problem")
        return tuple(Trial(by_text[text], status, time, reason) for text, status, time, reason in found["trials"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        print(f"clover-ops: {_path(store, identity)}: {error}; tuning is done again", file=sys.stderr)
        return None


@dataclass(frozen=True)
class Comparison:
    """One call of an operator, to be timed with each of several providers."""

    operator: str
    sizes: Mapping[str, int]
    call: Callable[[int], None]  # with the slot
    slots: tuple[int, ...]
    stands_for: str = (
        ""  # the calls that this one speaks for, as the table's conditions: `N<=2 T>=130`; else its own sizes
    )


def compare(comparison: Comparison, chosen: Any, flush: int = _FLUSH, device: str = "cuda") -> dict[int, float | str]:
    """Microseconds by slot, or why a provider does not take the call. The calls write to what the caller gave them."""
    import torch

    interface = chosen.get_device_interface()
    _refuse_capture(interface, comparison.operator)
    memory = torch.empty(flush, dtype=torch.uint8, device=device)
    found: dict[int, float | str] = {}
    for slot in comparison.slots:
        times = []
        try:
            for turn in range(_ROUNDS + 2):
                memory.zero_()
                before, after = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
                before.record()
                comparison.call(slot)
                after.record()
                after.synchronize()
                if turn >= 2:
                    times.append(before.elapsed_time(after) * 1e3)
            found[slot] = statistics.median(times)
        except Exception as error:
            found[slot] = f"{type(error).__name__}: {error}"
    return found
