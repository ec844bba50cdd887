"""Calls on tensors of a device (CUDA's, or HIP's where STANDIN_BACKEND is hygon) whose memory is this process's own, since a
stand-in driver has no other; and the stand-in's account of them. For use in child processes only."""

import ctypes
import json
import os

import clover_ops
from clover_ops import _core

BACKEND = os.environ.get("STANDIN_BACKEND", "nvidia")
DEVICE_TYPE, LIBRARY = {"nvidia": (2, "libcuda.so.1"), "hygon": (10, "libamdhip64.so.5")}[BACKEND]
TRITON = 10  # the first slot of Triton's providers
_CODES = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16), "int32": (0, 32), "bool": (6, 8)}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Tensor:
    """A clover_tensor. `strides` in elements; `offset` in bytes from the start of its 256-byte-aligned memory."""

    def __init__(self, dtype, *shape, device=0, strides=None, offset=0, values=()):
        code, bits = _CODES[dtype]
        if strides is None:
            elements = 1
            for size in shape:
                elements *= size
        else:
            elements = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
        self.memory = ctypes.create_string_buffer(max(elements, 1) * bits // 8 + offset + 256)
        self.data = (ctypes.addressof(self.memory) + 255) // 256 * 256
        self.address = self.data + offset
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.abi = _Tensor(self.data, DEVICE_TYPE, device, len(shape), code, bits, 1, self.shape, self.strides, offset)
        for i, value in enumerate(values):
            ctypes.c_int32.from_address(self.address + 4 * i).value = value


def _packed(tensors, attributes):
    return [*(None if t is None else ctypes.c_void_p(ctypes.addressof(t.abi)) for t in tensors), *attributes]


def workspace_size(operator, tensors, attributes=(), slot=-1):
    query = _core.binding().get_global_func(f"clover_ops.{operator}.workspace_size")
    return query(0, 0, 0, slot, *_packed(tensors, attributes))


def call(operator, tensors, attributes=(), stream=0, slot=-1, workspace=None):
    function = _core.binding().get_global_func(f"clover_ops.{operator}")
    address, size = (0, 0) if workspace is None else workspace
    function(stream or 0, address, size, slot, *_packed(tensors, attributes))


def topk_softmax(tokens=5, device=0, stream=0, dtype="float32", experts=16, k=2):
    """A plain call; returns its tensors."""
    logits, ids = Tensor(dtype, tokens, experts, device=device), Tensor("int32", tokens, k, device=device)
    weights = Tensor("float32", tokens, k, device=device)
    call("topk_softmax", [logits, ids, weights], [k, False], stream)
    return logits, ids, weights


def call_with_workspace(operator, tensors, attributes, slot):
    size = workspace_size(operator, tensors, attributes, slot) if operator in WITH_WORKSPACE else 0
    memory = Tensor("bool", size)
    call(operator, tensors, attributes, slot=slot, workspace=(memory.data, size) if size else None)


WITH_WORKSPACE = ("gated_delta_rule", "preview_gated_delta_rule", "preview_gdn", "block_coreset", "fused_moe")


def every_operator(dtype, T):
    """(operator, tensors, attributes) of calls of T tokens, in shapes of the model's kind but small."""
    H, HV, S, N, KC, E, k, D, inner = 2, 4, 3, 2, 4, 16, 2, 64, 32

    def x(*shape):
        return Tensor(dtype, *shape)

    def f(*shape):
        return Tensor("float32", *shape)

    def i(*shape):
        return Tensor("int32", *shape)

    def live():
        return Tensor("bool", T)

    C = 2 * H * 64 + HV * 64
    for bias in (None, x(C)):
        conv = [x(T, C), x(C, KC), bias, x(S, C, KC - 1), i(N + 1), i(N)]
        yield "causal_conv1d", [*conv, i(N), x(T, C)], ["silu", None]
        yield "preview_conv1d", [*conv, x(T, C)], ["none", None]
    yield "gated_delta_net_gating", [x(T, HV), x(T, HV), f(HV), x(HV), f(T, HV), f(T, HV)], []
    for K, V in ((64, 128), (128, 128), (128, 96), (96, 64)):
        delta = [x(T, H, K), x(T, H, K), x(T, HV, V), f(T, HV), f(T, HV), f(S, HV, V, K), i(N + 1), i(N)]
        yield "gated_delta_rule", [*delta, i(N), x(T, HV, V)], [None, True, None]
        for read in ("bidirectional", "block", "causal"):
            yield "preview_gated_delta_rule", [*delta, x(T, HV, V)], [None, True, read, None]
    for dim, gated in ((64, False), (128, True)):
        width = (2 * H + HV) * dim
        gdn = [
            x(T, width),
            x(T, HV),
            x(T, HV),
            x(T, HV, dim) if gated else None,
            x(width, KC),
            None,
            x(S, width, KC - 1),
        ]
        gdn += [f(HV), x(HV), f(S, HV, dim, dim), i(N + 1), i(N), x(dim) if gated else None, x(T, HV, dim)]
        yield "preview_gdn", gdn, [1e-6, None, "bidirectional", None]
    for experts in (E, 256, 384, 1000):
        routes = [i(T, k), f(T, k)]
        yield "topk_softmax", [x(T, experts), *routes], [k, False]
        for mode in ("vote", "max"):
            coreset = [x(T, experts), i(N + 1), live(), Tensor("bool", N, experts), *routes]
            yield "block_coreset", coreset, [k, 8, mode, None, False]
    yield "live_row_routes", [i(T, k), f(T, k), live(), i(T, k), f(T, k), i(T), i(1)], []
    for width in (24, 5):
        yield "merge_live_rows", [x(T, width), x(T, width), live(), x(T, width)], []
    for shared in (False, True):
        weights = [x(E, 2 * inner, D), x(E, D, inner)]
        extra = [x(2 * inner, D), x(D, inner), x(D)] if shared else [None] * 3
        yield "fused_moe", [x(T, D), *weights, i(T, k), f(T, k), *extra, x(T, D)], [1.0, "dense"]
    yield "rotary_embedding", [i(T), x(T, 4, 64), x(T, 2, 64), x(9, 32)], [False]
    yield "rms_norm_gated", [x(T, HV, 64), x(64), x(T, HV, 64), x(T, HV, 64)], [1e-6]
    for element in ("bool", dtype):
        yield "rearrange", [Tensor(element, T, 5), Tensor(element, T, 5, strides=(1, T))], []
    for other in ("bfloat16", "float16", "float32"):
        yield "cast", [x(T, 16), Tensor(other, T, 16)], []
        yield "cast", [x(T, 5), Tensor(other, T, 5, strides=(1, T))], []


class _Standin:
    """The stand-in driver that the plugin has found."""

    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)
        for name in ("standin_stream", "standin_context", "standin_current"):
            if hasattr(self.library, name):  # HIP has no contexts
                getattr(self.library, name).restype = ctypes.c_void_p
        self.library.standin_launches.restype = ctypes.c_char_p

    def fail(self, function, status):
        """`function` returns `status` from now on; 0 mends it."""
        self.library.standin_fail(function.encode(), status)

    def calls(self, function):
        return self.library.standin_calls(function.encode())

    def launches(self):
        return [json.loads(line) for line in self.library.standin_launches().decode().splitlines()]

    def forget(self):
        self.library.standin_forget()

    def stream(self, device=0, primary=True, capturing=False):
        if BACKEND == "hygon":
            return self.library.standin_stream(device, int(capturing))
        return self.library.standin_stream(device, int(primary), int(capturing))

    def capture(self, stream, on):
        self.library.standin_capture(ctypes.c_void_p(stream), int(on))

    def context(self, device=0, primary=True):
        return self.library.standin_context(device, int(primary))

    def push(self, context):
        self.library.standin_push(ctypes.c_void_p(context))

    def current(self):
        return self.library.standin_current()

    def depth(self):
        """How many contexts this thread has pushed."""
        return self.library.standin_depth()


def standin():
    return _Standin()


def plugin():
    """The registry's entry for the plugin."""
    return next(entry for entry in clover_ops.describe()["plugins"] if entry["name"] == BACKEND)
