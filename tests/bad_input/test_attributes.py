"""Every attribute of every operator with every wrong value, and what else a call takes: slots, streams, workspaces."""

import re

import numpy as np
import pytest
import torch
from clover_ops import AbiMismatch, InvalidArgument, MissingWorkspace, Unsupported, _core

from .calls import CHandle, aligned_bytes, valid_call
from .refusal import Faults, refused
from .schema import OPERATORS, conditions_hold, symbols

pytestmark = pytest.mark.smoke

IDS = [op.name for op in OPERATORS]
WITH_ATTRIBUTES = [op for op in OPERATORS if op.attributes]
WITH_WORKSPACE = [op for op in OPERATORS if op.workspace]
WRONG_TYPES = {
    "int": ("3", 3.0, True, [3], object()),
    "float": ("0.5", [0.5], object(), 1j),
    "bool": ("yes", 1, 0.0, [True], object()),
    "enum": (3, 0.5, True, ["x"], object(), b"none"),
}


def with_attribute(op, name, value):
    call = valid_call(op)
    call.attributes[name] = value
    return call


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
@pytest.mark.parametrize("surface", ["torch", "functional"])
def test_wrong_types(op, surface):
    faults = Faults()
    for a in op.attributes:
        for value in WRONG_TYPES[a.type]:
            call = with_attribute(op, a.name, value)
            faults.check(f"{a.name} {value!r}", refused, call, surface, a.name, "must be an?", "got", kind=TypeError)
    faults.done()


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
@pytest.mark.parametrize("surface", ["torch", "functional", "abi"])
def test_domains(op, surface):
    faults = Faults()
    for a in op.attributes:
        for value, words in _outside(a):
            call = with_attribute(op, a.name, value)
            faults.check(f"{a.name} {value}", refused, call, surface, a.name, *words)
        for value in _inside(a, valid_call(op).attributes.get(a.name)):
            faults.check(f"{a.name} {value}", with_attribute(op, a.name, value).run, surface)
    faults.done()


def _outside(a):
    """Values outside an attribute's domain, with what the message must hold."""
    if a.type == "int":
        yield from ((low, ("at least", f"{low}")) for low in (a.min - 1, -(2**63)) if low < a.min)
    if a.type == "float":
        yield from ((value, ("must be finite", "got")) for value in (float("nan"), float("inf"), -float("inf")))
        if a.above is not None:
            yield from ((value, ("above", _got(value))) for value in (a.above, a.above - 1, -1e300))
        if a.min is not None:
            yield from ((value, ("at least", _got(value))) for value in (a.min - 1e-9, -1e300))
        if a.max is not None:
            yield from ((value, ("at most", "got")) for value in (np.nextafter(a.max, 9.0).item(), 1e300))


def _got(value):
    return "got " + re.escape(f"{value:g}")


def _inside(a, now):
    if a.type == "float":
        yield from (v for v in (a.min, a.max, 0.5, 1, 1e-30) if v is not None)
    if a.type == "bool":
        yield from (False, True)
    if a.type == "enum":
        yield from a.choices
    if a.type == "int":
        yield now
        if a.name not in ("k", "budget"):
            yield from (a.min, 2**62)


@pytest.mark.parametrize(
    "op", [o for o in OPERATORS if any(a.type == "enum" for a in o.attributes)], ids=lambda op: op.name
)
def test_choices(op):
    faults = Faults()
    for a in op.attributes:
        if a.type != "enum":
            continue
        for value in ("", "nonsense", a.choices[0].upper(), a.choices[0] + " ", a.choices[0] + "\0", "x" * 10_000):
            call = with_attribute(op, a.name, value)
            faults.check(value[:30], refused, call, "torch", a.name, "must be one of", *a.choices)
        for number in (-1, len(a.choices), 2**31 - 1, -(2**31)):
            abi = valid_call(op).abi()
            setattr(abi.args, a.name, number)
            faults.check(
                f"number {number}", refused, abi, "abi", a.name, "must be one of", *a.choices, f"number {number}"
            )
    faults.done()


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
def test_booleans_of_the_abi(op):
    faults = Faults()
    for a in op.attributes:
        for number in (2, -1, 255) if a.type == "bool" else ():
            abi = valid_call(op).abi()
            setattr(abi.args, a.name, number)
            faults.check(f"{a.name} {number}", refused, abi, "abi", a.name, "must be 0 or 1", f"got {number}")
    faults.done(0)


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
def test_missing_attributes(op):
    faults = Faults()
    for a in op.attributes:
        call = with_attribute(op, a.name, None)
        if a.required:
            for surface in ("torch", "functional", "abi"):
                faults.check(f"{a.name} {surface}", refused, call, surface, a.name, "is missing")
            del call.attributes[a.name]
            with pytest.raises(TypeError, match=rf"{op.name}\w*\(\) missing .*'{a.name}'"):
                call.run("torch")
        else:
            faults.check(a.name, call.run, "torch")
            faults.check(a.name, call.run, "abi")
    faults.done()


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_unknown_and_missing_arguments(op):
    call = valid_call(op)
    call.attributes["colour"] = 1
    with pytest.raises(TypeError, match="colour"):
        call.run("torch")
    for t in op.tensors:
        call = valid_call(op, full=False)
        if t.role != "out" and not t.optional:
            del call.operands[t.name]
            with pytest.raises(TypeError, match=rf"{op.name}\w*\(\) missing .*'{t.name}'"):
                call.run("torch")


