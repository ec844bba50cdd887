"""The commands, run as a user and as C++ run them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from clover_ops.jit import artifact, toolchain

from .conftest import KERNELS, jobs, needs_triton, python

BY_HAND = ("compile", "--kernels", str(KERNELS), "--kernel", "vector_add", "--x", "bf16")


def run(*arguments: str, module: str = "clover_ops.jit", text: str = "", path: Path | None = None, **variables: str):
    environment = {**os.environ, **variables}
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        python("-m", module, *arguments),
        input=text.encode(),
        capture_output=True,
        timeout=240,
        check=False,
        env=environment,
    )


@needs_triton
@pytest.mark.smoke
def test_a_request_on_stdin_gives_the_artifact_on_stdout(alone: Path):
    job, *_ = jobs("hip:gfx906")
    result = run("compile", "--kernels", str(KERNELS), "--request", "-", "--artifact", "-", text=job.request.text())
    assert result.returncode == 0, result.stderr
    artifact.check_request(artifact.load(result.stdout), job.request)
    (path,) = (alone / "jit").glob("*.clvk")
    assert path.read_bytes() == result.stdout


@needs_triton
@pytest.mark.smoke
def test_an_unusable_cache_warns_once_and_the_bytes_come_all_the_same(alone: Path):
    alone.write_text("in the way")
    job, *_ = jobs("cuda:90")
    result = run("compile", "--kernels", str(KERNELS), "--request", "-", "--artifact", "-", text=job.request.text())
    assert result.returncode == 0
    artifact.check_request(artifact.load(result.stdout), job.request)
    assert result.stderr.count(b"memory only") == 1


@pytest.mark.smoke
@pytest.mark.parametrize("text, says", [("clover-jit 9\n", "line 1"), ("", "does not end"), ("\xff\n", "line 1")])
def test_a_malformed_request_is_one_line_and_exit_1(text: str, says: str):
    result = run("compile", "--kernels", str(KERNELS), "--request", "-", "--artifact", "-", text=text)
    assert (result.returncode, result.stdout) == (1, b"")
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("clover-ops: ") and says in last


@needs_triton
@pytest.mark.smoke
def test_the_toolchain_is_two_lines():
    result = run("toolchain")
    assert result.returncode == 0
    assert result.stdout.decode() == toolchain.toolchain().text()
    assert [line.split(" ")[0] for line in result.stdout.decode().splitlines()] == ["triton", "backend"]


@needs_triton
def test_bundle_show_verify_and_list(tmp_path: Path):
    place = tmp_path / "out"
    options = ("--kernels", str(KERNELS), "--target", "cuda:90", "--target", "hip:gfx906", "--output", str(place))
    first = run("bundle", *options, "--json")
    assert first.returncode == 0, first.stderr
    answer = json.loads(first.stdout)
    assert (answer["compiled"], answer["failed"]) == (8, 0) and len(answer["kernels"]) == 8
    assert b"[8/8]" in first.stderr
    assert json.loads(run("bundle", *options, "--json").stdout)["up to date"] == 8
    assert run("verify", str(place)).returncode == 0
    some = sorted(place.iterdir())[0]
    shown = json.loads(run("show", str(some), "--json").stdout)
    assert shown["request"] == some.stem and shown["block"] == int(shown["num_warps"]) * int(shown["warp_size"])
    some.write_bytes(some.read_bytes()[:-1])
    broken = run("verify", str(place))
    assert broken.returncode == 1 and str(some).encode() in broken.stderr
    listed = json.loads(run("list", "--kernels", str(KERNELS), "--json").stdout)["kernels"]
    assert [row["kernel"] for row in listed] == ["vector_add", "scaled_add", "descriptor_copy"]


@needs_triton
def test_prebuild_and_the_cache(alone: Path):
    result = run("jit", "prebuild", "--kernels", str(KERNELS), "--target", "cuda:90", "--op", "gdn_gating",
                 module="clover_ops")  # fmt: skip
    assert result.returncode == 0, result.stderr
    shown = json.loads(run("jit", "cache", "show", "--json", module="clover_ops").stdout)
    assert [row["kernel"] for row in shown["artifacts"]] == ["scaled_add"] and shown["path"] == str(alone / "jit")
    (path,) = (alone / "jit").glob("*.clvk")
    path.write_bytes(b"CLOVERJ1")
    assert run("jit", "cache", "show", module="clover_ops").returncode == 1
    assert (
        b"1 compiled kernel(s) and tuning result(s) removed" in run("jit", "cache", "clear", module="clover_ops").stdout
    )
    assert not list((alone / "jit").glob("*.clvk"))


@pytest.mark.smoke
@pytest.mark.parametrize("command", [("compile", "--op", "cast"), ("prebuild",)])
def test_what_would_not_be_kept_is_not_compiled(command: tuple[str, ...]):
    options = ("--kernels", str(KERNELS), "--target", "cuda:90")
    result = run(*command, *options, CLOVER_OPS_CACHE_DIR="/dev/null")
    assert (result.returncode, result.stdout) == (1, b"")
    last = result.stderr.decode().splitlines()[-1]
    assert last == ("clover-ops: nothing would be kept, so nothing is compiled: the cache /dev/null: not a directory")


@pytest.mark.smoke
def test_a_mode_that_is_none_is_refused_where_kernels_are_compiled():
    result = run(*BY_HAND, "--target", "cuda:90", "--set", "BLOCK=256", CLOVER_OPS_JIT="maybe")
    assert result.returncode == 1 and b"CLOVER_OPS_JIT must be off, bundle or on, got `maybe`" in result.stderr


@needs_triton
def test_one_geometry_by_hand(tmp_path: Path):
    result = run("compile", "--kernels", str(KERNELS), "--kernel", "scaled_add", "--target", "hip:gfx90a", "--set", "SCALE=2",
                 "--set", "DOUBLE=false", "--set", "TYPE=fp16", "--set", "BLOCK=64", "--x", "fp16", "--spec", "n=16",
                 "--output", str(tmp_path / "out"))  # fmt: skip
    assert result.returncode == 0, result.stderr
    (path,) = (tmp_path / "out").iterdir()
    assert artifact.load(path.read_bytes()).arguments == ("*fp16", "*fp32", "*fp16", "i32")


@needs_triton
def test_an_unknown_target_is_refused(tmp_path: Path):
    result = run(
        "compile", "--kernels", str(KERNELS), "--op", "cast", "--target", "hip:gfx936", "--output", str(tmp_path)
    )
    assert result.returncode == 1
    assert b"does not know hip:gfx936" in result.stderr and b"DTK" in result.stderr
    assert not list(tmp_path.glob("*.clvk"))


@needs_triton
@pytest.mark.parametrize("target, code", [("hip:gfx936", 1), ("hip:gfx906", 0)])
def test_compile_leaves_other_artifacts_alone(tmp_path: Path, target: str, code: int):
    other = tmp_path / f"{'0' * 64}.clvk"
    other.write_bytes(b"other")
    result = run(*BY_HAND, "--target", target, "--set", "BLOCK=256", "--output", str(tmp_path))
    assert result.returncode == code, result.stderr
    assert other.read_bytes() == b"other" and (len(list(tmp_path.iterdir())) > 1) == (code == 0)


@needs_triton
@pytest.mark.parametrize("value, warps", [(256, "4"), (1024, "8")])
def test_a_constexpr_of_the_configurations_chooses_among_them(tmp_path: Path, value: int, warps: str):
    result = run(*BY_HAND, "--target", "cuda:90", "--set", f"BLOCK={value}", "--output", str(tmp_path))
    assert result.returncode == 0, result.stderr
    (path,) = tmp_path.iterdir()
    assert artifact.load(path.read_bytes())["num_warps"] == warps


@needs_triton
@pytest.mark.parametrize("place", ["/dev/null", "/dev/null/x", "/proc/no-such-place/x"])
def test_a_folder_that_cannot_be_made_is_one_line_and_exit_1(place: str):
    options = ("--kernels", str(KERNELS), "--target", "cuda:90", "--output", place)
    for command in (("compile", "--op", "cast"), ("bundle",)):
        result = run(*command, *options)
        assert (result.returncode, result.stdout) == (1, b"")
        (line,) = result.stderr.decode().splitlines()
        assert line.startswith(f"clover-ops: {place} cannot be made")


@needs_triton
@pytest.mark.parametrize(
    "place, says", [("/nonexist/x", "No such file"), ("/dev/full", "No space left"), ("-", "No space")]
)
def test_an_artifact_that_cannot_be_written_is_one_line_and_exit_1(place: str, says: str):
    job, *_ = jobs("cuda:90")
    command = python(
        "-m", "clover_ops.jit", "compile", "--kernels", str(KERNELS), "--request", "-", "--artifact", place
    )
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            command, input=job.request.text().encode(), stdout=full, stderr=-1, timeout=240, check=False
        )
    (line,) = result.stderr.decode().splitlines()
    assert result.returncode == 1 and line.startswith("clover-ops: the artifact cannot be written to ") and says in line


@pytest.mark.smoke
def test_the_cache_is_emptied_of_all_that_is_ours_and_of_nothing_else(alone: Path):
    one, other = "0" * 64, "1" * 64
    ours = [f"jit/{one}.clvk", f"jit/{one}.tuning", f"hip/{one}.clvk"]
    halves = [f"jit/.{one}.tuning.1.0badf00d.tmp", f"hip/{other}.aB3xYz"]
    others = [f"jit/{one}.lock", f"hip/{one}.lock", "hip/notes.txt", "tuned/nvidia-h200.txt"]
    for folder in (alone, alone / "jit", alone / "hip", alone / "tuned"):
        folder.mkdir(mode=0o700)
    for name in (*ours, *halves, *others):
        (alone / name).write_text("x")
    result = run("cache", "clear")
    assert result.returncode == 0 and b" 3 compiled kernel(s) and tuning result(s) removed" in result.stdout
    assert {str(path.relative_to(alone)) for path in alone.glob("*/*")} == set(others)


@pytest.mark.smoke
def test_a_cache_that_cannot_be_emptied_is_one_line_and_exit_1(alone: Path):
    (alone / "jit" / "d.clvk").mkdir(parents=True, mode=0o700)
    (alone / "jit" / f"{'0' * 64}.clvk").write_text("x")
    for folder in (alone, alone / "jit"):
        folder.chmod(0o700)
    result = run("cache", "clear")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode() == (
        f"clover-ops: {alone}: 1 file(s) removed, these cannot be: {alone / 'jit' / 'd.clvk'}: Is a directory\n"
    )
    assert [path.name for path in (alone / "jit").iterdir()] == ["d.clvk"]
    unusable = run("cache", "clear", CLOVER_OPS_CACHE_DIR="/dev/null")
    assert unusable.returncode == 1
    assert (
        unusable.stderr.decode().splitlines()[-1] == "clover-ops: the cache is not emptied: /dev/null: not a directory"
    )


@pytest.mark.smoke
def test_what_cannot_be_read_is_one_line_and_exit_1(tmp_path: Path):
    (tmp_path / "a.clvk").mkdir()
    checked = run("verify", str(tmp_path))
    assert checked.returncode == 1 and checked.stderr.decode() == f"{tmp_path / 'a.clvk'}: Is a directory\n"
    shown = run("show", "/proc/self/mem")
    assert (shown.returncode, shown.stderr.decode()) == (
        1,
        "clover-ops: /proc/self/mem cannot be read: Input/output error\n",
    )


@pytest.mark.smoke
@pytest.mark.parametrize(
    "arguments, says",
    [
        (("compile", "--target", "cuda:90"), "--op or --kernel"),
        (("compile", "--target", "cuda:90", "--kernel", "vector"), "no kernel 'vector'"),
        (("compile", "--target", "cuda:90", "--op", "matmul"), "no operator with Triton kernels 'matmul'"),
        (("compile", "--request", "-"), "--artifact"),
        *(
            (("compile", "--request", "-", "--artifact", "-", *more), "and nothing else")
            for more in (("--output", "x"), ("--jobs", "2"), ("--json",), ("--x", "bf16"), ("--spec", "n=16"))
        ),
        (
            (*BY_HAND, "--target", "cuda:90", "--set", "BLOCK=512"),
            "cuda with BLOCK=512; there are BLOCK=256, BLOCK=1024",
        ),
        ((*BY_HAND, "--target", "cuda:90", "--set", "BLOCK=true"), "with BLOCK=true"),
        ((*BY_HAND, "--target", "cuda:90", "--set", "B=1"), "no constexpr B"),
        ((*BY_HAND, "--target", "cuda:90:²", "--set", "BLOCK=256"), "clover-ops: features: they read like"),
        ((*BY_HAND, "--target", "cuda:90", "--set", f"BLOCK={'1' * 5000}"), "BLOCK: an integer has at most 64 bits"),
        (("bundle", "--output", "x"), "--target"),
        (("bundle", "--target", "cuda", "--output", "x"), "cuda:90"),
    ],
)
def test_usage(arguments: tuple[str, ...], says: str, tmp_path: Path):
    if "--request" not in arguments:
        arguments = (*arguments, "--kernels", str(KERNELS))
    result = run(*arguments)
    assert result.returncode != 0 and says in result.stderr.decode()
    assert "Traceback" not in result.stderr.decode()


def test_triton_missing_names_what_to_install(tmp_path: Path):
    """A stand-in that is too old hides the real one."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text('__version__ = "2.0.0"\n')
    result = run("toolchain", path=tmp_path)
    assert result.returncode == 1 and b"Triton 2.0.0" in result.stderr and b"triton>=3.5" in result.stderr


