"""ci/build_device_code.py and common/device/embed.py on a small tree, with a script in nvcc's place."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.smoke

NVCC = """#!{python}
import pathlib, re, sys
if "--version" in sys.argv:
    print("{banner}")
    sys.exit()
output, source = sys.argv[sys.argv.index("-o") + 1], pathlib.Path(sys.argv[-1])
with open("compiled.txt", "a") as log:
    log.write(pathlib.Path(output).name + "\\n")
text = source.read_text()
if "BROKEN" in text:
    sys.exit("error: it is broken")
names = re.findall(r"kernel (\\w+)", text)
pathlib.Path(output).write_text("".join(f".entry {{name}}(\\n" for name in names) or "code")
for name in names:
    print(f"ptxas info    : Compiling entry function '{{name}}' for 'sm_90'", file=sys.stderr)
    print("    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads", file=sys.stderr)
    print("ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem", file=sys.stderr)
"""

TABLE = """
folders = ["kernels"]
[architectures]
cubin = ["80", "90"]
ptx = ["90"]
[sources]
"kernels/a.cu" = {}
"kernels/b.cu" = { cubin = ["90a"], ptx = [] }
"""


class Tree:
    """A checkout with two device sources."""

    def __init__(self, root):
        self.root = root
        self.artifact = root / "build" / "device-code" / "nvidia"
        names = ["ci/build_device_code.py", "common/device/embed.py", "common/device/sources.py"]
        names += [path.relative_to(ROOT).as_posix() for path in (ROOT / "ci" / "device_code").glob("*.py")]
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        (root / "backends" / "nvidia").mkdir(parents=True)
        (root / "kernels").mkdir()
        self.write("backends/nvidia/device_code.toml", TABLE)
        self.write("kernels/shared.h", "// shared")
        self.write("kernels/a.cu", '#include "shared.h"\n// kernel a_one, kernel a_two')
        self.write("kernels/b.cu", "// kernel b_one")
        self.compiler("release 13.0, V13.0.88, NVIDIA")

    def write(self, name, text):
        (self.root / name).write_text(text)

    def compiler(self, banner):
        (self.root / "bin").mkdir(exist_ok=True)
        nvcc = self.root / "bin" / "nvcc"
        nvcc.write_text(NVCC.format(python=sys.executable, banner=banner))
        nvcc.chmod(0o755)

    def build(self):
        """(exit status, output, names of the files that were compiled)"""
        log = self.root / "compiled.txt"
        log.write_text("")
        environment = {**os.environ, "CUDA_HOME": str(self.root)}
        result = self._run(environment, "ci/build_device_code.py", "nvidia")
        compiled = sorted(line.removesuffix(".partial") for line in log.read_text().splitlines())
        return result.returncode, result.stdout + result.stderr, compiled

    def embed(self):
        """(exit status, output)"""
        arguments = (self.root, self.artifact, self.root / "out", "run THE SESSION")
        result = self._run(None, "common/device/embed.py", *map(str, arguments))
        return result.returncode, result.stdout + result.stderr

    def record(self):
        return json.loads((self.artifact / "device-code.json").read_text())

    def _run(self, environment, *command):
        return subprocess.run(
            [sys.executable, *command], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


A = ["kernels-a.compute_90.ptx", "kernels-a.sm_80.cubin", "kernels-a.sm_90.cubin"]
B = ["kernels-b.sm_90a.cubin"]


def test_record(tree):
    status, output, compiled = tree.build()
    assert status == 0, output
    assert compiled == A + B
    record = tree.record()
    assert record["complete"] and record["toolchain"] == "nvcc 13.0.88" and record["driver_version"] == 13000
    assert [entry["file"] for entry in record["objects"]] == [A[1], A[2], A[0], B[0]]
    (kernel,) = record["objects"][3]["kernels"]
    assert kernel == {
        "name": "b_one", "stack": 16, "spill_stores": 8, "spill_loads": 4, "registers": 40, "shared": 1024,
    }  # fmt: skip
    assert record["objects"][0]["inputs"] == ["kernels/a.cu", "kernels/shared.h"]
    assert "spills: b_one" in output


def test_only_what_changed_is_compiled(tree):
    tree.build()
    assert tree.build()[2] == []
    tree.write("kernels/shared.h", "// changed")
    assert tree.build()[2] == A
    (tree.artifact / B[0]).write_text("damaged")
    assert tree.build()[2] == B
    tree.compiler("release 13.1, V13.1.5, NVIDIA")
    assert tree.build()[2] == A + B


def test_what_is_no_longer_wanted_goes(tree):
    tree.build()
    tree.write("backends/nvidia/device_code.toml", TABLE.replace('cubin = ["80", "90"]', 'cubin = ["90"]'))
    assert tree.build()[0] == 0
    assert sorted(path.name for path in tree.artifact.iterdir()) == ["device-code.json", A[0], A[2], B[0]]


def test_failure(tree):
    tree.write("kernels/b.cu", "// kernel b_one BROKEN")
    status, output, _ = tree.build()
    assert status == 1 and "kernels-b.sm_90a.cubin: nvcc failed" in output and "it is broken" in output
    assert "is incomplete" in tree.embed()[1]
    tree.write("kernels/b.cu", "// kernel b_one")
    assert tree.build()[2] == B  # the others were kept
    assert tree.embed()[0] == 0


def test_source_that_is_not_listed(tree):
    tree.write("kernels/c.cu", "// kernel c_one")
    status, output, _ = tree.build()
    assert status == 1 and "does not list kernels/c.cu" in output


def test_source_without_a_kernel(tree):
    tree.write("kernels/b.cu", "// nothing")
    status, output, _ = tree.build()
    assert status == 1 and "kernels/b.cu has no kernel" in output


def test_compiler_of_another_vendor(tree):
    tree.compiler("DTK's own nvcc")
    status, output, _ = tree.build()
    assert status == 1 and "is not NVIDIA's compiler: it calls itself DTK's own nvcc" in output


def test_embedding(tree):
    tree.build()
    status, output = tree.embed()
    assert status == 0, output
    text = (tree.root / "out" / "device_code.cpp").read_text()
    assert '{"90a", ImageKind::kBinary, clover_device_code_3, kernels_3, 1, 32, nullptr}' in text
    assert '"sm_80 sm_90 sm_90a compute_90"' in text and '"nvcc 13.0.88"' in text
    values = (tree.root / "out" / "device_code.cmake").read_text()
    assert 'set(clover_device_architectures "sm_80;sm_90;sm_90a;compute_90")' in values
    assert "set(clover_device_driver_version 13000)" in values


def test_embedding_leaves_an_unchanged_file_alone(tree):
    tree.build()
    tree.embed()
    before = (tree.root / "out" / "device_code.cpp").stat().st_mtime_ns
    tree.embed()
    assert (tree.root / "out" / "device_code.cpp").stat().st_mtime_ns == before


def test_refused_artifacts(tree):
    status, output = tree.embed()
    assert status == 1 and "there is no device code" in output and "run THE SESSION" in output

    tree.build()
    tree.write("kernels/shared.h", "// newer")
    status, output = tree.embed()
    assert status == 1 and "is not of this checkout (kernels/a.cu)" in output and "run THE SESSION" in output

    tree.build()
    (tree.artifact / B[0]).write_text("damaged")
    status, output = tree.embed()
    assert status == 1 and f"{B[0]} is missing or damaged" in output

    record = tree.record()
    tree.build()
    (tree.artifact / "device-code.json").write_text(json.dumps({**record, "schema": 99}))
    status, output = tree.embed()
    assert status == 1 and "schema 99, this build reads 1" in output
