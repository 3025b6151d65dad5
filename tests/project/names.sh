#!/usr/bin/env bash
# Names of a model that attack whoever reads a report: in every format and every file that is written
# they are text, and nothing else. Each format is read by a parser of its own kind.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || exit 77

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/project/names.py "$build/onnxvram" "$scratch"
