"""Shapes that reach every kernel and the edges of what the planners take.

Run by test_simt.py in the process that has the SIMT plugin.
"""

from itertools import product

import pytest
from ops import (
    harness,
    test_block_coreset,
    test_causal_conv1d,
    test_fused_moe,
    test_gated_delta_rule,
    test_merge_live_rows,
    test_preview_conv1d,
    test_preview_gated_delta_rule,
    test_preview_gdn,
    test_topk_softmax,
)
from ops.runner import Call, run

Conv = test_causal_conv1d.ConvCase
PreviewConv = test_preview_conv1d.PreviewConvCase
Delta = test_gated_delta_rule.DeltaCase
PreviewDelta = test_preview_gated_delta_rule.PreviewDeltaCase
Gdn = test_preview_gdn.PreviewGdnCase
Topk = test_topk_softmax.TopkCase
Coreset = test_block_coreset.CoresetCase
Merge = test_merge_live_rows.MergeCase
Moe = test_fused_moe.MoeCase

DTYPES = ("bf16", "fp16", "fp32")
READS = ("bidirectional", "block", "causal")
ODD_HEADS = ((1, 2, 192, 40), (1, 1, 256, 256), (1, 2, 30, 20), (2, 2, 7, 130))


def cases():
    for dtype in DTYPES:
        yield test_causal_conv1d, Conv(dtype, 7, (4, 0, 7), "mixed", layout="offset", tail=1)
        for taps in (1, 2, 3, 6):
            yield test_causal_conv1d, Conv(dtype, 16, (4, 7, 1), "separate", taps=taps)
        yield test_preview_conv1d, PreviewConv(dtype, 65, (4, 7), "mixed", layout="gapped")
        yield test_topk_softmax, Topk(dtype, 9, 600, 12, True, "ties")
        yield test_topk_softmax, Topk(dtype, 9, 1024, 8, False, "nonfinite")
        yield test_block_coreset, Coreset(dtype, 300, 4, 40, (5, 0, 9), "max")
        yield test_block_coreset, Coreset(dtype, 300, 4, 40, (5, 0, 9), "vote")
        yield test_merge_live_rows, Merge(dtype, 5, 65)
        yield test_fused_moe, Moe(dtype, 40, (3, 2, 72, 40), shared=24)
        for heads in ODD_HEADS:
            yield test_gated_delta_rule, Delta(dtype, heads, (4, 0, 17), "mixed", state="v_last")
            yield test_gated_delta_rule, Delta(dtype, heads, (3,), "separate", layout="gapped")
    for read, heads in product(READS, ODD_HEADS):
        yield test_preview_gated_delta_rule, PreviewDelta("bf16", heads, (4, 17), "mixed", read)
        yield test_preview_gdn, Gdn("bf16", heads, (4, 17), "mixed", read, layout="gapped")
    for dtype, norm in product(DTYPES, (True, False)):
        yield test_preview_gdn, Gdn(dtype, (1, 2, 30, 21), (4, 5), "mixed", norm=norm, layout="offset", bias=True)
    yield test_preview_gated_delta_rule, PreviewDelta("fp32", (1, 1, 32, 32), (64, 65, 40), "mixed")
    yield test_preview_gdn, Gdn("bf16", (1, 1, 32, 32), (64, 65), "mixed")


def targets(module):
    return [target for target in harness.targets(module.OPERATOR) if target.backend.startswith("simt")]


def parameters():
    for module, case in dict.fromkeys(cases()):
        for target in targets(module):
            yield pytest.param(module, case, target, id=f"{target}-{module.OPERATOR}-{case}")


@pytest.mark.parametrize("module, case, target", list(parameters()))
def test_case(module, case, target):
    problem = module.build(case)
    object.__setattr__(problem, "may_refuse", "never")
    run(problem, target)


def too_large():
    for heads in ((1, 1, 257, 64), (1, 1, 64, 257)):
        yield test_gated_delta_rule, Delta("bf16", heads, (3,))
        yield test_preview_gated_delta_rule, PreviewDelta("bf16", heads, (3,))
        yield test_preview_gdn, Gdn("bf16", heads, (3,))


@pytest.mark.parametrize("module, case", list(too_large()))
def test_head_dimensions_above_256_are_refused(module, case):
    for target in targets(module):
        with pytest.raises(harness.Unsupported, match="head dimension above 256"):
            Call(module.build(case), target).functional()
