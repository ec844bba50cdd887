"""Shapes and memory orders for strided copies and casts, up to six axes."""

from .arena import DENSE, OFFSET, Layout, gapped, rows, swapped

SHAPES = (
    (5,),
    (257,),
    (4, 33),
    (64, 128),
    (40, 33),
    (3, 136, 72),
    (3, 5, 7),
    (2, 32, 40),
    (2, 3, 4, 5),
    (3, 1, 8, 16),
    (2, 3, 1, 4, 6),
    (2, 2, 3, 2, 3, 5),
    (2, 1, 3, 4, 2, 8),
    (0,),
    (4, 0, 3),
)
ORDERS = {
    "dense": lambda ndim: DENSE,
    "offset": lambda ndim: OFFSET,
    "rows": rows,
    "gapped": gapped,
    "swapped": lambda ndim: swapped(ndim) if ndim > 1 else DENSE,
    "reversed": lambda ndim: Layout(order=tuple(reversed(range(ndim)))),
    "rotated": lambda ndim: Layout(order=(*range(1, ndim), 0), gaps=((0, 2),)),
    "spread": lambda ndim: Layout(step=3, offset=1),
}
EVERY_PAIR = [(src, dst) for src in ORDERS for dst in ORDERS]
EACH_ONCE = [*((order, "dense") for order in ORDERS), *(("dense", order) for order in ORDERS), ("swapped", "reversed")]
