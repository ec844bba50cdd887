#!/usr/bin/env bash
# Everything that a GPU or a DCU shows and nothing else does, in one run: `ci/gpu_suite.sh WHEELS OUT` installs the wheels in
# the folder WHEELS beside the Python packages that are there (torch, pytest), runs the numerical suite, graphs, streams and
# threads, a C++ program with a workspace, and the speed record. It leaves reports in the folder OUT and packs them as
# OUT.tar.gz, which is what to send back.
set -uo pipefail
cd "$(dirname "$0")/.."

wheels=$1 out=$2
site=$(mktemp -d)
mkdir -p "$out"
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 1
export PYTHONPATH=$site PYTHONUNBUFFERED=1

failed=0
step() {
  local name=$1 start=$SECONDS
  shift
  "$@" >"$out/$name.log" 2>&1
  local code=$?
  printf '%-12s exit %d, %d s: %s\n' "$name" $code $((SECONDS - start)) "$(grep -v '^$' "$out/$name.log" | tail -1)"
  [ $code -eq 0 ] || failed=1
}

# The C++ program is for the device that torch was built for.
device=$(python3 -c 'import torch; print("rocm" if torch.version.hip else "cuda")')
smoke() {
  cmake -S tests/gpu/native -B "$site/smoke" -DCMAKE_BUILD_TYPE=Release \
    "-DCloverOps_DIR=$(python3 -m clover_ops config --cmakedir)" && cmake --build "$site/smoke" &&
    CLOVER_OPS_PLUGIN_PATH=$site "$site/smoke/workspace_smoke" "$device"
}

step machine python3 -c 'import platform, sys, torch; print(sys.version, platform.platform(), torch.__version__, torch.version.hip, torch.version.cuda, [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())])'
step doctor python3 -m clover_ops doctor
step numerics python3 -m pytest -q -p no:cacheprovider ${CLOVER_GPU_SELECTION--m smoke} tests/ops
step runtime python3 -m pytest -q -p no:cacheprovider tests/gpu
step workspace smoke
step host-cost python3 -m tests.benchmarks.host_cost --json "$out/host-cost.json"
step speed python3 -m tests.benchmarks.gpu --json "$out/speed.json"
cat "$out/speed.log"
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")" && echo "send back: $out.tar.gz"
exit $failed
