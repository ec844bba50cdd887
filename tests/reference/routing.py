"""Expert routing. Ranks come from the exact input logits, weights from a float64 softmax.

Block scores are sums, so an implementation in float32 may see two nearly equal ones the other way round.
`judge_coreset` accepts either choice there, and only there, and says when it had to.
"""

from dataclasses import dataclass

import numpy as np

from .elementary import f64, spans

NEAR = 1e-5  # relative distance within which two different scores may be ranked either way
SMALLEST_NORMAL = 2.0**-126  # below this a float32 score may have lost all its digits


def topk_softmax(logits, k, renormalize=False):
    return topk_within(logits, np.ones(logits.shape, bool), k, renormalize)


def topk_within(logits, allowed, k, renormalize):
    """Top-k among the allowed experts [T, E] of each row, with weights of the softmax over all experts."""
    clean = _clean(logits)
    # Forbidden experts go behind all allowed ones, -inf included; the sort is stable, so ties keep index order.
    order = np.lexsort((-clean, ~allowed), axis=-1)[:, :k]
    weights = np.take_along_axis(_softmax(clean), order, axis=-1)
    if renormalize:
        total = weights.sum(-1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    dead = clean.max(-1, initial=-np.inf) == -np.inf
    ids = np.where(dead[:, None], -1, order).astype(np.int32)
    return ids, np.where(dead[:, None], 0.0, weights)


def block_coreset(logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False):
    tokens, experts = logits.shape
    blocks = block_scores(logits, cu_seqlens, live, k, mode)
    coreset = np.zeros((len(blocks), experts), bool)
    ids = np.full((tokens, k), -1, np.int32)
    weights = np.zeros((tokens, k))
    for n, (begin, end) in enumerate(spans(cu_seqlens)):
        coreset[n] = blocks[n].keep(k, budget, top_p)
        allowed = np.broadcast_to(coreset[n], (end - begin, experts))
        ids[begin:end], weights[begin:end] = topk_within(logits[begin:end], allowed, k, renormalize)
    return coreset, ids, weights


@dataclass(frozen=True)
class BlockScores:
    """Scores of one block, and for each expert a label that two experts share when their scores are equal by
    construction (and not by chance of rounding)."""

    scores: np.ndarray
    origin: np.ndarray
    tokens: int
    live_tokens: int

    def keep(self, k, budget, top_p):
        kept = np.zeros(self.scores.size, bool)
        if self.tokens:
            ranked = np.argsort(-self.scores, kind="stable")
            kept[ranked[: self.kept_count(k, budget, top_p)]] = True
        return kept

    def kept_count(self, k, budget, top_p):
        if top_p is None or self.live_tokens == 0:
            return budget
        return self._shortest_prefix(k, budget, top_p)

    def possible_counts(self, k, budget, top_p):
        """Every number of experts that a top_p within the near distance would keep."""
        if top_p is None or self.live_tokens == 0:
            return {budget}
        shortest = self._shortest_prefix(k, budget, top_p * (1 - NEAR))
        longest = self._shortest_prefix(k, budget, top_p * (1 + NEAR))
        return set(range(shortest, longest + 1))

    def must_precede(self):
        """[i, j]: expert i has to rank before expert j."""
        a, b = self.scores[:, None], self.scores[None, :]
        larger = np.maximum(np.abs(a), np.abs(b))
        distinct = (np.abs(a - b) > NEAR * larger) & (larger >= SMALLEST_NORMAL)
        same_origin = self.origin[:, None] == self.origin[None, :]
        index = np.arange(self.scores.size)
        return np.where(same_origin, index[:, None] < index[None, :], distinct & (a > b))

    def _shortest_prefix(self, k, budget, top_p):
        share = np.cumsum(np.sort(self.scores)[::-1][:budget]) / self.scores.sum()
        reached = np.flatnonzero(share >= top_p)
        return max(k, reached[0] + 1 if reached.size else budget)


def block_scores(logits, cu_seqlens, live, k, mode):
    logits = np.asarray(logits)
    live = np.ones(logits.shape[0], bool) if live is None else np.asarray(live, bool)
    score = {"vote": _vote, "max": _largest}[mode]
    blocks = []
    for begin, end in spans(cu_seqlens):
        rows = logits[begin:end][live[begin:end]]
        blocks.append(BlockScores(*score(_clean(rows), k), tokens=end - begin, live_tokens=rows.shape[0]))
    return blocks


@dataclass(frozen=True)
class Verdict:
    accepted: bool
    near_tie: bool
    """The block had two choices that are both right."""
    other_choice: bool
    """The mask is right and differs from the reference's own."""


def judge_coreset(mask, block, k, budget, top_p):
    """Is `mask` [E] a right coreset of the block?"""
    own = block.keep(k, budget, top_p)
    if block.tokens == 0 or block.live_tokens == 0:
        return Verdict(bool(np.array_equal(mask, own)), near_tie=False, other_choice=False)
    precede = block.must_precede()
    counts = block.possible_counts(k, budget, top_p)
    accepted = int(mask.sum()) in counts and not precede[np.ix_(~mask, mask)].any()
    free_pairs = ~precede[np.ix_(own, ~own)]
    near_tie = bool(free_pairs.any()) or len(counts) > 1
    return Verdict(bool(accepted), near_tie, other_choice=bool(accepted and not np.array_equal(mask, own)))


def _clean(logits):
    values = f64(logits)
    return np.where(np.isnan(values), -np.inf, values)


def _softmax(clean):
    top = clean.max(-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(clean - np.where(top == -np.inf, 0.0, top))
        total = weights.sum(-1, keepdims=True)
        return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


def _vote(clean, k):
    experts = clean.shape[1]
    ids, weights = topk_within(clean, np.ones(clean.shape, bool), k, renormalize=False)
    contributions = np.zeros(clean.shape)
    rows, routes = np.nonzero(ids >= 0)
    contributions[rows, ids[rows, routes]] = weights[rows, routes]
    if clean.shape[0] == 0:
        return np.zeros(experts), np.zeros(experts, int)
    _, origin = np.unique(contributions.T, axis=0, return_inverse=True)
    return contributions.sum(0), origin.reshape(experts)


def _largest(clean, k):
    experts = clean.shape[1]
    if clean.shape[0] == 0:
        return np.zeros(experts), np.zeros(experts, int)
    weights = _softmax(clean)
    row = weights.argmax(0)
    source = np.stack([row.astype(np.float64), clean[row, np.arange(experts)]], axis=1)
    _, origin = np.unique(source, axis=0, return_inverse=True)
    return weights.max(0), origin.reshape(experts)
