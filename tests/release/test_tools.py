"""The pieces that a release is made of, apart from the gates."""

from __future__ import annotations

import importlib.util
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_script(name: str):
    sys.path.insert(0, str(ROOT / "ci"))
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), ROOT / "ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_distribution_is_found_by_being_there(tmp_path):
    from release import projects

    for folder in ("packaging/cpu", "backends/toy", "packaging/nothing"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("packaging/cpu", "backends/toy"):
        (tmp_path / folder / "pyproject.toml").touch()
    assert projects.find(tmp_path) == {"core": ".", "cpu": "packaging/cpu", "toy": "backends/toy"}


def test_a_distribution_takes_the_defaults_or_its_own():
    from release import data

    loaded = data.load()
    assert loaded.machines("toy") == ["x86_64", "aarch64"] and loaded.of("toy", "wheel_mb") == 10
    assert loaded.machines("hygon") == ["x86_64"] and loaded.of("core", "wheel_mb") == 5


def test_an_unknown_key_is_refused(tmp_path):
    from release import data

    text = data.FILE.read_text(encoding="utf-8").replace(
        "[distributions.core]\n", "[distributions.core]\nwheel_gb = 5\n"
    )
    (tmp_path / "release.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="core: unknown key `wheel_gb`"):
        data.load(file=tmp_path / "release.toml")


def test_a_wheel_is_written_the_same_twice(good, tmp_path, monkeypatch):
    from release import repack

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    wheel = good["core"]
    shuffled = dict(reversed(wheel.members.items()))
    repack.write(tmp_path / "a.whl", dict(wheel.members), wheel.dist_info)
    repack.write(tmp_path / "b.whl", shuffled, wheel.dist_info)
    assert (tmp_path / "a.whl").read_bytes() == (tmp_path / "b.whl").read_bytes()


def test_a_difference_between_two_builds_is_named(good, broken):
    differences = load_script("release/check_reproducible").differences
    path = good["cpu"].path
    assert differences(path, path) == []
    changed = broken("cpu", lambda members, w: members.update({"clover_ops_cpu/__init__.py": b"# /home/me\n"}))
    assert any(text.startswith("clover_ops_cpu/__init__.py: ") for text in differences(path, changed.path))
    more = broken("cpu", lambda members, w: members.update({"clover_ops_cpu/new.py": b""}))
    assert "clover_ops_cpu/new.py: only in the second" in differences(path, more.path)


def test_repair_refuses_what_the_tag_does_not_promise(broken, good, patch_elf, tmp_path):
    from release import data, repair

    def edit(members, wheel):
        name = "clover_ops_cpu/libclover_ops_cpu.so"
        members[name] = patch_elf(members[name], "--add-needed", "libgomp.so.1")

    name = good["cpu"].path.name.replace("manylinux_2_28", "linux")
    with pytest.raises(SystemExit, match=r"cannot carry the tag manylinux_2_28_x86_64: .*libgomp\.so\.1"):
        repair.repair(broken("cpu", edit, name).path, tmp_path / "out", data.load())


def test_repair_leaves_drivers_alone(broken, good, patch_elf, tmp_path):
    """They are excluded, not grafted; the gate `needed` then tells of them."""
    from release import data, repair, wheel

    def edit(members, _):
        name = "clover_ops_cpu/libclover_ops_cpu.so"
        members[name] = patch_elf(members[name], "--add-needed", "libcuda.so.1")

    name = good["cpu"].path.name.replace("manylinux_2_28", "linux")
    repaired = wheel.Wheel(repair.repair(broken("cpu", edit, name).path, tmp_path / "out", data.load()))
    assert sorted(repaired.libraries) == ["clover_ops_cpu/libclover_ops_cpu.so"]


def test_links_come_from_the_release(tmp_path):
    from release import projects, tree

    folders = list(projects.find(ROOT).values())
    tree.export(tmp_path / "copy", ROOT)
    tree.stamp(tmp_path / "copy", folders, "https://example.invalid/clover-ops", "1.2.3")
    for folder in folders:
        text = (tmp_path / "copy" / folder / "pyproject.toml").read_text(encoding="utf-8")
        assert 'Changelog = "https://example.invalid/clover-ops/blob/v1.2.3/CHANGELOG.md"' in text
    readme = (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")
    assert "](https://example.invalid/clover-ops/blob/v1.2.3/docs/operators.md)" in readme
    assert not re.search(r"\]\((?!https?:|#)", readme)
    assert "example.invalid" not in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_copy_of_the_checkout_follows_it(tmp_path):
    from release import tree

    root, copy = tmp_path / "root", tmp_path / "copy"
    (root / "a").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("ignored\n", encoding="utf-8")
    for name in ("a/one", "two", "ignored"):
        (root / name).write_text(name, encoding="utf-8")
    tree.export(copy, root)
    assert sorted(p.relative_to(copy).as_posix() for p in copy.rglob("*") if p.is_file()) == [
        ".gitignore",
        "a/one",
        "two",
    ]
    before = (copy / "two").stat().st_mtime_ns
    (root / "a" / "one").unlink()
    (copy / "stray").write_text("left by a build", encoding="utf-8")
    tree.export(copy, root)
    assert sorted(p.name for p in copy.iterdir() if p.is_file()) == [".gitignore", "two"] and not (copy / "a").exists()
    assert (copy / "two").stat().st_mtime_ns == before


def test_a_build_is_repeated_when_anything_that_it_reads_changes(tmp_path, monkeypatch):
    from release import tree

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build\nignored\n", encoding="utf-8")
    code = tmp_path / "build" / "device-code" / "toy"
    code.mkdir(parents=True)
    seen = [tree.digest(tmp_path)]
    (tmp_path / "ignored").write_text("of no matter", encoding="utf-8")
    assert tree.digest(tmp_path) == seen[0]

    def changed() -> bool:
        seen.append(tree.digest(tmp_path))
        return seen[-1] not in seen[:-1]

    (tmp_path / "a.cpp").write_text("int a;", encoding="utf-8")
    assert changed()
    (tmp_path / "a.cpp").write_text("int b;", encoding="utf-8")
    assert changed()
    (tmp_path / "a.cpp").rename(tmp_path / "b.cpp")
    assert changed()
    (code / "0123.cubin").write_bytes(b"of one toolkit")
    assert changed()
    (code / "0123.cubin").write_bytes(b"of another")
    assert changed()
    monkeypatch.setenv("CXXFLAGS", "-O0")
    assert changed()


def test_containers_are_planned_by_distribution_and_machine():
    from release import containers, data

    plan = containers.plan(data.load())
    assert {"distribution": "core", "machine": "aarch64", "runner": "ubuntu-24.04-arm"} in plan
    assert not any(job["distribution"] == "hygon" and job["machine"] != "x86_64" for job in plan)
    environment = containers.environment(data.load())
    assert (
        environment["CIBW_MANYLINUX_AARCH64_IMAGE"] == "manylinux_2_28" and environment["SOURCE_DATE_EPOCH"].isdigit()
    )


def test_notes_are_the_entry(tmp_path):
    from release import notes

    file = tmp_path / "CHANGELOG.md"
    file.write_text(
        "# Changelog\n\n## 1.1.0 (2026-12-24)\n\n- new\n\n## 1.0.0 (2026-12-01)\n\n- old\n", encoding="utf-8"
    )
    assert notes.entry(file, "1.1.0") == notes.Entry("1.1.0", "2026-12-24", "- new\n")
    assert notes.entry(file, "1.0.0").text == "- old\n"
    with pytest.raises(notes.NoEntry, match=r"there is 1\.1\.0, 1\.0\.0"):
        notes.entry(file, "2.0.0")


def test_checksums_notice_a_changed_and_a_missing_file(tmp_path):
    for name in ("a.whl", "b.tar.gz"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    script = str(ROOT / "ci" / "release" / "checksums.sh")
    subprocess.run([script, str(tmp_path)], check=True, capture_output=True)
    subprocess.run([script, "--check", str(tmp_path)], check=True, capture_output=True)
    (tmp_path / "c.whl").write_text("not listed", encoding="utf-8")
    done = subprocess.run([script, "--check", str(tmp_path)], check=False, capture_output=True, text=True)
    assert done.returncode != 0 and "lists 2 files, 3 are there" in done.stderr
    (tmp_path / "c.whl").unlink()
    (tmp_path / "a.whl").write_text("changed", encoding="utf-8")
    assert subprocess.run([script, "--check", str(tmp_path)], check=False, capture_output=True).returncode != 0


def test_pull_requests_run_every_test_session(tmp_path):
    jobs = load_script("plan_tests").jobs(["lint", "test-cpu", "test-hygon", "test-sanitizers"])
    assert {"test-cpu", "test-hygon", "release-check"} <= {job["sessions"] for job in jobs}
    assert not any(job["sessions"] in ("lint", "test-sanitizers") for job in jobs)


def test_workflows_call_sessions_and_scripts_alone(tmp_path, monkeypatch):
    pytest.importorskip("ruamel.yaml", reason="the session `lint` installs it, and checks the workflows")
    check = load_script("check_workflows")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    steps = [{"run": "python3 noxfile.py -s lint dance"}, {"run": "ci/absent.sh"}, {"run": "pip install x"}]
    file = tmp_path / "workflow.yml"
    file.write_text(json.dumps({"jobs": {"a": {"steps": steps}}}), encoding="utf-8")
    assert check.problems_of(file, {"lint"}) == [
        "workflow.yml: no session `dance`",
        "workflow.yml: ci/absent.sh is no script that can be run",
        "workflow.yml: `pip install x` is neither a nox session nor a script in ci/",
    ]


def image(machine: int, flags: int, abi: int, text: bytes) -> bytes:
    """As much of a code object as says what it is for."""
    header = bytearray(64)
    header[:4], header[8] = b"\x7fELF", abi
    struct.pack_into("<H", header, 18, machine)
    struct.pack_into("<I", header, 48, flags)
    return bytes(header) + text


def test_code_objects_are_known_by_what_is_in_them():
    from release import elf

    host = image(62, 0, 0, b"code of the host")
    objects = [
        image(190, 0x6005A04, 8, b"\0-arch sm_90a -m 64\0"),
        image(190, 0x6007802, 8, b"no note"),
        image(190, 0x500550, 7, b"an older toolkit's"),
        image(224, 0, 3, b"amdhsa.target\xb9amdgcn-amd-amdhsa--gfx906"),
        image(224, 0, 4, b"amdgcn-amd-amdhsa--gfx936:sramecc+:xnack-"),
        image(224, 0x53F, 3, b"amdhsa.target\xd9$amdgpu9.0a-amd-amdhsa-unknown-gfx90a\xaeamdhsa.version"),
    ]
    ptx = b".version 9.0\n.target sm_90\n.address_size 64\n"
    found = elf.code_objects(host + b"".join(objects) + ptx)
    assert found == ["compute_90", "gfx906", "gfx90a", "gfx936", "sm_120", "sm_80", "sm_90a"]
    assert elf.code_objects(host) == []
