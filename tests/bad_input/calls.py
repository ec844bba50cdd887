"""One valid call of any operator, to spoil one thing at a time; run through torch, NumPy or the C ABI.

Every tensor lies in an arena of its own with canaries on both sides. After a refused call all arenas hold the bytes that
they held before; after a good one the canaries and the constant tensors do.
"""

import ctypes
import math
import random

import clover_ops
import ml_dtypes
import numpy as np
import torch
from clover_ops import _core, errors

from .schema import ANY_SHAPE, size, symbols

MARGIN = 128
RIGHT = object()  # a workspace that is just as large as it must be
CPU, CUDA, ROCM = 1, 2, 10

# name: NumPy dtype, DLPack code, bits
DTYPES = {
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), 4, 16), "float16": (np.dtype("f2"), 2, 16),
    "float32": (np.dtype("f4"), 2, 32), "float64": (np.dtype("f8"), 2, 64), "int8": (np.dtype("i1"), 0, 8),
    "uint8": (np.dtype("u1"), 1, 8), "int16": (np.dtype("i2"), 0, 16), "int32": (np.dtype("i4"), 0, 32),
    "int64": (np.dtype("i8"), 0, 64), "complex64": (np.dtype("c8"), 5, 64), "bool": (np.dtype("?"), 6, 8),
}  # fmt: skip
STATUS = (None, errors.InvalidArgument, errors.Unsupported, errors.MissingWorkspace, errors.DriverError,
          errors.CompileError, errors.AbiMismatch, errors.InternalError)  # fmt: skip


class CTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class CHandle(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64), ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64), ("provider_slot", ctypes.c_int32),
    ]  # fmt: skip


def _library():
    clover_ops.describe()  # loads the libraries and finds the plugins
    library = ctypes.CDLL(str(_core.package_dir() / "lib/libclover_ops.so"))
    library.clover_last_error.restype = ctypes.c_char_p
    for name in ("clover_call_operator", "clover_operator_workspace_size"):
        getattr(library, name).argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library


LIBRARY = _library()


def contiguous(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


class Operand:
    """A tensor in an arena. `strides` are in elements and may be anything that the arena then has room for."""

    def __init__(self, dtype, shape, values=None, strides=None):
        self.dtype, self.shape = dtype, tuple(shape)
        self.strides = contiguous(self.shape) if strides is None else tuple(strides)
        self.item = DTYPES[dtype][0].itemsize
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides) if n > 0]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        length = 2 * MARGIN + (high - low + 1) * self.item
        length += -length % MARGIN
        memory = np.full(length + MARGIN, 0xA5, np.uint8)
        shift = -memory.ctypes.data % MARGIN
        self.arena = memory[shift : shift + length]
        self.offset = MARGIN // self.item - low  # elements
        self.edits = {}  # fields of the C struct to set otherwise
        if values is not None:
            self.numpy()[...] = values

    def numpy(self):
        dtype = DTYPES[self.dtype][0]
        strides = tuple(s * self.item for s in self.strides)
        return np.ndarray(self.shape, dtype, self.arena.data, self.offset * self.item, strides)

    def torch(self):
        dtype = getattr(torch, self.dtype)
        return torch.from_numpy(self.arena).view(dtype).as_strided(self.shape, self.strides, self.offset)

    def struct(self):
        rank = len(self.shape)
        _, code, bits = DTYPES[self.dtype]
        shape, strides = (ctypes.c_int64 * rank)(*self.shape), (ctypes.c_int64 * rank)(*self.strides)
        data = self.arena.ctypes.data + self.offset * self.item
        result = CTensor(data, CPU, 0, rank, code, bits, 1, shape, strides, 0)
        for field, value in self.edits.items():
            if field in ("shape", "strides") and value is not None:
                value = ctypes.cast((ctypes.c_int64 * max(len(value), 1))(*value), ctypes.POINTER(ctypes.c_int64))
            setattr(result, field, value)
        return result

    def like(self, **changes):
        """Another operand with the same values as far as they fit."""
        given = {"dtype": self.dtype, "shape": self.shape, "strides": None, **changes}
        other = Operand(**given)
        values = np.resize(self.numpy(), other.shape) if math.prod(self.shape) else np.zeros(other.shape)
        if len(self.shape) == len(other.shape) == 1 and math.prod(self.shape):
            values[self.shape[0] :] = self.numpy()[-1]  # cu_seqlens stays in order
        if self.dtype == "bfloat16":
            values = values.astype(np.float32)
        with np.errstate(all="ignore"):
            other.numpy()[...] = values.astype(DTYPES[other.dtype][0])
        return other