@pytest.mark.smoke
def test_doctor_tells_the_state_of_the_jit(alone: Path):
    report = json.loads(run("doctor", "--json", module="clover_ops").stdout)
    assert report["jit"]["mode"] == "on" and report["jit"]["cache"] == str(alone / "jit")
    assert report["jit"]["triton"] or "triton>=3.5" in report["jit"]["triton_error"]
    wrong = run("doctor", module="clover_ops", CLOVER_OPS_JIT="maybe")
    assert wrong.returncode == 1 and b"off, bundle or on, got `maybe`" in wrong.stdout


STAND_IN = f"""
import functools, importlib, sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from jit import test_autotune as t
device = t.cuda()
importlib.import_module('triton.runtime.driver').driver.set_active(device)
from clover_ops.jit import autotune, driver
driver.Launcher = lambda backend: t.Launches(device, {{128: 2.0, 256: 1.0}})
autotune._FLUSH = 1
autotune.current_target = lambda: t.TARGET
autotune.compare = functools.partial(autotune.compare, flush=1, device='cpu')
"""


def tune(tmp_path: Path, text: str, *options: str, **variables: str) -> subprocess.CompletedProcess:
    """The command on a workload, with a plugin of the name nvidia, in a process of its own."""
    plugin = tmp_path / "clover_ops_nvidia"
    plugin.mkdir()
    (plugin / "plugin.manifest").write_text(
        "clover-plugin 1\nname nvidia\nversion 0\nabi 1\nlibrary libnone.so\ndevice cuda\nprobe library\n"
    )
    workload = tmp_path / "workload.py"
    workload.write_text(text)
    backend = () if "--backend" in options else ("--backend", "nvidia")
    return run(
        "tune", str(workload), *backend, *options, module="clover_ops", CLOVER_OPS_PLUGIN_PATH=str(plugin), **variables
    )


