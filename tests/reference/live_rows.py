"""Live rows: routes of the rows that count, and outputs merged with a cache. Copies only, so results are exact."""

import numpy as np


def live_row_routes(ids, weights, live):
    live = np.asarray(live, bool)
    kept_ids = np.where(live[:, None], ids, -1).astype(np.int32)
    kept_weights = np.where(live[:, None], weights, np.float32(0))
    alive = np.flatnonzero(live)
    rows = np.full(live.shape[0], -1, np.int32)
    rows[: alive.size] = alive
    return kept_ids, kept_weights, rows, np.array([alive.size], np.int32)


def merge_live_rows(fresh, cache, live):
    """Returns out and the new cache, which are equal."""
    merged = cache.copy()
    merged[live] = fresh[live]
    return merged, merged.copy()
