"""torch.compile, torch.export and opcheck: what is compiled does what the call does, states change in place, no pool is
copied, and the number of tokens may vary."""

import re

import clover_ops
import pytest
import torch
from clover_ops import InvalidArgument
from torch._inductor.utils import run_and_get_code

from .cases import (
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
)

SMOKE = ("gated_delta_rule", "rms_norm_gated")


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def marked(operators):
    return [pytest.param(op, id=op.name, marks=[pytest.mark.smoke] if op.name in SMOKE else []) for op in operators]


def function_of(op):
    """A plain function around the public one, as a model's forward would have it."""
    public = getattr(clover_ops, op.name)

    def function(**keywords):
        return public(**keywords)

    return function


@pytest.mark.parametrize("op", marked(OPERATORS))
def test_compiled_as_it_is(op):
    compiled = torch.compile(function_of(op), fullgraph=True, backend="aot_eager")
    for full in (True, False):
        tensors, attributes = arguments(op, full)
        expected = run(getattr(clover_ops, op.name), tensors, attributes)
        for _ in range(2):
            assert_same(run(compiled, tensors, attributes), expected)


@pytest.mark.parametrize(
    "op", marked([op for op in OPERATORS if op.functional and any(t.role == "out" for t in op.tensors)])
)
def test_compiled_out_form(op):
    def function(out, **keywords):
        made = getattr(clover_ops, op.name)(**keywords, out=out[0] if len(out) == 1 else out)
        return made[0].clone() if isinstance(made, tuple) else made.clone()

    tensors, attributes = arguments(op)
    expected = run(getattr(clover_ops, op.name), tensors, attributes)
    made = tuple(t.fill_(0) for t in outputs(op, tensors, attributes))
    mine = copies(tensors)
    first = torch.compile(function, fullgraph=True, backend="aot_eager")(made, **mine, **attributes)
    assert_same([*made, *(t for t in mine.values() if t is not None)], expected)
    assert_same([first], expected[:1])


@pytest.mark.parametrize("op", MUTATING, ids=lambda op: op.name)
def test_inductor_changes_states_in_place(op):
    """Three calls in a row, on views of a larger buffer, as a decoding loop makes them."""
    tensors, attributes = arguments(op)
    changed = [t.name for t in op.tensors if t.written and t.name in tensors]
    compiled = torch.compile(function_of(op), fullgraph=True)

    def loop(function):
        layers = {n: torch.stack([tensors[n]] * 3) for n in changed}
        results = []
        for step in (0, 1, 1):
            views = {n: t[step] for n, t in layers.items()}
            result = function(**{**copies(tensors), **views}, **attributes)
            result = () if result is None else result if isinstance(result, tuple) else (result,)
            results += [t.clone() for t in result]
        return [*results, *layers.values()]

    assert_same(loop(compiled), loop(getattr(clover_ops, op.name)))


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_inductor_between_other_operations(op):
    def function(**keywords):
        scaled = {
            n: t * 0.5 if isinstance(t, torch.Tensor) and t.is_floating_point() else t for n, t in keywords.items()
        }
        made = getattr(clover_ops, op.name)(**scaled)
        return [t.float() + 1 for t in (made if isinstance(made, tuple) else (made,))]

    tensors, attributes = arguments(op)
    for a, b in zip(
        torch.compile(function, fullgraph=True)(**tensors, **attributes), function(**tensors, **attributes)
    ):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


# --- no state pool is copied -------------------------------------------------------------------------------------

POOL = (64, 4, 32, 32)


def _delta(tokens=6, sequences=2):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(tokens, 4, 32, generator=generator) for _ in range(3))
    g, beta = -torch.rand(tokens, 4, generator=generator), torch.rand(tokens, 4, generator=generator)
    cu_seqlens = torch.linspace(0, tokens, sequences + 1).int()
    slots = torch.arange(sequences, dtype=torch.int32)
    return q, k, v, g, beta, cu_seqlens, slots


def _commit(state, q, k, v, g, beta, cu_seqlens, slots):
    return clover_ops.gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, slots, slots, l2norm=True)


def _preview(state, q, k, v, g, beta, cu_seqlens, slots):
    return clover_ops.preview_gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, slots, l2norm=True)


def single(buffer, *rest):
    return _commit(buffer[0], *rest)


def twice(buffer, *rest):
    return _commit(buffer[0], *rest) + _commit(buffer[0], *rest)


def layers(buffer, *rest):
    return _commit(buffer[0], *rest) + _commit(buffer[1], *rest)


def preview_then_commit(buffer, q, k, v, *rest):
    """The commit depends on the preview. Where it does not, inductor moves the preview behind it to sit beside the use of
    its result, and then must copy the pool: right, but slow, see below."""
    return _commit(buffer[0], q, k, v + _preview(buffer[0], q, k, v, *rest), *rest)


def preview_beside_commit(buffer, *rest):
    return _preview(buffer[0], *rest) + _commit(buffer[0], *rest)


def transposed_pool(buffer, *rest):
    return _commit(buffer[0].transpose(-1, -2), *rest)


