"""The installed plugins' Triton providers on stand-in drivers: where kernels come from, what is checked, what is launched."""

import os
import shutil
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import click
import clover_ops
import pytest
from clover_ops import CompileError, DriverError, Unsupported, _core
from clover_ops.jit import artifact as artifacts
from clover_ops.jit import kernels as tables
from clover_ops.jit.request import parse, parse_target

from .calls import BACKEND, TRITON, Tensor, call, plugin, standin, workspace_size
from .conftest import child_environment
from .process import on_each_backend

FAMILY, ARCH, LANES = {"nvidia": ("cuda", "90", 32), "hygon": ("hip", "gfx906", 64)}[BACKEND]
LOAD = {"nvidia": "cuModuleLoadData", "hygon": "hipModuleLoadData"}[BACKEND]
DEVICE = {"nvidia": "cuda:0", "hygon": "rocm:0"}[BACKEND]
H, HV, DIM, SLOTS, SEQUENCES = 16, 32, 128, 3, 2
CHUNKED = ("gated_delta_chunk_prepare", "gated_delta_chunk_advance")


def commit(tokens=128, stream=0, slot=TRITON, dtype="bfloat16", dim=DIM):
    """gated_delta_rule in the bundled geometry; returns its tensors."""
    tensors = [
        Tensor(dtype, tokens, H, dim), Tensor(dtype, tokens, H, dim), Tensor(dtype, tokens, HV, dim),
        Tensor("float32", tokens, HV), Tensor("float32", tokens, HV), Tensor("float32", SLOTS, HV, dim, dim),
        Tensor("int32", SEQUENCES + 1), Tensor("int32", SEQUENCES), Tensor("int32", SEQUENCES), Tensor(dtype, tokens, HV, dim),
    ]  # fmt: skip
    attributes = [None, True, None]
    size = workspace_size("gated_delta_rule", tensors, attributes, slot)
    memory = Tensor("bool", size)
    call("gated_delta_rule", tensors, attributes, stream, slot, (memory.data, size) if size else None)
    return [*tensors, memory]


def preview(tokens=32, slot=TRITON, read="bidirectional"):
    tensors = [
        Tensor("bfloat16", tokens, H, DIM), Tensor("bfloat16", tokens, H, DIM), Tensor("bfloat16", tokens, HV, DIM),
        Tensor("float32", tokens, HV), Tensor("float32", tokens, HV), Tensor("float32", SLOTS, HV, DIM, DIM),
        Tensor("int32", 2), Tensor("int32", 1), Tensor("bfloat16", tokens, HV, DIM),
    ]  # fmt: skip
    call("preview_gated_delta_rule", tensors, [None, True, read, None], slot=slot)
    return tensors


def moe(tokens, slot=TRITON, shared=False, experts=256, k=8, width=2048, inner=512):
    """fused_moe in the bundled geometry; returns the bytes of its workspace. The experts' memory is a view of a small one."""
    x, y = (Tensor("bfloat16", tokens, width) for _ in range(2))
    w13, w2 = (
        Tensor("bfloat16", experts, rows, columns, strides=(0, columns, 1))
        for rows, columns in ((2 * inner, width), (width, inner))
    )
    extra = [Tensor("bfloat16", *s) for s in ((2 * inner, width), (width, inner), (width,))] if shared else [None] * 3
    tensors = [x, w13, w2, Tensor("int32", tokens, k), Tensor("float32", tokens, k), *extra, y]
    size = workspace_size("fused_moe", tensors, [1.0, "dense"], slot)
    memory = Tensor("bool", size)
    call("fused_moe", tensors, [1.0, "dense"], slot=slot, workspace=(memory.data, size) if size else None)
    return size


def installed():
    """The plugin's folder."""
    return Path(_core.package_dir()).parent / f"clover_ops_{BACKEND}"


def bundled(kernel, folder=None):
    """The bundle's artifacts of a kernel for the stand-in's device, by path."""
    found = {}
    for path in sorted((folder or installed()).glob("bundle/*.clvk")):
        one = artifacts.load(path.read_bytes(), str(path))
        if one["kernel"] == kernel and one["architecture"] == ARCH:
            found[path] = one
    return found


