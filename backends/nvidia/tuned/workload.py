"""What the tuned table beside this file was measured on: `clover-ops tune backends/nvidia/tuned/workload.py --backend nvidia
--output backends/nvidia/tuned/nvidia-h200.txt` on a machine with such a card."""

import clover_ops
import torch
from clover_ops.jit.autotune import Comparison

H, HV, K, V = 16, 32, 128, 128
NATIVE, TRITON = 0, 10


def commit(sequences: int, length: int):
    """A call of gated_delta_rule by slot: sequences of one length, BF16."""
    tokens = sequences * length
    make = lambda *shape: torch.randn(*shape, device="cuda")  # noqa: E731
    q, k, v = (make(tokens, heads, K).bfloat16() for heads in (H, H, HV))
    g, beta = -0.1 * torch.rand(tokens, HV, device="cuda"), torch.rand(tokens, HV, device="cuda")
    state = 0.1 * make(sequences, HV, V, K)
    cu_seqlens = torch.arange(0, tokens + 1, length, device="cuda", dtype=torch.int32)
    slots = torch.arange(sequences, device="cuda", dtype=torch.int32)
    inputs = (q, k, v, g, beta, state, cu_seqlens, slots, slots)
    out = torch.empty(tokens, HV, V, device="cuda", dtype=torch.bfloat16)
    size_of = clover_ops.gated_delta_rule_workspace_size
    need = max(size_of(*inputs, l2norm=True, provider=slot) for slot in (NATIVE, TRITON))
    workspace = torch.empty(need, dtype=torch.uint8, device="cuda")

    def call(slot: int) -> None:
        clover_ops.gated_delta_rule(*inputs, l2norm=True, out=out, workspace=workspace, provider=slot)

    return call


def experts(tokens: int):
    """A call of fused_moe by slot: 256 experts, top-8, BF16."""
    x = torch.randn(tokens, 2048, device="cuda").bfloat16()
    w13 = 0.02 * torch.randn(256, 1024, 2048, device="cuda", dtype=torch.bfloat16)
    w2 = 0.02 * torch.randn(256, 2048, 512, device="cuda", dtype=torch.bfloat16)
    ids, weights = clover_ops.topk_softmax(torch.randn(tokens, 256, device="cuda"), 8, renormalize=True)
    need = max(
        clover_ops.fused_moe_workspace_size(x, w13, w2, ids, weights, provider=slot) for slot in (NATIVE, TRITON)
    )
    workspace, out = torch.empty(need, dtype=torch.uint8, device="cuda"), torch.empty_like(x)

    def call(slot: int) -> None:
        clover_ops.fused_moe(x, w13, w2, ids, weights, out=out, workspace=workspace, provider=slot)

    return call


def comparisons():
    clover_ops.warmup("cuda:0")
    yield from commits()
    for tokens, range_of_tokens in (
        (1, "T==1"), (4, "T>=2 T<=5"), (8, "T>=6 T<=16"), (32, "T>=17 T<=45"), (64, "T>=46 T<=127"), (256, "T>=128 T<=511"),
        (1024, "T>=512 T<=2047"), (4096, "T>=2048"),
    ):  # fmt: skip
        yield Comparison(
            "fused_moe", {"T": tokens}, experts(tokens), (NATIVE, TRITON), f"{range_of_tokens} E==256 k==8"
        )


def commits():
    """The shortest prompts that Triton's chunks were seen to win, and longer ones; T bounds what a call may hold where
    nobody says how long its sequences are. Every other commit is left to the lowest slot."""
    for sequences, shortest in ((1, 65), (2, 65), (4, 96), (8, 192), (16, 96), (64, 96)):
        for length in (4096, 1024, 256, shortest):
            if sequences * length > 65536:
                continue
            longer = f"N<={sequences} K==128 V==128 max_seqlen>={length} T>={sequences * length}"
            sizes = {"N": sequences, "T": sequences * length}
            yield Comparison("gated_delta_rule", sizes, commit(sequences, length), (NATIVE, TRITON), longer)
