#!/usr/bin/env bash
# What --timelines, --html and --svg write of samples, of a model of 10,000 nodes and of one with hostile names: columns
# add up to the printed figures, the page holds exactly the JSON, sizes are bounded.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || exit 77

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/web/timelines.py "$build/onnxvram" samples "$scratch"
