"""The commands and their options; what they do is in the module of each name."""

from __future__ import annotations

from pathlib import Path

import click

import clover_ops

from .bench import bench
from .declarations import declarations
from .jit import jit
from .tune import tune


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(clover_ops.__version__, prog_name="clover-ops")
def main() -> None:
    """Operators of the Clover language models: what works on this machine, and a demonstration."""


main.add_command(bench)
main.add_command(declarations)
main.add_command(jit)
main.add_command(tune)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(as_json: bool) -> None:
    """Tell what works here and, for what does not, why. Exits with 1 if something is broken."""
    from . import doctor

    raise SystemExit(doctor.run(as_json))


@main.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def ops(name: str | None, as_json: bool) -> None:
    """List the operators and who provides them; or show the operator NAME."""
    from . import ops

    raise SystemExit(ops.run(name, as_json))


@main.command()
@click.option("--cmakedir", is_flag=True, help="The directory of CloverOpsConfig.cmake.")
@click.option("--includes", is_flag=True, help="The directory of the C++ headers.")
@click.option("--libs", is_flag=True, help="The linker's flags.")
def config(cmakedir: bool, includes: bool, libs: bool) -> None:
    """Print what a C++ build needs; without an option, all of it."""
    from . import config

    raise SystemExit(config.run(cmakedir, includes, libs))


@main.command()
@click.option("--prompt", metavar="TEXT", help="The text to start from; may be empty.")
@click.option("--file", type=click.Path(path_type=Path), help="Start from this file's last bytes, whatever they are.")
@click.option("--blocks", type=click.IntRange(1, 1024), default=4, show_default=True, help="Blocks to decode.")
@click.option("--block-width", type=click.IntRange(1, 64), default=32, show_default=True, help="Bytes in a block.")
@click.option("--previews", type=click.IntRange(1, 64), default=4, show_default=True, help="Previews of a block.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="For weights and text.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def demo(
    prompt: str | None, file: Path | None, blocks: int, block_width: int, previews: int, seed: int, as_json: bool
) -> None:
    """Decode text with a small random network, checking every operator on the way.

    The network has Clover's layer pattern and is untrained: the bytes mean nothing, the checks do. Exits with 1 if
    one of them fails.
    """
    from . import demo

    if prompt is not None and file is not None:
        raise click.UsageError("--prompt and --file exclude each other.")
    raise SystemExit(demo.run(prompt, file, blocks, block_width, previews, seed, as_json))
