"""The expressions of the schema mean in C++ what they mean in Python."""

import random
import shutil
import subprocess

import pytest

from .generator import ROOT, expr

NAMES = ("A", "B", "C")
VALUES = (0, 1, 2, 3, 7, 64, -5)


def _random_expression(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*NAMES, str(rng.randrange(10))])
    left, right = (_random_expression(rng, depth - 1) for _ in range(2))
    return f"({left}) {rng.choice(['+', '-', '*', '//', '%'])} ({right})"


def _cases():
    rng = random.Random(7)
    expressions = []
    while len(expressions) < 150:
        text = _random_expression(rng, 3)
        if rng.random() < 0.5:
            text = f"({text}) {rng.choice(['==', '!=', '<', '<=', '>', '>='])} ({_random_expression(rng, 2)})"
        expressions.append(text)
    inputs = [{name: rng.choice(VALUES) for name in NAMES} for _ in range(40)]
    return expressions, inputs


def _python(text, values):
    try:
        return int(eval(text, {}, values))
    except ZeroDivisionError:
        return None  # C++ gives a number instead: no rule of the schema may rest on it


@pytest.mark.smoke
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
def test_cpp_agrees_with_python(tmp_path):
    expressions, inputs = _cases()
    functions = "\n".join(
        f"int64_t f{i}(const int64_t* d) {{ (void)d; return {_indexed(text)}; }}" for i, text in enumerate(expressions)
    )
    rows = ", ".join("{" + ", ".join(str(values[name]) for name in NAMES) + "}" for values in inputs)
    table = ", ".join(f"f{i}" for i in range(len(expressions)))
    source = f"""#include "spec.hpp"
#include <cmath>
#include <cstdio>
using namespace clover;
{functions}
int main() {{
  int64_t (*const functions[])(const int64_t*) = {{{table}}};
  const int64_t rows[][3] = {{{rows}}};
  for (auto function : functions)
    for (const auto& row : rows) std::printf("%lld\\n", static_cast<long long>(function(row)));
}}
"""
    (tmp_path / "main.cpp").write_text(source)
    include = [f"-I{ROOT / 'common/include'}", f"-I{ROOT / 'common/src'}"]
    subprocess.run(["g++", "-std=c++17", "-O0", *include, "main.cpp"], cwd=tmp_path, check=True, timeout=120)
    answers = subprocess.run(
        [tmp_path / "a.out"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    expected = [_python(text, values) for text in expressions for values in inputs]
    assert len(answers) == len(expected)
    wrong = [(i, e, a) for i, (e, a) in enumerate(zip(expected, answers)) if e is not None and e != int(a)]
    assert not wrong, [(expressions[i // 40], inputs[i % 40], e, a) for i, e, a in wrong[:5]]
    assert sum(e is not None for e in expected) > 2000


def _indexed(text):
    return expr.parse(text).cpp("d[@{}@]").replace("@A@", "0").replace("@B@", "1").replace("@C@", "2")


@pytest.mark.smoke
@pytest.mark.parametrize(
    "text, linear",
    [("T", ("T", 1, 0)), ("4", (None, 0, 4)), ("2*I", ("I", 2, 0)), ("N+1", ("N", 1, 1)), ("KC-1", ("KC", 1, -1)),
     ("3*S + 2", ("S", 3, 2)), ("1+1", (None, 0, 2))],
)  # fmt: skip
def test_axes(text, linear):
    parsed = expr.parse_linear(text)
    assert (parsed.symbol, parsed.mul, parsed.add) == linear


@pytest.mark.smoke
@pytest.mark.parametrize(
    "text", ["", "I*2", "I*J", "-1", "-I", "0*I", "2*3*I", "I//2", "1.5*I", "I+0.5", "I+J", "'a'", "True"]
)
def test_axes_that_are_none(text):
    with pytest.raises(expr.ExpressionError):
        expr.parse_linear(text)
