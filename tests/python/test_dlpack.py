"""Other frameworks' tensors: anything with __dlpack__."""

import clover_ops
import numpy as np
import pytest
import torch
import tvm_ffi
from clover_ops import InvalidArgument

pytestmark = pytest.mark.smoke


class Foreign:
    """The least that a tensor of another framework has."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **keywords):
        return self._tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class Shaped(Foreign):
    """One that tells its shape and dtype too, as most do."""

    shape = property(lambda self: self._tensor.shape)
    dtype = property(lambda self: "float32")


def _inputs():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) for shape in ((3, 2, 4), (4,), (3, 2, 4))]


WRAPPERS = {"least": Foreign, "shaped": Shaped, "tvm_ffi": tvm_ffi.from_dlpack, "numpy": lambda t: Foreign(t.numpy())}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_out_form(wrap):
    inputs, y = _inputs(), torch.zeros(3, 2, 4)
    result = wrap(y)
    returned = clover_ops.rms_norm_gated(*map(wrap, inputs), out=result)
    assert returned is result
    assert torch.equal(y, clover_ops.rms_norm_gated(*inputs))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_functional_form_says_that_it_needs_out(wrap):
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: y could not be made: "):
        clover_ops.rms_norm_gated(*map(wrap, _inputs()))


def test_wrong_inputs_are_told_before_the_missing_output():
    x, weight, z = _inputs()
    with pytest.raises(
        InvalidArgument, match=r"^rms_norm_gated: weight must have shape \[V\] with V = 4 \(x\), got \[3\]$"
    ):
        clover_ops.rms_norm_gated(Foreign(x), Foreign(weight[:3]), Foreign(z))


@pytest.mark.parametrize(
    "view", [lambda t: t[:, ::2], lambda t: t.transpose(0, 2), lambda t: t[..., 1], lambda t: t[:0]]
)
def test_strided(view):
    source = _inputs()[0]
    target = torch.zeros_like(view(source), memory_format=torch.contiguous_format)
    clover_ops.rearrange(Foreign(view(source)), Foreign(target))
    assert torch.equal(target, view(source))


def test_in_and_out_arguments():
    q, k, table = torch.randn(2, 3, 4), torch.randn(2, 1, 4), torch.rand(5, 4)
    q_alone, k_alone, positions = q.clone(), k.clone(), torch.tensor([4, 1], dtype=torch.int32)
    clover_ops.rotary_embedding(*map(Foreign, (positions, q, k, table)))
    clover_ops.rotary_embedding(positions, q_alone, k_alone, table)
    assert torch.equal(q, q_alone)
    assert torch.equal(k, k_alone)


def test_a_read_only_exporter_is_refused():
    array = np.zeros((3, 2, 4), np.float32)
    array.flags.writeable = False
    x, weight, z = (t.numpy() for t in _inputs())
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: y cannot be read through DLPack: .*readonly"):
        clover_ops.rms_norm_gated(x, weight, z, out=Foreign(array))
    assert not array.any()


def test_int64_indices_of_others_are_refused_not_misread():
    q, table = torch.randn(2, 3, 4), torch.rand(5, 4)
    with pytest.raises(InvalidArgument, match=r"^rotary_embedding: positions must be int32, got int64$"):
        clover_ops.rotary_embedding(tvm_ffi.from_dlpack(torch.tensor([1, 2])), q, q.clone(), table)


class Broken(Foreign):
    def __dlpack__(self, **_keywords):
        raise self._tensor


@pytest.mark.parametrize("error", [RuntimeError("no way"), BufferError("no way"), ValueError("no way")], ids=repr)
def test_exporters_that_fail(error):
    broken = Broken(error)
    broken.__class__.__dlpack_device__ = lambda self: (1, 0)
    _, weight, z = _inputs()
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: x cannot be read through DLPack: no way"):
        clover_ops.rms_norm_gated(broken, weight, z, out=torch.zeros(3, 2, 4))


def test_something_that_is_no_capsule():
    class Nonsense(Foreign):
        def __dlpack__(self, **_keywords):
            return 3

    x, weight, z = _inputs()
    with pytest.raises((InvalidArgument, TypeError), match=r"^rms_norm_gated: x "):
        clover_ops.rms_norm_gated(Nonsense(x), weight, z, out=torch.zeros(3, 2, 4))
