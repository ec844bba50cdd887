"""Compiles many kernels ahead of time: a backend's bundle, or whatever a user may want in the cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from clover_ops.errors import CompileError

from . import artifact, cache, service
from .artifact import SUFFIX
from .errors import ArtifactError
from .kernels import Kernel
from .request import Request, Target
from .toolchain import Toolchain, toolchain
from .worker import Worker


@dataclass(frozen=True)
class Job:
    kernel: Kernel
    request: Request


@dataclass(frozen=True)
class Outcome:
    job: Job
    status: str  # "compiled", "up to date" or "failed"
    reason: str  # why it failed
    data: bytes  # empty where it failed


Progress = Callable[[int, int, Outcome], None]  # how many are done, of how many, the latest


def plan(kernels: Iterable[Kernel], targets: Iterable[Target]) -> list[Job]:
    """Every bundled geometry with every configuration, for every target; what two entries share appears once."""
    jobs: dict[str, Job] = {}
    wanted = list(targets)
    for kernel in kernels:
        for target in wanted:
            for request in kernel.bundled(target):
                jobs.setdefault(request.digest(), Job(kernel, request))
    return list(jobs.values())


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def into_cache(jobs: list[Job], progress: Progress, workers: int | None = None, lasting: bool = False) -> list[Outcome]:
    """Compiles into the user's cache what is not there. With `lasting`, a kernel that the disk does not take has failed."""
    store = service.lasting_cache() if lasting else service.user_cache()
    tools = toolchain()

    def one(job: Job, worker: Worker) -> Outcome:
        identity = job.request.identity(tools.version, tools.backend)
        there = store.load(identity)
        data = there or service.obtain(job.request, job.kernel, store, worker.compile)
        if lasting and (reason := store.why_lost(identity)):
            raise CompileError(f"compiled, and not kept: the cache {reason}")
        return Outcome(job, "up to date" if there else "compiled", "", data)

    return _run(jobs, one, progress, workers)


def into_folder(jobs: list[Job], folder: Path, progress: Progress, workers: int | None = None) -> list[Outcome]:
    """Compiles into `<request digest>.clvk` of a folder what is not there; all else in it stays."""
    tools = toolchain()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompileError(f"{folder} cannot be made to write kernels into: {error.strerror or error}") from None

    def one(job: Job, worker: Worker) -> Outcome:
        path = folder / f"{job.request.digest()}{SUFFIX}"
        if there := _up_to_date(path, job.request, tools):
            return Outcome(job, "up to date", "", there)
        data = worker.compile(job.request, job.kernel, tools)
        cache.write_atomically(path, data)
        os.chmod(path, 0o644)  # a bundle is for everyone
        return Outcome(job, "compiled", "", data)

    return _run(jobs, one, progress, workers)


def into_bundle(jobs: list[Job], folder: Path, progress: Progress, workers: int | None = None) -> list[Outcome]:
    """Makes a bundle: a folder with a file for each job and no other artifact. One that lacks a kernel keeps what it had."""
    outcomes = into_folder(jobs, folder, progress, workers)
    if outcomes and all(outcome.status != "failed" for outcome in outcomes):
        _remove_others(folder, {f"{job.request.digest()}{SUFFIX}" for job in jobs})
    return outcomes


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Removes artifacts that no job is for, and what writers left that were killed."""
    others = [path for path in folder.glob(f"*{SUFFIX}") if path.name not in wanted]
    for path in (*others, *cache.abandoned(folder)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise CompileError(
                f"{path} does not belong into the bundle and cannot be removed: {error.strerror}"
            ) from None


def missing(jobs: list[Job], folder: Path) -> list[Job]:
    """What a bundle lacks for the present sources. Triton is not asked, nor are files opened."""
    return [job for job in jobs if not (folder / f"{job.request.digest()}{SUFFIX}").is_file()]


def _up_to_date(path: Path, request: Request, tools: Toolchain) -> bytes:
    try:
        data = path.read_bytes()
        found = artifact.load(data, str(path))
        artifact.check_request(found, request, str(path))
        artifact.check_identity(found, request.identity(tools.version, tools.backend), str(path))
    except (OSError, ArtifactError):
        return b""
    return data


def _run(
    jobs: list[Job], one: Callable[[Job, Worker], Outcome], progress: Progress, workers: int | None
) -> list[Outcome]:
    """Each thread has a compiler's process of its own. A job that fails is told and stops no other."""
    local = threading.local()
    started: list[Worker] = []

    def guarded(job: Job) -> Outcome:
        try:
            if not hasattr(local, "worker"):
                local.worker = Worker()
                started.append(local.worker)
            return one(job, local.worker)
        except CompileError as error:
            return Outcome(job, "failed", str(error), b"")
        except OSError as error:
            place = error.filename2 or error.filename or "the file"  # of a renaming, what it was to become
            return Outcome(job, "failed", f"{place} cannot be written: {error.strerror or error}", b"")

    outcomes: dict[int, Outcome] = {}
    try:
        with ThreadPoolExecutor(workers or cores()) as pool:
            futures = {pool.submit(guarded, job): at for at, job in enumerate(jobs)}
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    outcomes[futures[future]] = future.result()
                    progress(done, len(jobs), future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        for worker in started:
            worker.__exit__()
    return [outcomes[at] for at in sorted(outcomes)]
