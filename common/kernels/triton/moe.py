"""The mixture of experts in Triton: routes sorted by expert, two grouped products, and a sum over each token's routes.

Nothing of the routing is known to the host. Grids are the most that shapes allow, and a program without work ends at once;
experts that nobody chose are not read. The order of routes within an expert, and of a token's routes in its sum, is that of
the indices, so that a repeat gives the same bits.

ROUTED, what a tile of moe_up and moe_down is:
  0  BM tokens of the shared expert
  1  up to BM routes of one expert, out of moe_sort
  2  one route of the only token: its expert stands in `order`, which is then the ids, and nothing need be sorted

PRECISION, the kernels' way to multiply:
  0  IEEE FP32, for targets without matrix units
  1  16-bit data as they are
  2  for FP32 data: three-pass TF32
"""

import triton
import triton.language as tl


@triton.jit
def _dot(a, b, sum, PRECISION: tl.constexpr):
    if PRECISION == 0:
        sum += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    elif PRECISION == 1:
        sum = tl.dot(a, b, sum)
    else:
        sum = tl.dot(a, b, sum, input_precision="tf32x3")
    return sum


@triton.jit
def moe_sort(ids, order, starts, id_token, routes, experts, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    """The routes of expert e, in their order, at order[starts[e] : starts[e + 1]]. Grid: (experts + 1,).

    Each program reads all routes: what precedes its expert it counts itself, so that programs need not wait for each other.
    """
    expert = tl.program_id(0)
    before = tl.cast(0, tl.int32)
    for first in range(0, routes, BLOCK):
        route = first + tl.arange(0, BLOCK)
        at = (route // TOPK).to(tl.int64) * id_token + route % TOPK
        id = tl.load(ids + at, mask=route < routes, other=-1)
        before += tl.sum(((id >= 0) & (id < expert)).to(tl.int32), axis=0)
    tl.store(starts + expert, before)
    if expert < experts:
        for first in range(0, routes, BLOCK):
            route = first + tl.arange(0, BLOCK)
            at = (route // TOPK).to(tl.int64) * id_token + route % TOPK
            mine = (tl.load(ids + at, mask=route < routes, other=-1) == expert).to(tl.int32)
            place = before + tl.cumsum(mine, axis=0) - 1
            tl.store(order + place, route, mask=mine > 0)
            before += tl.sum(mine, axis=0)


@triton.jit
def _find_tile(starts, experts, tile, EXPERTS: tl.constexpr, BM: tl.constexpr):
    """The expert of a tile of BM rows, where its rows begin among the sorted routes, and how many of them there are."""
    index = tl.arange(0, EXPERTS)
    known = index < experts
    begin = tl.load(starts + index, mask=known, other=0)
    count = tl.load(starts + index + 1, mask=known, other=0) - begin
    tiles = (count + BM - 1) // BM
    until = tl.cumsum(tiles, axis=0)
    mine = ((tile < until) & (tile >= until - tiles)).to(tl.int32)
    expert = tl.sum(mine * index, axis=0)
    skipped = (tile - tl.sum(mine * (until - tiles), axis=0)) * BM
    first = tl.sum(mine * begin, axis=0) + skipped
    return expert, first, tl.minimum(tl.sum(mine * count, axis=0) - skipped, BM) * tl.sum(mine, axis=0)


@triton.jit
def _tile_of(order, starts, tokens, experts, tile, EXPERTS: tl.constexpr, ROUTED: tl.constexpr, BM: tl.constexpr):
    """Expert, first row and number of rows of a tile."""
    if ROUTED == 1:
        expert, first, count = _find_tile(starts, experts, tile, EXPERTS, BM)
    elif ROUTED == 2:
        expert = tl.load(order + tile)
        first = tile
        count = ((expert >= 0) & (expert < experts)).to(tl.int32)
    else:
        expert = tl.cast(0, tl.int32)
        first = tile * BM
        count = tl.minimum(tokens - first, BM)
    return expert, first, count


@triton.jit
def moe_up(
    x, w13, order, starts, hidden, x_token, w_expert, w_row, hidden_row, tokens, experts,
    D: tl.constexpr, I: tl.constexpr, TOPK: tl.constexpr, EXPERTS: tl.constexpr, ROUTED: tl.constexpr,
    PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """silu(w1 x) * (w3 x) of each row, rounded to x's dtype.
    Grid: (ceil(I / BN), tiles)."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    tile = tl.program_id(1)
    row = tl.arange(0, BM)
    expert, first, count = _tile_of(order, starts, tokens, experts, tile, EXPERTS, ROUTED, BM)
    if count > 0:
        if ROUTED == 1:
            token = tl.load(order + first + row, mask=row < count, other=0) // TOPK
        else:
            token = tl.minimum(first + row, tokens - 1)
        inner = tl.arange(0, BK)
        known = columns < I
        column = tl.where(known, columns, 0).to(tl.int64)
        a_at = x + token.to(tl.int64)[:, None] * x_token + inner[None, :]
        gate_at = w13 + tl.cast(expert, tl.int64) * w_expert + column[None, :] * w_row + inner[:, None]
        up_at = gate_at + tl.cast(I, tl.int64) * w_row
        gate = tl.zeros([BM, BN], tl.float32)
        up = tl.zeros([BM, BN], tl.float32)
        for start in range(0, D, BK):
            if D % BK == 0:
                a = tl.load(a_at + start, mask=(row < count)[:, None], other=0.0)
                b = tl.load(gate_at + start)
                c = tl.load(up_at + start)
            else:
                there = start + inner < D
                a = tl.load(a_at + start, mask=(row < count)[:, None] & there[None, :], other=0.0)
                b = tl.load(gate_at + start, mask=there[:, None], other=0.0)
                c = tl.load(up_at + start, mask=there[:, None], other=0.0)
            gate = _dot(a, b, gate, PRECISION)
            up = _dot(a, c, up, PRECISION)
        value = gate / (1.0 + tl.exp(-gate)) * up
        write = hidden + (first + row).to(tl.int64)[:, None] * hidden_row + columns[None, :]
        tl.store(write, value.to(hidden.dtype.element_ty), mask=(row < count)[:, None] & known[None, :])


@triton.jit
def moe_down(
    hidden, w2, order, starts, partial, hidden_row, w_expert, w_row, partial_row, tokens, experts,
    D: tl.constexpr, I: tl.constexpr, EXPERTS: tl.constexpr, ROUTED: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """w2 times what moe_up left, in FP32, to the row of the route (or of the token). Grid: (ceil(D / BN), tiles)."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    tile = tl.program_id(1)
    row = tl.arange(0, BM)
    expert, first, count = _tile_of(order, starts, tokens, experts, tile, EXPERTS, ROUTED, BM)
    if count > 0:
        if ROUTED == 1:
            target = tl.load(order + first + row, mask=row < count, other=0)
        else:
            target = first + row
        inner = tl.arange(0, BK)
        known = columns < D
        column = tl.where(known, columns, 0).to(tl.int64)
        a_at = hidden + (first + row).to(tl.int64)[:, None] * hidden_row + inner[None, :]
        b_at = w2 + tl.cast(expert, tl.int64) * w_expert + column[None, :] * w_row + inner[:, None]
        total = tl.zeros([BM, BN], tl.float32)
        for start in range(0, I, BK):
            if I % BK == 0:
                a = tl.load(a_at + start, mask=(row < count)[:, None], other=0.0)
                b = tl.load(b_at + start)
            else:
                there = start + inner < I
                a = tl.load(a_at + start, mask=(row < count)[:, None] & there[None, :], other=0.0)
                b = tl.load(b_at + start, mask=there[:, None], other=0.0)
            total = _dot(a, b, total, PRECISION)
        write = partial + target.to(tl.int64)[:, None] * partial_row + columns[None, :]
        tl.store(write, total, mask=(row < count)[:, None] & known[None, :])


@triton.jit
def moe_sum(
    partial, ids, weights, shared, x, shared_gate, y, partial_row, id_token, weight_token, x_token, y_token, experts, scale,
    D: tl.constexpr, TOPK: tl.constexpr, SHARED: tl.constexpr, GATED: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """A token's routes by their weights, and its shared expert. Grid: (tokens, ceil(D / BD))."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BD + tl.arange(0, BD)
    known = column < D
    total = tl.zeros([BD], tl.float32)
    for j in range(TOPK):
        id = tl.load(ids + token * id_token + j)
        if (id >= 0) & (id < experts):
            weight = tl.load(weights + token * weight_token + j)
            total += weight * tl.load(partial + (token * TOPK + j) * partial_row + column, mask=known, other=0.0)
    total *= scale
    if SHARED:
        part = tl.load(shared + token * partial_row + column, mask=known, other=0.0)
        if GATED:
            score = tl.zeros([BD], tl.float32)
            for start in range(0, D, BD):
                inner = start + tl.arange(0, BD)
                a = tl.load(x + token * x_token + inner, mask=inner < D, other=0.0).to(tl.float32)
                score += a * tl.load(shared_gate + inner, mask=inner < D, other=0.0).to(tl.float32)
            part = part / (1.0 + tl.exp(-tl.sum(score, axis=0)))
        total += part
    tl.store(y + token * y_token + column, total.to(y.dtype.element_ty), mask=known)
