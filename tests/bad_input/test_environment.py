"""Environment variables that mean nothing: a clear error or a record, never silence and never a crash."""

import json
import os
import subprocess
import sys
from pathlib import Path

import clover_ops
import pytest
from clover_ops import _core

pytestmark = pytest.mark.smoke

# The core alone, through its C ABI: many processes start in a moment. Prints what a call and describe() say.
_CORE_PROGRAM = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.clover_last_error.restype = ctypes.c_char_p
i32, i64, u64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p
class Tensor(ctypes.Structure):
    _fields_ = [("data", pointer), ("device_type", i32), ("device_id", i32), ("ndim", i32), ("dtype", ctypes.c_uint32),
                ("shape", ctypes.POINTER(i64)), ("strides", pointer), ("byte_offset", u64)]
class Args(ctypes.Structure):
    _fields_ = [("struct_size", u64), ("given", u64), *((name, ctypes.POINTER(Tensor)) for name in "xwzy"),
                ("eps", ctypes.c_double)]
memory = {name: (ctypes.c_float * 8)(*[1.0] * 8) for name in "xwzy"}
float32 = 2 | 32 << 8 | 1 << 16
def tensor(name, *shape):
    return ctypes.pointer(Tensor(ctypes.addressof(memory[name]), 1, 0, len(shape), float32, (i64 * len(shape))(*shape)))
args = Args(ctypes.sizeof(Args), 0, tensor("x", 2, 1, 4), tensor("w", 4), tensor("z", 2, 1, 4), tensor("y", 2, 1, 4))
status = library.clover_call_operator(15, None, ctypes.byref(args), None)
answer = {"result": sum(memory["y"])}
if status:
    answer["error"] = [["", "InvalidArgument", "Unsupported"][status], library.clover_last_error().decode()]
Sink = ctypes.CFUNCTYPE(None, pointer, ctypes.POINTER(ctypes.c_char), u64)
texts = []
assert library.clover_describe(Sink(lambda _, text, size: texts.append(text[:size])), None) == 0
answer["describe"] = json.loads(texts[0])
print(json.dumps(answer))
"""
_PYTHON_PROGRAM = """
import json, numpy, clover_ops
answer = {}
x = numpy.ones((2, 1, 4), numpy.float32)
try:
    answer["result"] = float(clover_ops.rms_norm_gated(x, x[0, 0], x).sum())
except Exception as error:
    answer["error"] = [type(error).__name__, str(error)]
