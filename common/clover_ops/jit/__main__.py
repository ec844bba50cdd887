"""`python -m clover_ops.jit` is `clover-ops jit`."""

from clover_ops.cli.jit import jit

if __name__ == "__main__":
    jit(prog_name="python -m clover_ops.jit")
