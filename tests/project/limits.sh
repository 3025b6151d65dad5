#!/usr/bin/env bash
# The process keeps to --limit memory, and its files to --limit output, whatever it is asked (scripts/limits): models that
# some limits refuse.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || { echo "skipped: there is no python3 here"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for family in ladder:6000 residual-blocks:1500; do
    "$build/tests/api.doubling" --write "${family%:*}" "${family#*:}" "$scratch/${family%:*}.onnx"
done
python3 scripts/limits "$build/onnxvram" "$scratch"/*.onnx --memory 32 >"$scratch/found" ||
    { cat "$scratch/found"; exit 1; }
grep -q "[1-9][0-9]* refused" "$scratch/found" || { cat "$scratch/found"; echo "nothing was refused"; exit 1; }
