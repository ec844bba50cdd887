"""Doctor on machines that are well and on machines that are not."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import clover_ops
import pytest
from clover_ops import _discovery
from clover_ops.cli import doctor, native, plugins, probes

LIBRARY = Path("lib") / "libclover_ops.so"


def cpu_manifest() -> Path:
    """The manifest of the installed CPU plugin."""
    found = [plugin.manifest for plugin in _discovery.find_manifests() if plugin.name == "cpu"]
    assert found and found[0] is not None, "these tests need clover-ops-cpu installed"
    return Path(found[0])


@pytest.mark.smoke
def test_json_has_every_section(cli):
    result = cli("doctor", "--json")
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["platform"]["clover_ops"] == clover_ops.__version__
    assert report["native_library"]["ok"] is True
    assert report["native_library"]["error"] is None
    assert Path(report["native_library"]["path"]).is_file()
    assert "cpu" in {plugin["name"] for plugin in report["plugins"] if plugin["status"] == "active"}
    assert {"apache-tvm-ffi", "numpy", "ml_dtypes", "torch", "triton"} == set(report["packages"])
    assert report["cache"]["source"] == "CLOVER_OPS_CACHE_DIR"
    assert report["cache"]["writable"] is True
    assert set(report["devices"]) == {"nvidia", "hip"}
    assert report["cpu"]["usable_cores"] >= 1


def test_text_names_plugins_and_ends_with_the_verdict(cli):
    result = cli("doctor", OMP_NUM_THREADS="3")
    assert result.returncode == 0, result.stdout
    assert "OMP_NUM_THREADS=3" in result.stdout
    assert str(cpu_manifest()) in result.stdout
    assert result.stdout.splitlines()[-1] == "all right"


@pytest.mark.parametrize("damage", ["missing", "empty", pytest.param("half", marks=pytest.mark.smoke), "garbage"])
def test_broken_library(cli, package_copy, damage):
    package, root = package_copy
    library = package / LIBRARY
    whole = library.read_bytes()
    library.unlink()
    contents = {"empty": b"", "half": whole[: len(whole) // 2], "garbage": b"not a library" * 1000}
    if damage != "missing":
        library.write_bytes(contents[damage])
    result = cli("doctor", "--json", path=root)
    assert "Traceback" not in result.stderr
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert report["native_library"]["ok"] is False
    assert any("native library" in problem for problem in report["problems"])
    assert "cpu" in {plugin["name"] for plugin in report["plugins"]}, "plugins are still listed"


@pytest.mark.smoke
def test_plugin_of_another_version_is_rejected_with_the_reason(cli, tmp_path):
    source = cpu_manifest()
    place = tmp_path / "plugins"
    place.mkdir()
    text = source.read_text(encoding="utf-8")
    assert clover_ops.__version__ in text
    (place / source.name).write_text(text.replace(clover_ops.__version__, "9.9.9"), encoding="utf-8")
    result = cli("doctor", "--json", CLOVER_OPS_PLUGIN_PATH=str(place))
    assert result.returncode == 1
    report = json.loads(result.stdout)
    (rejected,) = [plugin for plugin in report["plugins"] if plugin["status"] == "rejected"]
    assert "9.9.9" in rejected["reason"]
    assert any("9.9.9" in problem for problem in report["problems"])
    lines = doctor.as_lines(report)
    assert any("REJECTED" in line for line in lines)
    assert lines[-1] == "something is broken"


def test_unreadable_manifest_is_rejected(cli, tmp_path):
    place = tmp_path / "plugins"
    place.mkdir()
    (place / cpu_manifest().name).write_bytes(b"\xff\xfe\x00 nonsense\n")
    result = cli("doctor", "--json", CLOVER_OPS_PLUGIN_PATH=str(place))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert [p for p in json.loads(result.stdout)["plugins"] if p["status"] == "rejected"]


def test_excluded_backend_is_inactive_and_not_a_problem(cli):
    result = cli("doctor", "--json", CLOVER_OPS_BACKENDS="nvidia")
    report = json.loads(result.stdout)
    (cpu,) = [plugin for plugin in report["plugins"] if plugin["name"] == "cpu"]
    assert cpu["status"] == "inactive"
    assert "CLOVER_OPS_BACKENDS" in cpu["reason"]
    assert result.returncode == 0


def test_bare_environment(cli):
    names = {name: None for name in os.environ if name != "LD_LIBRARY_PATH"}
    result = cli("doctor", **{**names, "PATH": "", "HOME": None, "CLOVER_OPS_CACHE_DIR": None})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the temporary directory" in result.stdout


def test_home_where_nothing_can_be_written(cli):
    result = cli("doctor", "--json", HOME="/proc", CLOVER_OPS_CACHE_DIR=None, XDG_CACHE_HOME=None)
    report = json.loads(result.stdout)
    assert report["cache"]["writable"] is False
    assert report["cache"]["path"] == "/proc/.cache/clover-ops"
    assert any("/proc" in warning for warning in report["warnings"])
    assert result.returncode == 0, "an unwritable cache costs time, it breaks nothing"


def test_misspelt_variable_is_pointed_out(cli):
    result = cli("doctor", CLOVER_OPS_BACKEND="cpu")
    assert "did you mean CLOVER_OPS_BACKENDS" in result.stdout


def test_every_variable_that_something_reads_is_known():
    root = Path(__file__).parents[2]
    reads = re.compile(r"""(?:getenv|variable|environment_\w+|environ(?:\.get)?)[(\[]"(CLOVER_OPS_\w+)""")
    sources = [p for p in (*root.glob("common/**/*.[chp]*"), *root.glob("backends/**/*.[chp]*")) if p.is_file()]
    read = {name for path in sources for name in reads.findall(path.read_text(encoding="utf-8", errors="replace"))}
    assert {"CLOVER_OPS_CPU_ISA", "CLOVER_OPS_PYTHON", "CLOVER_OPS_TRACE"} <= read <= set(probes.VARIABLES)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "variable, value, reason",
    [
        ("CLOVER_OPS_DEBUG", "yes", "CLOVER_OPS_DEBUG must be 0 or 1, got `yes`"),
        ("CLOVER_OPS_TRACE", "2", "CLOVER_OPS_TRACE must be 0 or 1, got `2`"),
        ("CLOVER_OPS_CPU_ISA", "nonsense", "CLOVER_OPS_CPU_ISA is 'nonsense', but this machine runs only"),
    ],
)
def test_a_variable_that_stops_every_call_is_a_problem(cli, variable, value, reason):
    for command in ("doctor", "ops"):
        result = cli(command, "--json", **{variable: value})
        report = json.loads(result.stdout)
        assert result.returncode == 1
        assert any(reason in text for text in (report["problems"] if command == "doctor" else [report["error"]]))


