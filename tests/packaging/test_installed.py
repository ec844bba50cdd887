"""The installed distributions: tags, pins, entry points, and who owns which file."""

from __future__ import annotations

import importlib.metadata as metadata
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

CORE = "clover-ops"


def plugins() -> list[str]:
    return [d.metadata["Name"] for d in metadata.distributions() if re.match(r"clover[-_]ops[-_]", d.metadata["Name"])]


def distributions() -> list[str]:
    return [CORE, *plugins()]


def files(name: str) -> set[str]:
    return {str(f) for f in metadata.files(name) or [] if ".dist-info" not in str(f) and "__pycache__" not in str(f)}


def test_a_plugin_is_installed():
    assert plugins(), "the tests run against the core and at least one plugin"


@pytest.mark.parametrize("name", distributions())
def test_wheel_is_for_every_python(name):
    text = metadata.distribution(name).read_text("WHEEL")
    tags = re.findall(r"^Tag: (.*)$", text, re.MULTILINE)
    assert tags and all(tag.startswith("py3-none-") and not tag.endswith("-any") for tag in tags), text
    assert "Root-Is-Purelib: false" in text


@pytest.mark.parametrize("name", distributions())
def test_licences_travel(name):
    names = {Path(str(f)).name for f in metadata.files(name) or []}
    assert {"LICENSE", "THIRD_PARTY.txt"} <= names


def test_no_file_has_two_owners():
    names = distributions()
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            assert not files(a) & files(b), f"{a} and {b} own the same files"


@pytest.mark.parametrize("name", distributions())
def test_each_distribution_owns_one_package(name):
    package = name.replace("-", "_")
    outside = {f for f in files(name) if not f.startswith(f"{package}/") and "bin/" not in f}
    assert not outside, f"{name} installs outside {package}/: {sorted(outside)}"


@pytest.mark.parametrize("name", plugins())
def test_plugin_pins_the_core_exactly(name):
    version = metadata.version(name)
    assert version == metadata.version(CORE)
    assert f"{CORE}=={version}" in (metadata.requires(name) or [])


@pytest.mark.parametrize("name", plugins())
def test_plugin_is_announced_and_carries_its_manifest(name):
    package = name.replace("-", "_")
    (entry,) = [e for e in metadata.entry_points(group="clover_ops.backends") if e.dist.metadata["Name"] == name]
    assert entry.value == package
    assert f"{package}/__init__.py" in files(name)
    assert f"{package}/plugin.manifest" in files(name)
    assert f"{package}/lib{package}.so" in files(name)


def test_core_extras_pin_the_plugins():
    version = metadata.version(CORE)
    requires = metadata.requires(CORE) or []
    for extra in ("cpu", "nvidia"):
        assert any(r.replace('"', "'") == f"clover-ops-{extra}=={version}; extra == '{extra}'" for r in requires), (
            requires
        )


def test_core_carries_headers_cmake_and_types():
    wanted = {
        "clover_ops/py.typed",
        "clover_ops/__init__.pyi",
        "clover_ops/include/clover/ops.h",
        "clover_ops/include/clover/abi.h",
        "clover_ops/include/clover/plugin.h",
        "clover_ops/lib/cmake/CloverOps/CloverOpsConfig.cmake",
        "clover_ops/lib/libclover_ops.so",
        "clover_ops/lib/libclover_ops_ffi.so",
    }
    assert wanted <= files(CORE)


def test_nothing_of_the_build_leaks():
    for name in distributions():
        leaked = [f for f in files(name) if re.search(r"\.(o|a|cpp|cc)$|/\.[a-z]|CMakeLists", f)]
        assert not leaked, leaked
