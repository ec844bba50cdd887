"""The Triton JIT's front: what a kernel is asked for by, how it is compiled, and where the result is kept.

Nothing here imports Triton except what compiles (`compiler`) or times (`autotune`) kernels, and that only when it does.
"""
