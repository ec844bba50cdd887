"""The `clover-ops` command. Nothing heavy is imported here: `doctor` has to work where little else does."""

from .app import main

__all__ = ["main"]
