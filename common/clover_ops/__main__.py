"""`python -m clover_ops` is the `clover-ops` command."""

from clover_ops.cli import main

main()
