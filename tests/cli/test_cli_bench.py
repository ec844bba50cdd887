"""The benchmark command, on the CPU with its small sizes."""

from __future__ import annotations

import json

import pytest
from clover_ops.bench import plan
from clover_ops.demo.calls import OPERATORS

ROWS = ("topk_softmax", "live_row_routes", "block_coreset")


def test_every_operator_has_rows_for_gpu_and_cpu():
    assert {case.operator for case in plan.CASES} == set(OPERATORS)
    assert all(case.gpu and case.cpu for case in plan.CASES)


@pytest.mark.smoke
def test_list_names_every_operator_and_times_none(cli):
    result = cli("bench", "--list")
    assert result.returncode == 0, result.stderr
    assert {line.split()[0] for line in result.stdout.splitlines()[2:]} == set(OPERATORS)
    assert result.stderr == ""


def test_rows_are_timed_shown_and_written(cli, tmp_path):
    pytest.importorskip("torch")
    result = cli("bench", *ROWS, "--json", "rows.json")
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "rows.json").read_text())
    assert {entry["operator"] for entry in document["results"]} == set(ROWS)
    assert document["copy_bandwidth_gb_s"] > 0
    for entry in document["results"]:
        assert entry["us"] > 0
        assert entry["ratio"] == pytest.approx(entry["us"] / entry["floor_us"])
        assert f"{entry['us']:.2f}" in result.stdout
        assert f"{entry['row']}: {entry['us']:.2f} us" in result.stderr
    assert f"[{len(ROWS)}/{len(ROWS)}]" in result.stderr


def test_operators_with_a_workspace_are_timed(cli):
    pytest.importorskip("torch")
    names = ("gated_delta_rule", "preview_gated_delta_rule", "preview_gdn", "fused_moe")
    result = cli("bench", *names, "--provider", "0")
    assert result.returncode == 0, result.stdout + result.stderr
    assert all(name in result.stdout for name in names)
    assert "failed" not in result.stdout


def test_an_unknown_operator_gets_a_suggestion(cli):
    result = cli("bench", "topk_softmx")
    assert result.returncode == 2
    assert "did you mean topk_softmax?" in result.stderr


@pytest.mark.parametrize("device", ["tpu", "cpu:1", "cpu:x"])
def test_an_unknown_device_is_refused(cli, device):
    pytest.importorskip("torch")
    result = cli("bench", "cast", "--device", device)
    assert result.returncode == 2
    assert repr(device) in result.stderr


def test_a_slot_that_nobody_has_is_refused_with_those_there_are(cli):
    pytest.importorskip("torch")
    result = cli("bench", "cast", "--provider", "77")
    assert result.returncode == 2
    assert "cast has no provider in slot 77 on cpu; there are 0" in result.stderr


def test_an_inactive_backend_is_named_with_its_reason(cli):
    pytest.importorskip("torch")
    result = cli("bench", "cast", CLOVER_OPS_BACKENDS="nvidia")
    assert result.returncode == 1
    assert "no active backend runs cast on cpu; cpu is not active: " in result.stderr
    assert "Traceback" not in result.stderr


def test_without_torch_the_command_says_what_to_install(cli, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'torch' else find(name, package)\n"
    )
    result = cli("bench", "cast", path=hidden)
    assert result.returncode == 1
    assert "the benchmark needs torch: pip install 'clover-ops[torch]'" in result.stderr


def test_a_file_that_cannot_be_written_is_told(cli, tmp_path):
    pytest.importorskip("torch")
    result = cli("bench", "topk_softmax", "--json", "absent/rows.json")
    assert result.returncode == 1
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
