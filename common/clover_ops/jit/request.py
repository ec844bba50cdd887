"""What a kernel is asked for by: one canonical text, so that Python, C++ and a file name agree on what is meant.

The text's SHA-256 is the request's digest, by which a bundle is looked up; with the toolchain appended it is the
identity, by which the user's cache is.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from .errors import MalformedRequest

FORMAT = "clover-jit 1"
POINTER_TYPES = ("*bf16", "*fp16", "*fp32", "*i32", "*i64", "*u8", "*i1")
INTEGER_TYPES = ("i32", "i64")
TYPES = (*POINTER_TYPES, *INTEGER_TYPES, "fp32")
DTYPES = ("bf16", "fp16", "fp32", "fp64", "i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
MAX_BLOCK = 1024  # threads; the limit of every device that is served
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARCH = {"cuda": re.compile(r"[1-9][0-9]{1,2}"), "hip": re.compile(r"gfx[0-9a-f]{3,4}")}
_FEATURES = re.compile(r"[a-z0-9]+[+-](:[a-z0-9]+[+-])*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_WARP_SIZE = re.compile(r"[1-9][0-9]{0,3}")
_OWN_LINES = ("num_warps", "num_stages")  # what an option of that name would set once more

Value = int | bool | float | str  # a str is the name of a dtype


@dataclass(frozen=True)
class Target:
    """A device's kind as its driver tells it. Features tell identities apart; the compiler does not get them."""

    backend: str
    arch: str
    warp_size: int
    features: str = ""

    def __post_init__(self) -> None:
        if self.backend not in _ARCH:
            raise MalformedRequest(f"target: the backend must be cuda or hip, got {shown(self.backend)}")
        if not _ARCH[self.backend].fullmatch(self.arch):
            example = "90" if self.backend == "cuda" else "gfx906"
            raise MalformedRequest(
                f"target: an architecture of {self.backend} reads like {example}, got {shown(self.arch)}"
            )
        if self.warp_size not in (32, 64) or (self.backend == "cuda" and self.warp_size != 32):
            sizes = "32" if self.backend == "cuda" else "32 or 64"
            raise MalformedRequest(f"target: the warp size of {self.backend} is {sizes}, got {self.warp_size!r}")
        if self.features and not _FEATURES.fullmatch(self.features):
            raise MalformedRequest(f"features: they read like sramecc+:xnack-, got {shown(self.features)}")

    @property
    def text(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"

    @property
    def binary_kind(self) -> str:
        return "cubin" if self.backend == "cuda" else "hsaco"


def parse_target(text: str) -> Target:
    """`cuda:90`, `hip:gfx906`, `hip:gfx906:64` or, as a driver writes it, `hip:gfx906:sramecc+:xnack-`.

    Left out, the warp size is 32 for CUDA and, for HIP, that of the architecture: 64 up to gfx9, 32 from gfx10 on.
    """
    backend, _, rest = text.partition(":")
    arch, *more = rest.split(":")
    sizes = [part for part in more if _WARP_SIZE.fullmatch(part)]
    features = ":".join(part for part in more if part not in sizes)
    if not arch or len(sizes) > 1:
        raise MalformedRequest(f"target: must read like cuda:90 or hip:gfx906, got {shown(text)}")
    if sizes:
        size = int(sizes[0])
    else:
        size = 32 if backend == "cuda" or re.fullmatch(r"gfx1[0-9]{3}", arch) else 64
    return Target(backend, arch, size, features)


@dataclass(frozen=True)
class Argument:
    """A parameter that is no constexpr. A specialisation of `1` makes it one after all: it is not passed."""

    name: str
    type: str
    specialisation: str = ""  # "", "16" or "1"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise MalformedRequest(f"arg: a parameter's name is an identifier, got {self.name!r}")
        if self.type not in TYPES:
            raise MalformedRequest(f"arg {self.name}: the type must be one of {' '.join(TYPES)}, got {self.type!r}")
        allowed = {"fp32": ("",), "i32": ("", "1", "16"), "i64": ("", "1", "16")}.get(self.type, ("", "16"))
        if self.specialisation not in allowed:
            raise MalformedRequest(
                f"arg {self.name}: {self.type} is specialised by {' or '.join(allowed[1:]) or 'nothing'}, got "
                f"{self.specialisation!r}"
            )

    @property
    def passed(self) -> bool:
        return self.specialisation != "1"


def shown(text: str) -> str:
    """Quoted, and cut where it is too long for a message."""
    return repr(text) if len(text) <= 100 else f"{text[:100]!r}… ({len(text)} characters)"


def format_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:  # Python refuses to write one of thousands of digits
        raise MalformedRequest(f"an integer has at most 64 bits, got one of {value.bit_length()}")
    return value if isinstance(value, str) else repr(value)


def parse_value(text: str, what: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if text in DTYPES:
        return text
    if _INTEGER.fullmatch(text):
        if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
            raise MalformedRequest(f"{what}: an integer has at most 64 bits, got {shown(text)}")
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if repr(number) != text or number - number != 0:  # not canonical, or not finite
        raise MalformedRequest(
            f"{what}: must be an integer, true, false, a finite float as Python writes it or a dtype such as bf16, "
            f"got {shown(text)}"
        )
    return number


@dataclass(frozen=True)
class Request:
    kernel: str
    source: str
    target: Target
    arguments: tuple[Argument, ...]
    constexprs: tuple[tuple[str, Value], ...]
    num_warps: int
    num_stages: int
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.kernel):
            raise MalformedRequest(f"kernel: the name is an identifier, got {self.kernel!r}")
        if not _DIGEST.fullmatch(self.source):
            raise MalformedRequest(f"source: a SHA-256 in lower-case hex, got {self.source!r}")
        names = [argument.name for argument in self.arguments] + [name for name, _ in self.constexprs]
        for name, value in self.constexprs:
            if not _NAME.fullmatch(name):
                raise MalformedRequest(f"constexpr: a parameter's name is an identifier, got {name!r}")
            parse_value(format_value(value), f"constexpr {name}")
        if twice := [name for name in names if names.count(name) > 1]:
            raise MalformedRequest(f"parameter {twice[0]} is given twice")
        if self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise MalformedRequest(f"num_warps: must be a power of two, got {self.num_warps}")
        if self.num_warps * self.target.warp_size > MAX_BLOCK:
            raise MalformedRequest(
                f"num_warps: {self.num_warps} warps of {self.target.warp_size} make {self.block} threads; a block has at "
                f"most {MAX_BLOCK}"
            )
        if not 1 <= self.num_stages <= 64:
            raise MalformedRequest(f"num_stages: must be 1 to 64, got {self.num_stages}")
        keys = [key for key, _ in self.options]
        if keys != sorted(set(keys)):
            raise MalformedRequest(f"option: keys are sorted and appear once, got {' '.join(keys)}")
        for key, value in self.options:
            if key in _OWN_LINES:
                raise MalformedRequest(f"option: {key} has a line of its own, `{key} <number>`, and is no option")
            if not _NAME.fullmatch(key) or not re.fullmatch(r"\S+", value):
                raise MalformedRequest(f"option: `option <key> <value>`, each one word, got {key!r} {value!r}")

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.num_warps * self.target.warp_size

    @property
    def passed_types(self) -> tuple[str, ...]:
        """Types of what is passed at launch, before the pointers to scratch memory."""
        return tuple(argument.type for argument in self.arguments if argument.passed)

    def text(self) -> str:
        lines = [
            FORMAT,
            f"kernel {self.kernel}",
            f"source {self.source}",
            f"target {self.target.text}",
            f"features {self.target.features}",
        ]
        for argument in self.arguments:
            special = f":{argument.specialisation}" if argument.specialisation else ""
            lines.append(f"arg {argument.name} {argument.type}{special}")
        lines += [f"constexpr {name} {format_value(value)}" for name, value in self.constexprs]
        lines += [f"num_warps {self.num_warps}", f"num_stages {self.num_stages}"]
        lines += [f"option {key} {value}" for key, value in self.options]
        return "".join(f"{line}\n" for line in lines)

    def digest(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def identity(self, triton: str, backend: str) -> str:
        """`backend` tells apart Tritons of one version that are built differently; it may be empty."""
        return hashlib.sha256(f"{self.text()}triton {triton}\nbackend {backend}\n".encode()).hexdigest()


def parse(text: str) -> Request:
    """The request that `text` is; anything but the canonical text is refused."""
    if not text.endswith("\n"):
        raise MalformedRequest("the request's last line does not end: the text is cut off or empty")
    return _Reader(text[:-1].split("\n")).read()


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def fail(self, message: str) -> MalformedRequest:
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        return MalformedRequest(f"request, line {self.at + 1} {shown(line)}: {message}")

    def peek(self, word: str) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].partition(" ")[0] == word

    def take(self, word: str, fields: int) -> list[str]:
        """The fields of the present line, which must begin with `word`."""
        if not self.peek(word):
            raise self.fail(f"`{word}` comes here")
        parts = self.lines[self.at].split(" ")[1:]
        if len(parts) != fields or (word != "features" and "" in parts):
            raise self.fail(f"`{word}` takes {fields} word(s), one space between them")
        return parts

    def checked(self, make, *arguments):
        try:
            return make(*arguments)
        except MalformedRequest as error:
            raise self.fail(str(error)) from None

    def count(self, word: str) -> int:
        (text,) = self.take(word, 1)
        if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
            raise self.fail(f"{word} is a positive integer in decimal")
        self.at += 1
        return int(text)

    def read(self) -> Request:
        if self.lines[0] != FORMAT:
            raise self.fail(f"the first line must be `{FORMAT}`")
        self.at = 1
        (kernel,) = self.take("kernel", 1)
        if not _NAME.fullmatch(kernel):
            raise self.fail("the name is an identifier")
        self.at += 1
        (source,) = self.take("source", 1)
        if not _DIGEST.fullmatch(source):
            raise self.fail("a SHA-256 in lower-case hex")
        self.at += 1
        target = self.target()
        arguments, constexprs, options = [], [], []
        while self.peek("arg"):
            name, kind = self.take("arg", 2)
            arguments.append(self.checked(Argument, name, *kind.split(":", 1)))
            if kind.endswith(":"):
                raise self.fail("a specialisation follows the colon")
            self.at += 1
        while self.peek("constexpr"):
            name, value = self.take("constexpr", 2)
            constexprs.append((name, self.checked(parse_value, value, f"constexpr {name}")))
            self.at += 1
        num_warps, num_stages = self.count("num_warps"), self.count("num_stages")
        while self.peek("option"):
            options.append(tuple(self.take("option", 2)))
            self.at += 1
        if self.at < len(self.lines):
            raise self.fail("nothing comes here; the order is kernel, source, target, features, arg, constexpr, num_warps, "
                            "num_stages, option")  # fmt: skip
        return Request(
            kernel, source, target, tuple(arguments), tuple(constexprs), num_warps, num_stages, tuple(options)
        )

    def target(self) -> Target:
        (text,) = self.take("target", 1)
        parts = text.split(":")
        if len(parts) != 3 or not _WARP_SIZE.fullmatch(parts[2]):
            raise self.fail("a target is <backend>:<arch>:<warp size>")
        target = self.checked(Target, parts[0], parts[1], int(parts[2]))
        self.at += 1
        features = self.take("features", 1)[0] if self.lines[self.at : self.at + 1] != ["features"] else ""
        if self.lines[self.at : self.at + 1] == ["features"]:
            raise self.fail("a space follows `features`, even where there are none")
        target = self.checked(Target, target.backend, target.arch, target.warp_size, features)
        self.at += 1
        return target
