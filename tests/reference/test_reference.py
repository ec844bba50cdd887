"""The reference against closed forms, hand-made examples and NumPy functions that share none of its formulas."""

import ml_dtypes
import numpy as np
import pytest

import reference

BF16 = ml_dtypes.bfloat16
pytestmark = pytest.mark.smoke


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def unit_rows(rng, *shape):
    rows = rng.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


# Convolution ---------------------------------------------------------------------------------------------------------


def conv_arguments(rng, tokens, channels=5, taps=4, slots=4):
    return (
        rng.standard_normal((tokens, channels)),
        rng.standard_normal((channels, taps)),
        rng.standard_normal(channels),
        rng.standard_normal((slots, channels, taps - 1)),
    )


def test_convolution_is_numpys(rng):
    x, weight, bias, pool = conv_arguments(rng, 9)
    y, _ = reference.causal_conv1d(x, weight, bias, pool, [0, 9], [2], [-1])
    for c in range(5):
        whole = np.concatenate([pool[2, c], x[:, c]])
        expected = np.convolve(whole, weight[c, ::-1], mode="valid") + bias[c]
        np.testing.assert_allclose(y[:, c], expected, rtol=1e-12)


def test_convolution_in_one_call_is_token_by_token(rng):
    x, weight, bias, pool = conv_arguments(rng, 6)
    y, after = reference.causal_conv1d(x, weight, bias, pool, [0, 6], [1], [1], "silu")
    stepped = pool
    for t in range(6):
        one, stepped = reference.causal_conv1d(x[t : t + 1], weight, bias, stepped, [0, 1], [1], [1], "silu")
        np.testing.assert_array_equal(one[0], y[t])
    np.testing.assert_array_equal(stepped, after)


def test_convolution_state_of_a_short_sequence_keeps_its_past(rng):
    x, weight, bias, pool = conv_arguments(rng, 2)
    _, after = reference.causal_conv1d(x, weight, bias, pool, [0, 2], [0], [3])
    np.testing.assert_array_equal(after[3], np.stack([pool[0, :, 2], x[0], x[1]], axis=1))
    np.testing.assert_array_equal(after[:3], pool[:3])


def test_convolution_without_tokens_copies_the_slot(rng):
    x, weight, bias, pool = conv_arguments(rng, 0)
    _, after = reference.causal_conv1d(x, weight, bias, pool, [0, 0, 0], [1, -1], [2, 3])
    np.testing.assert_array_equal(after[2], pool[1])
    np.testing.assert_array_equal(after[3], 0)


def test_convolution_from_nothing_starts_with_zeros(rng):
    x, weight, _bias, pool = conv_arguments(rng, 1)
    y, _ = reference.causal_conv1d(x, weight, None, np.full_like(pool, np.nan), [0, 1], [-1], [-1])
    np.testing.assert_allclose(y[0], weight[:, 3] * x[0])


def test_preview_convolution_reads_what_the_commit_reads(rng):
    x, weight, bias, pool = conv_arguments(rng, 7)
    commit, _ = reference.causal_conv1d(x, weight, bias, pool, [0, 3, 7], [2, 0], [2, 0], "silu")
    preview = reference.preview_conv1d(x, weight, bias, pool, [0, 3, 7], [2, 0], "silu")
    np.testing.assert_array_equal(preview, commit)


# Gating and the delta rule -------------------------------------------------------------------------------------------


def test_gating_by_hand():
    g, beta = reference.gated_delta_net_gating(
        np.array([[0.0, 30.0]]), np.array([[0.0, np.log(3.0)]]), np.log([2.0, 1.0]), np.array([0.0, -5.0])
    )
    np.testing.assert_allclose(g, [[-2 * np.log(2), -25.0]])
    np.testing.assert_allclose(beta, [[0.5, 0.75]])


def test_gating_of_a_huge_rate_and_a_tiny_step():
    g, _ = reference.gated_delta_net_gating(np.array([[-200.0]]), np.zeros((1, 1)), np.array([100.0]), np.zeros(1))
    np.testing.assert_allclose(g, -np.exp(-100.0), rtol=1e-12)


