"""The shape of the operator table, `_generated/table.py`."""

from __future__ import annotations

from typing import NamedTuple


class Tensor(NamedTuple):
    name: str
    role: str  # in, inout, out
    shape: str
    dtype: str
    optional: bool


class Attribute(NamedTuple):
    name: str
    type: str  # int, float, bool, enum
    choices: tuple[str, ...]


class Operator(NamedTuple):
    number: int
    name: str
    title: str
    family: str
    signature: str
    workspace: bool
    tensors: tuple[Tensor, ...]
    attributes: tuple[Attribute, ...]
