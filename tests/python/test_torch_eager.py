"""Torch tensors without a compiler: gradients, odd tensors, int64 indices, `out`, and fake kernels against real ones."""

import clover_ops
import numpy
import pytest
import torch
from bad_input.calls import valid_call
from clover_ops import InvalidArgument
from torch._subclasses.fake_tensor import FakeTensorMode

from .cases import (
    IDS,
    MUTATING,
    OPERATORS,
    PURE,
    arguments,
    assert_same,
    copies,
    outputs,
    overload_arguments,
    overloads,
    run,
    torch_name,
)

pytestmark = pytest.mark.smoke

WITH_INDICES = [op for op in OPERATORS if any(t.dtype == "int32" and t.role == "in" for t in op.tensors)]
SEVERAL = [op for op in OPERATORS if op.functional and sum(t.role == "out" for t in op.tensors) > 1]
NO_GRAD = "requires grad, and clover-ops is for inference: call it under torch.no_grad"


def differentiable(op):
    return [t for t in op.tensors if t.dtype in ("X", "Y", "element", "float32")]


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("surface", ["function", "torch.ops"])
def test_gradients_are_refused_under_grad_mode(op, surface):
    for t in differentiable(op):
        if surface == "function":
            tensors, attributes = arguments(op)
            targets = [(getattr(clover_ops, op.name), tensors, attributes)] if t.name in tensors else []
        else:
            targets = [(o, *overload_arguments(op, takes)) for o, takes in overloads(op)]
        for function, tensors, attributes in targets:
            if tensors.get(t.name) is None:
                continue
            tensors[t.name].requires_grad_()
            with pytest.raises(InvalidArgument, match=rf"^{op.name}: {t.name} {NO_GRAD}"):
                function(**tensors, **attributes)
            for guard in (torch.no_grad, torch.inference_mode):
                with guard():
                    function(**tensors, **attributes)


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("surface", ["function", "torch.ops"])
def test_forward_mode_tangents_are_refused(op, surface):
    import torch.autograd.forward_ad as forward

    if surface == "function":
        targets = [(getattr(clover_ops, op.name), *arguments(op))]
    else:
        targets = [(o, *overload_arguments(op, takes)) for o, takes in overloads(op)]
    for function, tensors, attributes in targets:
        name = next(t.name for t in differentiable(op) if tensors.get(t.name) is not None)
        with torch.no_grad(), forward.dual_level():
            function(**copies(tensors), **attributes)
            primal = tensors[name]
            tensors[name] = forward.make_dual(primal, torch.ones_like(primal))
            with pytest.raises(InvalidArgument, match=rf"^{op.name}: {name} carries a forward-mode tangent"):
                function(**tensors, **attributes)


def test_jit_trace_is_refused():
    tensors, attributes = arguments(next(op for op in OPERATORS if op.name == "rms_norm_gated"))
    x = tensors.pop("x")
    with pytest.raises(
        InvalidArgument, match=r"^rms_norm_gated: torch.jit.trace cannot record this call: use torch.compile"
    ):
        torch.jit.trace(lambda x: clover_ops.rms_norm_gated(x, **tensors, **attributes), (x,))
    traced = torch.jit.trace(lambda x: torch.ops.clover.rms_norm_gated(x, **tensors, **attributes), (x,))
    assert torch.equal(traced(x * 2), clover_ops.rms_norm_gated(x * 2, **tensors, **attributes))


def test_a_workspace_elsewhere_is_refused():
    from clover_ops import MissingWorkspace, _runtime

    tensors, attributes = arguments(next(op for op in OPERATORS if op.name == "fused_moe"))
    out = torch.empty_like(tensors["x"])
    with pytest.raises(MissingWorkspace, match=r"^fused_moe: workspace is on meta, the tensors are on cpu$"):
        clover_ops.fused_moe(**tensors, **attributes, out=out, workspace=torch.empty(1 << 20, device="meta"))
    with pytest.raises(MissingWorkspace, match=r"^fused_moe: workspace is on cpu, the tensors are on meta$"):
        _runtime._given_workspace("fused_moe", numpy.empty(8, "uint8"), torch.empty(1, device="meta"))


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_results_need_no_gradient(op):
    tensors, attributes = arguments(op)
    floating = next(t for t in tensors.values() if t is not None and t.is_floating_point())
    floating.requires_grad_()
    with torch.no_grad():
        result = getattr(clover_ops, op.name)(**tensors, **attributes)
    assert not any(t.requires_grad for t in (result if isinstance(result, tuple) else (result,)))


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_parameters_and_inference_tensors(op):
    tensors, attributes = arguments(op)
    expected = run(getattr(clover_ops, op.name), tensors, attributes)
    frozen = copies(tensors)
    for name, t in frozen.items():
        if t is not None and t.is_floating_point():
            frozen[name] = torch.nn.Parameter(t, requires_grad=False)
    result = getattr(clover_ops, op.name)(**frozen, **attributes)
    made = [] if result is None else [result] if isinstance(result, torch.Tensor) else list(result)
    assert_same([*made, *(t.data for t in frozen.values() if t is not None)], expected)
    with torch.inference_mode():
        assert_same(run(getattr(clover_ops, op.name), tensors, attributes), expected)