def delta_arguments(rng, tokens, H=2, HV=4, K=6, V=5, slots=3):
    return {
        "q": rng.standard_normal((tokens, H, K)),
        "k": unit_rows(rng, tokens, H, K),
        "v": rng.standard_normal((tokens, HV, V)),
        "g": -rng.exponential(0.3, (tokens, HV)),
        "beta": rng.uniform(0, 1, (tokens, HV)),
        "state": rng.standard_normal((slots, HV, V, K)),
    }


def test_delta_rule_stores_values_under_orthonormal_keys(rng):
    """beta = 1, no decay: the state maps each key to its value, whatever was there before."""
    K = 6
    keys, _ = np.linalg.qr(rng.standard_normal((K, K)))
    v = rng.standard_normal((K, 1, 3))
    nothing, ones = np.zeros((K, 1)), np.ones((K, 1))
    old = rng.standard_normal((1, 1, 3, K))
    _, pool = reference.gated_delta_rule(keys[:, None], keys[:, None], v, nothing, ones, old, [0, K], [0], [0])
    np.testing.assert_allclose(pool[0, 0] @ keys.T, v[:, 0].T, atol=1e-12)


def test_delta_rule_is_a_product_of_matrices(rng):
    """S_t = S_(t-1) exp(g) (I - beta k k^T) + beta v k^T, formed as matrices."""
    args = delta_arguments(rng, 5)
    o, pool = reference.gated_delta_rule(
        **args, cu_seqlens=[0, 5], initial_state_indices=[2], final_state_indices=[0], scale=0.7
    )
    for head in range(4):
        S = args["state"][2, head]
        for t in range(5):
            k, q = args["k"][t, head // 2], args["q"][t, head // 2]
            beta, decay = args["beta"][t, head], np.exp(args["g"][t, head])
            S = decay * S @ (np.eye(6) - beta * np.outer(k, k)) + beta * np.outer(args["v"][t, head], k)
            np.testing.assert_allclose(o[t, head], 0.7 * S @ q, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(pool[0, head], S, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(pool[1:], args["state"][1:])


def test_delta_rule_in_one_call_is_token_by_token(rng):
    args = delta_arguments(rng, 6)
    o, after = reference.gated_delta_rule(
        **args, cu_seqlens=[0, 6], initial_state_indices=[1], final_state_indices=[1], l2norm=True
    )
    pool = args.pop("state")
    for t in range(6):
        token = {name: array[t : t + 1] for name, array in args.items()}
        one, pool = reference.gated_delta_rule(
            **token, state=pool, cu_seqlens=[0, 1], initial_state_indices=[1], final_state_indices=[1], l2norm=True
        )
        np.testing.assert_array_equal(one[0], o[t])
    np.testing.assert_array_equal(pool, after)


def test_l2norm_and_default_scale(rng):
    args = delta_arguments(rng, 3)
    normed = {**args, "q": _l2(args["q"]), "k": _l2(args["k"])}
    where = {"cu_seqlens": [0, 3], "initial_state_indices": [0], "final_state_indices": [0]}
    a, _ = reference.gated_delta_rule(**args, **where, l2norm=True)
    b, _ = reference.gated_delta_rule(**normed, **where, scale=6**-0.5)
    np.testing.assert_allclose(a, b, rtol=1e-12)


def _l2(x):
    return x / np.sqrt(np.square(x).sum(-1, keepdims=True) + 1e-6)


def test_delta_rule_without_tokens_copies_the_slot(rng):
    args = delta_arguments(rng, 0)
    _, pool = reference.gated_delta_rule(
        **args, cu_seqlens=[0, 0, 0], initial_state_indices=[0, -1], final_state_indices=[2, 1]
    )
    np.testing.assert_array_equal(pool[2], args["state"][0])
    np.testing.assert_array_equal(pool[1], 0)


def preview(args, lengths, slots, read):
    cu = np.concatenate([[0], np.cumsum(lengths)])
    return reference.preview_gated_delta_rule(**args, cu_seqlens=cu, initial_state_indices=slots, read=read)


def test_causal_preview_is_the_commits_output(rng):
    args = delta_arguments(rng, 7)
    commit, _ = reference.gated_delta_rule(
        **args, cu_seqlens=[0, 3, 7], initial_state_indices=[2, -1], final_state_indices=[2, -1]
    )
    np.testing.assert_array_equal(preview(args, [3, 4], [2, -1], "causal"), commit)


def test_block_preview_reads_the_last_state(rng):
    args = delta_arguments(rng, 5)
    _, pool = reference.gated_delta_rule(**args, cu_seqlens=[0, 5], initial_state_indices=[1], final_state_indices=[1])
    q = np.repeat(args["q"], 2, axis=1)
    expected = 6**-0.5 * np.einsum("hvk,thk->thv", pool[1], q)
    np.testing.assert_allclose(preview(args, [5], [1], "block"), expected, rtol=1e-12)


def test_bidirectional_preview_of_one_token_reads_S1(rng):
    args = delta_arguments(rng, 1)
    both = preview(args, [1], [0], "bidirectional")
    np.testing.assert_array_equal(both, preview(args, [1], [0], "causal"))


def test_bidirectional_preview_is_a_forward_and_a_reversed_pass(rng):
    """R_(t+1) is the forward state of the reversed suffix, started from zeros."""
    args = delta_arguments(rng, 6)
    expected = preview(args, [6], [0], "causal")
    for t in range(5):
        suffix = {n: a[t + 1 :][::-1] for n, a in args.items() if n != "state"}
        _, pool = reference.gated_delta_rule(
            **suffix, state=args["state"], cu_seqlens=[0, 5 - t], initial_state_indices=[-1], final_state_indices=[0]
        )
        expected[t] += 6**-0.5 * np.einsum("hvk,hk->hv", pool[0], np.repeat(args["q"][t], 2, axis=0))
    np.testing.assert_allclose(preview(args, [6], [0], "bidirectional"), expected, rtol=1e-12)


def test_bidirectional_preview_with_orthogonal_keys_counts_each_token_once(rng):
    """Orthonormal keys, beta 1, no decay, zero past: o_t = scale * sum_s v_s (k_s . q_t), once for each s."""
    K = 4
    v = rng.standard_normal((K, 1, 3))
    q = rng.standard_normal((K, 1, K))
    o = reference.preview_gated_delta_rule(
        q, np.eye(K)[:, None], v, np.zeros((K, 1)), np.ones((K, 1)), np.zeros((1, 1, 3, K)), [0, K], [-1], scale=1.0
    )
    np.testing.assert_allclose(o[:, 0], q[:, 0] @ v[:, 0], atol=1e-12)


def test_previewing_a_whole_layer_is_its_parts(rng):
    H, HV, K, V, T = 1, 2, 4, 3, 5
    C = 2 * H * K + HV * V
    qkv, weight, bias, conv_pool = conv_arguments(rng, T, channels=C, slots=2)
    a, b = rng.standard_normal((2, T, HV))
    A_log, dt_bias = rng.standard_normal((2, HV))
    z, norm_weight = rng.standard_normal((T, HV, V)), rng.standard_normal(V)
    state = rng.standard_normal((2, HV, V, K))
    o = reference.preview_gdn(
        qkv, a, b, z, weight, bias, conv_pool, A_log, dt_bias, state, [0, 2, T], [1, -1], norm_weight
    )
    mixed = reference.preview_conv1d(qkv, weight, bias, conv_pool, [0, 2, T], [1, -1], "silu")
    g, beta = reference.gated_delta_net_gating(a, b, A_log, dt_bias)
    parts = reference.preview_gated_delta_rule(
        mixed[:, None, :4], mixed[:, None, 4:8], mixed[:, 8:].reshape(T, 2, 3), g, beta, state, [0, 2, T], [1, -1],
        l2norm=True,
    )  # fmt: skip
    rms = np.sqrt(np.square(parts).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(o, parts / rms * norm_weight * z / (1 + np.exp(-z)), rtol=1e-10)


# Routing -------------------------------------------------------------------------------------------------------------

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    "logits, ids",
    [
        ([1, 3, 2, 3], [1, 3]),
        ([2, 2, 2, 2], [0, 1]),
        ([NAN, 1, NAN, 0], [1, 3]),
        ([NAN, 1, -INF, NAN], [1, 0]),
        ([0, INF, 5, INF], [1, 3]),
        ([0, 1, INF, 5], [2, 3]),
        ([NAN, -INF, NAN, -INF], [-1, -1]),
        ([-1e30, -2e30, -3e30, -1e30], [0, 3]),
    ],
)
def test_topk_ids_by_hand(logits, ids):
    got, _ = reference.topk_softmax(np.array([logits], np.float32), 2)
    assert got.tolist() == [ids]


def test_topk_weights_by_hand():
    logits = np.log(np.array([[1.0, 4.0, 2.0, 1.0]]))
    _, weights = reference.topk_softmax(logits, 2)
    np.testing.assert_allclose(weights, [[0.5, 0.25]])
    _, weights = reference.topk_softmax(logits, 2, renormalize=True)
    np.testing.assert_allclose(weights, [[2 / 3, 1 / 3]])


def test_topk_weights_of_special_rows():
    _, weights = reference.topk_softmax(np.array([[-INF] * 3, [NAN, 0, 0], [NAN, 1, -INF], [INF, 0, 0]]), 2, True)
    np.testing.assert_allclose(weights[:3], [[0, 0], [0.5, 0.5], [1, 0]])
    assert np.isnan(weights[3]).all()


def test_coreset_with_the_whole_budget_is_topk_softmax(rng):
    logits = rng.standard_normal((9, 8)).astype(np.float32)
    expected_ids, expected_weights = reference.topk_softmax(logits, 3, True)
    for mode in ("vote", "max"):
        coreset, ids, weights = reference.block_coreset(logits, [0, 4, 9], None, 3, 8, mode, renormalize=True)
        assert coreset.all()
        np.testing.assert_array_equal(ids, expected_ids)
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-12)


def test_coreset_votes_by_hand():
    p = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]])
    blocks = reference.block_scores(np.log(p), [0, 3], None, 2, "vote")
    np.testing.assert_allclose(blocks[0].scores, [0.5, 0.3, 0.6, 0.8])
    coreset, ids, weights = reference.block_coreset(np.log(p), [0, 3], None, 2, 2)
    assert coreset.tolist() == [[False, False, True, True]]
    assert ids.tolist() == [[2, 3], [3, 2], [3, 2]]
    np.testing.assert_allclose(weights, [[0.15, 0.05], [0.4, 0.3], [0.4, 0.3]])


