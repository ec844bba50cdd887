"""The gated delta rule in Triton: the preview of a block, and the commit of long prompts in chunks.

For one value head, with S the V x K state, E(i, j) = exp of the sum of g over (j, i], and k, q already normalised and
scaled, the updates of tokens 1 ... C that follow a state S solve a unit triangular system (the WY / UT form):

    u_t + beta_t sum_{s<t} E(t, s) (k_t k_s) u_s = beta_t (v_t - E(t, 0) S k_t),     (I + A) U = diag(beta) R

and everything else is linear in them:

    o_t = scale (E(t, 0) S q_t + sum_{s<=t} E(t, s) (q_t k_s) u_s)
    S_C = E(C, 0) S + sum_t E(C, t) u_t k_t^T

The exponent of every E is summed over its own span, never taken as a difference of two sums.

PRECISION, the kernels' way to multiply matrices of FP32 values:
  0  IEEE FP32
  1  three-pass TF32
  2  for BF16 data. Where a stored state depends on it, an FP32 operand is cut into three BF16 terms, which hold its 24
     bits, and multiplied with BF16 keys as they are; two FP32 operands by three-pass TF32. Where only an output does:
     two BF16 terms, or TF32
"""

import triton
import triton.language as tl


@triton.jit
def _find_sequence(cu_seqlens, initial, n, tokens, slots):
    """Begin, length, slot, and whether they make sense: a sequence that has a bad index is treated as absent."""
    begin = tl.load(cu_seqlens + n)
    end = tl.load(cu_seqlens + n + 1)
    slot = tl.load(initial + n)
    sound = (begin >= 0) & (begin <= end) & (end <= tokens) & (slot < slots)
    return begin, end - begin, slot, sound


@triton.jit
def _load_rows(base, token_stride, rows, count, columns, width: tl.constexpr):
    """[rows, columns] of a tensor whose last axis is dense; rows from `count` on and columns from `width` on are 0."""
    at = base + rows.to(tl.int64)[:, None] * token_stride + columns[None, :]
    return tl.load(at, mask=(rows < count)[:, None] & (columns < width)[None, :], other=0.0)


@triton.jit
def _load_column(base, token_stride, rows, present):
    return tl.load(base + rows.to(tl.int64) * token_stride, mask=present, other=0.0)


@triton.jit
def _norm_factor(squares, L2NORM: tl.constexpr):
    """What each row is multiplied by to be used: the inverse of its length, or 1."""
    if L2NORM:
        factor = tl.rsqrt(squares + 1e-6)
    else:
        factor = squares * 0.0 + 1.0
    return factor


@triton.jit
def _exact_gram(a, b, PRECISION: tl.constexpr):
    """a b^T of rows as they are stored: 16-bit products are exact in FP32."""
    if PRECISION == 0:
        product = tl.dot(a.to(tl.float32), tl.trans(b.to(tl.float32)), input_precision="ieee")
    else:
        product = tl.dot(a, tl.trans(b), input_precision="tf32x3")
    return product