@pytest.mark.parametrize("op", WITH_INDICES, ids=lambda op: op.name)
def test_int64_indices(op):
    tensors, attributes = arguments(op)
    wide = {n: t.long() if op.tensor(n).dtype == "int32" else t for n, t in tensors.items()}
    expected = run(getattr(clover_ops, op.name), tensors, attributes)
    got = run(getattr(clover_ops, op.name), wide, attributes)
    assert_same([t.int() if t.dtype == torch.int64 else t for t in got], expected)


@pytest.mark.parametrize("op", SEVERAL, ids=lambda op: op.name)
def test_out_of_several(op):
    tensors, attributes = arguments(op)
    function = getattr(clover_ops, op.name)
    made = outputs(op, tensors, attributes)
    names = ", ".join(t.name for t in op.tensors if t.role == "out")
    wrong = [(made[0], "Tensor"), ((), "0 of them"), (dict(enumerate(made)), "dict")]
    wrong += [(made[:-1], f"{len(made) - 1} of them"), ((*made, made[0]), f"{len(made) + 1} of them")]
    for out, got in wrong:
        message = rf"^{op.name}: out must be a tuple of {len(made)} tensors \({names}\), got {got}$"
        with pytest.raises(InvalidArgument, match=message):
            function(**copies(tensors), **attributes, out=out)
    workspace = {}
    if op.workspace:
        size = getattr(clover_ops, f"{op.name}_workspace_size")(**tensors, **attributes)
        memory = torch.empty(size + 256, dtype=torch.uint8)
        workspace["workspace"] = memory[-memory.data_ptr() % 256 :]
    for container in (tuple, list):
        given = container(made)
        result = function(**copies(tensors), **attributes, out=given, **workspace)
        assert all(a is b for a, b in zip(result, made))


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_functional_and_out_forms_agree(op):
    tensors, attributes = arguments(op)
    expected = run(getattr(clover_ops, op.name), tensors, attributes)
    for overload, takes_outputs in overloads(op):
        mine = copies(tensors)
        if takes_outputs:
            made = [t.name for t in op.tensors if t.role == "out"]
            results = outputs(op, tensors, attributes)
            for result in results:
                result.fill_(0)
            named = {torch_name(name, True): value for name, value in attributes.items()}
            assert overload(**mine, **named, **dict(zip(made, results))) is None
        else:
            results = overload(**mine, **attributes)
            results = [] if results is None else [results] if isinstance(results, torch.Tensor) else list(results)
        assert_same([*results, *(t for t in mine.values() if t is not None)], expected)


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fake_kernels_make_what_real_ones_make(op, dtype):
    dtypes = {"X": dtype, "Y": dtype, "element": dtype}
    for tokens in (5, 0, 1):
        sizes = {"T": tokens} if "T" in op.symbols else {}
        for overload, takes_outputs in overloads(op):
            tensors, attributes = overload_arguments(op, takes_outputs, dtypes=dtypes, **sizes)
            real = overload(**copies(tensors), **attributes)
            with FakeTensorMode() as mode:
                fake = overload(
                    **{n: t if t is None else mode.from_tensor(t) for n, t in tensors.items()}, **attributes
                )
            if real is None:
                assert fake is None
                continue
            real, fake = ((r,) if isinstance(r, torch.Tensor) else r for r in (real, fake))
            assert len(real) == len(fake)
            for a, b in zip(real, fake):
                assert (a.shape, a.dtype, a.stride(), a.device) == (b.shape, b.dtype, b.stride(), b.device)


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_strided_inputs_give_dense_outputs(op):
    tensors, attributes = arguments(op)
    wide = {}
    for name, t in tensors.items():
        wide[name] = t if t is None or t.dim() < 2 else torch.cat([t, t], dim=0)[: t.shape[0]]
        if t is not None and t.dim() > 1:
            wide[name] = torch.empty(2 * t.shape[0], *t.shape[1:], dtype=t.dtype)[::2].copy_(t)
    expected = run(getattr(clover_ops, op.name), tensors, attributes)
    made = getattr(clover_ops, op.name)(**wide, **attributes)
    made = [made] if isinstance(made, torch.Tensor) else list(made)
    assert all(t.is_contiguous() for t in made)
    assert_same(made, expected[: len(made)])


