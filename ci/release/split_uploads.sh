#!/usr/bin/env bash
# `ci/release/split_uploads.sh FOLDER OUT`: what an index takes, wheels and sdists, into OUT.
set -euo pipefail
mkdir -p "$2"
find "$1" \( -name '*.whl' -o -name '*.tar.gz' \) -exec cp -t "$2" {} +
ls -l "$2"
