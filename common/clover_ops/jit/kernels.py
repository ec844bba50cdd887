"""kernels.toml, THE list of Triton kernels, checked against the functions that it names. Neither needs Triton."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import sources
from .errors import KernelTableError, MalformedRequest
from .request import TYPES, Argument, Request, Target, Value, format_value, parse_target, parse_value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "kernels.toml"
FAMILIES = ("cuda", "hip")
_DATA = "*x"  # a pointer to the data dtype, which a request or a bundle entry names
_KERNEL_KEYS = {"name", "module", "function", "operator", "args", "constexprs", "configs", "bundle", "scratch"}
_REQUIRED = _KERNEL_KEYS - {"configs", "bundle", "scratch"}
_BUNDLE_KEYS = {"constexprs", "x", "spec", "configs", "targets"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Config:
    """A way to compile a kernel: values of some constexprs, warps, stages and backend options."""

    constexprs: tuple[tuple[str, Value], ...]
    num_warps: int
    num_stages: int
    options: tuple[tuple[str, str], ...]

    def text(self) -> str:
        """As the `config` line of a tuned table has it."""
        pairs = [*self.constexprs, ("num_warps", self.num_warps), ("num_stages", self.num_stages), *self.options]
        return " ".join(f"{key}={format_value(value)}" for key, value in pairs)


@dataclass(frozen=True)
class Geometry:
    """What is compiled ahead of time: constexprs that the configuration does not set, the data dtype, specialisations."""

    constexprs: tuple[tuple[str, Value], ...]
    data: str  # "bf16", or "" where no argument depends on it
    specialised: tuple[tuple[str, str], ...]
    every_config: bool  # else the first alone
    targets: tuple[Target, ...]  # empty: every target of the bundle


@dataclass(frozen=True)
class Kernel:
    folder: Path
    name: str
    module: str
    function: str
    operator: str
    args: tuple[tuple[str, str], ...]
    constexprs: tuple[str, ...]
    configs: tuple[tuple[str, tuple[Config, ...]], ...]  # by family
    bundle: tuple[Geometry, ...]
    scratch: int = 0  # the most bytes that a compiled one may ask for, for each program

    def candidates(self, target: Target) -> tuple[Config, ...]:
        return dict(self.configs).get(target.backend, ())

    def source(self) -> str:
        return sources.digest(self.folder, self.module)

    def request(self, target: Target, config: Config, constexprs: dict[str, Value], data: str = "",
                specialised: dict[str, str] | None = None) -> Request:  # fmt: skip
        """The request for this kernel with a configuration, which wins over `constexprs`."""
        values = {**constexprs, **dict(config.constexprs)}
        if missing := [name for name in self.constexprs if name not in values]:
            raise MalformedRequest(f"kernel {self.name}: no value for the constexpr(s) {', '.join(missing)}")
        if unknown := sorted(values.keys() - set(self.constexprs)):
            raise MalformedRequest(
                f"kernel {self.name} has no constexpr {unknown[0]}; it has {', '.join(self.constexprs) or 'none'}"
            )
        special = dict(specialised or {})
        if unknown := sorted(special.keys() - {name for name, _ in self.args}):
            raise MalformedRequest(f"kernel {self.name} has no argument {unknown[0]} to specialise")
        if not data and any(kind == _DATA for _, kind in self.args):
            raise MalformedRequest(f"kernel {self.name}: the data dtype is missing: bf16, fp16 or fp32")
        arguments = tuple(
            Argument(name, f"*{data}" if kind == _DATA else kind, special.get(name, "")) for name, kind in self.args
        )
        return Request(
            self.name, self.source(), target, arguments, tuple((name, values[name]) for name in self.constexprs),
            config.num_warps, config.num_stages, config.options,
        )  # fmt: skip

    def bundled(self, target: Target) -> Iterator[Request]:
        """What a bundle holds for a target."""
        for geometry in self.bundle:
            if geometry.targets and target not in geometry.targets:
                continue
            configs = self.candidates(target)
            if not configs:
                raise KernelTableError(
                    f"{self.folder / TABLE}: kernel {self.name}: no configs.{target.backend} to bundle"
                )
            for config in configs if geometry.every_config else configs[:1]:
                yield self.request(target, config, dict(geometry.constexprs), geometry.data, dict(geometry.specialised))


def read(folder: Path) -> tuple[Kernel, ...]:
    """The kernels of a folder, each checked against its function."""
    path = folder / TABLE
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise KernelTableError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, no TOML, or an integer of thousands of digits
        raise KernelTableError(f"{path}: {error}") from None
    kernels = _Table(path, text).kernels(document)
    for kernel in kernels:
        check(kernel)
    return kernels


class _Table:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")

    def fail(self, message: str, kernel: int = -1, word: str = "") -> KernelTableError:
        """The line is looked up in the text: TOML readers keep none."""
        starts = [i for i, line in enumerate(self.lines) if re.match(r"\s*\[\[\s*kernel\s*\]\]", line)]
        first = starts[kernel] if 0 <= kernel < len(starts) else 0
        last = starts[kernel + 1] if 0 <= kernel < len(starts) - 1 else len(self.lines)
        found = [i for i in range(first, last) if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.lines[i])]
        return KernelTableError(f"{self.path}:{(found or [first])[0] + 1}: {message}")

    def kernels(self, document: dict[str, Any]) -> tuple[Kernel, ...]:
        if unknown := sorted(document.keys() - {"kernel"}):
            raise self.fail(f"unknown key `{unknown[0]}`; known: kernel", word=unknown[0])
        entries = document.get("kernel")
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self.fail("must hold an array of tables: [[kernel]]")
        kernels = [self.kernel(entry, at) for at, entry in enumerate(entries)]
        names = [kernel.name for kernel in kernels]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise self.fail(f"there are two kernels `{name}`", at, name)
        return tuple(kernels)

    def keys(self, entry: dict[str, Any], known: set[str], at: int, what: str) -> None:
        if unknown := sorted(entry.keys() - known):
            raise self.fail(f"unknown key `{unknown[0]}` of {what}; known: {', '.join(sorted(known))}", at, unknown[0])

    def kernel(self, entry: dict[str, Any], at: int) -> Kernel:
        self.keys(entry, _KERNEL_KEYS, at, "[[kernel]]")
        if missing := sorted(_REQUIRED - entry.keys()):
            raise self.fail(f"[[kernel]] lacks `{missing[0]}`", at)
        for key in ("name", "module", "function", "operator"):
            if not isinstance(entry[key], str) or not _IDENTIFIER.fullmatch(entry[key]):
                raise self.fail(f"`{key}` must be an identifier, got {entry[key]!r}", at, key)
        args = self.args(entry["args"], at)
        constexprs = entry["constexprs"]
        if not isinstance(constexprs, list) or not all(isinstance(name, str) for name in constexprs):
            raise self.fail("`constexprs` must be a list of names", at, "constexprs")
        configs = entry.get("configs", {})
        if not isinstance(configs, dict):
            raise self.fail("`configs` must be a table of lists: configs.cuda, configs.hip", at, "configs")
        self.keys(configs, set(FAMILIES), at, "configs")
        bundle = entry.get("bundle", [])
        if not isinstance(bundle, list) or not all(isinstance(item, dict) for item in bundle):
            raise self.fail("`bundle` must be an array of tables: [[kernel.bundle]]", at, "bundle")
        scratch = entry.get("scratch", 0)
        if type(scratch) is not int or scratch < 0:
            raise self.fail(f"`scratch` must be a number of bytes, got {scratch!r}", at, "scratch")
        return Kernel(
            self.path.parent, entry["name"], entry["module"], entry["function"], entry["operator"], args,
            tuple(constexprs),
            tuple((family, self.configs(configs[family], constexprs, at, family)) for family in sorted(configs)),
            tuple(self.geometry(item, constexprs, args, at) for item in bundle), scratch,
        )  # fmt: skip

    def args(self, value: Any, at: int) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in value
        ):
            raise self.fail("`args` must be a list of [name, type]", at, "args")
        for name, kind in value:
            if kind not in (*TYPES, _DATA):
                raise self.fail(
                    f"the type of `{name}` must be one of {' '.join((*TYPES, _DATA))}, got {kind!r}", at, name
                )
        return tuple((name, kind) for name, kind in value)

    def value(self, value: Any, at: int, key: str) -> Value:
        if not isinstance(value, int | float | str):
            raise self.fail(f"`{key}` must be a number, true, false or a dtype's name, got {value!r}", at, key)
        try:
            return parse_value(format_value(value), f"`{key}`")
        except MalformedRequest as error:
            raise self.fail(str(error), at, key) from None

    def configs(self, value: Any, constexprs: list[str], at: int, family: str) -> tuple[Config, ...]:
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.fail(f"configs.{family} must be a list of tables, at least one", at, "configs")
        return tuple(self.config(item, constexprs, at) for item in value)

    def config(self, item: dict[str, Any], constexprs: list[str], at: int) -> Config:
        counts = []
        for key in ("num_warps", "num_stages"):
            if type(item.get(key)) is not int or item[key] < 1:
                raise self.fail(f"a configuration needs `{key}`, a positive integer; got {item.get(key)!r}", at, key)
            counts.append(item[key])
        set_here = [(name, self.value(item[name], at, name)) for name in constexprs if name in item]
        others = sorted(item.keys() - {"num_warps", "num_stages", *constexprs})
        options = tuple((key, format_value(item[key])) for key in others)
        return Config(tuple(set_here), counts[0], counts[1], options)

    def geometry(self, item: dict[str, Any], constexprs: list[str], args: tuple[tuple[str, str], ...],
                 at: int) -> Geometry:  # fmt: skip
        self.keys(item, _BUNDLE_KEYS, at, "[[kernel.bundle]]")
        values, special = item.get("constexprs", {}), item.get("spec", {})
        for key, table in (("constexprs", values), ("spec", special)):
            if not isinstance(table, dict):
                raise self.fail(f"`{key}` of [[kernel.bundle]] must be a table", at, key)
        for name in values:
            if name not in constexprs:
                raise self.fail(f"the kernel has no constexpr `{name}`", at, name)
        for name, size in special.items():
            if name not in dict(args):
                raise self.fail(f"`spec`: the kernel has no argument `{name}`", at, name)
            if size not in (1, 16):
                raise self.fail(f"`spec`: `{name}` must be 1 (equal to) or 16 (divisible by), got {size!r}", at, name)
        data = item.get("x", "")
        if data not in ("", "bf16", "fp16", "fp32"):
            raise self.fail(f"`x` must be bf16, fp16 or fp32, got {data!r}", at, "x")
        if item.get("configs", "all") not in ("all", "first"):
            raise self.fail(
                f"`configs` of [[kernel.bundle]] must be all or first, got {item['configs']!r}", at, "configs"
            )
        try:
            targets = tuple(parse_target(text) for text in item.get("targets", []))
        except MalformedRequest as error:
            raise self.fail(str(error), at, "targets") from None
        return Geometry(
            tuple((name, self.value(value, at, name)) for name, value in values.items()), data,
            tuple((name, str(size)) for name, size in special.items()), item.get("configs", "all") == "all", targets,
        )  # fmt: skip


def check(kernel: Kernel) -> None:
    """Raises KernelTableError unless args and constexprs are the function's parameters, in their order."""
    path = kernel.folder / f"{kernel.module}.py"
    functions = {node.name: node for node in sources.parse_module(path).body if isinstance(node, ast.FunctionDef)}
    if kernel.function not in functions:
        raise KernelTableError(f"{path} has no function {kernel.function}, which kernel {kernel.name} names")
    function = functions[kernel.function]
    where = f"{path}:{function.lineno}: {kernel.function}"
    if not any("jit" in ast.unparse(decorator) for decorator in function.decorator_list):
        raise KernelTableError(f"{where} is not decorated with @triton.jit")
    signature = function.args
    if signature.vararg or signature.kwarg or signature.kwonlyargs or signature.posonlyargs:
        raise KernelTableError(f"{where} must have plain parameters alone")
    constant = [_is_constexpr(parameter) for parameter in signature.args]
    for what, want, listed in (
        ("args", False, tuple(name for name, _ in kernel.args)), ("constexprs", True, kernel.constexprs),
    ):  # fmt: skip
        have = tuple(parameter.arg for parameter, is_one in zip(signature.args, constant) if is_one == want)
        if have != listed:
            raise KernelTableError(
                f"{where} has the {what} {', '.join(have) or 'none'}; {TABLE} lists {', '.join(listed) or 'none'}"
            )


