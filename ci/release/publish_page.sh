#!/usr/bin/env bash
# `ci/release/publish_page.sh TAG FOLDER`: the release's page, with the changelog's entry as its notes and every file.
set -euo pipefail
tag=$1 folder=$2
notes=$(mktemp)
PYTHONPATH=ci python3 -m release.notes "$tag" >"$notes"
gh release create "$tag" --verify-tag --title "clover-ops ${tag#v}" --notes-file "$notes" "$folder"/*.whl "$folder"/*.tar.gz "$folder"/SHA256SUMS
