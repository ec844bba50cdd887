"""Tuned tables: for one kind of device, which provider takes a call and how a kernel is configured. Lines of text, since
C++ reads them too."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clover_ops.errors import CompileError

from .errors import MalformedRequest
from .request import Value, format_value, parse_value

FORMAT = "clover-tuned 1"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_CONDITION = re.compile(rf"({_NAME})(>=|<=|==|<|>)(\S+)")
_SETTING = re.compile(rf"({_NAME})=(\S+)")
_COMPARE: dict[str, Callable[[object, object], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class TunedTableError(CompileError):
    """A tuned table that cannot be read; the message names the line."""


@dataclass(frozen=True)
class Condition:
    name: str
    relation: str
    value: Value

    def holds(self, values: Mapping[str, Value]) -> bool:
        """False where the call has no such value."""
        return self.name in values and _COMPARE[self.relation](values[self.name], self.value)

    def text(self) -> str:
        return f"{self.name}{self.relation}{format_value(self.value)}"


@dataclass(frozen=True)
class Choice:
    """A call of `operator` that meets every condition goes to the provider in `slot`."""

    operator: str
    conditions: tuple[Condition, ...]
    slot: int


@dataclass(frozen=True)
class Setting:
    """A kernel under conditions is compiled with `values`: constexprs, num_warps, num_stages, backend options."""

    kernel: str
    conditions: tuple[Condition, ...]
    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Table:
    device: str
    architecture: str
    choices: tuple[Choice, ...] = ()
    settings: tuple[Setting, ...] = ()

    def slot(self, operator_name: str, sizes: Mapping[str, Value]) -> int | None:
        """The first line that matches decides."""
        for choice in self.choices:
            if choice.operator == operator_name and all(condition.holds(sizes) for condition in choice.conditions):
                return choice.slot
        return None

    def config(self, kernel: str, values: Mapping[str, Value]) -> dict[str, Value] | None:
        for setting in self.settings:
            if setting.kernel == kernel and all(condition.holds(values) for condition in setting.conditions):
                return dict(setting.values)
        return None

    def text(self) -> str:
        lines = [FORMAT, f"device {self.device}", f"architecture {self.architecture}"]
        for choice in self.choices:
            lines.append(
                " ".join(["choose", choice.operator, *(c.text() for c in choice.conditions), str(choice.slot)])
            )
        for setting in self.settings:
            values = [f"{key}={format_value(value)}" for key, value in setting.values]
            lines.append(" ".join(["config", setting.kernel, *(c.text() for c in setting.conditions), "->", *values]))
        return "".join(f"{line}\n" for line in lines)


def slug(device: str) -> str:
    """A device's name as it appears in file names: `NVIDIA H200` is nvidia-h200."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def read(path: Path) -> Table:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise TunedTableError(f"{path} cannot be read: {error}") from None


def parse(text: str, where: str = "tuned table") -> Table:
    lines = text.split("\n")
    if lines[0] != FORMAT:
        raise TunedTableError(f"{where}:1: the first line must be `{FORMAT}`, got {lines[0]!r}")
    heads: dict[str, str] = {}
    choices: list[Choice] = []
    settings: list[Setting] = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] in ("device", "architecture") and words[0] not in heads and len(words) > 1:
                heads[words[0]] = line.split(None, 1)[1].strip()
            elif words[0] == "choose":
                choices.append(_choice(words[1:]))
            elif words[0] == "config":
                settings.append(_setting(words[1:]))
            else:
                raise MalformedRequest("a line is device, architecture (once each), choose or config")
        except MalformedRequest as error:
            raise TunedTableError(f"{where}:{number}: {line!r}: {error}") from None
    for key in ("device", "architecture"):
        if key not in heads:
            raise TunedTableError(f"{where}: there is no line `{key} …`")
    return Table(heads["device"], heads["architecture"], tuple(choices), tuple(settings))


def conditions(text: str) -> tuple[Condition, ...]:
    """The conditions of a `choose` line: `N<=2 max_seqlen>=65`."""
    found = _conditions(text.split())
    if wrong := [c for c in found if type(c.value) is not int]:
        raise MalformedRequest(f"{wrong[0].text()}: a symbol is compared with an integer")
    return found


def _choice(words: list[str]) -> Choice:
    if len(words) < 2 or not re.fullmatch(r"1?[0-9]", words[-1]):
        raise MalformedRequest("`choose <operator> [<condition> …] <slot>`, the slot 0 to 19")
    return Choice(words[0], conditions(" ".join(words[1:-1])), int(words[-1]))


def _setting(words: list[str]) -> Setting:
    if words.count("->") != 1 or not words or words[0] == "->" or words[-1] == "->":
        raise MalformedRequest("`config <kernel> [<condition> …] -> <key>=<value> …`")
    arrow = words.index("->")
    values = []
    for word in words[arrow + 1 :]:
        match = _SETTING.fullmatch(word)
        if match is None:
            raise MalformedRequest(f"{word!r} must read <key>=<value>")
        values.append((match[1], parse_value(match[2], match[1])))
    return Setting(words[0], _conditions(words[1:arrow]), tuple(values))


def _conditions(words: list[str]) -> tuple[Condition, ...]:
    conditions = []
    for word in words:
        match = _CONDITION.fullmatch(word)
        if match is None:
            raise MalformedRequest(f"{word!r} must read <name><relation><value>, the relation one of >= <= == < >")
        value = parse_value(match[3], match[1])
        if match[2] != "==" and type(value) is not int:
            raise MalformedRequest(f"{word!r}: {match[2]} compares integers")
        conditions.append(Condition(match[1], match[2], value))
    return tuple(conditions)


def user_table(backend: str, device: str) -> Path:
    """Where the user's own table for a device is; it wins over the plugin's."""
    from . import cache

    return cache.directory()[0].absolute() / "tuned" / f"{backend}-{slug(device)}.txt"