@triton.jit
def _grams(
    q, k, q_token, k_token, left, right, count,
    K: tl.constexpr, BK: tl.constexpr, BS: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """k k^T and q k^T of the rows `left` and `right`, and the sums of squares of the left rows of k and q; BS keys at a
    time, so that registers need not hold whole rows."""
    kk = tl.zeros([ROWS, ROWS], tl.float32)
    qk = tl.zeros([ROWS, ROWS], tl.float32)
    k_squares = tl.zeros([ROWS], tl.float32)
    q_squares = tl.zeros([ROWS], tl.float32)
    for start in range(0, BK, BS):
        keys = start + tl.arange(0, BS)
        k_left = _load_rows(k, k_token, left, count, keys, K)
        q_left = _load_rows(q, q_token, left, count, keys, K)
        k_right = _load_rows(k, k_token, right, count, keys, K)
        kk += _exact_gram(k_left, k_right, PRECISION)
        qk += _exact_gram(q_left, k_right, PRECISION)
        k_squares += tl.sum(k_left.to(tl.float32) * k_left.to(tl.float32), axis=1)
        q_squares += tl.sum(q_left.to(tl.float32) * q_left.to(tl.float32), axis=1)
    return kk, qk, k_squares, q_squares


@triton.jit
def _dot_state(a, b, PRECISION: tl.constexpr):
    """A product of two FP32 matrices that may reach a stored state."""
    if PRECISION == 0:
        product = tl.dot(a, b, input_precision="ieee")
    else:
        product = tl.dot(a, b, input_precision="tf32x3")
    return product


@triton.jit
def _dot_output(a, b, PRECISION: tl.constexpr):
    """A product of two FP32 matrices that only an output depends on."""
    if PRECISION == 2:
        product = tl.dot(a, b, input_precision="tf32")
    else:
        product = _dot_state(a, b, PRECISION)
    return product


@triton.jit
def _spans(g, row, column):
    """[i, j] -> sum of g over (j, i], 0 where i <= j."""
    return tl.cumsum(tl.where(row > column, g[:, None], 0.0), axis=0)


@triton.jit
def _unit_lower_inverse(A, row, column, ROWS: tl.constexpr):
    """(I + A)^-1 for A strictly lower triangular: column by column, each row below takes its share of row j."""
    X = tl.where(row == column, 1.0, 0.0)
    for j in range(ROWS - 1):
        a = tl.sum(tl.where(column == j, A, 0.0), axis=1)
        x = tl.sum(tl.where(row == j, X, 0.0), axis=0)
        X -= a[:, None] * x[None, :]
    return X


@triton.jit
def _two_unit_lower_inverses(A, B, row, column, ROWS: tl.constexpr):
    """Two at a time: neither waits for the other."""
    X = tl.where(row == column, 1.0, 0.0)
    Y = tl.where(row == column, 1.0, 0.0)
    for j in range(ROWS - 1):
        a = tl.sum(tl.where(column == j, A, 0.0), axis=1)
        b = tl.sum(tl.where(column == j, B, 0.0), axis=1)
        x = tl.sum(tl.where(row == j, X, 0.0), axis=0)
        y = tl.sum(tl.where(row == j, Y, 0.0), axis=0)
        X -= a[:, None] * x[None, :]
        Y -= b[:, None] * y[None, :]
    return X, Y


@triton.jit
def _find_chunk(cu_seqlens, sequences, tokens, place, C: tl.constexpr):
    """The sequence and the chunk within it that belong to a place of the workspace. Sequence n owns the places from
    cu_seqlens[n] // C + n on: that grows with n and leaves room for its last, partial chunk, so the last sequence whose
    first place is not behind this one is meant."""
    low = 0
    high = sequences - 1
    while low < high:
        middle = (low + high + 1) // 2
        first = tl.load(cu_seqlens + middle) // C + middle
        if first <= place:
            low = middle
        else:
            high = middle - 1
    begin = tl.load(cu_seqlens + low)
    end = tl.load(cu_seqlens + low + 1)
    sound = (begin >= 0) & (begin <= end) & (end <= tokens)
    return begin, end - begin, place - (begin // C + low), sound


@triton.jit
def gated_delta_chunk_prepare(
    q, k, g, beta, cu_seqlens, solve, attend, factors,
    q_token, q_head, k_token, k_head, g_token, g_head, beta_token, beta_head,
    tokens, sequences, group, scale,
    K: tl.constexpr, BK: tl.constexpr, BS: tl.constexpr, C: tl.constexpr, B: tl.constexpr, SHORT: tl.constexpr,
    L2NORM: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What a chunk needs besides the state, all chunks at once. Grid: (tokens // C + sequences, value heads).

    solve   [place, head, C, C]  (I + A)^-1 diag(beta)
    attend  [place, head, C, C]  scale E(t, s) (q_t k_s) for s <= t, else 0
    factors [place, head, 4, C]  E(t, 0), times the norm factor of k_t · of scale q_t; E(C, t) times that of k_t; E(t, 0)

    C is B or 2 B; two halves of B rows are inverted on their own and joined. Sequences of at most SHORT tokens need none.
    """
    place = tl.program_id(0)
    head = tl.program_id(1)
    heads = tl.num_programs(1)
    begin, length, chunk, sound = _find_chunk(cu_seqlens, sequences, tokens, place, C)
    if sound & (length > SHORT) & (chunk >= 0) & (chunk * C < length):
        first = (begin + chunk * C).to(tl.int64)
        count = length - chunk * C
        key_head = (head // group).to(tl.int64)
        q += first * q_token + key_head * q_head
        k += first * k_token + key_head * k_head
        g += first * g_token + head.to(tl.int64) * g_head
        beta += first * beta_token + head.to(tl.int64) * beta_head
        cell = place.to(tl.int64) * heads + head
        solve += cell * (C * C)
        attend += cell * (C * C)
        factors += cell * (4 * C)

        index = tl.arange(0, B)
        row = index[:, None]
        column = index[None, :]
        at = row * C + column
        kk1, qk1, k_squares1, q_squares1 = _grams(
            q, k, q_token, k_token, index, index, count, K, BK, BS, B, PRECISION
        )  # fmt: skip
        g1 = _load_column(g, g_token, index, index < count)
        beta1 = _load_column(beta, beta_token, index, index < count)
        norm_k1 = _norm_factor(k_squares1, L2NORM)
        norm_q1 = _norm_factor(q_squares1, L2NORM) * scale
        next1 = _load_column(g, g_token, index + 1, (index + 1 < count) & (index + 1 < B))
        until1 = tl.cumsum(g1, axis=0)
        after1 = tl.cumsum(next1, axis=0, reverse=True)
        decay1 = tl.exp(_spans(g1, row, column))
        A1 = kk1 * norm_k1[None, :] * decay1
        A1 = tl.where(row > column, A1 * (norm_k1 * beta1)[:, None], 0.0)
        P1 = qk1 * norm_k1[None, :] * decay1
        P1 = tl.where(row >= column, P1 * norm_q1[:, None], 0.0)
        tl.store(attend + at, P1)
        tl.store(factors + index, tl.exp(until1) * norm_k1)
        tl.store(factors + C + index, tl.exp(until1) * norm_q1)
        tl.store(factors + 3 * C + index, tl.exp(until1))
        if C == B:
            tl.store(factors + 2 * C + index, tl.exp(after1) * norm_k1)
            T1 = _unit_lower_inverse(A1, row, column, B)
            tl.store(solve + at, T1 * beta1[None, :])
        else:
            kk2, qk2, k_squares2, q_squares2 = _grams(
                q, k, q_token, k_token, index + B, index + B, count, K, BK, BS, B, PRECISION
            )  # fmt: skip
            kk21, qk21, _, _ = _grams(
                q, k, q_token, k_token, index + B, index, count, K, BK, BS, B, PRECISION
            )  # fmt: skip
            g2 = _load_column(g, g_token, index + B, index + B < count)
            beta2 = _load_column(beta, beta_token, index + B, index + B < count)
            norm_k2 = _norm_factor(k_squares2, L2NORM)
            norm_q2 = _norm_factor(q_squares2, L2NORM) * scale
            next2 = _load_column(g, g_token, index + B + 1, (index + B + 1 < count) & (index + 1 < B))
            until2 = tl.cumsum(g2, axis=0)
            after2 = tl.cumsum(next2, axis=0, reverse=True)
            total1 = tl.sum(g1, axis=0)
            total2 = tl.sum(g2, axis=0)
            decay2 = tl.exp(_spans(g2, row, column))
            A2 = kk2 * norm_k2[None, :] * decay2
            A2 = tl.where(row > column, A2 * (norm_k2 * beta2)[:, None], 0.0)
            P2 = qk2 * norm_k2[None, :] * decay2
            P2 = tl.where(row >= column, P2 * norm_q2[:, None], 0.0)
            across = tl.exp(until2[:, None] + after1[None, :]) * norm_k1[None, :]
            A21 = kk21 * across * (norm_k2 * beta2)[:, None]
            P21 = qk21 * across * norm_q2[:, None]
            tl.store(attend + at + B, tl.zeros([B, B], tl.float32))
            tl.store(attend + at + B * C, P21)
            tl.store(attend + at + B * C + B, P2)
            tl.store(factors + B + index, tl.exp(total1 + until2) * norm_k2)
            tl.store(factors + C + B + index, tl.exp(total1 + until2) * norm_q2)
            tl.store(factors + 2 * C + index, tl.exp(after1 + total2) * norm_k1)
            tl.store(factors + 2 * C + B + index, tl.exp(after2) * norm_k2)
            tl.store(factors + 3 * C + B + index, tl.exp(total1 + until2))
            T1, T2 = _two_unit_lower_inverses(A1, A2, row, column, B)
            T21 = -_dot_state(T2, _dot_state(A21, T1, PRECISION), PRECISION)
            tl.store(solve + at, T1 * beta1[None, :])
            tl.store(solve + at + B, tl.zeros([B, B], tl.float32))
            tl.store(solve + at + B * C, T21 * beta1[None, :])
            tl.store(solve + at + B * C + B, T2 * beta2[None, :])


@triton.jit
def _replay(
    S, q, k, v, o, g, beta, q_token, k_token, v_token, o_token, g_token, beta_token, length, scale, rows, keys,
    K: tl.constexpr, V: tl.constexpr, L2NORM: tl.constexpr,
):  # fmt: skip
    """The recurrence as it stands, token by token."""
    for t in range(length):
        at = tl.cast(t, tl.int64)
        key = tl.load(k + at * k_token + keys, mask=keys < K, other=0.0).to(tl.float32)
        query = tl.load(q + at * q_token + keys, mask=keys < K, other=0.0).to(tl.float32)
        value = tl.load(v + at * v_token + rows, mask=rows < V, other=0.0).to(tl.float32)
        if L2NORM:
            key *= tl.rsqrt(tl.sum(key * key, axis=0) + 1e-6)
            query *= tl.rsqrt(tl.sum(query * query, axis=0) + 1e-6)
        S *= tl.exp(tl.load(g + at * g_token))
        u = (value - tl.sum(S * key[None, :], axis=1)) * tl.load(beta + at * beta_token)
        S += u[:, None] * key[None, :]
        read = tl.sum(S * query[None, :], axis=1) * scale
        tl.store(o + at * o_token + rows, read.to(o.dtype.element_ty), mask=rows < V)
    return S


@triton.jit
def gated_delta_chunk_advance(
    q, k, v, g, beta, o, state, cu_seqlens, initial, final, solve, attend, factors,
    q_token, q_head, k_token, k_head, v_token, v_head, g_token, g_head, beta_token, beta_head, o_token, o_head,
    state_slot, state_head, state_v, state_k,
    tokens, slots, group, scale,
    K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, C: tl.constexpr, SHORT: tl.constexpr,
    L2NORM: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Carries BV rows of a state through its sequence. Grid: (ceil(V / BV), value heads, sequences).

    Every product has the state or the updates on its left, as rows of V, so that one product's accumulators are the
    next one's operand. Sequences of at most SHORT tokens are replayed exactly.
    """
    tile = tl.program_id(0)
    head = tl.program_id(1)
    n = tl.program_id(2)
    heads = tl.num_programs(1)
    begin, length, source, sound = _find_sequence(cu_seqlens, initial, n, tokens, slots)
    target = tl.load(final + n)
    sound = sound & (target < slots)
    if sound & ((length > 0) | (source != target)):
        rows = tile * BV + tl.arange(0, BV)
        keys = tl.arange(0, BK)
        first = begin.to(tl.int64)
        wide_head = head.to(tl.int64)
        key_head = (head // group).to(tl.int64)
        q += first * q_token + key_head * q_head
        k += first * k_token + key_head * k_head
        v += first * v_token + wide_head * v_head
        o += first * o_token + wide_head * o_head
        cell = rows.to(tl.int64)[:, None] * state_v + keys.to(tl.int64)[None, :] * state_k + wide_head * state_head
        inside = (rows < V)[:, None] & (keys < K)[None, :]
        known_rows = tl.where(source >= 0, V, 0)
        held = (rows < known_rows)[:, None] & (keys < K)[None, :]
        S = tl.load(state + source.to(tl.int64) * state_slot + cell, mask=held, other=0.0)

        if length <= SHORT:
            g += first * g_token + wide_head * g_head
            beta += first * beta_token + wide_head * beta_head
            S = _replay(
                S, q, k, v, o, g, beta, q_token, k_token, v_token, o_token, g_token, beta_token, length, scale, rows,
                keys, K, V, L2NORM,
            )  # fmt: skip
        else:
            index = tl.arange(0, C)
            place = (begin // C + n).to(tl.int64) * heads + head
            at = index[:, None] * C + index[None, :]
            for chunk in range((length + C - 1) // C):
                offset = tl.cast(chunk * C, tl.int64)
                here = place + tl.cast(chunk, tl.int64) * heads
                count = length - chunk * C
                keys_here = _load_rows(k + offset * k_token, k_token, index, count, keys, K)
                queries = _load_rows(q + offset * q_token, q_token, index, count, keys, K)
                values = _load_rows(v + offset * v_token, v_token, index, count, rows, V)
                T = tl.load(solve + here * (C * C) + at)
                P = tl.load(attend + here * (C * C) + at)
                factor = factors + here * (4 * C)
                in_key = tl.load(factor + index)
                in_query = tl.load(factor + C + index)
                out_key = tl.load(factor + 2 * C + index)
                decay = tl.load(factor + 4 * C - 1)

                if PRECISION == 2:
                    high = S.to(tl.bfloat16)
                    rest = S - high.to(tl.float32)
                    middle = rest.to(tl.bfloat16)
                    low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
                    turned = tl.trans(keys_here)
                    known = tl.dot(low, turned)
                    known = tl.dot(middle, turned, known)
                    known = tl.dot(high, turned, known)
                    read = tl.dot(middle, tl.trans(queries))
                    read = tl.dot(high, tl.trans(queries), read)
                else:
                    known = _dot_state(S, tl.trans(keys_here.to(tl.float32)), PRECISION)
                    read = _dot_state(S, tl.trans(queries.to(tl.float32)), PRECISION)

                residual = tl.trans(values).to(tl.float32) - known * in_key[None, :]
                U = _dot_state(residual, tl.trans(T), PRECISION)
                read = read * in_query[None, :] + _dot_output(U, tl.trans(P), PRECISION)
                write = o + offset * o_token + index.to(tl.int64)[None, :] * o_token + rows[:, None]
                tl.store(write, read.to(o.dtype.element_ty), mask=(rows < V)[:, None] & (index < count)[None, :])

                U *= out_key[None, :]
                S *= decay
                if PRECISION == 2:
                    high = U.to(tl.bfloat16)
                    rest = U - high.to(tl.float32)
                    middle = rest.to(tl.bfloat16)
                    low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
                    S = tl.dot(high, keys_here, S)
                    S = tl.dot(middle, keys_here, S)
                    S = tl.dot(low, keys_here, S)
                else:
                    S += _dot_state(U, keys_here.to(tl.float32), PRECISION)

        if target >= 0:
            tl.store(state + target.to(tl.int64) * state_slot + cell, S, mask=inside)


BIDIRECTIONAL: tl.constexpr = tl.constexpr(0)
BLOCK: tl.constexpr = tl.constexpr(1)


@triton.jit
def _unit_upper_inverse(A, row, column, ROWS: tl.constexpr):
    """(I + A)^-1 for A strictly upper triangular, from its last column on."""
    X = tl.where(row == column, 1.0, 0.0)
    for i in range(ROWS - 1):
        j = ROWS - 1 - i
        a = tl.sum(tl.where(column == j, A, 0.0), axis=1)
        x = tl.sum(tl.where(row == j, X, 0.0), axis=0)
        X -= a[:, None] * x[None, :]
    return X


@triton.jit
def _load_state(base, state_v, state_k, rows, known_rows, keys, K: tl.constexpr):
    """[rows, keys] of a state; rows from `known_rows` on are 0."""
    at = base + rows.to(tl.int64)[:, None] * state_v + keys.to(tl.int64)[None, :] * state_k
    return tl.load(at, mask=(rows < known_rows)[:, None] & (keys < K)[None, :], other=0.0)


@triton.jit
def preview_delta(
    q, k, v, g, beta, o, state, cu_seqlens, initial,
    q_token, q_head, k_token, k_head, v_token, v_head, g_token, g_head, beta_token, beta_head, o_token, o_head,
    state_slot, state_head, state_v, state_k,
    tokens, slots, group, scale,
    K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BS: tl.constexpr, BV: tl.constexpr, W: tl.constexpr,
    READ: tl.constexpr, L2NORM: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of at most W tokens, read from BV rows of a state: the state is loaded once, only the output is written.
    Grid: (ceil(V / BV), value heads, sequences). A longer sequence is left alone: the launcher does not let one come.

    The reverse recurrence's updates u' solve an upper triangular system, in which nothing decays between the state
    behind a token and its read: u'_t + beta_t sum_{s>t} E(s-1, t-1) (k_t k_s) u'_s = beta_t v_t, and
    o_t += scale sum_{s>t} E(s-1, t) (q_t k_s) u'_s. Both systems are solved before the state is needed.
    """
    tile = tl.program_id(0)
    head = tl.program_id(1)
    n = tl.program_id(2)
    begin, length, source, sound = _find_sequence(cu_seqlens, initial, n, tokens, slots)
    if sound & (length > 0) & (length <= W):
        rows = tile * BV + tl.arange(0, BV)
        index = tl.arange(0, W)
        row = index[:, None]
        column = index[None, :]
        first = begin.to(tl.int64)
        wide_head = head.to(tl.int64)
        key_head = (head // group).to(tl.int64)
        g += first * g_token + wide_head * g_head
        k += first * k_token + key_head * k_head
        q += first * q_token + key_head * q_head
        state += source.to(tl.int64) * state_slot + wide_head * state_head
        known_rows = tl.where(source >= 0, V, 0)
        if BS >= BK:  # in flight while the systems are solved
            S = _load_state(state, state_v, state_k, rows, known_rows, tl.arange(0, BK), K)
        values = _load_rows(v + first * v_token + wide_head * v_head, v_token, index, length, rows, V).to(tl.float32)
        present = index < length
        g_here = _load_column(g, g_token, index, present)
        beta_here = _load_column(beta + first * beta_token + wide_head * beta_head, beta_token, index, present)

        kk, qk, k_squares, q_squares = _grams(q, k, q_token, k_token, index, index, length, K, BK, BS, W, PRECISION)
        norm_k = _norm_factor(k_squares, L2NORM)
        norm_q = _norm_factor(q_squares, L2NORM) * scale
        kk = kk * (norm_k * beta_here)[:, None] * norm_k[None, :]
        qk = qk * norm_q[:, None] * norm_k[None, :]

        until = tl.cumsum(g_here, axis=0)
        decay = tl.exp(_spans(g_here, row, column))
        solved = _unit_lower_inverse(tl.where(row > column, kk * decay, 0.0), row, column, W) * beta_here[None, :]
        if READ == BLOCK:
            after = _load_column(g, g_token, index + 1, (index + 1 < length) & (index + 1 < W))
            attend = qk * tl.exp(tl.cumsum(after, axis=0, reverse=True))[None, :]
            reach = tl.exp(tl.sum(g_here, axis=0) + until * 0.0)
        else:
            attend = tl.where(row >= column, qk * decay, 0.0)
            reach = tl.exp(until)
        forward = _dot_output(attend, solved, PRECISION)
        total = forward
        if READ == BIDIRECTIONAL:
            before = _load_column(g, g_token, index - 1, (index > 0) & (index - 1 < length))
            between = tl.cumsum(tl.where(row < column - 1, before[None, :], 0.0), axis=1)
            system = tl.where(row < column, kk * tl.exp(between + g_here[:, None]), 0.0)
            back = _unit_upper_inverse(system, row, column, W) * beta_here[None, :]
            total += _dot_output(tl.where(row < column, qk * tl.exp(between), 0.0), back, PRECISION)

        if BS >= BK:
            turned = tl.trans(S)
            keys = tl.arange(0, BK)
            known = _dot_output(_load_rows(k, k_token, index, length, keys, K).to(tl.float32), turned, PRECISION)
            read = _dot_output(_load_rows(q, q_token, index, length, keys, K).to(tl.float32), turned, PRECISION)
        else:
            known = tl.zeros([W, BV], tl.float32)
            read = tl.zeros([W, BV], tl.float32)
            for start in range(0, BK, BS):
                keys = start + tl.arange(0, BS)
                turned = tl.trans(_load_state(state, state_v, state_k, rows, known_rows, keys, K))
                known += _dot_output(_load_rows(k, k_token, index, length, keys, K).to(tl.float32), turned, PRECISION)
                read += _dot_output(_load_rows(q, q_token, index, length, keys, K).to(tl.float32), turned, PRECISION)
        known *= (tl.exp(until) * norm_k)[:, None]
        read *= (reach * norm_q)[:, None]
        read += _dot_output(total, values, PRECISION) - _dot_output(forward, known, PRECISION)
        write = o + first * o_token + wide_head * o_head + row.to(tl.int64) * o_token + rows[None, :]
        tl.store(write, read.to(o.dtype.element_ty), mask=present[:, None] & (rows < V)[None, :])