def test_coreset_max_by_hand():
    p = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4]])
    blocks = reference.block_scores(np.log(p), [0, 2], [True, True], 1, "max")
    np.testing.assert_allclose(blocks[0].scores, [0.5, 0.3, 0.3, 0.4])
    coreset, _, _ = reference.block_coreset(np.log(p), [0, 2], [True, True], 1, 2, "max")
    assert coreset.tolist() == [[True, False, False, True]]


def test_coreset_live_tokens_choose_and_all_tokens_use():
    p = np.array([[0.7, 0.1, 0.2], [0.1, 0.7, 0.2]])
    coreset, ids, _ = reference.block_coreset(np.log(p), [0, 2], [False, True], 1, 1)
    assert coreset.tolist() == [[False, True, False]]
    assert ids.tolist() == [[1], [1]]


def test_coreset_without_live_tokens_and_empty_blocks():
    logits = np.log([[0.1, 0.2, 0.7]])
    coreset, ids, _ = reference.block_coreset(logits, [0, 1, 1], [False], 1, 2, top_p=0.1)
    assert coreset.tolist() == [[True, True, False], [False, False, False]]
    assert ids.tolist() == [[1]]


@pytest.mark.parametrize("top_p, kept", [(0.05, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.81, 3), (1.0, 3)])
def test_coreset_top_p_keeps_the_shortest_prefix(top_p, kept):
    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
    block = reference.block_scores(logits, [0, 1], None, 1, "max")[0]
    mask = block.keep(1, 3, top_p * (1 - 1e-12))
    assert mask.tolist() == [i < kept for i in range(4)]
    assert block.keep(2, 3, 0.01).sum() == 2


