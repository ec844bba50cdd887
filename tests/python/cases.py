"""Calls as torch users write them, made from the schema by the generator of tests/bad_input."""

import clover_ops
import torch
from bad_input.calls import valid_call
from bad_input.schema import OPERATORS

BY_NAME = {op.name: op for op in OPERATORS}
IDS = [op.name for op in OPERATORS]
PURE = [op for op in OPERATORS if op.functional and all(t.role != "inout" for t in op.tensors)]
MUTATING = [op for op in OPERATORS if op not in PURE]


def arguments(op, full=True, **options):
    """The tensors (those that the functional form takes) and attributes of a valid call, by name."""
    call = valid_call(op, full, **options)
    tensors = {name: operand and operand.torch().clone() for name, operand in call.operands.items()}
    if op.functional:
        tensors = {name: t for name, t in tensors.items() if op.tensor(name).role != "out"}
    return tensors, call.attributes


def outputs(op, tensors, attributes):
    """New tensors like those that the functional form makes."""
    made = _tuple(getattr(clover_ops, op.name)(**copies(tensors), **attributes))
    return [torch.empty_like(t) for t in made]


def copies(tensors):
    return {name: t if t is None else t.clone() for name, t in tensors.items()}


def _tuple(result):
    return () if result is None else result if isinstance(result, tuple) else (result,)


def run(function, tensors, attributes):
    """Everything that a call makes or changes, as copies: its results and all its arguments afterwards."""
    tensors = copies(tensors)
    results = _tuple(function(**tensors, **attributes))
    return [t.clone() for t in results] + [t for t in tensors.values() if t is not None]


def assert_same(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)), (a, b)


def overloads(op):
    """(overload, whether it takes its outputs as keyword arguments) of torch.ops.clover.<op>."""
    packet = getattr(torch.ops.clover, op.name)
    return [
        (getattr(packet, name), name == "into" or (op in MUTATING and op.functional)) for name in packet.overloads()
    ]


def torch_name(name, takes_outputs):
    """torch passes a mutating operator's arguments by name, beside one of its own that is called `mode`."""
    return f"{name}_" if name == "mode" and takes_outputs else name


def overload_arguments(op, takes_outputs, **options):
    tensors, attributes = arguments(op, **options)
    if takes_outputs:
        names = [t.name for t in op.tensors if t.role == "out"]
        tensors = {**tensors, **dict(zip(names, outputs(op, tensors, attributes)))}
    return tensors, {torch_name(name, takes_outputs): value for name, value in attributes.items()}
