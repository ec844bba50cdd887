"""The little expression language of the schema: integers, symbols, + - * // % **, comparisons.

Parsed by Python's own parser and limited to a fixed set of nodes, then printed as C++ or as Python.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "mod"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


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

    def python(self) -> str:
        return ast.unparse(self.tree)


@dataclass(frozen=True)
class Linear:
    """An axis of a shape: `mul * symbol + add`; no symbol means the constant `add`."""

    symbol: str | None
    mul: int
    add: int
    text: str

    def python(self) -> str:
        return Expression(self.text, ()).python()


def parse(text: str) -> Expression:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from None
    names: list[str] = []
    _collect(tree, text, names)
    return Expression(text, tuple(dict.fromkeys(names)))


def parse_linear(text: str) -> Linear:
    """`E`, `1`, `2*I`, `N+1`, `KC-1`: at most one symbol, once."""
    tree = parse(text).tree
    add = 0
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)) and isinstance(tree.right, ast.Constant):
        add = tree.right.value if isinstance(tree.op, ast.Add) else -tree.right.value
        tree = tree.left
    mul = 1
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult) and isinstance(tree.left, ast.Constant):
        mul = tree.left.value
        tree = tree.right
    if isinstance(tree, ast.Name) and mul > 0:
        return Linear(tree.id, mul, add, text)
    if isinstance(tree, ast.Constant) and mul == 1:
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
