"""`import clover_ops.torch` registers torch.ops.clover.*; importing clover_ops after torch does so too."""

from ._generated import torch_ops as torch_ops
