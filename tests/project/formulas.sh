#!/usr/bin/env bash
# Formulas of what runtimes hold, against analyses at sizes of the test's own.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
PYTHONDONTWRITEBYTECODE=1 python3 tests/project/formulas.py "$build/onnxvram" samples
