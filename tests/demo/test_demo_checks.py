"""The demo's yardsticks: its float64 equations on cases worked out by hand, and its comparisons at their edges."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from clover_ops.demo import reference
from clover_ops.demo.checks import Checks, delta_rule_bound, identical, same_pool, within_bound
from clover_ops.demo.report import escaped, picture

pytestmark = pytest.mark.smoke
ONE = np.array([0, 1], np.int32)


def test_convolution_by_hand():
    weight = np.array([[1.0, 10.0, 100.0]])
    state = np.array([[[3.0, 4.0]], [[0.0, 0.0]]])
    y, pool = reference.causal_conv1d(np.array([[5.0]]), weight, None, state, ONE, [0], [1])
    assert y.tolist() == [[3 + 40 + 500]]
    assert pool.tolist() == [[[3, 4]], [[4, 5]]]


def test_empty_sequence_copies_its_state():
    state = np.arange(8.0).reshape(2, 1, 2, 2)
    none = np.zeros((0, 1, 2))
    gate = np.zeros((0, 1))
    _, pool = reference.gated_delta_rule(none, none, none, gate, gate, state, np.array([0, 0]), [1], [0])
    assert np.array_equal(pool[0], state[1])
    _, pool = reference.gated_delta_rule(none, none, none, gate, gate, state, np.array([0, 0]), [-1], [1])
    assert not pool[1].any()


def test_delta_rule_by_hand():
    q = k = np.array([[[1.0, 0.0]]])
    v = np.array([[[2.0, 3.0, 5.0]]])
    state = np.ones((1, 1, 3, 2))
    g, beta = np.log([[0.5]]), np.array([[0.5]])
    o, pool = reference.gated_delta_rule(q, k, v, g, beta, state, ONE, [0], [0], scale=1.0)
    assert np.allclose(pool[0, 0, :, 0], [1.25, 1.75, 2.75])  # halfway from the decayed 0.5 to v
    assert np.allclose(pool[0, 0, :, 1], 0.5)
    assert np.allclose(o[0, 0], [1.25, 1.75, 2.75])


def test_bidirectional_read_sees_each_other_token_once():
    q = np.ones((2, 1, 2))
    k = np.eye(2)[:, None, :]
    v = np.array([[[2.0]], [[3.0]]])
    g, beta = np.zeros((2, 1)), np.ones((2, 1))
    state = np.zeros((1, 1, 1, 2))
    cu = np.array([0, 2])
    for read, expected in (("causal", [2, 5]), ("block", [5, 5]), ("bidirectional", [5, 5])):
        (o,) = reference.preview_gated_delta_rule(q, k, v, g, beta, state, cu, [0], scale=1.0, read=read)
        assert o.reshape(-1).tolist() == expected


def test_routing_prefers_the_lower_index_on_ties():
    logits = np.array([[1.0, 2.0, 2.0, 0.0]], np.float32)
    ids, weights = reference.topk_softmax(logits, 2, renormalize=True)
    assert ids.tolist() == [[1, 2]]
    assert np.allclose(weights, 0.5)


def test_coreset_counts_live_votes_only():
    logits = np.array([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 9.0, 1.0]], np.float32)
    live = np.array([True, False, False])
    coreset, ids, weights = reference.block_coreset(logits, np.array([0, 3]), live, 1, 1)
    assert coreset.tolist() == [[True, False, False]]
    assert ids.tolist() == [[0], [0], [0]]
    assert weights[1, 0] < 1e-3


def test_cast_rounds_to_nearest_even():
    random = np.random.default_rng(0)
    values = np.concatenate(
        [
            random.standard_normal(1000).astype(np.float32),
            (np.arange(1000, dtype=np.uint32) * 0x8000 + 0x3F800000).view(np.float32),  # every other one is half way
            np.array([np.inf, -np.inf, np.nan, 3.4e38, 1e-45, -0.0], np.float32),
        ]
    )
    (narrow,) = reference.cast(values, np.empty(values.shape, ml_dtypes.bfloat16))
    with np.errstate(over="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)
    assert np.array_equal(np.isnan(narrow), np.isnan(expected))
    known = ~np.isnan(values)
    assert np.array_equal(narrow.view(np.uint16)[known], expected.view(np.uint16)[known])
    (wide,) = reference.cast(narrow, np.empty(values.shape, np.float32))
    assert np.array_equal(wide[known], expected.astype(np.float32)[known])


def test_merge_takes_cached_rows_bit_for_bit():
    fresh = np.array([[1.0, 2.0], [np.nan, np.nan]], np.float32)
    cache = np.array([[7.0, 7.0], [-0.0, 3.0]], np.float32)
    out, after = reference.merge_live_rows(fresh, cache, np.array([True, False]))
    assert identical(out, np.array([[1.0, 2.0], [-0.0, 3.0]], np.float32)).used == 0
    assert identical(after, out).used == 0


def test_within_bound():
    expected = np.ones((64, 64))
    assert within_bound(expected * (1 + 0.9e-3), expected, 1e-3).used == pytest.approx(0.9)
    assert within_bound(expected * (1 + 1.1e-3), expected, 1e-3).used > 1
    assert within_bound(expected[:1] * (1 + 1.9e-3), expected[:1], 1e-3).used < 1  # few values: twice the bound
    one_row = expected.copy()
    one_row[3] *= 1 + 3e-3
    assert within_bound(one_row, expected, 1e-3).used > 1  # one bad row among 64 is not averaged away
    assert within_bound(np.full((2, 2), np.nan), np.ones((2, 2)), 1e-3).used == np.inf
    assert within_bound(np.zeros((2, 2)), np.zeros((2, 2)), 1e-3).used == 0
    assert within_bound(np.full((2, 2), 1e-30), np.zeros((2, 2)), 1e-3).used == np.inf
    assert within_bound(np.zeros((0, 2)), np.zeros((0, 2)), 1e-3).used == 0
    assert within_bound(np.zeros((2, 2)), np.zeros((2, 3)), 1e-3).used == np.inf


def test_identical_sees_the_sign_of_zero():
    assert identical(np.array([0.0]), np.array([-0.0])).error == 1
    assert identical(np.array([np.nan]), np.array([np.nan])).used == 0


def test_pool_comparison_is_exact_where_nothing_was_written():
    pool = np.ones((3, 2, 4, 4), np.float32)
    near = pool.copy()
    near[1] *= np.float32(1 + 1e-6)
    assert same_pool(near, pool, np.array([1]), tokens=8).used < 1
    assert same_pool(near, pool, np.array([0]), tokens=8).used == np.inf


def test_delta_rule_bounds():
    assert [delta_rule_bound(tokens) for tokens in (0, 1, 2, 64, 65)] == [2e-6, 2e-6, 2e-5, 2e-5, 1e-4]


def test_near_ties_of_the_coreset_may_go_either_way():
    # Both tokens vote for expert 0; experts 1 and 2 get one vote each, equal but for the last bits.
    logits = np.array([[5.0, 3.0, 0.0], [5.0, 0.0, np.nextafter(np.float32(3.0), np.float32(4.0))]], np.float32)
    cu, live = np.array([0, 2]), np.ones(2, bool)
    attributes = {"k": 2, "budget": 2, "mode": "vote", "renormalize": True}
    chosen = np.array([[True, True, False]])
    ids, weights = reference.route(logits, np.repeat(chosen, 2, axis=0), 2, True)
    checks = Checks()
    checks.observe("block_coreset", (logits, cu, live), attributes, (chosen, ids.astype(np.int32), weights))
    assert not checks.failures()
    assert checks.operators["block_coreset.coreset"].near_ties == 1

    wrong = np.array([[False, True, True]])
    ids, weights = reference.route(logits, np.repeat(wrong, 2, axis=0), 2, True)
    checks.observe("block_coreset", (logits, cu, live), attributes, (wrong, ids.astype(np.int32), weights))
    assert checks.failures()


def test_escaping_and_drawing():
    assert escaped(b'a\\"\n\x00\xff') == 'a\\\\"\\n\\x00\\xff'
    assert picture(np.array([256, 65, 10, 200])) == "▁A··"