def test_a_cache_that_others_may_write_is_not_writable(cli, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    report = json.loads(cli("doctor", "--json", CLOVER_OPS_CACHE_DIR=str(folder)).stdout)
    assert report["cache"]["writable"] is False
    assert "others may write to it" in report["cache"]["reason"]


def test_names_beyond_the_terminals_encoding(cli):
    result = cli("doctor", CLOVER_OPS_CACHE_DIR="/tmp/\udcff/kleeblätter", PYTHONIOENCODING="ascii")
    assert "Traceback" not in result.stderr
    assert "\\udcff" in result.stdout


def test_a_failing_probe_is_a_line(monkeypatch):
    def broken() -> dict:
        raise RuntimeError("no such file, no such luck")

    monkeypatch.setattr(probes, "cpu", broken)
    report = doctor.examine()
    assert any("no such luck" in warning for warning in report["warnings"])
    assert any("no such luck" in line for line in doctor.as_lines(report))


def test_no_plugin_at_all_is_a_problem(monkeypatch):
    monkeypatch.setattr(
        native, "ask", lambda: {"error": None, "call": None, "describe": {"plugins": [], "operators": []}}
    )
    monkeypatch.setattr(plugins, "_found", list)
    report = doctor.examine()
    assert report["ok"] is False
    assert any("no plugin" in problem for problem in report["problems"])


def test_a_library_that_ends_the_process_is_reported(monkeypatch):
    monkeypatch.setattr(native, "_CHILD", "import os, signal; os.kill(os.getpid(), signal.SIGBUS)")
    assert "SIGBUS" in native.ask()["error"]