def expect(error, function, *words):
    with pytest.raises(error) as caught:
        function()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def use_copy(tmp_path, change=lambda header: {}, binary=None, keep=True):
    """Puts a copy of the plugin before the installed one, in whose bundle the chunked commit's first kernel is changed."""
    folder = Path(tmp_path) / f"clover_ops_{BACKEND}"
    shutil.copytree(installed(), folder)
    for path, one in bundled(CHUNKED[0], folder).items():
        if not keep:
            path.unlink()
            continue
        changed = artifacts.build(
            {**dict(one.header), **change(dict(one.header))}, one.binary if binary is None else binary
        )
        path.write_bytes(artifacts.dump(changed))
    os.environ["CLOVER_OPS_PLUGIN_PATH"] = str(tmp_path)
    return folder


def fake_python(tmp_path, script):
    """A `python` that answers what the plugin asks of the compiler; it notes each question in the file `asked`."""
    path = Path(tmp_path) / "python"
    path.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/asked"\n{script}\n')
    path.chmod(0o755)
    os.environ["CLOVER_OPS_PYTHON"] = str(path)
    return Path(tmp_path) / "asked"


def use_cache(tmp_path):
    cache = Path(tmp_path) / "cache"
    cache.mkdir(mode=0o700)
    os.environ["CLOVER_OPS_CACHE_DIR"] = str(cache)
    return cache


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_launch():
    """Grids follow the shapes, blocks are the artifact's warps of the device's lanes, shared memory is what it asks for."""
    driver = standin()
    tokens = 128
    tensors = commit(tokens)
    launches = driver.launches()
    assert [launch["kernel"] for launch in launches] == list(CHUNKED)
    headers = {name: next(iter(bundled(name).values())) for name in CHUNKED}
    for launch in launches:
        options = [one for one in bundled(launch["kernel"]).values() if one.number("shared_bytes") == launch["shared"]]
        assert any(launch["block"] == [one.number("num_warps") * LANES, 1, 1] for one in options), launch
        assert all(one.number("warp_size") == LANES for one in options)
    assert launches[0]["grid"][1:] == [HV, 1] and launches[0]["grid"][0] >= tokens // 64 + SEQUENCES
    assert launches[1]["grid"][1:] == [HV, SEQUENCES] and DIM % launches[1]["grid"][0] == 0
    assert headers[CHUNKED[0]]["symbol"] == launches[0]["kernel"]
    first = bytes.fromhex(launches[0]["params"])
    assert struct.unpack_from("<Q", first)[0] == tensors[0].address
    if BACKEND == "nvidia":  # the stand-in of HIP does not know the later ones
        sizes = [4 if kind in ("i32", "fp32") else 8 for kind in headers[CHUNKED[0]].arguments] + [8, 8]
        assert len(first) == sum(sizes) and first[-16:] == bytes(16)
        assert struct.unpack_from("<f", first[:-16][-4:])[0] == pytest.approx(DIM**-0.5)
        assert struct.unpack_from("<iii", first[:-20][-12:]) == (tokens, SEQUENCES, HV // H)


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_preview():
    driver = standin()
    for read in ("bidirectional", "block", "causal"):
        preview(read=read)
    preview(tokens=16), preview(tokens=64)
    launches = driver.launches()
    assert [launch["kernel"] for launch in launches] == ["preview_delta"] * 5
    assert all(launch["grid"][1:] == [HV, 1] for launch in launches)
    assert driver.calls(LOAD) == 5


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_mixture_of_experts():
    """Tiles are the most that shapes allow; few tokens and many take different ones, and all are in the bundle."""
    driver = standin()
    assert moe(1) < moe(32) < moe(512)
    launches = driver.launches()
    names = ["moe_sort", "moe_up", "moe_down", "moe_sum"]
    assert [launch["kernel"] for launch in launches] == [
        *names[1:],
        *names,
        *names,
    ]  # one token's routes need no sorting
    assert [launch["grid"] for launch in launches[3::4]] == [[257, 1, 1]] * 2
    assert [launch["grid"][1] for launch in launches[:5:4]] == [8, 256 // 16 + 256]
    driver.forget()
    moe(40, shared=True)
    kernels = ["moe_sort", "moe_up", "moe_down", "moe_up", "moe_down", "moe_sum"]
    assert [launch["kernel"] for launch in driver.launches()] == kernels
    assert all(launch["shared"] <= (232448 if BACKEND == "nvidia" else 65536) for launch in driver.launches())
    expect(Unsupported, lambda: moe(1, experts=1025, k=2, width=64, inner=64), "E is above 1024")
    moe(0)


@on_each_backend()
def test_calls_that_are_refused():
    expect(Unsupported, lambda: commit(64), "max_seqlen is 64 or less")
    expect(Unsupported, lambda: commit(128, dim=512), "K is above 256")
    expect(Unsupported, lambda: preview(tokens=65), "more than 64 tokens")
    assert standin().launches() == []


@on_each_backend(CLOVER_OPS_JIT="off")
def test_off():
    expect(Unsupported, commit, "CLOVER_OPS_JIT=off")
    commit(slot=-1)  # native


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_not_in_the_bundle():
    expect(Unsupported, lambda: commit(dtype="float16"), "is not in the bundle", "CLOVER_OPS_JIT=bundle")


@on_each_backend(CLOVER_OPS_JIT="sometimes")
def test_another_mode():
    expect(Unsupported, commit, "CLOVER_OPS_JIT must be off, bundle or on, got `sometimes`")


@on_each_backend(CLOVER_OPS_PYTHON="/nowhere/python")
def test_no_compiler():
    """A kernel that is not bundled needs one; the call says so and a native provider is there for the rest."""
    expect(CompileError, lambda: commit(dtype="float16"), "cannot run `/nowhere/python`", "CLOVER_OPS_PYTHON")
    commit(dtype="float16", slot=-1)


OTHER = {"90": "80", "gfx906": "gfx90a"}[ARCH]
FAULTS = {
    "target": (lambda header: {"target": header["target"].replace(ARCH, OTHER)}, "of another target"),
    "architecture": (lambda header: {"architecture": OTHER}, "of another architecture"),
    "warp size": (lambda header: {"warp_size": str(96 - LANES)}, "of another warp_size"),
    "kind": (lambda header: {"binary_kind": "spirv"}, "of another binary_kind"),
    "arguments": (lambda header: {"arguments": "*bf16"}, "of another arguments"),
    "extra arguments": (lambda header: {"extra_arguments": "none"}, "of another extra_arguments"),
    "source": (lambda header: {"source": "0" * 64}, "of another source"),
    "request": (lambda header: {"request": "0" * 64}, "of another request"),
    "block": (lambda header: {"num_warps": "64"}, f"a block of {64 * LANES} threads"),
    "shared memory": (lambda header: {"shared_bytes": "1000000"}, "1000000 bytes of shared memory"),
    "scratch": (lambda header: {"global_scratch_bytes": "128"}, "asks for 128 bytes of scratch memory"),
    "profiling": (lambda header: {"profile_scratch_bytes": "8"}, "compiled for profiling"),
}  # fmt: skip


@pytest.mark.parametrize("fault", sorted(FAULTS))
@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_bundle_that_is_not_what_it_should_be(tmp_path, fault):
    change, said = FAULTS[fault]
    use_copy(tmp_path, change)
    expect(CompileError, commit, said)
    assert standin().launches() == []


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_symbol_that_is_missing(tmp_path):
    use_copy(tmp_path, lambda header: {"symbol": "nothing"})
    expect(DriverError, commit, "ModuleGetFunction", CHUNKED[0])
    assert standin().launches() == []


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_binary_that_is_no_binary(tmp_path):
    use_copy(tmp_path, binary=b"\0" * 4096)
    expect(DriverError, commit, "ModuleLoad", CHUNKED[0])
    assert standin().launches() == []


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_binary_of_another_kernel(tmp_path):
    """CUDA's driver tells what arguments a binary has."""
    if BACKEND == "hygon":
        return
    other = next(iter(bundled(CHUNKED[1]).values()))
    use_copy(tmp_path, lambda header: {"symbol": other["symbol"]}, other.binary)
    expect(CompileError, commit, "the binary's argument", "its header says")


@pytest.mark.parametrize("where", ["header", "binary", "end"])
@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_damaged_bundle(tmp_path, where):
    folder = use_copy(tmp_path)
    for path in bundled(CHUNKED[0], folder):
        data = bytearray(path.read_bytes())
        if where == "end":
            path.write_bytes(data[:-10])
        else:
            data[40 if where == "header" else len(data) // 2] ^= 4
            path.write_bytes(data)
    expect(CompileError, commit, str(folder), "truncated" if where == "end" else "")
    expect(CompileError, lambda: clover_ops.warmup(DEVICE), str(folder))
    assert standin().launches() == []


def answers_for_device():
    """What a compiler gives for the device's own requests, by their text's digest: the bundle's, with its features."""
    kernel = tables.find(CHUNKED[0], given=installed() / "triton")
    plain = parse_target(f"{FAMILY}:{ARCH}")
    target = replace(plain, features="sramecc+:xnack-" if BACKEND == "hygon" else "")
    found = {}
    for bundled_as, asked_as in zip(kernel.bundled(plain), kernel.bundled(target)):
        one = artifacts.load((installed() / "bundle" / f"{bundled_as.digest()}.clvk").read_bytes())
        header = {**dict(one.header), "features": target.features, "request": asked_as.digest()}
        found[asked_as] = artifacts.dump(artifacts.build(header, one.binary))
    return found


TOOLCHAIN = 'toolchain) printf "triton 9\\nbackend x\\n";;'


@on_each_backend()
def test_damaged_bundle_is_compiled_anew(tmp_path):
    """The compiler gives what the bundle should have had."""
    folder = use_copy(tmp_path)
    use_cache(tmp_path)
    for path in bundled(CHUNKED[0], folder):
        path.write_bytes(path.read_bytes()[:-10])
    text, answers = Path(tmp_path) / "request", Path(tmp_path) / "answers"
    answers.mkdir()
    for request, data in answers_for_device().items():
        (answers / request.digest()).write_bytes(data)
    give = f'cat > "{text}"; cat "{answers}/$(sha256sum < "{text}" | cut -d" " -f1)"'
    asked = fake_python(tmp_path, f'case "$3" in {TOOLCHAIN} *) {give};; esac')
    commit()
    assert [launch["kernel"] for launch in standin().launches()] == list(CHUNKED)
    words = asked.read_text().splitlines()
    assert words[0] == "-m clover_ops.jit toolchain"
    assert words[1] == f"-m clover_ops.jit compile --kernels {folder}/triton --request - --artifact -"
    request = parse(text.read_text())
    assert request.kernel == CHUNKED[0] and request.target.arch == ARCH and request.target.warp_size == LANES
    assert request.source == tables.find(CHUNKED[0], given=installed() / "triton").source()
    commit()
    assert len(asked.read_text().splitlines()) == 2  # it is loaded


@on_each_backend()
def test_user_cache(tmp_path):
    """What the cache holds needs no compiler; what does not belong there is not loaded."""
    use_copy(tmp_path, keep=False)
    cache = use_cache(tmp_path) / "jit"
    cache.mkdir(mode=0o700)
    asked = fake_python(tmp_path, f'case "$3" in {TOOLCHAIN} *) echo "clover-ops: no" >&2; exit 1;; esac')
    expect(CompileError, commit, "exited with 1: clover-ops: no")
    kept = {cache / f"{one.identity('9', 'x')}.clvk": data for one, data in answers_for_device().items()}
    for path, data in kept.items():
        path.write_bytes(data[:-1])
    expect(CompileError, commit, "exited with 1: clover-ops: no")
    for path, data in kept.items():
        path.write_bytes(data)
    commit()
    assert [launch["kernel"] for launch in standin().launches()] == list(CHUNKED)
    assert [line.split()[2] for line in asked.read_text().splitlines()].count("toolchain") == 1


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_capture():
    driver = standin()
    stream = driver.stream(capturing=True)
    expect(CompileError, lambda: commit(stream=stream), CHUNKED[0], "is being captured", "warmup")
    assert driver.launches() == [] and driver.calls(LOAD) == 0
    clover_ops.warmup(DEVICE)
    loads = driver.calls(LOAD)
    commit(stream=stream)
    assert len(driver.launches()) == 2 and driver.calls(LOAD) == loads


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_cold_threads():
    driver = standin()
    plugin()
    start, errors = threading.Barrier(8), []

    def work():
        try:
            start.wait()
            for _ in range(5):
                commit()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert driver.calls(LOAD) == 2 and len(driver.launches()) == 80


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_each_device_has_its_own():
    os.environ["STANDIN_DEVICES"] = f"{ARCH},{ARCH}"
    clover_ops.warmup(DEVICE)
    assert "0 Triton kernels loaded" in plugin()["details"][DEVICE.replace("0", "1")]
    assert "0 Triton kernels loaded" not in plugin()["details"][DEVICE]


def user_table(tmp_path, text, head=None):
    folder = use_cache(tmp_path) / "tuned"
    folder.mkdir(mode=0o700)
    name = {"nvidia": "Stand-in", "hygon": "Stand-in DCU"}[BACKEND]
    if head is None:
        head = f"clover-tuned 1\ndevice {name}\narchitecture {ARCH}\n"
    (folder / f"{BACKEND}-{name.lower().replace(' ', '-')}.txt").write_bytes((head + text).encode())


def kernels_of(function):
    driver = standin()
    driver.forget()
    function()
    return [launch["kernel"] for launch in driver.launches()]


def commit_bytes(slot, tokens=128):
    """The workspace of such a call; the memory of its tensors is its last one."""
    return max(0, len(commit(tokens, slot=slot)[-1].memory) - 256)


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_workspace_is_not_that_of_every_provider():
    assert commit_bytes(-1) < commit_bytes(TRITON)


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_workspace_of_what_the_table_prefers(tmp_path):
    user_table(tmp_path, "choose gated_delta_rule T==128 10\n")
    assert commit_bytes(-1) == commit_bytes(TRITON)
    assert commit_bytes(-1, 129) < commit_bytes(TRITON, 129)


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_tuned_table_chooses(tmp_path):
    user_table(tmp_path, "# long prompts\nchoose gated_delta_rule max_seqlen>=100 HV==32 10\n")
    assert kernels_of(lambda: commit(128, slot=-1)) == list(CHUNKED)
    assert CHUNKED[0] not in kernels_of(lambda: commit(99, slot=-1))
    assert "tuned" in plugin()["details"][DEVICE]


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_tuned_table_configures(tmp_path):
    """Both kernels take the chunk of the configuration."""
    kernel = tables.find(CHUNKED[0], given=installed() / "triton")
    candidates = kernel.candidates(parse_target(f"{FAMILY}:{ARCH}"))
    chunk = dict(candidates[0].constexprs)["C"]
    other = next(one for one in candidates if dict(one.constexprs)["C"] != chunk)
    user_table(
        tmp_path,
        f"config {kernel.name} K==64 -> {candidates[0].text()}\nconfig {kernel.name} K==128 -> {other.text()}\n",
    )
    commit(tokens=256)
    grids = [launch["grid"][0] for launch in standin().launches()]
    assert grids[0] == 256 // dict(other.constexprs)["C"] + SEQUENCES


def table_says(tmp_path, text, head=None):
    """What is said of a table that prefers the Triton kernels, and whether a call is then theirs."""
    user_table(tmp_path, text, head)
    errors = os.open(Path(tmp_path) / "errors", os.O_RDWR | os.O_CREAT)
    os.dup2(errors, 2)
    taken = kernels_of(lambda: commit(128, slot=-1)) == list(CHUNKED)
    return (Path(tmp_path) / "errors").read_text(), taken


PREFERS = "choose gated_delta_rule T==128 10\n"


@on_each_backend()
def test_tuned_table_that_is_wrong(tmp_path):
    said, taken = table_says(tmp_path, "choose gated_delta_rule max_seqlen>>100 10\n")
    assert not taken and ":4: `choose gated_delta_rule max_seqlen>>100 10`" in said and "passed over" in said


@on_each_backend()
def test_tuned_table_with_a_number_that_python_would_not_write(tmp_path):
    said, taken = table_says(tmp_path, "choose gated_delta_rule T>=01 10\n")
    assert not taken and "`T>=01`: the value must be an integer, true or false" in said


@on_each_backend()
def test_tuned_table_of_another_device(tmp_path):
    said, taken = table_says(tmp_path, PREFERS, f"clover-tuned 1\ndevice another\narchitecture {ARCH}\n")
    assert not taken and f"it is of `another` ({ARCH}), this is `Stand-in" in said


@on_each_backend()
def test_tuned_table_without_an_architecture(tmp_path):
    said, taken = table_says(tmp_path, PREFERS, "clover-tuned 1\ndevice Stand-in\n")
    assert not taken and "there is no line `architecture ...`" in said


@on_each_backend()
def test_tuned_table_that_is_empty(tmp_path):
    said, taken = table_says(tmp_path, "", "")
    assert not taken and ":1: ``: the first line must be `clover-tuned 1`" in said


@on_each_backend(CLOVER_OPS_JIT="bundle")
def test_tuned_table_with_the_line_ends_of_windows_and_conditions_of_other_kinds(tmp_path):
    """Nothing that C++ sets is a float or a dtype, so such a condition holds for no call."""
    other = f"config {CHUNKED[0]} TYPE==bf16 scale==0.5 -> num_warps=8\n"
    name = {"nvidia": "Stand-in", "hygon": "Stand-in DCU"}[BACKEND]
    head = f"clover-tuned 1\r\ndevice {name}\r\narchitecture {ARCH}\r\n"
    said, taken = table_says(tmp_path, other + PREFERS.replace("\n", "\r\n"), head)
    assert taken and said == ""


@on_each_backend(CLOVER_OPS_PYTHON="/nowhere/python")
def test_preferred_kernel_that_cannot_be_had(tmp_path):
    """The call goes to a native provider, and that is said once."""
    user_table(tmp_path, "choose gated_delta_rule max_seqlen>=100 10\n")
    errors = os.open(Path(tmp_path) / "errors", os.O_RDWR | os.O_CREAT)
    os.dup2(errors, 2)
    for _ in range(3):
        assert CHUNKED[0] not in kernels_of(lambda: commit(128, slot=-1, dtype="float16"))
    said = (Path(tmp_path) / "errors").read_text()
    assert said.count("which the tuned table prefers, is passed over") == 1 and "/nowhere/python" in said
    assert kernels_of(lambda: commit(128, slot=-1)) == list(CHUNKED)  # from the bundle


@on_each_backend()
def test_prebuild_for_a_device(tmp_path):
    """The plugin loads, or compiles, its own code first; then the device's target is compiled for."""
    from clover_ops.cli import jit

    use_cache(tmp_path)
    assert jit._target_of(DEVICE) == {"nvidia": "cuda:90", "hygon": "hip:gfx906:sramecc+:xnack-"}[BACKEND]
    with pytest.raises(click.UsageError, match="no operator with Triton kernels 'nothing'"):
        jit.jit(["prebuild", "--device", DEVICE, "--op", "nothing"], standalone_mode=False)
    assert standin().calls(LOAD) > 0


@pytest.mark.smoke
@pytest.mark.parametrize("backend", ["nvidia", "hygon"])
def test_program_without_python(backend, compiler, request):
    """There is no interpreter on its PATH, and none is needed."""
    request.getfixturevalue(f"{backend}_plugin")
    device, driver = {"nvidia": ("cuda", "cuda_standin"), "hygon": ("rocm", "hip_standin")}[backend]
    package = _core.package_dir()
    options = [f"-I{package / 'include'}", f"-L{package / 'lib'}", "-lclover_ops", f"-Wl,-rpath,{package / 'lib'}"]
    program = compiler("triton_program", "native/triton_program.cpp", *options)
    environment = child_environment(request.getfixturevalue(driver)(), PATH="/nowhere", CLOVER_OPS_TRACE="1")
    result = subprocess.run([program, device], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert '"slot":10' in result.stderr.replace(" ", "") and '"by":"handle"' in result.stderr.replace(" ", "")
