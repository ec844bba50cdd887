"""Parts of the numerical matrix, for machines whose time is short: CLOVER_TEST_SHARD=2/8 is the second of eight."""

import re
import zlib

VARIABLE = "CLOVER_TEST_SHARD"


def parse(text):
    """(which, of how many); raises ValueError with what was wrong."""
    match = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError(f"{VARIABLE} must read like 2/8, the part and how many there are, got {text!r}")
    return int(match[1]), int(match[2])


def part_of(name, count):
    """Which of `count` parts a case is in: 1 to count, the same on every machine."""
    return zlib.crc32(name.encode()) % count + 1


def select(items, text):
    """(kept, left out). What is of no case is in the first part, so that the parts' counts add up to the whole."""
    which, count = parse(text)
    kept, others = [], []
    for item in items:
        case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
        ours = (1 if case is None else part_of(f"{item.module.__name__}:{case}", count)) == which
        (kept if ours else others).append(item)
    return kept, others
