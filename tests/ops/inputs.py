"""Seeded inputs: dtypes, packed sequences, slot patterns, and the base of all case lists."""

import zlib
from dataclasses import dataclass, field, fields
from itertools import groupby

import ml_dtypes
import numpy as np

DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32)}
INDEX_TYPES = {"i32": np.int32, "i64": np.int64}
INDEX_CYCLE = ("i32", "i64", "i32")
PREVIEW_WIDTHS = (1, 2, 7, 8, 31, 32, 33, 64)


@dataclass(frozen=True)
class Case:
    """One line of a case list. Its fields make the test id and the seed."""

    smoke: bool = field(default=False, compare=False, kw_only=True)

    def __str__(self):
        parts = (_readable(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "smoke")
        return "-".join(part for part in parts if part)

    def rng(self):
        return np.random.default_rng(zlib.crc32(str(self).encode()))


def _readable(name, value):
    if value is None or value is False:
        return ""
    if value is True:
        return name
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return name[0] + "+".join(_run(v, sum(1 for _ in same)) for v, same in groupby(value))
    return f"{name}{value}"


def _run(value, count):
    return f"{count}x{value}" if count > 3 else "+".join([str(value)] * count)


def unique(*case_lists):
    """The lists one after another; of equal cases the first stays, so smoke lists come first."""
    return list(dict.fromkeys(case for cases in case_lists for case in cases))


def normal(rng, shape, dtype, scale=1.0):
    return (rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(dtype)


def unit_rows(rng, shape, dtype):
    rows = rng.standard_normal(shape, np.float32)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(dtype)


@dataclass(frozen=True)
class Sequences:
    """Packed sequences: T tokens, of which the last `tail` belong to no sequence."""

    lengths: tuple[int, ...]
    tail: int = 0

    @property
    def count(self):
        return len(self.lengths)

    @property
    def owned(self):
        return sum(self.lengths)

    @property
    def tokens(self):
        return self.owned + self.tail

    def cu_seqlens(self, index_type):
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)]).astype(INDEX_TYPES[index_type])

    def split(self, array):
        """The rows of each sequence."""
        return np.split(array[: self.owned], np.cumsum(self.lengths, dtype=int)[:-1]) if self.lengths else []

    def rows(self, n):
        begin = sum(self.lengths[:n])
        return slice(begin, begin + self.lengths[n])


@dataclass(frozen=True)
class Slots:
    """State slots of each sequence, in a pool of `pool` slots."""

    pool: int
    initial: np.ndarray
    final: np.ndarray

    @property
    def read(self):
        return {int(slot) for slot in self.initial if slot >= 0}

    def poison_unread(self, pool_array):
        """NaN in every slot that no sequence reads."""
        unread = [slot for slot in range(self.pool) if slot not in self.read]
        pool_array[unread] = np.nan
        return pool_array

    def written(self, lengths):
        """{slot: sequence} of the final slots; a sequence without tokens writes only where its slots differ."""
        pairs = enumerate(zip(self.initial, self.final, lengths))
        return {int(final): n for n, (initial, final, length) in pairs if final >= 0 and (length or initial != final)}


SLOT_PATTERNS = ("same", "separate", "fresh", "discard", "padded", "mixed", "shared_read")


def make_slots(pattern, sequences, rng, index_type):
    """Slots in any order. `padded`: the second half has neither slot. `mixed`: each sequence another of the first five
    patterns. `shared_read`: all start from one slot that none writes."""
    pool = 2 * sequences + 2
    free = rng.permutation(pool)
    initial, final = free[:sequences].copy(), free[sequences : 2 * sequences].copy()
    for n in range(sequences):
        kind = ("separate", "same", "fresh", "discard", "padded")[n % 5] if pattern == "mixed" else pattern
        if kind == "padded" and pattern == "padded" and n < sequences // 2:
            kind = "same"
        if kind == "same":
            final[n] = initial[n]
        if kind == "shared_read":
            initial[n] = free[-1]
        if kind in ("fresh", "padded"):
            initial[n] = -1 - 6 * (n % 2)
        if kind in ("discard", "padded"):
            final[n] = -1 - 3 * (n % 2)
    index = INDEX_TYPES[index_type]
    return Slots(pool, initial.astype(index), final.astype(index))
