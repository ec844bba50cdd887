"""The demo as a user sees it."""

from __future__ import annotations

import json

import pytest
from clover_ops.demo.calls import OPERATORS


def last_line(result) -> str:
    return result.output.rstrip().splitlines()[-1]


@pytest.mark.smoke
def test_text_ends_in_pass(demo):
    result = demo("--prompt", "clover")
    assert result.exit_code == 0, result.output
    assert last_line(result).startswith("PASS: 15 operators")
    assert "block 1  preview 2" in result.output
    assert "tokens/s" in result.output
    for operator in OPERATORS:
        assert operator in result.output


@pytest.mark.smoke
def test_json_is_one_document_with_everything(demo):
    result = demo("--prompt", "clover", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["passed"] is True
    assert document["verdict"].startswith("PASS")
    assert document["prompt"] == {"bytes": 6, "escaped": "clover"}
    assert document["generated"]["bytes"] == 8
    (block,) = document["blocks"]
    assert [preview["settled"] for preview in block["previews"]] == [4, 8]
    assert document["tokens_per_second"] > 0

    used = {operator["name"]: operator for operator in document["operators"]}
    assert set(used) == set(OPERATORS)
    for operator in used.values():
        assert operator["calls"] > 0
        assert operator["mean_us"] > 0

    checks = document["checks"]
    assert checks["states_after_previews"]["compared"] == 2 * (6 * 2 + 2 * 2)  # previews x (pools + caches)
    assert checks["states_after_previews"]["failed"] == 0
    assert checks["commits"]["layers"] == 6
    assert {tally["name"].partition(".")[0] for tally in checks["operators"]} == set(OPERATORS)
    for tally in checks["operators"]:
        assert tally["compared"] == used[tally["name"].partition(".")[0]]["calls"]
        assert tally["failed"] == 0


@pytest.mark.smoke
def test_empty_prompt(demo):
    result = demo("--prompt", "", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["prompt"]["bytes"] == 0


@pytest.mark.parametrize("prompt", ["四つ葉のクローバー", "\udcff\udc80 not UTF-8", 'quotes " and \\ and \x07'])
def test_any_prompt(demo, prompt):
    result = demo("--prompt", prompt, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["prompt"]["bytes"] == len(prompt.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(("width", "previews"), [(1, 1), (1, 4), (2, 3), (7, 2), (33, 1), (64, 2)])
def test_widths(demo, width, previews):
    result = demo("--block-width", str(width), "--previews", str(previews), "--blocks", "2", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["generated"]["bytes"] == 2 * width


def test_same_seed_same_text(demo):
    first, again, other = (json.loads(demo("--json", "--seed", seed).stdout) for seed in ("5", "5", "6"))
    assert first["generated"] == again["generated"]
    assert first["generated"] != other["generated"]


def test_binary_file_is_read_with_a_note(demo, tmp_path):
    path = tmp_path / "picture.bin"
    path.write_bytes(bytes(range(256)))
    result = demo("--file", str(path))
    assert result.exit_code == 0, result.output
    assert "is not UTF-8 text" in result.stderr
    assert last_line(result).startswith("PASS")


def test_only_the_end_of_a_long_file_is_read(demo, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 5000 + b"end")
    result = demo("--file", str(path))
    assert result.exit_code == 0, result.output
    assert "5003 bytes; the last 2048 are used" in result.stderr


@pytest.mark.parametrize(
    ("path", "complaint"),
    [("absent.txt", "does not exist"), (".", "is a directory"), ("/dev/zero", "is not a regular file")],
)
def test_files_that_cannot_be_read(demo, tmp_path, path, complaint):
    result = demo("--file", str(tmp_path / path))
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_without_a_backend_the_demo_says_what_to_install(demo, monkeypatch):
    monkeypatch.setattr("clover_ops.supports", lambda operator, device: operator != "cast")
    result = demo()
    assert result.exit_code == 1
    assert last_line(result).startswith("FAIL: no active backend runs cast on the CPU")
    monkeypatch.setattr("clover_ops.supports", lambda operator, device: False)
    document = json.loads(demo("--json").stdout)
    assert document["passed"] is False
    assert document["verdict"].startswith("FAIL: no active backend runs an operator on the CPU")


def test_a_broken_library_fails_the_demo_without_ending_the_process(demo, monkeypatch):
    from clover_ops.cli import native

    monkeypatch.setattr(native, "ask", lambda: {"error": "loading it ended the process with SIGBUS", "describe": None})
    result = demo()
    assert result.exit_code == 1
    assert last_line(result).startswith("FAIL: the native library does not work: loading it ended the process")


def test_without_ml_dtypes_the_demo_says_what_to_install(demo, monkeypatch):
    from clover_ops.cli import demo as command

    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "ml_dtypes" else object())
    result = demo()
    assert result.exit_code == 1
    assert "clover-ops[demo]" in result.output