@pytest.mark.parametrize("op", [o for o in OPERATORS if o.require], ids=lambda op: op.name)
def test_conditions(op):
    """Sizes that agree with each other and break one of the operator's conditions: `k <= E` and its like."""
    faults, base = Faults(), symbols(op)
    for name in base:
        for value in (0, 1, 2, 3, 5, 7, 11, 13):
            sizes = {**base, name: value}
            if sizes == base or name in ("T", "N", "S", "SC") or conditions_hold(op, sizes):
                continue
            call = valid_call(op)
            for t in op.tensors:
                if t.shape and any(t.symbol(i) == name for i in range(len(t.shape))):
                    shape = tuple(max(eval(axis, {}, sizes), 0) for axis in t.shape)
                    call.operands[t.name] = call.operands[t.name].like(shape=shape)
            if name in call.attributes:
                call.attributes[name] = value
            for surface in ("torch", "functional", "abi"):
                faults.check(f"{name} = {value} {surface}", refused, call, surface, name)
    faults.done()


# --- slots and streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_provider_slots(op):
    faults = Faults()
    for slot in (7, 19, 2**31 - 1):
        call = valid_call(op)
        call.provider = slot
        for surface in ("torch", "functional", "abi"):
            if surface == "abi" or not op.workspace:
                words = (f"no provider in slot {slot} on cpu takes this call", r"cpu provider 0 \(native\)")
                faults.check(f"{slot} {surface}", refused, call, surface, *words, kind=Unsupported)
    for slot in (-1, -2, 2**31, 1.0, "0", True, [0]):
        call = valid_call(op)
        call.provider = slot
        faults.check(f"{slot!r}", refused, call, "torch", "provider must be a slot number")
    abi = valid_call(op).abi()
    abi.handle.provider_slot = -2
    faults.check("abi -2", refused, abi, "abi", "provider slot must be a slot or -1", "got -2")
    call = valid_call(op)
    call.provider = 0
    faults.check("0", call.run, "torch")
    faults.done()


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("stream", ["0", 1.0, -1, 2**64, [0], True])
def test_streams(op, stream):
    call = valid_call(op)
    call.attributes["stream"] = stream
    if op.workspace:
        call.workspace = aligned_bytes(1 << 16)
    refused(call, "torch", "stream must be a raw stream handle", "got")


# --- workspaces ------------------------------------------------------------------------------------------------------


def _needed(op):
    return valid_call(op).abi().workspace_size()


