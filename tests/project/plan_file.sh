#!/usr/bin/env bash
# Files of checkpointing plans: every plan of a report has a place for each of its segments, is read back with the same figures at
# any batch, and is refused where it is none of the network's. What PyTorch makes of plans is measured by scripts/programs plans.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
cd "${ONV_SOURCE_DIR:?}"
python3 tests/project/plan_file.py "${ONV_BUILD_DIR:?}/onnxvram" samples