def judge(p, mask, budget=1, k=1, top_p=None, mode="max"):
    block = reference.block_scores(np.log(np.array(p)), [0, len(p)], None, k, mode)[0]
    return reference.judge_coreset(np.array(mask, bool), block, k, budget, top_p)


def test_judging_coresets_allows_near_ties_only():
    near = [[0.4, 0.1, 0.5], [0.4 * (1 + 5e-6), 0.1, 0.5]]
    verdict = judge([[0.4, 0.6], [0.6 * (1 + 4e-6), 0.4]], [1, 0])
    assert verdict.accepted and verdict.near_tie
    assert judge([[0.4, 0.6], [0.6 * (1 + 4e-6), 0.4]], [0, 1]).other_choice
    assert not judge([[0.4, 0.6], [0.61, 0.39]], [0, 1]).accepted
    assert not judge(near, [1, 0, 0]).accepted
    assert judge(near, [0, 0, 1]) == judge(near, [0, 0, 1], mode="vote")


def test_judging_coresets_insists_on_the_lower_index_of_equal_scores():
    equal = [[0.4, 0.4, 0.2]] * 3
    assert judge(equal, [1, 0, 0]).accepted and not judge(equal, [0, 1, 0]).accepted
    assert not judge([[0.25] * 4], [1, 0, 0, 1], budget=2).accepted
    assert not judge(equal, [1, 1, 0]).accepted


