"""backend.toml: what it may say, and what a plugin's build makes of it."""

import re
import shutil
import subprocess

import pytest

from .generator import ROOT, emit_docs, emit_plugin, model
from .texts import BASE

pytestmark = pytest.mark.smoke

SCHEMA = model.parse_schema(BASE)
GOOD = """\
name = "toy"
device = "cpu"
probe = "always"

[[provider]]
slot = 0
name = "native"
operators = "all"

[[provider]]
slot = 12
name = "triton-3.x"
operators = ["chosen"]
"""

FAULTS = {
    "unknown key": ('probe = "always"', 'probe = "always"\ncolour = 1', "unknown key `colour`; known: device, name"),
    "no name": ('name = "toy"\n', "", "`name` must be a lower-case word, got None"),
    "name of two words": ('"toy"', '"To y"', "`name` must be a lower-case word, got 'To y'"),
    "unknown device": ('device = "cpu"', 'device = "tpu"', "`device` must be one of cpu, cuda, rocm, got 'tpu'"),
    "unknown probe": ('probe = "always"', 'probe = "never"', "`probe` must be always or library, got 'never'"),
    "provider key missing": (
        "slot = 0\n",
        "",
        r"a \[\[provider\]\] has the keys name, operators, slot, got name, operators",
    ),
    "provider key unknown": ("slot = 0\n", "slot = 0\nspeed = 1\n", r"a \[\[provider\]\] has the keys"),
    "slot too large": ("slot = 12", "slot = 20", "`slot` must be 0-9 .* got 20"),
    "slot negative": ("slot = 12", "slot = -1", "`slot` must be 0-9 .* got -1"),
    "slot is a bool": ("slot = 12", "slot = true", "`slot` must be 0-9 .* got True"),
    "slot is text": ("slot = 12", 'slot = "12"', "`slot` must be 0-9 .* got '12'"),
    "provider name of two words": ('"native"', '"my native"', "`name` of a .* must be one word, got 'my native'"),
    "provider name is a number": ('"native"', "1", "`name` of a .* must be one word, got 1"),
    "provider name with a pipe": ('"native"', '"a|b"', "`name` of a .* must be one word"),
    "unknown operator": ('["chosen"]', '["choosen"]', "`choosen` is no operator; there are packed, chosen, moved"),
    "operators is a name": ('["chosen"]', '"chosen"', '`operators` must be "all" or a list of names'),
    "operators is a number": ('["chosen"]', "3", '`operators` must be "all" or a list of names, got 3'),
    "two in one slot": ("slot = 12", "slot = 0", "chosen has two providers in slot 0"),
    "an operator twice": ('["chosen"]', '["chosen", "chosen"]', "chosen has two providers in slot 12"),
    "one provider table": ("[[provider]]\nslot = 0", "[provider]\nslot = 0", "toml"),
    "no provider": (GOOD[GOOD.index("[[") :], "", "lists no provider"),
    "provider is a list of numbers": (GOOD[GOOD.index("[[") :], "provider = [1]", "must be an array of tables"),
    "no TOML": ('name = "toy"', "name =", "toml: .*line 1"),
}


def _load(folder, text):
    path = folder / "backend.toml"
    path.write_text(text, encoding="utf-8")
    return emit_plugin.load_backend(path, SCHEMA)


def test_good(tmp_path):
    backend = _load(tmp_path, GOOD)
    assert (backend.name, backend.device, backend.probe) == ("toy", "cpu", "always")
    assert [(p.op, p.slot, p.name) for p in backend.providers] == [
        ("packed", 0, "native"), ("chosen", 0, "native"), ("chosen", 12, "triton-3.x"), ("moved", 0, "native"),
    ]  # fmt: skip


def test_every_backend_of_the_repository_loads():
    schema = model.load(ROOT / "common/schema/operators.toml")
    names = [op.name for op in schema.operators]
    for path in sorted((ROOT / "backends").glob("*/backend.toml")):
        backend = emit_plugin.load_backend(path, schema)
        assert backend.name == path.parent.name
        native = {p.op for p in backend.providers if p.slot < 10}
        assert native == set(names), f"{path}: a native provider exists for every operator on every backend"


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(tmp_path, fault):
    old, new, message = FAULTS[fault]
    assert GOOD.count(old) == 1
    with pytest.raises(model.SchemaError) as refusal:
        _load(tmp_path, GOOD.replace(old, new))
    assert str(refusal.value).startswith(f"{tmp_path / 'backend.toml'}: ")
    assert re.search(message, str(refusal.value)), refusal.value


def test_missing_file(tmp_path):
    with pytest.raises(model.SchemaError, match=r"absent\.toml: .*No such file"):
        emit_plugin.load_backend(tmp_path / "absent.toml", SCHEMA)


@pytest.mark.parametrize("field", ["version", "toolchain", "architecture"])
def test_text_of_several_lines_is_refused(tmp_path, field):
    values = {"version": "1.0", "toolchain": "GNU 12", "architecture": "x86-64"}
    values[field] += "\nprovider packed 5 forged"
    with pytest.raises(model.SchemaError, match=f"the {field} of backend toy must be one line of text"):
        emit_plugin.manifest(_load(tmp_path, GOOD), values["version"], values["toolchain"], [values["architecture"]])


def test_capabilities(tmp_path):
    text = emit_docs.emit_capabilities(SCHEMA, [_load(tmp_path, GOOD)])
    assert "| `chosen` | 0 (native), 12 (triton-3.x) |" in text
    assert "| `moved` | 0 (native) |" in text


def test_registration_compiles(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    folder = tmp_path / "include/clover_backend"
    folder.mkdir(parents=True)
    (folder / "registration.hpp").write_text(emit_plugin.registration_header())
    (tmp_path / "registration.cpp").write_text(emit_plugin.registration_source(_load(tmp_path, GOOD), "1.0"))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{folder.parent}",
               f"-I{ROOT / 'common/include'}", "registration.cpp"]  # fmt: skip
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
