#!/usr/bin/env bash
# Installs what the sessions take from the system: a C++ compiler, ccache, git, Python's venv module, and hipcc for the Hygon
# backend. Debian or Ubuntu; elsewhere it only says what is missing.
set -euo pipefail

missing=()
command -v g++ >/dev/null || missing+=(g++)
command -v ccache >/dev/null || missing+=(ccache)
command -v git >/dev/null || missing+=(git)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
# DTK has its own; it is never mixed with a public one.
if [ -z "${DTK_ROOT:-}" ] && ! command -v hipcc >/dev/null; then missing+=(hipcc libamdhip64-dev rocm-device-libs); fi

[ ${#missing[@]} -eq 0 ] && exit 0
echo "missing system packages: ${missing[*]}"
command -v apt-get >/dev/null || exit 1
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
