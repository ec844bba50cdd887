"""The table of operators and providers."""

from __future__ import annotations

import json

import clover_ops
import pytest
from clover_ops.demo.calls import OPERATORS


@pytest.mark.smoke
def test_json_lists_every_operator_in_order_of_its_number(cli):
    result = cli("ops", "--json")
    assert result.returncode == 0, result.stderr
    table = json.loads(result.stdout)
    numbers = [operator["number"] for operator in table["operators"]]
    assert numbers == sorted(numbers)
    assert {operator["name"] for operator in table["operators"]} == set(OPERATORS)


def test_json_agrees_with_supports(cli):
    table = json.loads(cli("ops", "--json").stdout)
    for operator in table["operators"]:
        on_cpu = [p for p in operator["providers"] if p["backend"] == "cpu" and p["works"]]
        assert bool(on_cpu) == clover_ops.supports(operator["name"], "cpu"), operator


def test_table_has_a_line_per_operator(cli):
    result = cli("ops")
    assert result.returncode == 0
    first_words = [line.split()[0] for line in result.stdout.splitlines() if line.strip()]
    assert set(OPERATORS) <= set(first_words)


def test_an_excluded_backend_is_in_parentheses_with_the_reason(cli):
    result = cli("ops", CLOVER_OPS_BACKENDS="nvidia")
    assert result.returncode == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("topk_softmax"))
    assert "(native)" in row
    assert "cpu: inactive: " in result.stdout


@pytest.mark.parametrize("name", ["topk_softmax", "preview_gdn"])
def test_one_operator_shows_signature_and_backends(cli, name):
    result = cli("ops", name)
    assert result.returncode == 0
    assert result.stdout.startswith(f"clover_ops.{name}(")
    assert "provider" in result.stdout.splitlines()[0]
    assert "cpu: native (slot 0): works here" in result.stdout


def test_a_broken_library_still_lists_what_manifests_promise(cli, package_copy):
    package, root = package_copy
    (package / "lib" / "libclover_ops.so").write_bytes(b"")
    result = cli("ops", path=root)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "the native library does not work" in result.stdout
    assert "topk_softmax" in result.stdout
