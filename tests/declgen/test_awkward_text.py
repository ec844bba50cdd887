"""Any one line of text may stand in a title, summary, equation, source or doc: the code around it still compiles, and
the text arrives."""

import ast
import json
import re
import shutil
import subprocess

import pytest

from .generator import ROOT, emit_plugin, main, model
from .texts import BASE

pytestmark = pytest.mark.smoke

TEXTS = {
    "quotes": '"double" \'single\' `tick` and a last one"',
    "default": "scale = 0, = delete; = default",
    "comment end": "a */ b /* c */ d",
    "comment start": "see // this and /* that",
    "backslash": "a path C:\\new\\table ends in \\",
    "backslashes": " ".join(["\\"] * 150),
    "trigraph": " ".join(["what??/"] * 40),
    "triple quotes": '"""docstring""" and \'\'\'another\'\'\' and """"four""""',
    "pipes": "|x| || y | z \\| w",
    "braces": "{x} {{y}} {0} }{ %s %d ${z}",
    "unicode": "Größe ≥ 0 — 漢字 🙂 \u00a0 \u200d",
    "markdown": "*bold* _under_ <b>tag</b> # head - item [link](url) <!-- no -->",
    "preprocessor": "#define x #if 0 #endif __FILE__ @see \\param \\u0041 \\x41 \\N{DASH}",
    "long word": "x" * 300,
    "spaces": "   much    space   ",
    "empty": "",
}
FIELDS = ("title", "family", "summary", "equation", "source", "aligned")


def _schema(texts):
    """One operator per text, which stands in each of its fields and docs."""
    head, operator = BASE.split("[[operator]] # the second")[0].split("[[operator]]")
    tables = []
    for number, text in enumerate(texts, 1):
        quoted = json.dumps(text, ensure_ascii=False)
        table = operator.replace("number = 1", f"number = {number}").replace('"packed"', f'"packed{number}"')
        for field in FIELDS:
            table = re.sub(rf"^{field} = .*$", lambda _, f=field, q=quoted: f"{f} = {q}", table, flags=re.MULTILINE)
        tables.append(re.sub(r'doc = "[^"]*"', lambda _, q=quoted: f"doc = {q}", table))
    return model.parse_schema(head + "".join("[[operator]]" + table for table in tables))


@pytest.fixture(scope="module")
def generated():
    patch = pytest.MonkeyPatch()
    backend = emit_plugin.Backend("toy", "cpu", "always", (emit_plugin.Provider("packed1", 0, "native"),))
    patch.setattr(main, "backends", lambda schema: [backend])
    yield main.generated(_schema(TEXTS.values()))
    patch.undo()


def _words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    "name", ["_generated/functions.py", "_generated/table.py", "_generated/torch_ops.py", "__init__.pyi"]
)
def test_python_compiles(generated, name):
    compile(generated[f"common/clover_ops/{name}"], name, "exec")


@pytest.mark.parametrize("number, text", list(enumerate(TEXTS.values(), 1)), ids=TEXTS)
def test_docstrings_hold_the_text(generated, number, text):
    tree = ast.parse(generated["common/clover_ops/_generated/functions.py"])
    function = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == f"packed{number}")
    docstring = _words(ast.get_docstring(function))
    summary = f"{text}. {text}"
    for piece in (summary, f"x: [T, C], X: {text}.", f"Source: {text}."):
        assert _words(piece) in docstring


@pytest.mark.parametrize("number, text", list(enumerate(TEXTS.values(), 1)), ids=TEXTS)
def test_table_holds_the_text(generated, number, text):
    tree = ast.parse(generated["common/clover_ops/_generated/table.py"])
    operator = tree.body[-1].value.elts[number - 1]
    fields = {keyword.arg: keyword.value for keyword in operator.keywords}
    assert ast.literal_eval(fields["title"]) == text
    assert ast.literal_eval(fields["family"]) == text


@pytest.mark.parametrize("name", ["docs/generated/operators.md", "docs/generated/capabilities.md"])
def test_markdown_tables_keep_their_columns(generated, name):
    tables = re.findall(r"^\|.*\n\|(?: --- \|)+\n(?:\|.*\n)*", generated[name], flags=re.MULTILINE)
    assert len(tables) == (2 * len(TEXTS) if name.endswith("operators.md") else 1)
    rows = {"operators.md": (10, 6), "capabilities.md": (len(TEXTS) + 2,)}[name.rpartition("/")[2]]
    for i, table in enumerate(tables):
        lines = table.splitlines()
        assert len(lines) == rows[i % len(rows)]
        columns = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines}
        assert len(columns) == 1, table


def _compile(compiler, folder, name, *options):
    command = [compiler, *options, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'include'}",
               f"-I{ROOT / 'common/include'}", f"-I{ROOT / 'common/src'}", name]  # fmt: skip
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr[:4000]


@pytest.fixture
def folder(generated, tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    (tmp_path / "include/clover").mkdir(parents=True)
    for name in ("abi_ops.h", "ops.h"):
        (tmp_path / "include/clover" / name).write_text(generated[f"common/include/clover/{name}"], encoding="utf-8")
    for name in ("specs.cpp", "exports.cpp"):
        (tmp_path / name).write_text(generated[f"common/src/generated/{name}"], encoding="utf-8")
    (tmp_path / "api.cpp").write_text("#include <clover/ops.h>\nauto* pointer = &clover::packed1;\n")
    (tmp_path / "abi.c").write_text("#include <clover/abi_ops.h>\nclover_packed1_args args;\n")
    return tmp_path


@pytest.mark.parametrize("name", ["api.cpp", "specs.cpp", "exports.cpp"])
def test_cpp_compiles(folder, name):
    _compile("g++", folder, name, "-std=c++17")


def test_c_compiles(folder):
    _compile("gcc", folder, "abi.c", "-std=c99", "-pedantic")


def test_every_function_is_declared_once_whatever_its_comments(folder):
    """A comment that swallowed a line would take a declaration with it."""
    command = ["g++", "-std=c++17", "-E", "-P", f"-I{folder / 'include'}", f"-I{ROOT / 'common/include'}", "api.cpp"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    for number in range(1, len(TEXTS) + 1):
        for name in (f"packed{number}", f"packed{number}_workspace_size"):
            assert len(re.findall(rf"inline \w+ {name}\(", result.stdout)) == 1, name