answer["describe"] = clover_ops.describe()
print(json.dumps(answer))
"""


def run(program=_CORE_PROGRAM, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CLOVER_OPS_", "OMP_"))}
    environment.update(variables)
    command = [sys.executable, "-c", program, str(_core.package_dir() / "lib/libclover_ops.so")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def plugin(answer, name):
    return next(p for p in answer["describe"]["plugins"] if p["name"] == name)


@pytest.fixture(scope="module")
def right():
    return run()[0]["result"]


@pytest.mark.parametrize("variable", ["CLOVER_OPS_TRACE", "CLOVER_OPS_DEBUG"])
@pytest.mark.parametrize("value", ["maybe", "2"])
def test_switches_that_are_none(variable, value):
    answer, _ = run(**{variable: value})
    assert answer["error"] == ["InvalidArgument", f"{variable} must be 0 or 1, got `{value}`"]
    assert plugin(answer, "cpu")["status"] == "active"


def test_switches_that_are_off(right):
    answer, log = run(CLOVER_OPS_TRACE="0", CLOVER_OPS_DEBUG="")
    assert (answer["result"], log) == (right, "")


def test_trace_is_one_line_of_json_a_call(right):
    answer, log = run(CLOVER_OPS_TRACE="1", CLOVER_OPS_DEBUG="1")
    assert answer["result"] == right
    (line,) = log.splitlines()
    record = json.loads(line.removeprefix("clover-ops: "))
    assert record == {"op": "rms_norm_gated", "device": "cpu", "backend": "cpu", "slot": 0, "provider": "native",
                      "by": "lowest slot", "dims": {"T": 2, "HV": 1, "V": 4}}  # fmt: skip


@pytest.mark.parametrize("value", ["nosuch", "CPU", "cpu;x", ","])
def test_backends_that_are_none(value):
    answer, _ = run(CLOVER_OPS_BACKENDS=value)
    kind, message = answer["error"]
    assert kind == "Unsupported"
    assert message.startswith("rms_norm_gated: no active backend provides it on cpu; provided by: none")
    assert "cpu is not active: not among CLOVER_OPS_BACKENDS" in message
    assert (plugin(answer, "cpu")["status"], plugin(answer, "cpu")["reason"]) == (
        "inactive",
        "not among CLOVER_OPS_BACKENDS",
    )


@pytest.mark.parametrize("value", ["", "cpu", " cpu , nosuch ", "nosuch,,cpu"])
def test_backends_that_name_ours(value, right):
    assert run(CLOVER_OPS_BACKENDS=value)[0]["result"] == right


def _broken_plugins(folder):
    """Each kind of broken plugin: name of the folder -> what its record must say."""
    good = (Path(clover_ops.describe()["plugins"][0]["manifest"])).read_text()
    texts = {
        "clover_ops_empty": ("", "lacks `clover-plugin`"),
        "clover_ops_nonsense": ("hello\n", ":1: not a plugin manifest"),
        "clover_ops_other_format": (good.replace("clover-plugin 1", "clover-plugin 9"), "manifest format 9"),
        "clover_ops_other_version": (
            good.replace(f"version {clover_ops.__version__}", "version 99.1"),
            "plugin version 99.1",
        ),
        "clover_ops_other_abi": (good.replace("abi 1", "abi 2"), "plugin ABI 2, this core has ABI 1"),
        "clover_ops_no_library": (good.replace("name cpu", "name toy"), "libclover_ops_cpu.so"),
        "clover_ops_elsewhere": (good.replace("library ", "library ../"), "must be a file name without folders"),
        "clover_ops_unknown_device": (good.replace("device cpu", "device tpu"), "`device` must be cpu, cuda or rocm"),
    }
    for name, (text, _) in texts.items():
        (folder / name).mkdir()
        (folder / name / "plugin.manifest").write_text(text)
    (folder / "clover_ops_no_elf").mkdir()
    (folder / "clover_ops_no_elf/plugin.manifest").write_text(good.replace("name cpu", "name toy2"))
    (folder / "clover_ops_no_elf/libclover_ops_cpu.so").write_text("not a library")
    return {name: words for name, (_, words) in texts.items()} | {"clover_ops_no_elf": "libclover_ops_cpu.so"}


def test_broken_plugins_are_recorded_and_harm_nothing(tmp_path, right):
    wanted = _broken_plugins(tmp_path)
    answer, _ = run(CLOVER_OPS_PLUGIN_PATH=str(tmp_path))
    assert answer["result"] == right
    records = {Path(p["manifest"]).parent.name: p for p in answer["describe"]["plugins"]}
    for name, words in wanted.items():
        assert records[name]["status"] == "rejected"
        assert words in records[name]["reason"], records[name]
    assert [p["status"] for p in answer["describe"]["plugins"] if p["name"] == "cpu"].count("active") == 1


def test_a_call_without_provider_tells_of_the_broken_ones(tmp_path):
    wanted = _broken_plugins(tmp_path)
    answer, _ = run(CLOVER_OPS_PLUGIN_PATH=str(tmp_path), CLOVER_OPS_BACKENDS="nosuch")
    kind, message = answer["error"]
    assert kind == "Unsupported"
    assert "plugin version 99.1" in message
    assert message.count("is not active") >= len(wanted)


def test_all_at_once_through_python(tmp_path, right):
    """The front end finds plugins by itself too; neither it nor the import may stumble."""
    wanted = _broken_plugins(tmp_path)
    path = f"{tmp_path}:/nonexistent"
    answer, _ = run(_PYTHON_PROGRAM, CLOVER_OPS_PLUGIN_PATH=path, OMP_NUM_THREADS="abc", CLOVER_OPS_TRACE="0")
    assert answer["result"] == right
    records = {Path(p["manifest"]).parent.name: p for p in answer["describe"]["plugins"]}
    assert all(words in records[name]["reason"] for name, words in wanted.items())


@pytest.mark.parametrize(
    "value", ["/nonexistent", "/dev/null", "/nonexistent/a:/nonexistent/b", "relative", ":", " ", "~"]
)
def test_plugin_paths_that_hold_nothing(value, right):
    answer, _ = run(CLOVER_OPS_PLUGIN_PATH=value)
    assert answer["result"] == right
    rejected = {p["manifest"]: p["reason"] for p in answer["describe"]["plugins"] if p["status"] == "rejected"}
    assert set(rejected) == {item for item in value.split(":") if item.strip()}
    assert all(rejected.values())


def test_plugin_path_of_bytes_that_are_no_text(tmp_path, right):
    answer, _ = run(CLOVER_OPS_PLUGIN_PATH=os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    assert answer["result"] == right
    assert [p["status"] for p in answer["describe"]["plugins"]].count("rejected") == 1


@pytest.mark.parametrize("value", ["abc", "", "0", "-3", "1e3", "99999999999999999999", "4x", " 2 ", "2,1", "\u0662"])
def test_thread_counts(value, right):
    """OpenMP's own rules: what is no positive number counts as not given. The count in use stands in describe()."""
    answer, _ = run(OMP_NUM_THREADS=value)
    assert answer["result"] == right
    threads = int(plugin(answer, "cpu")["details"]["threads"])
    expected = {" 2 ": 2, "2,1": 2}.get(value, len(os.sched_getaffinity(0)))
    assert threads == expected
