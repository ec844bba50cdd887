"""The demo's checks are worth something: each kind of wrong operator makes it fail, and say where."""

from __future__ import annotations

import json

import clover_ops
import numpy as np
import pytest
from clover_ops.demo.calls import OPERATORS


@pytest.fixture
def sabotage(monkeypatch):
    """sabotage(operator, after): `after(result, arguments)` spoils each call once the real operator has run."""

    def install(operator, after):
        real = getattr(clover_ops, operator)

        def spoiled(*arguments, **attributes):
            result = real(*arguments, **attributes)
            spoilt = after(result, arguments)
            return result if spoilt is None else spoilt

        monkeypatch.setattr(clover_ops, operator, spoiled)

    return install


def failure(result) -> str:
    assert result.exit_code == 1, result.output
    last = result.output.rstrip().splitlines()[-1]
    assert last.startswith("FAIL: ")
    return last


@pytest.mark.parametrize(
    ("operator", "position", "pool"),
    [
        pytest.param("preview_gdn", 9, "GDN pool", marks=pytest.mark.smoke),
        ("preview_gdn", 6, "convolution pool"),
        ("preview_conv1d", 3, "convolution pool"),
        ("preview_gated_delta_rule", 5, "GDN pool"),
    ],
)
def test_a_preview_that_writes_a_state(demo, sabotage, operator, position, pool):
    def touch(result, arguments):
        pool = arguments[position]
        pool.view(f"u{pool.itemsize}").reshape(-1)[0] ^= 1  # one bit, in a slot that nobody reads

    sabotage(operator, touch)
    line = failure(demo())
    assert line.startswith("FAIL: states after a preview")
    assert pool in line


@pytest.mark.smoke
def test_a_commit_that_depends_on_where_it_is_cut(demo, sabotage):
    def forget(result, arguments):
        if arguments[0].shape[0] > 1:
            arguments[5][1] *= np.float32(1.001)

    sabotage("gated_delta_rule", forget)
    result = demo("--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    parts = {part["name"]: part for part in document["checks"]["commits"]["parts"]}
    assert parts["GDN state, one commit against token by token"]["failed"] == 6
    states = [t for t in document["checks"]["operators"] if t["name"] == "gated_delta_rule.state"]
    assert states[0]["failed"] > 0


def test_a_commit_that_is_wrong_wherever_it_is_cut(demo, sabotage):
    sabotage("gated_delta_rule", lambda result, arguments: -result)
    assert "gated_delta_rule.o" in failure(demo())


def test_a_commit_that_writes_another_slot(demo, sabotage):
    def stray(result, arguments):
        arguments[5][0, 0, 0, 0] += np.float32(1)

    sabotage("gated_delta_rule", stray)
    assert "gated_delta_rule.state: elements that differ 1, bound 0" in failure(demo())


def test_a_convolution_that_loses_a_past_input(demo, sabotage):
    def lose(result, arguments):
        arguments[3][1, :, 0] = 0

    sabotage("causal_conv1d", lose)
    assert "causal_conv1d.conv_state" in failure(demo())


@pytest.mark.parametrize("operator", sorted(set(OPERATORS) - {"rotary_embedding", "rearrange", "cast"}))
def test_a_wrong_output(demo, sabotage, operator):
    def spoil(result, arguments):
        outputs = result if isinstance(result, tuple) else (result,)
        spoilt = outputs[-1].copy()
        if spoilt.size:
            first = spoilt.reshape(-1)[:1]
            first[...] = first + 1 if first.dtype.kind in "iu" else first * 2 + 1
        return (*outputs[:-1], spoilt) if isinstance(result, tuple) else spoilt

    sabotage(operator, spoil)
    assert operator in failure(demo())


@pytest.mark.parametrize(("operator", "position"), [("rotary_embedding", 2), ("rearrange", 1), ("cast", 1)])
def test_a_wrong_result_in_place(demo, sabotage, operator, position):
    def spoil(result, arguments):
        changed = arguments[position]
        if changed.size:
            changed[(0,) * changed.ndim] += 1

    sabotage(operator, spoil)
    assert operator in failure(demo())


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_fails(demo, sabotage):
    sabotage("rms_norm_gated", lambda result, arguments: np.full_like(result, np.nan))
    assert "rms_norm_gated.y" in failure(demo())


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_operator_that_raises_is_named(demo, monkeypatch, options):
    def refuse(*arguments, **attributes):
        raise ValueError("logits: must be a clover")

    monkeypatch.setattr(clover_ops, "block_coreset", refuse)
    result = demo(*options)
    assert result.exit_code == 1
    line = json.loads(result.stdout)["verdict"] if options else failure(result)
    assert line == "FAIL: block_coreset raised ValueError: logits: must be a clover"