class Raw(Operand):
    """Anything in a tensor's place, handed over as it is."""

    def __init__(self, value):
        super().__init__("uint8", ())
        self.value = value

    def torch(self):
        return self.value

    numpy = torch


class Call:
    """Operands and attributes by name; None leaves one out."""

    def __init__(self, op, operands, attributes):
        self.op, self.operands, self.attributes = op, operands, attributes
        self.provider, self.workspace = None, RIGHT

    @property
    def shapes(self):
        return {name: operand.shape for name, operand in self.operands.items() if operand is not None}

    def arenas(self):
        return {name: operand.arena.copy() for name, operand in self.operands.items() if operand is not None}

    def run(self, surface):
        before = self.arenas()
        try:
            getattr(self, f"_run_{surface}")()
        except Exception:
            for name, bytes_before in before.items():
                same = np.array_equal(self.operands[name].arena, bytes_before)
                assert same, f"{self.op.name}: the call was refused, yet bytes in or around {name} changed"
            raise
        for name, bytes_before in before.items():
            self._check_around(name, bytes_before)

    def _check_around(self, name, before):
        operand = self.operands[name]
        if self.op.tensor(name).written:
            mask = Operand("bool", (1,))
            mask.arena, mask.item, mask.offset = np.zeros(operand.arena.shape, bool), 1, operand.offset * operand.item
            mask.dtype, mask.shape = "bool", (*operand.shape, operand.item)
            mask.strides = (*(s * operand.item for s in operand.strides), 1)
            mask.numpy()[...] = True
            assert np.array_equal(operand.arena[~mask.arena], before[~mask.arena]), f"{name}: bytes around it changed"
        else:
            assert np.array_equal(operand.arena, before), f"{name}: a constant tensor changed"

    # --- Python surfaces -----------------------------------------------------------------------------------------

    def _run_torch(self):
        self._run_python(lambda operand: operand.torch())

    def _run_numpy(self):
        self._run_python(lambda operand: operand.numpy())

    def _run_functional(self):
        """torch, without `out`: the outputs are the operator's own."""
        self._run_python(lambda operand: operand.torch(), own_outputs=self.op.functional)

    def _run_python(self, export, own_outputs=False):
        arguments = {name: None if operand is None else export(operand) for name, operand in self.operands.items()}
        outputs = [arguments.pop(t.name) for t in self.op.tensors if t.role == "out"] if self.op.functional else []
        keywords = {}
        if outputs and not own_outputs:
            keywords["out"] = outputs[0] if len(outputs) == 1 else tuple(outputs)
        if self.op.workspace:
            keywords["workspace"] = self._python_workspace(arguments)
        if self.provider is not None:
            keywords["provider"] = self.provider
        getattr(clover_ops, self.op.name)(**arguments, **self.attributes, **keywords)

    def _python_workspace(self, arguments):
        if self.workspace is not RIGHT:
            return self.workspace
        need = getattr(clover_ops, f"{self.op.name}_workspace_size")(**arguments, **self.attributes)
        return aligned_bytes(need)

    # --- the C ABI -----------------------------------------------------------------------------------------------

    def _run_abi(self):
        self.abi().run()

    def abi(self):
        return AbiCall(self)


def aligned_bytes(length, shift=0):
    memory = np.empty(length + 512, np.uint8)
    start = -memory.ctypes.data % 256 + shift
    return torch.from_numpy(memory[start : start + length])