@needs_triton
def test_tune_writes_the_table_and_keeps_other_lines(tmp_path: Path):
    """With the stand-in driver of test_autotune, in the command's own process."""
    pytest.importorskip("torch")
    table = tmp_path / "table.txt"
    table.write_text("clover-tuned 1\ndevice Stand-in 9000\narchitecture 90\nchoose cast 0\nconfig other -> BV=1\n")
    text = f"{STAND_IN}\ndef problems():\n    yield t.problem(key={{'n': 1000}})\n"
    result = tune(tmp_path, text, "--output", str(table))
    assert result.returncode == 0, result.stderr.decode()[-2000:]
    assert table.read_text().splitlines()[3:] == [
        "choose cast 0", "config vector_add n==1000 -> BLOCK=1024 num_warps=8 num_stages=1", "config other -> BV=1",
    ]  # fmt: skip


COMPARISONS = """
def comparisons():
    def call(slot):
        if slot in refused: raise ValueError('not this one')
        device.clock.now += 0.25
    for size in (4, 8):
        yield autotune.Comparison('cast', {'T': size}, call, (0,) if size == 4 else (10,))
"""


@needs_triton
@pytest.mark.parametrize("refused, code, lines", [("(0, 10)", 1, None), ("(10,)", 1, ["choose cast T==4 0"])])
def test_a_comparison_that_no_provider_takes_has_failed(tmp_path: Path, alone: Path, refused: str, code: int, lines):
    pytest.importorskip("torch")
    result = tune(tmp_path, f"{STAND_IN}\nrefused = {refused}\n{COMPARISONS}", "--json")
    assert result.returncode == code, result.stderr.decode()[-2000:]
    path = alone / "tuned" / "nvidia-stand-in-9000.txt"
    assert (path.read_text().splitlines()[3:] if path.exists() else None) == lines
    assert json.loads(result.stdout)["table"] == (str(path) if lines else None)
    last = result.stderr.decode().splitlines()[-1]
    assert last == ("1 of 2 failed" if lines else "2 of 2 failed; no table is written")


@pytest.mark.smoke
@pytest.mark.parametrize("backend", ["nvdia", "../evil", "cpu", ""])
def test_tuning_for_no_backend_is_refused_with_those_that_there_are(tmp_path: Path, alone: Path, backend: str):
    result = tune(tmp_path, "raise SystemExit('not reached')", "--backend", backend)
    said = result.stderr.decode()
    assert result.returncode == 2 and f"there is no backend {backend!r} that has tuned tables; installed: " in said
    assert "nvidia" in said.split("installed: ")[1] and not alone.exists()


@pytest.mark.smoke
def test_tuning_without_triton_says_what_to_install(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['triton'] = None\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = tune(tmp_path, "import triton", PYTHONPATH=path)
    (line,) = result.stderr.decode().splitlines()
    assert result.returncode == 1 and line.startswith("clover-ops: Triton is not installed: pip install 'triton>=3.5'")


@needs_triton
def test_tuning_without_a_gpu_says_so(tmp_path: Path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = tune(tmp_path, f"from clover_ops.jit import autotune\n{COMPARISONS}")
    (line,) = result.stderr.decode().splitlines()
    assert result.returncode == 1
    assert line == f"clover-ops: tuning needs a GPU, and torch {torch.__version__} sees none"
