"""The schema as frozen dataclasses: parsed once, every rule checked, every error with its file and line."""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from .expr import Expression, ExpressionError, Linear, parse, parse_linear

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DTYPES = ("bfloat16", "float16", "float32", "int32", "bool")
ROLES = ("in", "inout", "out")
STRIDES = ("last", "any", "matrix")
VALUES = ("cu_seqlens", "initial_slots", "final_slots", "experts", "positions")
ATTRIBUTE_TYPES = ("int", "float", "bool", "enum")
MAX_RANK = 6

_OPERATOR_KEYS = {
    "number", "name", "title", "family", "summary", "equation", "math", "source", "aligned", "tensors", "attributes",
    "derived", "require", "free", "together", "needs", "workspace", "functional",
}  # fmt: skip
_OPERATOR_REQUIRED = ("number", "name", "title", "family", "summary", "equation", "source", "aligned", "tensors")
_TENSOR_KEYS = {"name", "role", "shape", "dtype", "doc", "optional", "strides", "values", "pools", "fill"}
_ATTRIBUTE_KEYS = {"name", "type", "doc", "default", "choices", "min", "max", "above"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TABLE = re.compile(r"\s*\[\[\s*operator\s*\]\]\s*(#.*)?")

# Names that generated code needs for itself, and what C and C++ keep for themselves.
_RESERVED_WORDS = (
    "args abi_handle bytes exported given handle index inputs new none provider register returns_nothing stream struct_size "
    "tensors torch workspace "
    "alignas alignof and_eq asm atomic auto bitand bitor bool case catch char compl concept const consteval constexpr "
    "constinit const_cast decltype default delete do double dynamic_cast enum explicit export extern float friend goto "
    "inline int int16_t int32_t int64_t int8_t long mutable namespace noexcept not_eq nullptr operator or_eq private "
    "protected public reinterpret_cast requires restrict short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw typedef typeid typename uint32_t uint64_t union unsigned using virtual void volatile "
    "wchar_t xor xor_eq linux unix"
)
_RESERVED = frozenset(_RESERVED_WORDS.split())

# Characters that turn the direction of text: code would read other than it compiles.
_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")

# What common/src/spec.hpp has room for.
MAX_AXES = 4
MAX_SYMBOLS = 16
MAX_ARGUMENTS = 30
MAX_POOLS = 2


class SchemaError(ValueError):
    """The schema breaks a rule; the message starts with file:line."""


@dataclass(frozen=True)
class Tensor:
    name: str
    role: str
    shape: tuple[Linear, ...] | None  # None: any rank up to MAX_RANK
    dtype: str
    doc: str
    optional: bool
    strides: str
    values: str | None
    pools: tuple[str, ...]
    fill: int | None

    @property
    def written(self) -> bool:
        return self.role != "in"


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str
    doc: str
    choices: tuple[str, ...]
    default: Expression | str | bool | None  # None: the caller must give it
    absent: bool  # default = "none": a call without it runs without it
    min: float | None
    max: float | None
    above: float | None

    @property
    def required(self) -> bool:
        return self.default is None and not self.absent


@dataclass(frozen=True)
class Operator:
    number: int
    name: str
    title: str
    family: str
    summary: str
    equation: str
    math: str  # the equation in TeX; empty: the plain one serves
    source: str
    aligned: str
    tensors: tuple[Tensor, ...]
    attributes: tuple[Attribute, ...]
    derived: tuple[tuple[str, Expression], ...]
    require: tuple[Expression, ...]
    together: tuple[tuple[str, ...], ...]
    needs: tuple[tuple[str, str], ...]
    workspace: bool
    functional: bool  # False: the caller always gives the outputs
    symbols: tuple[str, ...]  # axes in order of appearance, then int attributes, then derived ones

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role != "out")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role == "out")

    @property
    def mutable(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role == "inout")

    @property
    def camel(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))

    def tensor(self, name: str) -> Tensor:
        return next(t for t in self.tensors if t.name == name)


@dataclass(frozen=True)
class Schema:
    types: dict[str, tuple[str, ...]]
    operators: tuple[Operator, ...]

    def dtypes(self, tensor: Tensor) -> tuple[str, ...]:
        return self.types.get(tensor.dtype, (tensor.dtype,))


def load(path: Path) -> Schema:
    return parse_schema(path.read_text(encoding="utf-8"), str(path))


