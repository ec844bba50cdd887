"""The generator writes manifests, Python and C++ read them: all three must mean the same."""

import random
import re

import pytest
from clover_ops import _manifest

from .core_library import load_manifests
from .generator import emit_plugin, model
from .texts import BASE

pytestmark = pytest.mark.smoke

VALUES = (
    "", " ", "x", "1", "01", "2", "-1", "+1", " 1", "1 ", "1.0", "1000000", "1000001", "9" * 30, "0" * 40 + "7", "0x10",
    "\u00b2", "\u0661", "always", "cpu", "cuda", "rocm", "CPU", "lib.so", "../lib.so", "/lib.so", "a b", "cast 0 native",
    "cast 0", "cast x native", "cast 0 native more", "cast\t3\vnative", "cast 0\u00a0native", "\u2028", "\x1c", "\x85", "#",
    "ok\r", "cast 1000001 native", "cast -1 native", "cast 1 \"native\"", "v\x0c0.1.0", "\u00fc", "\x00",
)  # fmt: skip
KEYS = ("clover-plugin", "name", "version", "abi", "library", "device", "probe", "toolchain", "architecture", "provider",
        "nonsense", "", "Name", "provider\t", "#name")  # fmt: skip


def _emitted():
    backend = emit_plugin.Backend("toy", "cuda", "library", tuple(
        emit_plugin.Provider(op.name, slot, f"p{slot}") for op in model.parse_schema(BASE).operators for slot in (0, 11)
    ))  # fmt: skip
    return backend, emit_plugin.manifest(backend, "0.1.0", "GNU 12.2.0 (x | y)", ["sm_90", "gfx906:sramecc+"])


def test_emission_is_read_back_by_both(tmp_path):
    backend, text = _emitted()
    path = tmp_path / "plugin.manifest"
    path.write_text(text, encoding="utf-8")
    manifest = _manifest.read(path)
    _, plugins = load_manifests([path])
    plugin = plugins[str(path)]
    wanted = [(p.op, p.slot, p.name) for p in backend.providers]
    assert manifest.provides == wanted
    assert [(p["operator"], p["slot"], p["name"]) for p in plugin["provides"]] == wanted
    for field, value in {
        "name": "toy",
        "version": "0.1.0",
        "device": "cuda",
        "toolchain": "GNU 12.2.0 (x | y)",
    }.items():
        assert getattr(manifest, field) == plugin[field] == value
    assert manifest.architectures == plugin["architectures"] == ["sm_90", "gfx906:sramecc+"]
    assert (manifest.library, manifest.probe) == ("libclover_ops_toy.so", "libclover_ops_toy_probe.so")
    assert plugin["library"] == str(tmp_path / "libclover_ops_toy.so")


def _mutations(count):
    """Manifests near the right one: lines dropped, doubled, moved, with other keys, values and line ends."""
    rng = random.Random(11)
    base = _emitted()[1].splitlines()
    for _ in range(count):
        lines = list(base)
        for _ in range(rng.randrange(1, 4)):
            i = rng.randrange(len(lines))
            change = rng.randrange(7)
            key = lines[i].partition(" ")[0]
            if change == 0 and len(lines) > 1:
                del lines[i]
            elif change == 1:
                lines.insert(rng.randrange(len(lines) + 1), lines[i])
            elif change == 2:
                lines[i] = f"{key} {rng.choice(VALUES)}"
            elif change == 3:
                lines[i] = f"{rng.choice(KEYS)} {rng.choice(VALUES)}"
            elif change == 4:
                lines.insert(i, rng.choice(["", "# comment", " # none", "\r", "nonsense", f"{rng.choice(KEYS)}"]))
            elif change == 5:
                lines[i] += rng.choice(["\r", " ", "\t", "\x0b", "\u2029", "\x85"])
            else:
                rng.shuffle(lines)
        yield rng.choice(["\n", "\r\n"] if rng.random() < 0.3 else ["\n"]).join(lines) + rng.choice(["\n", "", "\n\n"])


def _python_reading(path):
    try:
        manifest = _manifest.read(path)
    except _manifest.ManifestError as error:
        return None, str(error)
    fields = (manifest.name, manifest.version, manifest.library, manifest.device, manifest.toolchain)
    return (*fields, manifest.architectures, manifest.provides), ""


def _line(message):
    found = re.match(r"[^:]*:(\d+): ", message)
    return found and found[1]


def test_both_readers_agree_on_near_misses(tmp_path):
    paths = []
    for i, text in enumerate(_mutations(1500)):
        paths.append(tmp_path / f"{i}.manifest")
        paths[-1].write_bytes(text.encode())
    errors, plugins = load_manifests(paths)
    good = 0
    for path in paths:
        reading, message = _python_reading(path)
        plugin, text = plugins[str(path)], path.read_bytes().decode()
        if reading is None:
            assert plugin["name"] == "", f"only Python refuses: {message}\n{text!r}"
            assert _line(plugin["reason"]) == _line(message), (plugin["reason"], message)
            assert errors[str(path)][0] != 0
            continue
        good += 1
        provides = [(p["operator"], p["slot"], p["name"]) for p in plugin["provides"]]
        library = plugin["library"].rpartition("/")[2]
        fields = (plugin["name"], plugin["version"], library, plugin["device"], plugin["toolchain"])
        assert (*fields, plugin["architectures"], provides) == reading, f"{plugin['reason']}\n{text!r}"
    assert 200 < good < 1300


@pytest.mark.parametrize("line", [b"name \xff\xfe", b"toolchain \xed\xa0\x80", b"architecture \xc0\xaf\xf8", b"\x80 x"])
def test_bytes_that_are_no_text(tmp_path, line):
    """Python refuses them; the core's description of the plugin must stay readable JSON."""
    path = tmp_path / "plugin.manifest"
    key = line.partition(b" ")[0]
    lines = [row for row in _emitted()[1].encode().splitlines() if row.partition(b" ")[0] != key]
    path.write_bytes(b"\n".join([*lines, line]))
    with pytest.raises(_manifest.ManifestError, match="cannot be read"):
        _manifest.read(path)
    errors, plugins = load_manifests([path])
    assert errors[str(path)][0] != 0
    assert plugins[str(path)]["status"] in ("rejected", "inactive")


@pytest.mark.parametrize("what", ["absent", "folder", "empty", "huge line"])
def test_no_manifest_at_all(tmp_path, what):
    path = tmp_path / "plugin.manifest"
    if what == "folder":
        path.mkdir()
    elif what != "absent":
        path.write_text("" if what == "empty" else "clover-plugin 1\n" + "x" * 5_000_000)
    with pytest.raises(_manifest.ManifestError, match=str(path)):
        _manifest.read(path)
    errors, plugins = load_manifests([path])
    assert errors[str(path)][0] != 0
    assert plugins[str(path)]["status"] == "rejected"
    assert plugins[str(path)]["reason"]