def test_judging_coresets_near_a_top_p_threshold():
    p = [[0.5, 0.3, 0.2]]
    assert judge(p, [1, 1, 0], budget=3, top_p=0.8 * (1 + 5e-6)).accepted
    assert judge(p, [1, 1, 1], budget=3, top_p=0.8 * (1 + 5e-6)).near_tie
    assert not judge(p, [1, 1, 1], budget=3, top_p=0.79).accepted


# Live rows, mixture of experts, norm ---------------------------------------------------------------------------------


def test_live_rows_by_hand():
    ids, weights, rows, count = reference.live_row_routes(
        np.array([[1, 2], [3, 4], [5, -1]]), np.array([[0.5, 0.5], [NAN, 1], [1, 0]], np.float32), [True, False, True]
    )
    assert ids.tolist() == [[1, 2], [-1, -1], [5, -1]]
    assert weights.tolist() == [[0.5, 0.5], [0, 0], [1, 0]]
    assert rows.tolist() == [0, 2, -1] and count.tolist() == [2]


def test_merged_rows_by_hand():
    fresh, cache = np.array([[1.0], [NAN], [3.0]]), np.array([[4.0], [5.0], [6.0]])
    out, after = reference.merge_live_rows(fresh, cache, np.array([True, False, True]))
    assert out.tolist() == after.tolist() == [[1.0], [5.0], [3.0]]
    assert cache.tolist() == [[4.0], [5.0], [6.0]]


def test_moe_token_by_token(rng):
    T, D, E, F, k = 5, 6, 4, 3, 2
    x, w13, w2 = rng.standard_normal((T, D)), rng.standard_normal((E, 2 * F, D)), rng.standard_normal((E, D, F))
    shared13, shared2, gate = rng.standard_normal((8, D)), rng.standard_normal((D, 4)), rng.standard_normal(D)
    ids = np.array([[0, 1], [2, -1], [-1, -1], [3, 3], [1, 0]])
    weights = rng.uniform(size=(T, k))
    y = reference.fused_moe(x, w13, w2, ids, weights, shared13, shared2, gate, routed_scale=2.5)
    for t in range(T):
        expected = _swiglu(x[t], shared13, shared2) / (1 + np.exp(-x[t] @ gate))
        for j in range(k):
            if ids[t, j] >= 0:
                expected = expected + 2.5 * weights[t, j] * _swiglu(x[t], w13[ids[t, j]], w2[ids[t, j]])
        np.testing.assert_allclose(y[t], expected, rtol=1e-10)