def parse_schema(text: str, file: str = "operators.toml") -> Schema:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{file}: {error}") from None
    return _Parser(text, file).schema(document)


class _Parser:
    """Turns the TOML document into the model. `where` finds the line that a message is about."""

    def __init__(self, text: str, file: str):
        self.file = file
        self.lines = text.splitlines()
        self.starts = [i for i, line in enumerate(self.lines) if _TABLE.fullmatch(line)]
        self.index = -1  # which operator is being parsed

    def fail(self, message: str, *needles: str) -> SchemaError:
        return SchemaError(f"{self.file}:{self._line(needles)}: {message}")

    def _line(self, needles: tuple[str, ...]) -> int:
        """The line of the current operator that a message is about, else the operator's own: where the first needle is the
        name of a tensor or attribute, before where it is a key or a whole string, before where it is a word."""
        inside = 0 <= self.index < len(self.starts)
        start = self.starts[self.index] if inside else 0
        end = self.starts[self.index + 1] if inside and self.index + 1 < len(self.starts) else len(self.lines)
        words = [rf"(?<![A-Za-z0-9_]){re.escape(needle)}(?![A-Za-z0-9_])" for needle in needles if needle]
        for form in ('name\\s*=\\s*"{}"', '"{0}"|{0}["\']?\\s*=', "{}") if words else ():
            patterns = [re.compile(form.format(words[0])), *map(re.compile, words[1:])]
            for number in range(start, end):
                if all(pattern.search(self.lines[number]) for pattern in patterns):
                    return number + 1
        return start + 1

    def keys(self, table: object, allowed: set[str], what: str, *needles: str) -> dict:
        if not isinstance(table, dict):
            raise self.fail(f"{what} must be a table", *needles)
        for key in table:
            if key not in allowed:
                raise self.fail(f"unknown key `{key}` in {what}; known: {', '.join(sorted(allowed))}", *needles, key)
        return table

    def typed(self, table: dict, key: str, kind: type, what: str, default: object = ...) -> object:
        value = table.get(key, default)
        if value is ...:
            raise self.fail(f"{what} lacks the key `{key}`", str(table.get("name", "")))
        if value is not default and type(value) is not kind:
            raise self.fail(f"`{key}` of {what} must be {kind.__name__}, not {value!r}", key)
        return value

    def schema(self, document: dict) -> Schema:
        self.keys(document, {"schema", "types", "operator"}, "the schema")
        if document.get("schema") != 1:
            raise self.fail(f"schema version must be 1, not {document.get('schema')!r}", "schema")
        types = {}
        for name, members in self.typed(document, "types", dict, "the schema", {}).items():
            self.check_name(name, "a type")
            if name in DTYPES or name == "element":
                raise self.fail(f"type `{name}` hides a dtype", name)
            if not isinstance(members, list) or not members or any(m not in DTYPES for m in members):
                raise self.fail(f"type `{name}` must list dtypes out of {', '.join(DTYPES)}", name)
            types[name] = tuple(members)
        operators: list[Operator] = []
        tables = self.typed(document, "operator", list, "the schema", [])
        for self.index, table in enumerate(tables):
            operator = self.operator(table, types)
            for other in operators:
                if other.number == operator.number:
                    raise self.fail(f"number {other.number} is already `{other.name}`'s", "number")
                if other.name == operator.name:
                    raise self.fail(f"operator `{other.name}` is listed twice", "name")
                self.check_same_choices(operator, other)
            operators.append(operator)
        used = {t.dtype for o in operators for t in o.tensors}
        self.index = -1
        for name in types:
            if name not in used:
                raise self.fail(f"type `{name}` is never used", name)
        return Schema(types, tuple(sorted(operators, key=lambda o: o.number)))

    def check_same_choices(self, operator: Operator, other: Operator) -> None:
        """An enum attribute means the same wherever it occurs: C++ has one type for each name."""
        for a in operator.attributes:
            for b in other.attributes:
                if a.name == b.name and (a.type == "enum" or b.type == "enum") and a.choices != b.choices:
                    raise self.fail(f"attribute `{a.name}` has other choices in `{other.name}`", a.name)

    def operator(self, table: dict, types: dict[str, tuple[str, ...]]) -> Operator:
        self.keys(table, _OPERATOR_KEYS, "an operator")
        what = f"operator `{table.get('name', '?')}`"
        for key in _OPERATOR_REQUIRED:
            kind = {"number": int, "tensors": list}.get(key, str)
            self.text(self.typed(table, key, kind, what), key, what, key)
        number, name = table["number"], table["name"]
        if number < 1:
            raise self.fail(f"number must be at least 1, not {number}", "number")
        self.check_name(name, what)
        tensors = tuple(self.tensor(entry, types) for entry in table["tensors"])
        attributes = tuple(self.attribute(entry) for entry in self.typed(table, "attributes", list, what, []))
        self.check_unique(what, [*(t.name for t in tensors), *(a.name for a in attributes)])
        self.check_order(what, tensors)
        if len(tensors) + len(attributes) > MAX_ARGUMENTS:
            raise self.fail(f"{what} has more than {MAX_ARGUMENTS} tensors and attributes", "tensors")
        derived = tuple(
            (k, self.expression(v, "derived")) for k, v in self.typed(table, "derived", dict, what, {}).items()
        )
        for symbol, _ in derived:
            self.check_name(symbol, f"a derived symbol of {what}", "derived")
        require = tuple(self.expression(v, "require") for v in self.typed(table, "require", list, what, []))
        symbols = self.symbols(what, table, tensors, attributes, derived, require)
        optional = {t.name for t in tensors if t.optional}
        together = tuple(self.names(group, "together", what) for group in self.typed(table, "together", list, what, []))
        needs = tuple(self.typed(table, "needs", dict, what, {}).items())
        for other in [member for group in (*together, *needs) for member in group]:
            if other not in optional:
                raise self.fail(f"`{other}` in `together` or `needs` is no optional tensor of {what}", str(other))
        if self.typed(table, "functional", bool, what, True):
            self.check_outputs(what, tensors, attributes)
        return Operator(
            number, name, *(table[k] for k in ("title", "family", "summary", "equation")),
            self.typed(table, "math", str, what, ""), *(table[k] for k in ("source", "aligned")),
            tensors, attributes, derived, require, together, needs,
            self.typed(table, "workspace", bool, what, False), self.typed(table, "functional", bool, what, True), symbols,
        )  # fmt: skip

    def tensor(self, entry: object, types: dict[str, tuple[str, ...]]) -> Tensor:
        needle = str(entry.get("name", "")) if isinstance(entry, dict) else ""
        self.keys(entry, _TENSOR_KEYS, f"tensor `{needle}`", needle)
        what = f"tensor `{needle}`"
        for key, kind in (("name", str), ("role", str), ("shape", list), ("dtype", str), ("doc", str)):
            self.typed(entry, key, kind, what)
        self.check_name(entry["name"], what)
        self.text(entry["doc"], "doc", what, needle)
        self.one_of(entry["role"], ROLES, f"role of {what}", needle)
        dtype = entry["dtype"]
        if dtype not in types and dtype not in DTYPES and dtype != "element":
            raise self.fail(f"dtype `{dtype}` of {what} is neither a dtype nor a name from [types]", needle)
        strides = self.one_of(entry.get("strides", "last"), STRIDES, f"strides of {what}", needle)
        values = entry.get("values")
        if values is not None:
            self.one_of(values, VALUES, f"values of {what}", needle)
            if dtype != "int32" or len(entry["shape"]) > 2:
                raise self.fail(f"{what} has values to check, so it must be an int32 vector or matrix", needle)
        pools = self.names(entry.get("pools", []), "pools", what, needle)
        if len(pools) > MAX_POOLS:
            raise self.fail(f"{what} has more than {MAX_POOLS} pools", needle)
        if bool(pools) != (values not in (None, "cu_seqlens")):
            raise self.fail(f"`pools` of {what} goes with values other than cu_seqlens", needle)
        fill = self.typed(entry, "fill", int, what, None)
        if fill is not None and entry["role"] != "out":
            raise self.fail(f"`fill` of {what} is for outputs", needle)
        optional = self.typed(entry, "optional", bool, what, False)
        if optional and entry["role"] == "out":
            raise self.fail(f"{what} is an output and cannot be optional", needle)
        return Tensor(
            entry["name"], entry["role"], self.shape(entry["shape"], what, needle), dtype, entry["doc"],
            optional, strides, values, pools, fill,
        )  # fmt: skip

    def shape(self, axes: list, what: str, needle: str) -> tuple[Linear, ...] | None:
        if axes == ["..."]:
            return None
        if len(axes) > MAX_AXES:
            raise self.fail(f"{what} has more than {MAX_AXES} axes", needle)
        try:
            linear = tuple(parse_linear(axis) for axis in axes)
        except (ExpressionError, TypeError) as error:
            raise self.fail(f"shape of {what}: {error}", needle) from None
        for axis in linear:
            if axis.symbol is not None:
                self.check_name(axis.symbol, f"an axis of {what}", needle)
        return linear

    def attribute(self, entry: object) -> Attribute:
        needle = str(entry.get("name", "")) if isinstance(entry, dict) else ""
        self.keys(entry, _ATTRIBUTE_KEYS, f"attribute `{needle}`", needle)
        what = f"attribute `{needle}`"
        for key in ("name", "type", "doc"):
            self.typed(entry, key, str, what)
        self.check_name(entry["name"], what)
        self.text(entry["doc"], "doc", what, needle)
        kind = self.one_of(entry["type"], ATTRIBUTE_TYPES, f"type of {what}", needle)
        choices = self.names(entry.get("choices", []), "choices", what, needle)
        for choice in choices:
            if not _NAME.fullmatch(choice) or choices.count(choice) > 1:
                raise self.fail(f"choice `{choice}` of {what} must be a name, once", needle)
        if (kind == "enum") != bool(choices):
            raise self.fail(f"`choices` of {what} goes with type enum", needle)
        if kind in ("bool", "enum") and {"min", "max", "above"} & entry.keys():
            raise self.fail(f"{what} is {kind} and has no domain", needle)
        for key in ("min", "max", "above"):
            bound = entry.get(key, 0)
            if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not abs(bound) < 2**53:
                raise self.fail(f"`{key}` of {what} must be a finite number, not {bound!r}", needle)
        if "min" in entry and "above" in entry:
            raise self.fail(f"{what} has both `min` and `above`", needle)
        absent = entry.get("default") == "none" and kind != "enum"
        default = None if absent else self.default(entry.get("default"), kind, choices, what, needle)
        attribute = Attribute(
            entry["name"], kind, entry["doc"], choices, default, absent,
            entry.get("min"), entry.get("max"), entry.get("above"),
        )  # fmt: skip
        if isinstance(default, Expression) and not default.names:
            value = self.constant(default)
            if value is None or (kind == "int" and value != int(value)):
                raise self.fail(f"default {default.text} of {what} must be a number or use a symbol", needle)
            if not self.in_domain(value, attribute):
                raise self.fail(f"default {default.text} of {what} lies outside its own domain", needle)
        return attribute

    @staticmethod
    def constant(expression: Expression) -> float | None:
        try:
            return float(expression.text)
        except ValueError:
            return None

    @staticmethod
    def in_domain(value: float, a: Attribute) -> bool:
        return (
            (a.min is None or value >= a.min)
            and (a.max is None or value <= a.max)
            and (a.above is None or value > a.above)
        )

    def default(self, value: object, kind: str, choices: tuple[str, ...], what: str, needle: str):
        if value is None:
            return None
        if kind == "bool":
            good = isinstance(value, bool)
        elif kind == "enum":
            good = value in choices
        else:
            good = isinstance(value, (int, float, str)) and not isinstance(value, bool)
            if good and kind == "int" and isinstance(value, float):
                good = False
        if not good:
            raise self.fail(f"bad default {value!r} of {what}, which is {kind} {list(choices) or ''}".rstrip(), needle)
        if kind in ("bool", "enum"):
            return value
        return self.expression(value if isinstance(value, str) else repr(value), "default", needle)

    def expression(self, text: object, key: str, *needles: str) -> Expression:
        try:
            return parse(str(text))
        except ExpressionError as error:
            raise self.fail(f"`{key}`: {error}", *(needles or (key,))) from None

    def symbols(self, what, table, tensors, attributes, derived, require) -> tuple[str, ...]:
        """Collects the symbols and checks that each is bound, used more than once, and that none is unknown."""
        axes: dict[str, int] = {}
        for tensor in tensors:
            for axis in tensor.shape or ():
                if axis.symbol is not None:
                    axes[axis.symbol] = axes.get(axis.symbol, 0) + 1
        ints = {a.name for a in attributes if a.type == "int" and not a.absent}
        uses = dict(axes)
        for name in [p for t in tensors for p in t.pools]:
            uses[name] = uses.get(name, 0) + 1
        expressions = [*require, *(e for _, e in derived)]
        expressions += [a.default for a in attributes if isinstance(a.default, Expression)]
        for name in [n for e in expressions for n in e.names]:
            uses[name] = uses.get(name, 0) + 1
        for a in attributes:
            if a.name in axes and a.name not in ints:
                raise self.fail(
                    f"attribute `{a.name}` of {what} is named as an axis, so it must be a given int", a.name
                )
        used_ints = [a.name for a in attributes if a.name in ints and a.name in uses and a.name not in axes]
        names = [*axes, *used_ints, *(k for k, _ in derived)]
        self.check_unique(what, [*names, *(t.name for t in tensors)])
        if len(names) > MAX_SYMBOLS:
            raise self.fail(f"{what} has more than {MAX_SYMBOLS} symbols", "tensors")
        if any(t.values == "cu_seqlens" for t in tensors) and names[:1] != ["T"]:
            raise self.fail(f"{what} is packed by cu_seqlens, so its first symbol must be T", "cu_seqlens")
        for name in uses:
            if name not in names:
                raise self.fail(f"symbol `{name}` of {what} is no axis, int attribute or derived value", name)
        free = self.names(table.get("free", []), "free", what)
        for name in free:
            if uses.get(name, 0) != 1:
                raise self.fail(f"`free` symbol `{name}` of {what} is used {uses.get(name, 0)} times", "free")
        for name, count in uses.items():
            if count == 1 and name in axes and name not in free and name not in ints:
                raise self.fail(f"symbol `{name}` of {what} is used once: a misspelling, or list it in `free`", name)
        bound = {axis.symbol for t in tensors if not t.optional for axis in t.shape or ()} | ints
        optional_only = [n for n in axes if n not in bound]
        for name in optional_only:
            if any(name in e.names for e in expressions):
                raise self.fail(
                    f"symbol `{name}` of {what} is bound by optional tensors alone, yet an expression uses it", name
                )
        return tuple(names)

    def check_name(self, name: str, what: str, *needles: str) -> None:
        if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in _RESERVED:
            raise self.fail(f"`{name}` is no good name for {what}", *(needles or (name,)))

    def text(self, value: object, key: str, what: str, *needles: str) -> None:
        """One line of plain text: it goes into comments, docstrings and tables of four languages."""
        for character in value if isinstance(value, str) else "":
            turns = unicodedata.bidirectional(character) in _TURNS
            if turns or unicodedata.category(character) in ("Cc", "Zl", "Zp"):
                raise self.fail(f"`{key}` of {what} must be one line without control characters", *needles)

    def names(self, value: object, key: str, what: str, *needles: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(f"`{key}` of {what} must be a list of names, not {value!r}", *(needles or (key,)))
        return tuple(value)

    def check_outputs(self, what: str, tensors: tuple[Tensor, ...], attributes: tuple[Attribute, ...]) -> None:
        """A functional form sizes its outputs by what every call gives, and makes them like the first tensor."""
        if not tensors or tensors[0].optional or tensors[0].role == "out":
            raise self.fail(f"the first tensor of {what} must be an input that every call gives", "tensors")
        sources = {axis.symbol for t in tensors if t.role != "out" and not t.optional for axis in t.shape or ()}
        sources |= {a.name for a in attributes if a.required and a.type == "int"}
        for t in tensors:
            for axis in t.shape or () if t.role == "out" else ():
                if axis.symbol is not None and (axis.symbol not in sources or axis.mul != 1 or axis.add != 0):
                    raise self.fail(
                        f"axis `{axis.text}` of output `{t.name}` must be a symbol of a required input", t.name
                    )

    def check_unique(self, what: str, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise self.fail(f"`{name}` is named twice in {what}", name)

    def check_order(self, what: str, tensors: tuple[Tensor, ...]) -> None:
        roles = [t.role == "out" for t in tensors]
        if roles != sorted(roles):
            raise self.fail(f"outputs of {what} must come last", "tensors")

    def one_of(self, value: object, allowed: tuple[str, ...], what: str, needle: str) -> str:
        if value not in allowed:
            raise self.fail(f"{what} must be one of {', '.join(allowed)}, not {value!r}", needle)
        return value