class AbiCall:
    """The C structs of a call, to be edited before it runs."""

    def __init__(self, call):
        op = self.op = call.op
        kinds = {"int": ctypes.c_int64, "float": ctypes.c_double, "bool": ctypes.c_int32, "enum": ctypes.c_int32}
        fields = [("struct_size", ctypes.c_uint64), ("given", ctypes.c_uint64)]
        fields += [(t.name, ctypes.POINTER(CTensor)) for t in op.tensors]
        fields += [(a.name, kinds[a.type]) for a in op.attributes]
        self.args = type("Args", (ctypes.Structure,), {"_fields_": fields})()
        self.args.struct_size = ctypes.sizeof(self.args)
        self.structs = {name: o.struct() for name, o in call.operands.items() if o is not None}
        for name, struct in self.structs.items():
            setattr(self.args, name, ctypes.pointer(struct))
        for i, a in enumerate(op.attributes):
            value = call.attributes.get(a.name)
            if value is not None:
                self.args.given |= 1 << i
                setattr(self.args, a.name, a.choices.index(value) if a.type == "enum" else value)
        self.handle = CHandle(ctypes.sizeof(CHandle), None, None, 0, -1 if call.provider is None else call.provider)
        self.number = op.number
        self.workspace = None

    def workspace_size(self):
        answer = ctypes.c_uint64(0xDEAD)
        self._check(LIBRARY.clover_operator_workspace_size(self.number, *self._pointers(), ctypes.byref(answer)))
        return answer.value

    def run(self, workspace=True):
        if workspace and self.op.workspace and not self.handle.workspace:
            need = self.workspace_size()
            self.workspace = aligned_bytes(need)
            self.handle.workspace, self.handle.workspace_bytes = self.workspace.data_ptr(), need
        self._check(LIBRARY.clover_call_operator(self.number, *self._pointers(), None))

    def _pointers(self):
        return [None if item is None else ctypes.addressof(item) for item in (self.handle, self.args)]

    @staticmethod
    def _check(status):
        if status:
            raise STATUS[status](LIBRARY.clover_last_error().decode())


# --- valid calls -------------------------------------------------------------------------------------------------


def _index_values(rng, tensor, shape, sizes):
    count = math.prod(shape)
    limit = min((sizes[p] for p in tensor.pools), default=0)
    if tensor.values == "cu_seqlens":
        inner = sorted(rng.randrange(sizes["T"] + 1) for _ in range(max(count - 2, 0)))
        return [0, *inner, sizes["T"]][:count]
    if tensor.values == "initial_slots":  # the lower half of the pool is read, the upper one written
        return [i % max(limit // 2, 1) if limit else -1 for i in range(count)]
    if tensor.values == "final_slots":
        return [limit - 1 - i if i < limit // 2 else -1 for i in range(count)]
    if limit == 0:
        return [-1] * count
    return [rng.randrange(limit) for _ in range(count)]


def _values(rng, tensor, dtype, shape, sizes):
    if tensor.values is not None:
        return np.array(_index_values(rng, tensor, shape, sizes), np.int32).reshape(shape)
    generator = np.random.default_rng(rng.randrange(2**32))
    if dtype == "bool":
        return generator.random(shape) < 0.6
    if dtype.startswith(("int", "uint")):
        return generator.integers(0, 2, shape)
    return generator.standard_normal(shape) * 0.5


def valid_call(op, full=True, dtypes=None, seed=0, any_shape=ANY_SHAPE, **fixed):
    """`full`: every optional tensor and attribute is given. `fixed`: sizes of symbols."""
    rng = random.Random(f"{op.name} {seed}")
    sizes = symbols(op, seed, **fixed)
    dtypes = {"X": "float32", "Y": "bfloat16", "element": "float32", **(dtypes or {})}
    operands = {}
    for t in op.tensors:
        if t.optional and not full:
            operands[t.name] = None
            continue
        shape = any_shape if t.shape is None else tuple(size(axis, sizes) for axis in t.shape)
        dtype = dtypes.get(t.dtype, t.dtype)
        operands[t.name] = Operand(dtype, shape, _values(rng, t, dtype, shape, sizes))
    attributes = {a.name: _attribute(a, sizes) for a in op.attributes if a.required or full}
    return Call(op, operands, attributes)


def _attribute(a, sizes):
    if a.name in sizes:
        return sizes[a.name]
    if a.type == "enum":
        return a.choices[-1]
    if a.type == "bool":
        return True
    return {"int": 4, "float": 0.75}[a.type]
