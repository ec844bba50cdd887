"""The operators as these tests see them, read from operators.toml without the generator, and an oracle of shapes."""

import random
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DOCUMENT = tomllib.loads(
    (Path(__file__).resolve().parents[2] / "common/schema/operators.toml").read_text(encoding="utf-8")
)
TYPES = _DOCUMENT["types"]
ELEMENT = ("int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64", "complex64", "bool")


@dataclass(frozen=True)
class Tensor:
    name: str
    role: str
    shape: tuple[str, ...] | None
    dtype: str
    optional: bool = False
    strides: str = "last"
    values: str | None = None
    pools: tuple[str, ...] = ()

    @property
    def written(self):
        return self.role != "in"

    @property
    def dtypes(self):
        return tuple(TYPES.get(self.dtype, ELEMENT if self.dtype == "element" else (self.dtype,)))

    @property
    def shared(self):
        """Whether all tensors of a call that name this dtype have the same one."""
        return self.dtype in TYPES or self.dtype == "element"

    def symbol(self, axis):
        found = re.search(r"[A-Za-z]+", self.shape[axis])
        return found and found[0]


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str
    choices: tuple[str, ...]
    required: bool
    min: float | None
    max: float | None
    above: float | None


@dataclass(frozen=True)
class Op:
    number: int
    name: str
    tensors: tuple[Tensor, ...]
    attributes: tuple[Attribute, ...]
    require: tuple[str, ...]
    derived: tuple[tuple[str, str], ...]
    together: tuple[tuple[str, ...], ...]
    needs: tuple[tuple[str, str], ...]
    workspace: bool
    functional: bool

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    @property
    def symbols(self):
        """Symbols that a call chooses: axes and the int attributes that shapes or conditions use."""
        names = [t.symbol(i) for t in self.tensors for i in range(len(t.shape or ())) if t.symbol(i)]
        conditions = " ".join(self.require)
        names += [a.name for a in self.attributes if a.type == "int" and re.search(rf"\b{a.name}\b", conditions)]
        return list(dict.fromkeys(names))


def _tensor(entry):
    shape = None if entry["shape"] == ["..."] else tuple(entry["shape"])
    keys = ("name", "role", "dtype", "optional", "strides", "values")
    return Tensor(shape=shape, pools=tuple(entry.get("pools", ())), **{k: entry[k] for k in keys if k in entry})


def _attribute(a):
    bounds = (a.get("min"), a.get("max"), a.get("above"))
    return Attribute(a["name"], a["type"], tuple(a.get("choices", ())), "default" not in a, *bounds)


def _operator(entry):
    return Op(
        entry["number"], entry["name"], tuple(map(_tensor, entry["tensors"])),
        tuple(map(_attribute, entry.get("attributes", ()))), tuple(entry.get("require", ())),
        tuple(entry.get("derived", {}).items()), tuple(map(tuple, entry.get("together", ()))),
        tuple(entry.get("needs", {}).items()), entry.get("workspace", False), entry.get("functional", True),
    )  # fmt: skip


OPERATORS = tuple(_operator(entry) for entry in _DOCUMENT["operator"])
_SMALL = (2, 3, 4, 6, 7, 8, 9, 10, 11, 12)  # not T's size
ANY_SHAPE = (3, 2, 4)  # of tensors that take any


@cache
def _compiled(text):
    return compile(text, text, "eval")


def size(axis, values):
    return eval(_compiled(axis), {}, values)


def conditions_hold(op, values):
    values = dict(values)
    for name, text in op.derived:
        if values["K"] == 0:
            return False
        values[name] = size(text, values)
    try:
        return all(size(condition, values) for condition in op.require)
    except ZeroDivisionError:
        return False


@cache
def _symbols(op, seed, fixed):
    rng = random.Random(f"{op.name} {seed}")
    fixed = dict(fixed)
    decided = [c for c in op.require if set(_compiled(c).co_names) <= fixed.keys()]
    if not all(size(condition, fixed) for condition in decided):
        return None
    for _ in range(1500):
        values = {name: fixed.get(name, rng.choice(_SMALL)) for name in op.symbols}
        values.update(
            {name: n for name, n in (("T", 5), ("N", 2), ("S", 5), ("SC", 4), ("KC", 3)) if name not in fixed}
        )
        values = {name: values[name] for name in op.symbols}
        if conditions_hold(op, values) and all(size(axis, values) >= 0 for t in op.tensors for axis in t.shape or ()):
            return values
    return None


def symbols(op, seed=0, **fixed):
    """Small sizes that meet the operator's conditions; `fixed` sets some."""
    found = _symbols(op, seed, tuple(sorted(fixed.items())))
    if found is None:
        raise LookupError(f"{op.name}: no small sizes with {fixed} meet {op.require}")
    return dict(found)


def _solve(axis, symbol, length):
    """The value of the one symbol in an axis that gives `length`; axes are `a*S + b`."""
    add = size(axis, {symbol: 0})
    value, rest = divmod(length - add, size(axis, {symbol: 1}) - add)
    return value if rest == 0 and value >= 0 else None


def consistent(op, shapes, attributes):
    """Whether one value for each symbol explains all shapes, and the conditions hold."""
    values = {name: value for name, value in attributes.items() if name in op.symbols}
    free = [shape for name, shape in shapes.items() if op.tensor(name).shape is None]
    if any(shape != free[0] or len(shape) > 6 for shape in free):
        return False
    for name, shape in shapes.items():
        axes = op.tensor(name).shape
        if axes is None:
            continue
        if len(axes) != len(shape):
            return False
        for i, (axis, length) in enumerate(zip(axes, shape)):
            symbol = op.tensor(name).symbol(i)
            if symbol is not None and symbol not in values:
                values[symbol] = _solve(axis, symbol, length)
                if values[symbol] is None:
                    return False
            elif size(axis, values) != length:
                return False
    return conditions_hold(op, values)
