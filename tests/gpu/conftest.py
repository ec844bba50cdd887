"""These tests need a GPU with an active backend; elsewhere they are skipped with the reason."""

from __future__ import annotations

import clover_ops
import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def active_backend():
    gpus = [b for b in clover_ops.backends() if b.device_type in ("cuda", "rocm")]
    if not any(b.active for b in gpus):
        reasons = "; ".join(f"{b.name}: {b.reason}" for b in gpus) or "no GPU backend is installed"
        pytest.skip(reasons)
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    clover_ops.warmup("cuda:0")