def _swiglu(x, w13, w2):
    half = len(w13) // 2
    gate, up = w13[:half] @ x, w13[half:] @ x
    return w2 @ (gate / (1 + np.exp(-gate)) * up)


def test_moe_without_routes_is_zero(rng):
    y = reference.fused_moe(
        rng.standard_normal((3, 2)), np.ones((1, 2, 2)), np.ones((1, 2, 1)), np.full((3, 1), -1), np.full((3, 1), NAN)
    )
    assert not y.any()


def test_norm_by_hand():
    y = reference.rms_norm_gated(np.array([[[3.0, 4.0]]]), np.array([2.0, 1.0]), np.array([[[30.0, 0.0]]]), eps=0.0)
    np.testing.assert_allclose(y, [[[2 * 3 / np.sqrt(12.5) * 30, 0]]], rtol=1e-9)


# Layout --------------------------------------------------------------------------------------------------------------


def test_rotary_turns_pairs_as_complex_numbers(rng):
    angles = rng.uniform(-3, 3, (10, 3))
    table = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    positions = np.array([4, 4, 9])
    q, k = rng.standard_normal((3, 2, 8)), rng.standard_normal((3, 1, 8))
    turn = np.exp(1j * angles[positions])[:, None]
    for interleaved in (False, True):
        rotated = reference.rotary_embedding(positions, q, k, table, interleaved)
        for got, x in zip(rotated, (q, k)):
            first, second = (slice(0, 6, 2), slice(1, 6, 2)) if interleaved else (slice(0, 3), slice(3, 6))
            expected = (x[..., first] + 1j * x[..., second]) * turn
            np.testing.assert_allclose(got[..., first], expected.real)
            np.testing.assert_allclose(got[..., second], expected.imag)
            np.testing.assert_array_equal(got[..., 6:], x[..., 6:])


@pytest.mark.parametrize(
    "dtype, value, expected",
    [
        (BF16, 1 + 2**-8, 1.0),  # half way: to even
        (BF16, 1 + 3 * 2**-8, 1 + 2**-6),
        (BF16, 1 + 2**-8 + 2**-20, 1 + 2**-7),
        (BF16, np.finfo(np.float32).max, INF),
        (BF16, 2.0**-133, 2.0**-133),  # its smallest subnormal
        (BF16, 2.0**-134, 0.0),
        (np.float16, 1 + 2**-11, 1.0),
        (np.float16, 1 + 3 * 2**-11, 1 + 2**-9),
        (np.float16, 65519.0, 65504.0),
        (np.float16, 65520.0, INF),
        (np.float16, 2.0**-25, 0.0),
        (np.float16, 3 * 2.0**-25, 2.0**-23),
        (np.float16, -INF, -INF),
    ],
)
def test_casts_by_hand(dtype, value, expected):
    got = reference.cast(np.array([value], np.float32), dtype)
    assert got.dtype == dtype and float(got[0]) == expected


def test_casts_of_special_values():
    for dtype in (BF16, np.float16):
        assert np.isnan(reference.cast(np.array([NAN], np.float32), dtype).astype(np.float32))[0]
        assert np.signbit(reference.cast(np.array([-0.0], np.float32), dtype).astype(np.float32))[0]


def test_casts_widen_exactly(rng):
    bits = rng.integers(0, 2**16, 4096).astype(np.uint16)
    widened = reference.cast(bits.view(BF16), np.float32)
    finite = ~np.isnan(widened)
    np.testing.assert_array_equal((widened.view(np.uint32) >> 16)[finite], bits[finite])


def test_rearrange_keeps_every_bit(rng):
    src = rng.integers(0, 2**16, (3, 4, 5)).astype(np.uint16).transpose(2, 0, 1)
    np.testing.assert_array_equal(reference.rearrange(src), src)
