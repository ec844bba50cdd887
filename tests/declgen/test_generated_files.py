"""What is checked in is what the generator makes, and it makes the same every time."""

import os
import subprocess
import sys

import pytest

from .generator import GENERATED, ROOT, main

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_checked_in_file_is_current(name):
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[name], "stale: run `nox -s gen`"


def test_no_generated_file_is_left_over():
    folders = ["common/src/generated", "common/clover_ops/_generated", "docs/generated"]
    present = {str(p.relative_to(ROOT)) for f in folders for p in (ROOT / f).iterdir() if p.is_file()}
    assert present - {"common/clover_ops/_generated/__init__.py"} == {
        n for n in GENERATED if n.startswith(tuple(folders))
    }


def test_two_runs_are_equal_whatever_the_hash_seed(tmp_path):
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from declgen import __main__ as m, model;"
        "json.dump(m.generated(model.load(m.SCHEMA)), open(sys.argv[2], 'w'))"
    )
    runs = []
    for seed in ("1", "2"):
        target = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", program, ROOT / "common", target], env=environment, check=True, timeout=60
        )
        runs.append(target.read_bytes())
    assert runs[0] == runs[1]


def test_check_reports_a_stale_file_and_changes_nothing(tmp_path, monkeypatch, capsys):
    for name, text in GENERATED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(main, "ROOT", tmp_path)
    monkeypatch.setattr(main, "backends", lambda schema: [])
    assert main.write_files(check=True) == 1  # without backends the capability table differs
    assert "stale: docs/generated/capabilities.md" in capsys.readouterr().err
    assert (tmp_path / "docs/generated/capabilities.md").read_text() == GENERATED["docs/generated/capabilities.md"]
    assert main.write_files(check=False) == 0
    assert "wrote docs/generated/capabilities.md" in capsys.readouterr().out
    assert main.write_files(check=True) == 0


def test_lists_are_sorted_by_number_or_name():
    schema = main.load(main.SCHEMA)
    numbers = [op.number for op in schema.operators]
    assert numbers == sorted(numbers)
    listed = [line.strip() for line in GENERATED["common/clover_ops/_generated/functions.py"].splitlines()]
    names = [line.strip('",') for line in listed[listed.index("__all__ = [") + 1 : listed.index("]")]]
    assert names == sorted(names)
    assert set(names) >= {op.name for op in schema.operators}


def test_command_says_what_is_wrong(tmp_path):
    """The build calls `plugin`; a broken backend.toml must end in one line on stderr and a status."""
    broken = tmp_path / "backend.toml"
    broken.write_text('name = "x"\n')
    command = [
        sys.executable,
        "-m",
        "declgen",
        "plugin",
        broken,
        tmp_path / "out",
        "--version",
        "1",
        "--toolchain",
        "t",
    ]
    for target in (broken, tmp_path / "absent.toml"):
        command[4] = target
        result = subprocess.run(command, cwd=ROOT / "common", capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 1
        assert result.stderr.startswith(f"error: {target}: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()
