#!/usr/bin/env bash
# `ci/release/checksums.sh FOLDER` writes FOLDER/SHA256SUMS of its wheels and sdists; `--check FOLDER` compares.
set -euo pipefail
if [ "$1" = --check ]; then
  cd "$2"
  sha256sum --check --strict SHA256SUMS
  listed=$(wc -l <SHA256SUMS) there=$(find . -name '*.whl' -o -name '*.tar.gz' | wc -l)
  [ "$listed" -eq "$there" ] || { echo "SHA256SUMS lists $listed files, $there are there" >&2; exit 1; }
else
  cd "$1"
  find . -name '*.whl' -o -name '*.tar.gz' | LC_ALL=C sort | sed 's|^\./||' | xargs sha256sum | tee SHA256SUMS
  [ -s SHA256SUMS ]
fi
