"""Every gate passes the good wheels, and fails, with what and where, on a wheel broken on purpose."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct

import pytest


def library(wheel, probe: bool = False) -> str:
    if wheel.name == "core":
        return "clover_ops/lib/libclover_ops.so"
    return f"{wheel.package}/lib{wheel.package}{'_probe' if probe else ''}.so"


def nothing(members, wheel):
    pass


def test_good_wheels_pass_every_gate(good):
    from release import check, data, gates

    rows = check.run(gates.Release(list(good.values()), data.load()))
    assert len(rows) == 14
    assert [problem for row in rows for problem in row["problems"]] == []
    assert all(row["checked"] for row in rows)


def test_a_copy_that_nobody_broke_passes(broken, problems):
    wheel = broken("cpu", nothing)
    for gate in (
        "twine",
        "contents",
        "metadata",
        "tag",
        "needed",
        "rpath",
        "exports",
        "device_code",
        "triton",
        "records",
        "sbom",
    ):
        assert problems(gate, wheel) == "", gate


def edit_metadata(old: str, new: str):
    def edit(members, wheel):
        member = f"{wheel.dist_info}/METADATA"
        text = members[member].decode()
        assert old in text
        members[member] = text.replace(old, new).encode()

    return edit


def test_twine_wants_a_description(broken, problems):
    def edit(members, wheel):
        member = f"{wheel.dist_info}/METADATA"
        members[member] = members[member].split(b"\n\n")[0] + b"\n"

    assert "long_description" in problems("twine", broken("cpu", edit))


@pytest.mark.parametrize(
    "member, says",
    [
        ("clover_ops_cpu/dispatch.o", "dispatch.o: a leftover of the build"),
        ("clover_ops_cpu/.hidden", ".hidden: a leftover of the build"),
        ("clover_ops_cpu/__pycache__/x.cpython-311.pyc", "W001"),
        ("tests/__init__.py", "tests/__init__.py: installed outside clover_ops_cpu/"),
    ],
)
def test_contents_finds_strays(broken, problems, member, says):
    assert says in problems("contents", broken("cpu", lambda members, _: members.update({member: b"x = 1\n"})))


def test_contents_finds_a_path_of_the_build(broken, problems):
    def edit(members, wheel):
        members[library(wheel)] += b"\0/home/me/clover ops/common/src/registry.cpp\0./common/src/registry.cpp\0"

    said = problems("contents", broken("core", edit))
    assert "libclover_ops.so: names /home/me/clover ops/common/src/registry.cpp, a path of the machine" in said
    assert said.count("registry.cpp") == 1


def test_metadata_wants_py_typed(broken, problems):
    wheel = broken("cpu", lambda members, _: members.pop("clover_ops_cpu/py.typed"))
    assert "clover_ops_cpu/py.typed: missing" in problems("metadata", wheel)


def test_metadata_wants_licences(broken, problems):
    wheel = broken("core", lambda members, w: members.pop(f"{w.dist_info}/licenses/THIRD_PARTY.txt"))
    assert "licenses/THIRD_PARTY.txt: missing or empty" in problems("metadata", wheel)
    wheel = broken("core", edit_metadata("License-Expression: Apache-2.0", "License-Expression: MIT"))
    assert "must be Apache-2.0, got MIT" in problems("metadata", wheel)


def test_metadata_wants_classifiers_and_entry_points(broken, problems):
    wheel = broken("core", edit_metadata("Classifier: Typing :: Typed\n", ""))
    assert "no classifier `Typing :: Typed`" in problems("metadata", wheel)
    wheel = broken("cpu", lambda members, w: members.pop(f"{w.dist_info}/entry_points.txt"))
    assert "entry_points.txt: lacks `cpu = clover_ops_cpu`" in problems("metadata", wheel)


def test_metadata_compares_tags_with_the_file_name(broken, problems, good):
    name = good["cpu"].path.name.replace("py3-none", "cp311-cp311")
    assert "must be py3-none" in problems("metadata", broken("cpu", nothing, name))


def test_metadata_wants_links_in_a_release(broken, problems, monkeypatch):
    monkeypatch.setenv("CLOVER_OPS_REPOSITORY", "https://example.invalid/clover-ops")

    def edit(members, wheel):
        member = f"{wheel.dist_info}/METADATA"
        text = re.sub(r"Project-URL: .*\n", "", members[member].decode())
        links = "".join(f"Project-URL: {n}, https://example.invalid/{n}\n" for n in ("Repository", "Documentation"))
        members[member] = text.replace("Requires-Python", links + "Requires-Python", 1).encode()

    assert "no Project-URL for Changelog" in problems("metadata", broken("cpu", edit))


def test_tag_finds_newer_symbols(broken, problems):
    def edit(members, wheel):
        data = members[library(wheel)]
        # One version's name becomes another of the same length; auditwheel does not look at its hash.
        old = re.search(rb"\0GLIBC_2\.(1\d|2[0-8])\0", data)
        members[library(wheel)] = data[: old.start()] + b"\0GLIBC_2.38\0" + data[old.end() :]

    said = problems("tag", broken("cpu", edit))
    assert "manylinux_2_28_x86_64.whl: its symbols are manylinux_2_3" in said and "GLIBC_2.38" in said


def test_tag_wants_the_tag(broken, problems, good):
    name = good["cpu"].path.name.replace("manylinux_2_28", "manylinux_2_34")
    assert "the platform must be manylinux_2_28_x86_64, got manylinux_2_34" in problems(
        "tag", broken("cpu", nothing, name)
    )


@pytest.mark.parametrize(
    "needed, says",
    [
        ("libcudart.so.13", "links libcudart.so.13: drivers and frameworks are opened at run time, never linked"),
        ("libcuda.so.1", "links libcuda.so.1: drivers"),
        ("libamdhip64.so.5", "links libamdhip64.so.5: drivers"),
        ("libtorch_cpu.so", "links libtorch_cpu.so: drivers and frameworks"),
        ("libstdc++.so.6", "links libstdc++.so.6, which not every machine of the tag has"),
        ("libgomp.so.1", "links libgomp.so.1, which"),
        ("libtvm_ffi.so", "links libtvm_ffi.so, and METADATA does not require apache-tvm-ffi"),
    ],
)
def test_needed_finds_a_surprise(broken, problems, patch_elf, needed, says):
    def edit(members, wheel):
        members[library(wheel)] = patch_elf(members[library(wheel)], "--add-needed", needed)

    assert f"libclover_ops_cpu.so: {says}" in problems("needed", broken("cpu", edit))


def test_needed_compares_the_machine(broken, problems):
    def edit(members, wheel):
        data = bytearray(members[library(wheel)])
        struct.pack_into("<H", data, 18, 183)
        members[library(wheel)] = bytes(data)

    assert "is for aarch64, the wheel for x86_64" in problems("needed", broken("cpu", edit))


@pytest.mark.parametrize("path", ["/usr/local/cuda/lib64", "$ORIGIN/../torch/lib", "$ORIGIN:/opt/dtk/lib", "lib"])
def test_rpath_stays_inside(broken, problems, patch_elf, path):
    def edit(members, wheel):
        members[library(wheel)] = patch_elf(members[library(wheel)], "--set-rpath", path)

    said = problems("rpath", broken("cpu", edit))
    assert f"libclover_ops_cpu.so: RPATH `{path.split(':')[-1]}` leads outside clover_ops_cpu/" in said


def test_exports_are_the_abi(broken, problems, patch_elf, tmp_path):
    renaming = tmp_path / "renaming"
    renaming.write_text("clover_cast cast_of_mine\n", encoding="utf-8")

    def edit(members, wheel):
        members[library(wheel)] = patch_elf(members[library(wheel)], "--rename-dynamic-symbols", str(renaming))

    said = problems("exports", broken("core", edit))
    assert "libclover_ops.so: exports cast_of_mine: no part of the ABI" in said
    assert "libclover_ops.so: does not export clover_cast, which the headers declare" in said


def test_a_plugin_exports_its_entry(broken, problems, patch_elf, tmp_path):
    renaming = tmp_path / "renaming"
    renaming.write_text("clover_plugin_entry clover_plugin_exit\n", encoding="utf-8")

    def edit(members, wheel):
        members[library(wheel)] = patch_elf(members[library(wheel)], "--rename-dynamic-symbols", str(renaming))

    said = problems("exports", broken("cpu", edit))
    assert "exports clover_plugin_exit" in said and "does not export clover_plugin_entry" in said


def edit_manifest(old: str, new: str):
    def edit(members, wheel):
        member = f"{wheel.package}/plugin.manifest"
        assert old in members[member].decode()
        members[member] = members[member].decode().replace(old, new).encode()

    return edit


def test_device_code_of_a_promised_architecture_is_there(broken, problems):
    wheel = broken("nvidia", edit_manifest("architecture sm_90\n", "architecture sm_90\narchitecture sm_103\n"))
    assert "libclover_ops_nvidia.so: no code object for sm_103, which the manifest promises" in problems(
        "device_code", wheel
    )


def test_device_code_that_nobody_promised(broken, problems):
    wheel = broken("nvidia", edit_manifest("architecture sm_120\n", ""))
    assert "code objects for sm_120, which the manifest does not name" in problems("device_code", wheel)


def test_device_code_lost_from_the_library(broken, problems):
    """As when a build embeds an artifact that lacks an architecture: its objects are no longer in the library."""

    def edit(members, wheel):
        data, start = bytearray(members[library(wheel)]), 4
        while (start := data.find(b"\x7fELF", start)) >= 0:
            if struct.unpack_from("<H", data, start + 18)[0] == 190 and data[start + 49] == 90:
                data[start : start + 4] = b"\0\0\0\0"
            start += 4
        members[library(wheel)] = bytes(data)

    assert "no code object for sm_90, which the manifest promises" in problems("device_code", broken("nvidia", edit))


def test_device_code_is_in_gpu_wheels_only(broken, problems, good):
    cubin = good["nvidia"].libraries[library(good["nvidia"])]
    start = cubin.find(b"\x7fELF", 4)

    def edit(members, wheel):
        members[library(wheel)] += cubin[start : start + 4096]

    said = problems("device_code", broken("cpu", edit))
    assert "libclover_ops_cpu.so: holds device code for sm_" in said and "only a GPU plugin may" in said


def compiled(target: str, image: bytes, request: str = "0" * 64) -> dict[str, bytes]:
    """A compiled Triton kernel as a bundle holds it: file name -> bytes."""
    header = f"request: {request}\ntarget: {target}\n".encode()
    body = b"CLOVERJ1" + struct.pack("<I", len(header)) + header + struct.pack("<Q", len(image)) + image
    return {f"bundle/{request}.clvk": body + hashlib.sha256(body).digest()}


CUBIN = struct.pack("<4s4xB9xH28xI12x", b"\x7fELF", 8, 190, 0x6005A04) + b"\0-arch sm_90a -m 64\0"
KERNELS = {
    "triton/kernels.toml": b"[[kernel]]\n",
    "triton/delta_rule.py": b"import triton\n",
    **compiled("cuda:90:32", CUBIN),
}


@pytest.fixture
def with_kernels(broken):
    """with_kernels(name, more={}, without=()): the good wheel as it is with Triton kernels, then changed."""

    def make(name: str, more: dict[str, bytes] | None = None, without: tuple[str, ...] = ()):
        from release import data, sbom
        from release.wheel import Wheel

        def edit(members, wheel):
            manifest = f"{wheel.package}/plugin.manifest"
            members[manifest] += b"provider gated_delta_rule 10 triton\n"
            for old in [m for m in members if m.split("/")[1] in ("bundle", "triton", "tuned")]:
                del members[old]
            for file, content in {**KERNELS, **(more or {})}.items():
                members[f"{wheel.package}/{file}"] = content
            for file in without:
                del members[f"{wheel.package}/{file}"]

        def renew(members, wheel):
            edit(members, wheel)
            members[sbom.member(wheel)] = sbom.text(middle, data.load().table["needed"]["system"]).encode()

        middle = Wheel(broken(name, edit).path)
        middle.members  # noqa: B018  read before the file is written again
        return broken(name, renew)

    return make


def test_triton_kernels_of_a_plugin_that_provides_them_pass(with_kernels, problems):
    wheel = with_kernels("nvidia", {"tuned/nvidia-h200.txt": b"clover-tuned 1\n"})
    for gate in ("contents", "metadata", "tag", "device_code", "triton", "records", "sbom"):
        assert problems(gate, wheel) == "", gate


@pytest.mark.parametrize(
    "lost, pattern",
    [
        ("triton/kernels.toml", "triton/kernels.toml"),
        ("triton/delta_rule.py", "triton/*.py"),
        (f"bundle/{'0' * 64}.clvk", "bundle/*.clvk"),
    ],
)
def test_triton_kernels_that_are_provided_are_there(with_kernels, problems, lost, pattern):
    said = problems("triton", with_kernels("nvidia", without=(lost,)))
    assert f"clover_ops_nvidia/{pattern}: missing; the manifest names Triton providers" in said


@pytest.mark.parametrize("file", ["triton/kernels.toml", "bundle/a.clvk", "tuned/cpu.txt"])
def test_triton_kernels_are_nowhere_else(broken, problems, file):
    member = f"clover_ops_cpu/{file}"
    said = problems("triton", broken("cpu", lambda members, _: members.update({member: b"#\n"})))
    assert f"{member}: of the Triton kernels, and no provider of slots 10 to 19 uses it" in said


def test_triton_folders_hold_nothing_else(with_kernels, problems):
    said = problems("triton", with_kernels("nvidia", {"triton/notes.md": b"#\n", "bundle/old/a.clvk": b"#\n"}))
    assert "clover_ops_nvidia/triton/notes.md: is no part of the Triton kernels" in said
    assert "clover_ops_nvidia/bundle/old/a.clvk: is no part of the Triton kernels" in said


def test_compiled_triton_kernels_are_sound(with_kernels, problems):
    name = f"bundle/{'0' * 64}.clvk"
    damaged = {name: KERNELS[name][:-1] + b"!"}
    assert f"{name}: is damaged" in problems("triton", with_kernels("nvidia", damaged))
    foreign = compiled("hip:gfx906:64", CUBIN)
    said = problems("triton", with_kernels("nvidia", foreign))
    assert f"{name}: is for gfx906, which the manifest does not name" in said
    assert "says hip:gfx906:64 and holds code for sm_90a" in said
    misnamed = {f"bundle/{'1' * 64}.clvk": KERNELS[name]}
    assert f"holds the kernel of request {'0' * 64}: it would never be found" in problems(
        "triton", with_kernels("nvidia", misnamed)
    )


def test_contents_finds_a_path_of_the_build_in_a_compiled_kernel(with_kernels, problems):
    kernel = compiled("cuda:90:32", CUBIN + b"\0/home/me/clover/common/kernels/triton/delta_rule.py\0")
    said = problems("contents", with_kernels("nvidia", kernel))
    assert "names /home/me/clover/common/kernels/triton/delta_rule.py, a path of the machine that built it" in said


def test_sbom_names_what_compiled_the_bundle(with_kernels, broken, problems):
    from release import sbom

    good = with_kernels("nvidia")
    assert '"name": "Triton"' in good.members[sbom.member(good)].decode()
    new = {"clover_ops_cpu/" + name: content for name, content in KERNELS.items()}
    assert "Triton is in the wheel" in problems("sbom", broken("cpu", lambda members, _: members.update(new)))


def test_records_are_true(broken, problems):
    wheel = broken("cpu", lambda m, w: m.update({"clover_ops_cpu/__init__.py": b"#\n"}), renew_record=False)
    assert "clover_ops_cpu/__init__.py: differs from its digest in RECORD" in problems("records", wheel)
    wheel = broken("cpu", lambda m, w: m.update({"clover_ops_cpu/new.py": b"#\n"}), renew_record=False)
    assert "clover_ops_cpu/new.py: is not in RECORD" in problems("records", wheel)
    wheel = broken("cpu", lambda m, w: m.pop("clover_ops_cpu/__init__.py"), renew_record=False)
    assert "clover_ops_cpu/__init__.py: is in RECORD and not in the wheel" in problems("records", wheel)


def test_records_are_disjoint(broken, problems, good):
    wheel = broken("cpu", lambda members, _: members.update({"clover_ops/__init__.py": b"#\n"}))
    said = problems("records", good["core"], wheel)
    assert f"clover_ops/__init__.py: {good['core'].path.name} owns a file of this name too" in said


def test_size_has_a_budget(broken, problems):
    wheel = broken("cpu", lambda members, _: members.update({"clover_ops_cpu/table.bin": os.urandom(11_000_000)}))
    assert "MB, its budget is 10 MB" in problems("size", wheel)


def edit_sbom(change):
    def edit(members, wheel):
        from release import sbom

        document = json.loads(members[sbom.member(wheel)])
        change(document)
        members[sbom.member(wheel)] = json.dumps(document).encode()

    return edit


def test_sbom_is_there(broken, problems):
    from release import sbom

    assert ".cdx.json: missing" in problems("sbom", broken("cpu", lambda members, w: members.pop(sbom.member(w))))


def test_sbom_is_valid(broken, problems):
    wheel = broken("cpu", edit_sbom(lambda document: document.update(bomFormat="Clover")))
    assert "is no CycloneDX document" in problems("sbom", wheel)


def linked_statically(wheel) -> str:
    """The C++ run time inside, which depends on the compiler."""
    from release import sbom

    (name,) = [
        part["name"]
        for part in json.loads(wheel.members[sbom.member(wheel)])["components"]
        if {"name": "clover-ops:linkage", "value": "static"} in part["properties"]
    ]
    return name


def test_sbom_lists_what_is_linked(broken, problems, good):
    name = linked_statically(good["cpu"])

    def drop(document):
        document["components"] = [c for c in document["components"] if c["name"] != name]
        document["dependencies"] = []

    said = problems("sbom", broken("cpu", edit_sbom(drop)))
    assert f"{name} is in the wheel" in said and "not listed" in said


def test_sbom_lists_nothing_else(broken, problems):
    wheel = broken("cpu", edit_sbom(lambda d: d["components"].append({"type": "library", "name": "zlib"})))
    assert "lists zlib, which is not in the wheel" in problems("sbom", wheel)


def test_sbom_notices_a_new_link(broken, problems, patch_elf):
    """A library that begins to link tvm_ffi: the bill of materials was made before."""

    def edit(members, wheel):
        members[library(wheel)] = patch_elf(members[library(wheel)], "--add-needed", "libtvm_ffi.so")

    assert "apache-tvm-ffi is in the wheel" in problems("sbom", broken("cpu", edit))


def test_third_party_names_what_is_linked(broken, problems, good):
    name = linked_statically(good["cpu"])

    def edit(members, wheel):
        member = f"{wheel.dist_info}/licenses/THIRD_PARTY.txt"
        members[member] = members[member].replace(name.encode(), b"a C++ run time")

    said = problems("sbom", broken("cpu", edit))
    assert f"THIRD_PARTY.txt: does not name {name}" in said


def test_lockstep_of_versions(broken, problems, good):
    name = good["cpu"].path.name.replace("0.1.0", "0.1.1")
    wheel = broken("cpu", edit_metadata("Version: 0.1.0", "Version: 0.1.1"), name)
    assert "is version 0.1.1, the checkout is 0.1.0" in problems("lockstep", wheel)
    wheel = broken("cpu", edit_manifest("version 0.1.0\n", "version 0.1.1\n"))
    assert "plugin.manifest: says version ['0.1.1'], not 0.1.0" in problems("lockstep", wheel)


def test_lockstep_of_pins(broken, problems):
    wheel = broken("cpu", edit_metadata("clover-ops==0.1.0", "clover-ops>=0.1.0"))
    assert "`clover-ops>=0.1.0` must pin ==0.1.0" in problems("lockstep", wheel)
    wheel = broken("cpu", edit_metadata("Requires-Dist: clover-ops==0.1.0\n", ""))
    assert "does not require clover-ops==0.1.0" in problems("lockstep", wheel)


def test_lockstep_of_extras(broken, problems):
    wheel = broken("core", edit_metadata('Requires-Dist: clover-ops-cpu==0.1.0; extra == "cpu"\n', ""))
    assert "METADATA: no extra `cpu`" in problems("lockstep", wheel)
    wheel = broken("core", edit_metadata('Requires-Dist: clover-ops-nvidia==0.1.0; extra == "all"\n', ""))
    assert "extra `all` does not ask for clover-ops-nvidia on x86_64" in problems("lockstep", wheel)


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_lockstep_never_pins_a_vendor(broken, problems, package):
    wheel = broken("core", edit_metadata(f"Requires-Dist: {package}; ", f"Requires-Dist: {package}>=3.2; "))
    assert f"would replace a vendor's {package}: ask for no version" in problems("lockstep", wheel)


def test_lockstep_wants_every_wheel(problems, good):
    said = problems("lockstep", good["core"], machines=("x86_64", "aarch64"))
    assert "clover-ops-cpu for x86_64: there is no wheel of it" in said
    assert "clover-ops for aarch64: there is no wheel of it" in said
    assert "clover-ops-hygon for aarch64" not in said


def changelog(tmp_path, text: str):
    (tmp_path / "common" / "clover_ops").mkdir(parents=True)
    (tmp_path / "common" / "clover_ops" / "_version.py").write_text('__version__ = "0.2.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_changelog_has_an_entry(problems, tmp_path):
    root = changelog(tmp_path, "# Changelog\n\n## 0.1.0 (unreleased)\n\n- first\n")
    assert "CHANGELOG.md: no entry `## 0.2.0 (YYYY-MM-DD)`; there is 0.1.0" in problems("changelog", root=root)


def test_changelog_entry_is_not_empty(problems, tmp_path):
    root = changelog(tmp_path, "# Changelog\n\n## 0.2.0 (2026-12-24)\n\n## 0.1.0 (2026-12-01)\n\n- first\n")
    assert "the entry of 0.2.0 is empty" in problems("changelog", root=root)


def test_changelog_on_a_tag(problems, tmp_path, monkeypatch):
    root = changelog(tmp_path, "# Changelog\n\n## 0.2.0 (unreleased)\n\n- second\n")
    monkeypatch.setenv("CLOVER_RELEASE_TAG", "v0.2.0")
    assert "the entry of 0.2.0 has no date" in problems("changelog", root=root)
    monkeypatch.setenv("CLOVER_RELEASE_TAG", "v0.3.0")
    assert "the tag is v0.3.0, the version is 0.2.0" in problems("changelog", root=root)
