"""The user's cache: one file per identity, trusted only in a folder that nobody else can write to."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clover_ops.errors import CompileError

from . import artifact, locks
from .artifact import SUFFIX, Artifact
from .errors import ArtifactError

_NATIVE_TEMPORARY = re.compile(r"[0-9a-f]{64}\.[A-Za-z0-9]{6}")
_warned: set[str] = set()
_warned_lock = threading.Lock()


def warn_once(text: str) -> None:
    with _warned_lock:
        if text in _warned:
            return
        _warned.add(text)
    print(f"clover-ops: {text}", file=sys.stderr, flush=True)


def directory() -> tuple[Path, str]:
    """Where clover-ops keeps what it makes, and which variable says so."""
    if os.environ.get("CLOVER_OPS_CACHE_DIR"):
        return Path(os.environ["CLOVER_OPS_CACHE_DIR"]), "CLOVER_OPS_CACHE_DIR"
    if os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
        return Path(os.environ["XDG_CACHE_HOME"]) / "clover-ops", "XDG_CACHE_HOME"
    if os.path.isabs(os.environ.get("HOME", "")):
        return Path(os.environ["HOME"]) / ".cache" / "clover-ops", "HOME"
    return Path(tempfile.gettempdir()) / f"clover-ops-{os.getuid()}", "the temporary directory"


def why_unsafe(folder: Path) -> str:
    """Why what lies in an existing folder is not to be trusted; empty where it is."""
    try:
        facts = os.stat(folder)
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(facts.st_mode):
        return "not a directory"
    if facts.st_uid != os.getuid():
        return f"it belongs to user {facts.st_uid}, not to user {os.getuid()}"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(facts.st_mode):04o}): chmod go-w {folder}"
    if "site-packages" in folder.resolve().parts or "dist-packages" in folder.resolve().parts:
        return "it is inside an installation of Python packages, which is no place for a cache"
    return ""


def ensure(*folders: Path) -> str:
    """Makes folders, 0700, parent first; why one cannot be used, or nothing."""
    for folder in folders:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:
            return f"{folder}: not a directory"
        except OSError as error:
            return f"{folder}: {error.strerror or error}"
        if reason := why_unsafe(folder):
            return f"{folder}: {reason}"
    return ""


def write_atomically(path: Path, data: bytes) -> None:
    """The whole file or none: a temporary name in the same folder, synchronised, then renamed. Raises OSError."""
    temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def abandoned(folder: Path) -> list[Path]:
    """Half-written artifacts of `write_atomically` in a folder without locks, whose writers are dead."""
    found = []
    for path in folder.glob(f".*{SUFFIX}.*.tmp"):
        writer = path.name.split(".")[-3]
        if writer.isascii() and writer.isdigit() and not _runs(int(writer)):
            found.append(path)
    return found


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems do not synchronise folders
            raise
    finally:
        os.close(descriptor)


class Cache:
    """`<cache>/jit`. Where it cannot be used, what is compiled is kept in memory, and one warning says why."""

    def __init__(self, root: Path | None = None) -> None:
        base = directory()[0] if root is None else root
        self.base = base.absolute()
        self.folder = self.base / "jit"
        self.reason = ensure(self.base, self.folder)
        self._memory: dict[str, bytes] = {}
        self._losses: dict[str, str] = {}
        self._threads: dict[str, threading.Lock] = {}
        if self.reason:
            self._warn(self.reason)

    def _warn(self, reason: str) -> None:
        warn_once(f"compiled kernels are kept in memory only: {reason}")

    def path(self, identity: str) -> Path:
        return self.folder / f"{identity}{SUFFIX}"

    def load(self, identity: str) -> bytes | None:
        """The artifact's bytes, checked; None where there are none. A damaged file is told and treated as absent."""
        if identity in self._memory:
            return self._memory[identity]
        if self.reason:
            return None
        path = self.path(identity)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"{path}: {error.strerror or error}")
            return None
        try:
            artifact.check_identity(artifact.load(data, str(path)), identity, str(path))
        except ArtifactError as error:
            print(f"clover-ops: {error}; the kernel is compiled anew", file=sys.stderr, flush=True)
            return None
        return data

    def store(self, identity: str, data: bytes) -> None:
        """Keeps an artifact; where the disk does not take it, in memory."""
        reason = self.reason
        if not reason:
            try:
                write_atomically(self.path(identity), data)
                return
            except OSError as error:
                reason = f"{self.path(identity)}: {error.strerror or error}"
                self._warn(reason)
        self._memory[identity] = data
        self._losses[identity] = reason

    def why_lost(self, identity: str) -> str:
        """Why an artifact that was stored ends with the process; empty where it is on the disk."""
        return self._losses.get(identity, "")

    @contextmanager
    def locked(self, identity: str) -> Iterator[None]:
        """Holds the identity's lock; where no file can be made for it, this process's threads alone exclude each other."""
        with self._threads.setdefault(identity, threading.Lock()), ExitStack() as stack:
            if not self.reason:
                try:
                    stack.enter_context(locks.exclusive(self.folder / f"{identity}.lock"))
                    self._sweep(identity)
                except OSError as error:
                    self._warn(f"{self.folder}: {error.strerror or error}")
            yield

    def _sweep(self, identity: str) -> None:
        """Half-written files of this identity: whoever wrote them held this lock, and is dead."""
        for left in self.folder.glob(f".{identity}{SUFFIX}.*.tmp"):
            left.unlink(missing_ok=True)

    def entries(self) -> list[tuple[Path, Artifact | ArtifactError]]:
        found: list[tuple[Path, Artifact | ArtifactError]] = []
        for path in sorted(self.folder.glob(f"*{SUFFIX}")) if not self.reason else []:
            try:
                found.append((path, artifact.load(path.read_bytes(), str(path))))
            except ArtifactError as error:
                found.append((path, error))
            except OSError as error:
                found.append((path, ArtifactError(f"{path}: {error.strerror or error}")))
        return found

    def clear(self) -> int:
        """Removes every artifact, native kernels included, and what tuning found; returns how many files there were. Locks
        stay: one may be held. What is in the way and no file is named in a CompileError, after all else is gone."""
        removed, left = 0, []
        for path, counts in self._kept_files():
            try:
                path.unlink()
                removed += counts
            except FileNotFoundError:
                pass
            except OSError as error:
                left.append(f"{path}: {error.strerror or error}")
        self._memory.clear()
        if left:
            raise CompileError(f"{self.base}: {removed} file(s) removed, these cannot be: {'; '.join(left)}")
        return removed

    def _kept_files(self) -> Iterator[tuple[Path, bool]]:
        """What the cache's folders hold of ours, and whether it is whole."""
        if self.reason:
            return
        for pattern, counts in ((f"*{SUFFIX}", True), ("*.tuning", True), (".*.tmp", False)):
            yield from ((path, counts) for path in self.folder.glob(pattern))
        native = self.base / "hip"  # device/code_cache.cpp writes it
        if why_unsafe(native):
            return
        for path in native.iterdir():
            if path.suffix == SUFFIX or _NATIVE_TEMPORARY.fullmatch(path.name):
                yield path, path.suffix == SUFFIX
