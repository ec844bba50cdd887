"""The little expression language of the schema: integers, symbols, + - * // % **, comparisons.

Parsed by Python's own parser and limited to a fixed set of nodes, then printed as C++ or as Python.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "mod"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


# No comments, strings or names beyond ASCII: the text also stands in C comments and string literals.
_CHARACTERS = re.compile(r"[A-Za-z0-9_ .+*/%<>=!()-]+")


class ExpressionError(ValueError):
    """The text is not an expression of the schema's language."""


@dataclass(frozen=True)
class Expression:
    text: str
    names: tuple[str, ...]

    @property
    def tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    def cpp(self, name: str = "d.{}") -> str:
        """C++ over int64 that saturates instead of overflowing; `name` formats a symbol."""
        return _cpp(self.tree, name)


@dataclass(frozen=True)
class Linear:
    """An axis of a shape: `mul * symbol + add`; no symbol means the constant `add`."""

    symbol: str | None
    mul: int
    add: int
    text: str


def parse(text: str) -> Expression:
    if not _CHARACTERS.fullmatch(text):
        raise ExpressionError(f"{text!r} is not an expression: it may hold names, numbers, operators and parentheses")
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from None
    names: list[str] = []
    _collect(tree, text, names)
    if isinstance(tree, (ast.Compare, ast.BinOp)):
        _check_whole(tree, text)
    return Expression(text, tuple(dict.fromkeys(names)))


def parse_linear(text: str) -> Linear:
    """`E`, `1`, `2*I`, `N+1`, `KC-1`: at most one symbol, once."""
    tree = parse(text).tree
    whole = all(type(node.value) is int for node in ast.walk(tree) if isinstance(node, ast.Constant))
    add = 0
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)) and isinstance(tree.right, ast.Constant):
        add = tree.right.value if isinstance(tree.op, ast.Add) else -tree.right.value
        tree = tree.left
    mul = 1
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult) and isinstance(tree.left, ast.Constant):
        mul = tree.left.value
        tree = tree.right
    if whole and isinstance(tree, ast.Name) and mul > 0:
        return Linear(tree.id, mul, add, text)
    if whole and isinstance(tree, ast.Constant) and mul == 1 and tree.value + add >= 0:
        return Linear(None, 0, tree.value + add, text)
    raise ExpressionError(f"axis {text!r} must be a symbol, an integer or `a*S + b`")


def _collect(node: ast.expr, text: str, names: list[str]) -> None:
    if isinstance(node, ast.Name):
        names.append(node.id)
    elif _is_number(node) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_number(node.operand)
    ):
        pass
    elif isinstance(node, ast.BinOp) and (type(node.op) in _BINARY or isinstance(node.op, ast.Pow)):
        _collect(node.left, text, names)
        _collect(node.right, text, names)
    elif isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
        for side in (node.left, *node.comparators):
            _collect(side, text, names)
    else:
        raise ExpressionError(f"{text!r}: `{ast.unparse(node)}` is not allowed in an expression")


def _check_whole(tree: ast.Compare | ast.BinOp, text: str) -> None:
    """Arithmetic is on whole numbers in C++: a fraction or a power may only be the whole expression, `K ** -0.5`."""
    power = isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow)
    parts = [tree.left, tree.right] if power else [tree]
    for part in parts:
        lone = power and not isinstance(part, (ast.BinOp, ast.Compare))
        for node in () if lone else ast.walk(part):
            fraction = isinstance(node, ast.Constant) and isinstance(node.value, float)
            if fraction or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
                raise ExpressionError(
                    f"{text!r}: `{ast.unparse(node)}` inside whole-number arithmetic would be cut off"
                )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 2**31 - 1:
            raise ExpressionError(f"{text!r}: {node.value} is too large")
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if any(isinstance(side, ast.Compare) for side in sides):
            raise ExpressionError(f"{text!r}: a comparison of comparisons")


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _cpp(node: ast.expr, name: str) -> str:
    if isinstance(node, ast.Name):
        return name.format(node.id)
    if isinstance(node, (ast.Constant, ast.UnaryOp)):
        return ast.unparse(node)
    if isinstance(node, ast.Compare):
        sides = [_cpp(side, name) for side in (node.left, *node.comparators)]
        return " && ".join(f"{a} {_COMPARE[type(op)]} {b}" for a, op, b in zip(sides, node.ops, sides[1:]))
    assert isinstance(node, ast.BinOp)
    left, right = _cpp(node.left, name), _cpp(node.right, name)
    if isinstance(node.op, ast.Pow):
        return f"std::pow(double({left}), double({right}))"
    return f"sat::{_BINARY[type(node.op)]}({left}, {right})"