def changed_by_torch_too(buffer, *rest):
    result = _commit(buffer[0], *rest)
    buffer[0, 5].zero_()
    return result


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(single, marks=pytest.mark.smoke),
        twice,
        layers,
        preview_then_commit,
        transposed_pool,
        changed_by_torch_too,
    ],
    ids=lambda f: f.__name__,
)
def test_inductor_copies_no_pool(model):
    torch.manual_seed(0)
    rest, buffer = _delta(), torch.randn(2, *POOL)
    expected_buffer = buffer.clone()
    expected = model(expected_buffer, *rest)
    pointer = buffer.data_ptr()
    result, code = run_and_get_code(torch.compile(model, fullgraph=True), buffer, *rest)
    assert buffer.data_ptr() == pointer
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(buffer, expected_buffer)
    size = buffer[0].numel()
    buffers = [_numel(shape) for shape in re.findall(r"empty_strided\w*\(\(([^)]*)\)", "\n".join(code))]
    assert buffers
    assert max(buffers) < size, "the compiled code makes a buffer as large as the pool"


def test_inductor_moves_no_preview_behind_the_commit():
    """It reads the states as they were before, also where its result is used later."""
    rest, buffer = _delta(), torch.randn(2, *POOL)
    expected_buffer = buffer.clone()
    expected = preview_beside_commit(expected_buffer, *rest)
    result = torch.compile(preview_beside_commit, fullgraph=True)(buffer, *rest)
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(buffer, expected_buffer)


def _numel(shape):
    sizes = [int(n) for n in shape.split(",") if n.strip()]
    return torch.Size(sizes).numel()


# --- a varying number of tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", marked([op for op in OPERATORS if "T" in op.symbols]))
def test_dynamic_tokens(op):
    """One graph for every number of tokens."""
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(function_of(op), fullgraph=True, backend=backend)
    for tokens in (5, 6, 9, 17):
        tensors, attributes = arguments(op, T=tokens)
        for name, t in tensors.items():
            if t is not None:
                for axis, text in enumerate(op.tensor(name).shape):
                    if text == "T":
                        torch._dynamo.mark_dynamic(t, axis)
        expected = run(getattr(clover_ops, op.name), tensors, attributes)
        attributes = {n: v for n, v in attributes.items() if n != "max_seqlen"}
        made = compiled(**tensors, **attributes)
        made = [] if made is None else list(made) if isinstance(made, tuple) else [made]
        assert_same([*made, *(t for t in tensors.values() if t is not None)], expected)
    assert len(graphs) == 1


def test_automatic_dynamic_shapes():
    compiled = torch.compile(lambda x, w: clover_ops.rms_norm_gated(x, w, x), fullgraph=True, backend="aot_eager")
    for tokens in (3, 4, 5, 1, 0, 8):
        x, weight = torch.randn(tokens, 2, 8), torch.ones(8)
        assert_same([compiled(x, weight)], [clover_ops.rms_norm_gated(x, weight, x)])


@pytest.mark.smoke
def test_int64_indices_inside_a_graph():
    def function(positions, q, k, table):
        clover_ops.rotary_embedding(positions + 1, q, k, table)
        return q

    q, k, table = torch.randn(3, 2, 8), torch.randn(3, 1, 8), torch.rand(9, 8)
    positions = torch.tensor([4, 0, 7])
    mine, again = q.clone(), q.clone()
    torch.compile(function, fullgraph=True, backend="aot_eager")(positions, mine, k.clone(), table)
    function(positions, again, k.clone(), table)
    assert torch.equal(mine, again)


# --- refusals inside compiled code ---------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_bad_values_are_refused_at_run_time(backend):
    def function(positions, q, k, table):
        clover_ops.rotary_embedding(positions, q, k, table)

    q, k, table = torch.randn(3, 2, 8), torch.randn(3, 1, 8), torch.rand(9, 8)
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    compiled(torch.tensor([1, 2, 8]), q, k, table)
    before = q.clone()
    with pytest.raises(
        InvalidArgument, match=r"^rotary_embedding: positions\[2\] must be in \[0, P\) with P = 9, got 9$"
    ):
        compiled(torch.tensor([1, 2, 9]), q, k, table)
    assert torch.equal(q, before)


@pytest.mark.parametrize("op", marked(OPERATORS))
def test_a_compiled_call_keeps_its_provider(op):
    compiled = torch.compile(function_of(op), fullgraph=True, backend="aot_eager")
    tensors, attributes = arguments(op)
    assert_same(run(compiled, tensors, {**attributes, "provider": 0}), run(function_of(op), tensors, attributes))
    with pytest.raises(clover_ops.Unsupported, match=rf"^{op.name}: no provider in slot 7 on cpu takes this call"):
        run(compiled, tensors, {**attributes, "provider": 7})


@pytest.mark.smoke
def test_a_stream_cannot_be_traced():
    op = next(op for op in OPERATORS if op.name == "rms_norm_gated")
    tensors, attributes = arguments(op)
    with pytest.raises(Exception, match="rms_norm_gated: stream= cannot be traced"):
        torch.compile(function_of(op), fullgraph=True, backend="aot_eager")(**tensors, **attributes, stream=0)
    torch._dynamo.reset()
    broken = torch.compile(function_of(op), backend="aot_eager")
    with pytest.raises(InvalidArgument, match=r"^rms_norm_gated: stream must be a raw stream handle or None, got 'x'$"):
        broken(**tensors, **attributes, stream="x")


