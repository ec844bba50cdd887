"""Help, versions and wrong command lines."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig

import clover_ops
import pytest


def test_version(cli):
    result = cli("--version")
    assert result.returncode == 0
    assert clover_ops.__version__ in result.stdout


@pytest.mark.smoke
def test_console_script_is_installed():
    script = shutil.which("clover-ops", path=sysconfig.get_path("scripts"))
    assert script, "the wheel installs no clover-ops script beside this interpreter"
    result = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0
    for command in ("doctor", "ops", "config", "demo"):
        assert command in result.stdout


@pytest.mark.parametrize(
    ("arguments", "hints"),
    [
        (["docter"], ["docter"]),
        (["doctor", "--jsn"], ["--jsn", "--json"]),
        (["demo", "--block-widht", "8"], ["--block-widht", "--block-width"]),
        (["demo", "--block-width", "0"], ["--block-width", "1<=x<=64"]),
        (["demo", "--blocks", "two"], ["--blocks", "two"]),
        (["demo", "--prompt", "a", "--file", "b"], ["--prompt", "--file"]),
        (["ops", "topk_softmx"], ["topk_softmx", "did you mean topk_softmax"]),
        (["ops", "no-such-thing-at-all"], ["no-such-thing-at-all", "causal_conv1d"]),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(cli, arguments, hints):
    result = cli(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    for hint in hints:
        assert hint in result.stderr