ODD = {
    "negated float32": (
        lambda: torch.randn(4, dtype=torch.complex64).conj().imag,
        "is a view that torch negates or conjugates",
    ),
    "negated float16": (
        lambda: torch.view_as_complex(torch.randn(4, 2).half()).conj().imag,
        "is a view that torch negates or conjugates",
    ),
    "conjugated": (
        lambda: torch.randn(4, dtype=torch.complex64).conj(),
        "is a view that torch negates or conjugates|must be",
    ),
    "sparse": (lambda: torch.eye(4).to_sparse()[0], "torch.sparse_coo|other than torch.strided"),
    "meta": (lambda: torch.empty(4, device="meta"), "is on device meta, where no backend runs|meta"),
    "no storage": (lambda: torch._efficientzerotensor(4), "its data is null|cannot be read"),
    "fake": (lambda: FakeTensorMode().from_tensor(torch.empty(4)), "its data is null|cannot be read"),
}


@pytest.mark.parametrize("operator", ["cast", "rearrange"])
@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors_are_refused(operator, kind):
    make, words = ODD[kind]
    odd = make()
    plain = torch.empty(4, dtype=odd.dtype)
    for name, pair in (("src", (odd, plain)), ("dst", (plain, odd))):
        with pytest.raises(InvalidArgument, match=rf"^{operator}: {name} .*({words})|^{operator}: src must be"):
            getattr(clover_ops, operator)(*pair)


def test_odd_tensors_work_once_resolved():
    odd = torch.randn(4, dtype=torch.complex64).conj()
    target = torch.empty(4, dtype=torch.complex64)
    clover_ops.rearrange(odd.resolve_conj(), target)
    assert torch.equal(target, odd)
    real = torch.empty(4)
    clover_ops.cast(odd.imag.resolve_neg(), real)
    assert torch.equal(real, odd.imag)


@pytest.mark.filterwarnings("ignore:.*quantize.*")
def test_what_dlpack_cannot_carry():
    x, weight = torch.randn(2, 1, 4), torch.ones(4)
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: x "):
        torch.vmap(lambda x: clover_ops.rms_norm_gated(x, weight, x))(x[None])
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: x "):
        clover_ops.rms_norm_gated(torch.quantize_per_tensor(x, 1.0, 0, torch.quint8), weight, x)


def test_subclasses_of_tensor():
    class Mine(torch.Tensor):
        pass

    x, weight = torch.randn(2, 1, 4), torch.ones(4)
    y = clover_ops.rms_norm_gated(x.as_subclass(Mine), weight, x)
    assert torch.equal(y.as_subclass(torch.Tensor), clover_ops.rms_norm_gated(x, weight, x))


@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.uint16, torch.int64, torch.complex64, torch.float64, torch.bool]
)
def test_rearrange_takes_any_element(dtype):
    source = torch.arange(24).reshape(4, 6).to(dtype)
    target = torch.zeros(6, 4).to(dtype)
    clover_ops.rearrange(source, target.t())
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    assert torch.equal(target.t().contiguous().view(bits), source.view(bits))


@pytest.mark.parametrize("op", MUTATING, ids=lambda op: op.name)
def test_views_of_larger_tensors_change_in_place(op):
    """A pool is a slice of a buffer for all layers: only that slice changes."""
    tensors, attributes = arguments(op)
    changed = [t.name for t in op.tensors if t.written and t.name in tensors]
    expected = run(getattr(clover_ops, op.name), tensors, attributes)[-len(tensors) :]
    wanted = dict(zip(tensors, expected)) if None not in tensors.values() else None
    assert wanted is not None
    layers = {n: torch.stack([tensors[n]] * 3) for n in changed}
    before = {n: t.clone() for n, t in layers.items()}
    getattr(clover_ops, op.name)(**{**tensors, **{n: t[1] for n, t in layers.items()}}, **attributes)
    for name, layer in layers.items():
        assert torch.equal(layer[1], wanted[name])
        assert torch.equal(layer[[0, 2]], before[name][[0, 2]])


def test_an_output_too_large_for_memory_is_told_so():
    """Not as an output that the caller forgot."""
    call = valid_call(next(op for op in OPERATORS if op.name == "rms_norm_gated"))
    x = call.operands["x"].torch()[:1, :1].expand(2**50, 1, -1)
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: y could not be made: .*memory"):
        clover_ops.rms_norm_gated(x, call.operands["weight"].torch(), x)
