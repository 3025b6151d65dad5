#!/usr/bin/env bash
# The largest batch is what runs say: largest.py. With `all`, as ctest's project.largest_all runs it: every sample.
set -euo pipefail
command -v python3 >/dev/null || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "${ONV_SOURCE_DIR:?}/tests/project/largest.py" "${ONV_BUILD_DIR:?}/onnxvram" "$ONV_SOURCE_DIR/samples" "$scratch" "$@"