@pytest.mark.parametrize("op", marked(OPERATORS))
def test_a_lost_gradient_is_refused_while_tracing(op):
    tensors, attributes = arguments(op)
    name = next(n for n, t in tensors.items() if t is not None and t.is_floating_point())
    tensors[name].requires_grad_()
    with torch.enable_grad():
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            with pytest.raises(Exception, match=f"{op.name}: a tensor requires grad, and clover-ops is for inference"):
                torch.compile(function_of(op), fullgraph=True, backend=backend)(**tensors, **attributes)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function_of(op), fullgraph=True, backend="eager")(**tensors, **attributes)


# --- export -------------------------------------------------------------------------------------------------------


class Layer(torch.nn.Module):
    """Pure and mutating operators together, with states as buffers."""

    def __init__(self, channels=24, heads=2, dim=4):
        super().__init__()
        torch.manual_seed(1)
        self.heads, self.dim = heads, dim
        self.register_buffer("conv_weight", torch.randn(channels, 4))
        self.register_buffer("conv_state", torch.zeros(5, channels, 3))
        self.register_buffer("state", torch.zeros(5, heads, dim, dim))
        self.register_buffer("A_log", torch.rand(heads))
        self.register_buffer("dt_bias", torch.rand(heads))
        self.register_buffer("norm", torch.ones(dim))

    def forward(self, x, a, b, z, cu_seqlens, slots):
        y = clover_ops.causal_conv1d(x, self.conv_weight, None, self.conv_state, cu_seqlens, slots, slots, "silu")
        q, k, v = (part.unflatten(1, (self.heads, self.dim)) for part in y.split(self.heads * self.dim, 1))
        g, beta = clover_ops.gated_delta_net_gating(a, b, self.A_log, self.dt_bias)
        o = clover_ops.gated_delta_rule(q, k, v, g, beta, self.state, cu_seqlens, slots, slots, l2norm=True)
        return clover_ops.rms_norm_gated(o, self.norm, z)


def _layer_inputs(tokens):
    generator = torch.Generator().manual_seed(tokens)
    x, a, b = (torch.randn(tokens, n, generator=generator) for n in (24, 2, 2))
    return x, a, b, torch.randn(tokens, 2, 4, generator=generator), torch.tensor([0, 2, tokens]), torch.tensor([1, 3])


@pytest.mark.parametrize("form", [pytest.param("export", marks=pytest.mark.smoke), "decomposed", "saved", "compiled"])
def test_a_module_with_states(form, tmp_path):
    module, reference = Layer(), Layer()
    tokens = torch.export.Dim("T", min=3, max=4096)
    dynamic = ({0: tokens}, {0: tokens}, {0: tokens}, {0: tokens}, None, None)
    if form == "compiled":
        exported = torch.compile(module, fullgraph=True, dynamic=True)
        states = module
    else:
        program = torch.export.export(module, _layer_inputs(8), dynamic_shapes=dynamic)
        if form == "decomposed":
            program = program.run_decompositions()
        if form == "saved":
            torch.export.save(program, tmp_path / "layer.pt2")
            program = torch.export.load(tmp_path / "layer.pt2")
        names = {node.target.name() for node in program.graph.nodes if hasattr(node.target, "name")}
        if form == "export":
            assert {"clover::causal_conv1d", "clover::gated_delta_rule", "clover::rms_norm_gated"} <= names
        exported = states = program.module()
    for length in (8, 3, 20):
        inputs = _layer_inputs(length)
        torch.testing.assert_close(exported(*inputs), reference(*inputs), rtol=1e-6, atol=1e-6)
    for name in ("state", "conv_state"):
        torch.testing.assert_close(states.get_buffer(name), reference.get_buffer(name), rtol=1e-6, atol=1e-6)
        assert reference.get_buffer(name).abs().sum() > 0


# --- opcheck ------------------------------------------------------------------------------------------------------


def _overloads():
    cases = [(op, overload, takes) for op in OPERATORS for overload, takes in overloads(op)]
    return [
        pytest.param(op, o, t, id=str(o), marks=[pytest.mark.smoke] if op.name in SMOKE else []) for op, o, t in cases
    ]


@pytest.mark.parametrize("op, overload, takes_outputs", _overloads())
@pytest.mark.parametrize("full", [True, False], ids=["full", "least"])
def test_opcheck(op, overload, takes_outputs, full):
    tensors, attributes = overload_arguments(op, takes_outputs, full=full)
    positional = [a.name for a in overload._schema.arguments if not a.kwarg_only]
    given = {**tensors, **attributes}
    args = tuple(given[name] for name in positional if name in given)
    while len(args) < len([n for n in positional if n in given]):
        args += (None,)
    keywords = {n: v for n, v in given.items() if n not in positional}
    if any(name not in given for name in positional[: len(args)]):
        args, keywords = (), given
    torch.library.opcheck(overload, args, keywords)