@pytest.mark.parametrize("op", WITH_WORKSPACE, ids=lambda op: op.name)
def test_workspace_faults(op):
    need, faults = _needed(op), Faults()
    if need == 0:
        call = valid_call(op)
        call.workspace = None
        call.run("torch")
        return
    numpy_read_only = np.zeros(need + 512, np.uint8)
    numpy_read_only.flags.writeable = False
    for label, workspace, words in (
        ("missing", None, "is missing"),
        ("empty", torch.empty(0, dtype=torch.uint8), "(is missing|is too small)"),
        ("short", aligned_bytes(need - 1), "is too small"),
        ("misaligned", aligned_bytes(need + 64, 64), "aligned to 256"),
        ("one byte off", aligned_bytes(need + 64, 1), "aligned to 256"),
        ("not contiguous", aligned_bytes(2 * need + 2)[::2], "must be contiguous"),
        ("read-only", numpy_read_only, "contiguous and writeable"),
        ("on another device", torch.empty(need, dtype=torch.uint8, device="meta"), "workspace is on meta"),
    ):
        call = valid_call(op)
        call.workspace = workspace
        faults.check(label, refused, call, "torch", "workspace", words, kind=MissingWorkspace)
    for workspace in (3, "x", [1], object()):
        call = valid_call(op)
        call.workspace = workspace
        faults.check(f"{workspace!r}", refused, call, "torch", "workspace must be", "got", kind=TypeError)
    for label, edit in (("null", (None, need)), ("short", ("right", need - 1)), ("none", ("right", 0))):
        abi = valid_call(op).abi()
        buffer = aligned_bytes(need)
        abi.handle.workspace = None if edit[0] is None else buffer.data_ptr()
        abi.handle.workspace_bytes = edit[1]
        abi.run = lambda run=abi.run: run(workspace=False)
        words = (str(need), "bytes") if label != "none" else ("workspace",)
        faults.check(f"abi {label}", refused, abi, "abi", *words, kind=MissingWorkspace)
    faults.done()


@pytest.mark.parametrize("op", WITH_WORKSPACE, ids=lambda op: op.name)
def test_workspace_is_left_within_its_bounds(op):
    need = _needed(op)
    whole = torch.full((need + 1024,), 0x5A, dtype=torch.uint8)
    start = 256 + -(whole.data_ptr() + 256) % 256
    call = valid_call(op)
    call.workspace = whole[start : start + need]
    call.run("torch")
    assert bool((whole[:start] == 0x5A).all()) and bool((whole[start + need :] == 0x5A).all())


@pytest.mark.parametrize("op", WITH_WORKSPACE, ids=lambda op: op.name)
def test_workspace_query_reads_no_data_and_checks_the_rest(op):
    need = _needed(op)
    abi = valid_call(op).abi()
    for struct in abi.structs.values():
        struct.data = 64  # nothing is there
    assert abi.workspace_size() == need
    for t in op.tensors:
        if t.role == "out":
            setattr(abi.args, t.name, None)
    assert abi.workspace_size() == need
    abi.structs[op.tensors[0].name].ndim = 1
    with pytest.raises(InvalidArgument, match=f"^{op.name}: {op.tensors[0].name} must have"):
        abi.workspace_size()


# --- structs of other versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_struct_sizes(op):
    faults = Faults()
    for size in (0, 8, 15, 10_000, 2**64 - 1):
        abi = valid_call(op).abi()
        abi.args.struct_size = size
        faults.check(f"args {size}", refused, abi, "abi", f"args.struct_size is {size}", kind=AbiMismatch)
    for size in (0, 7, 10_000, 2**64 - 1):
        abi = valid_call(op).abi()
        abi.handle.struct_size = size
        faults.check(f"handle {size}", refused, abi, "abi", f"handle.struct_size is {size}", kind=AbiMismatch)
    abi = valid_call(op).abi()
    abi.args.given |= 1 << len(op.attributes)
    faults.check("given", refused, abi, "abi", "args.given names attributes", kind=AbiMismatch)
    abi = valid_call(op).abi()
    abi.args = None
    faults.check("args null", refused, abi, "abi", "args is null")
    faults.done()


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_a_smaller_handle_and_none_at_all_are_an_older_callers(op):
    for handle in (CHandle(8), CHandle(16), None):
        abi = valid_call(op).abi()
        need = abi.workspace_size() if op.workspace else 0
        abi.handle = handle
        if need:
            abi.run = lambda run=abi.run: run(workspace=False)
            refused(abi, "abi", "workspace is missing", kind=MissingWorkspace)
        else:
            abi.run(workspace=False)


@pytest.mark.parametrize("number", [0, 16, 2**31, 2**32 - 1])
def test_unknown_operator_number(number):
    abi = valid_call(OPERATORS[0]).abi()
    abi.number = number
    for call in (abi.workspace_size, lambda: abi.run(workspace=False)):
        with pytest.raises(InvalidArgument, match=f"^no operator has number {number}$"):
            call()


def test_the_binding_takes_only_what_it_knows():
    function = _core.binding().get_global_func("clover_ops.cast")
    with pytest.raises(TypeError, match="cast: takes 6 packed arguments, got 2"):
        function(0, 0)