def _is_constexpr(parameter: ast.arg) -> bool:
    return (
        parameter.annotation is not None
        and ast.unparse(parameter.annotation).split(".")[-1].strip("'\"") == "constexpr"
    )


def bundle_targets(path: Path) -> tuple[str, ...]:
    """The targets that a backend's bundle.toml names."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KernelTableError(f"{path}: {error}") from None
    if unknown := sorted(document.keys() - {"targets"}):
        raise KernelTableError(f"{path}: unknown key `{unknown[0]}`; known: targets")
    targets = document.get("targets")
    if not isinstance(targets, list) or not targets or not all(isinstance(target, str) for target in targets):
        raise KernelTableError(f"{path}: `targets` must be a list such as ['cuda:90'], at least one")
    for target in targets:
        try:
            parse_target(target)
        except MalformedRequest as error:
            raise KernelTableError(f"{path}: {error}") from None
    return tuple(targets)


def folders(given: Path | None = None) -> tuple[Path, ...]:
    """Where kernels are: the given folder, else `triton/` beside the manifest of every plugin that is found."""
    if given is not None:
        return (given,)
    from clover_ops import _discovery

    places = [found.manifest.parent / "triton" for found in _discovery.find_manifests() if found.manifest is not None]
    return tuple(dict.fromkeys(place for place in places if (place / TABLE).is_file()))


def find(name: str, source: str | None = None, given: Path | None = None) -> Kernel:
    """The kernel of that name and, if given, source digest."""
    places = folders(given)
    found = [kernel for place in places for kernel in read(place) if kernel.name == name]
    if not found:
        where = (
            ", ".join(map(str, places)) or "no installed plugin has Triton kernels; name their folder with --kernels"
        )
        raise KernelTableError(f"there is no kernel {name!r} ({where})")
    if source is None:
        return found[0]
    for kernel in found:
        if kernel.source() == source:
            return kernel
    raise KernelTableError(
        f"kernel {name}: the sources in {found[0].folder} have the digest {found[0].source()}, asked for is {source}: they "
        "are of another version"
    )
