#!/usr/bin/env bash
# What the program answers is the same in every report, in Python and in its exit status: some samples, or all of them
# (tests/project/answers.sh all, the test project.answers_all). Needs Python with venv and pip for cffi.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
environment=$build/python-environment
skip() {
    echo "skipped: $1"
    exit 77
}
if [ ! -x "$environment/bin/python" ]; then
    python3 -m venv "$environment" 2>/dev/null || skip "there is no python3 with venv"
fi
"$environment/bin/python" -c 'import cffi' 2>/dev/null ||
    "$environment/bin/pip" install --quiet --retries 1 --timeout 20 cffi || skip "pip cannot get cffi"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/onnxvram"
cp "$source"/python/onnxvram/*.py "$build/libonnxvram.so" "$scratch/onnxvram"
"$environment/bin/python" "$source/python/interface.py" "$source/include/onnxvram/onnxvram.h" \
    "$scratch/onnxvram/_interface.py" >/dev/null
PYTHONPATH=$scratch PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 "$environment/bin/python" "$source/tests/project/answers.py" \
    "$source" "$build/onnxvram" "${1:-some}"
