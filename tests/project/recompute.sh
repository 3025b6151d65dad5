#!/usr/bin/env bash
# What plans need to run (python/onnxvram/recompute.py), on networks of a few numbers over a few lines
# that stand for PyTorch (small_torch.py). On networks of PyTorch's libraries it is run by scripts/programs plans.
set -euo pipefail
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
python3 tests/project/recompute.py python/onnxvram/recompute.py
python3 tests/project/sequential.py "${ONV_BUILD_DIR:?}/onnxvram" python/onnxvram/recompute.py
