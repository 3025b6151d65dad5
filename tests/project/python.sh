#!/usr/bin/env bash
# The tests of the Python package (tests/python) over the shared library of this build, in a virtual environment
# with cffi and the SDK of the Model Context Protocol, and the types and the oldest Python by static checks.
# ONV_TEST_PYTHON is another interpreter that has cffi, with NumPy, pandas, onnx, tqdm or PyTorch for the tests that use these.
# ONV_TEST_CUDA_PYTHON is one with PyTorch's CUDA build and onnxruntime-gpu, and a driver in its library path: the runs of verify are real then.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
environment=$build/python-environment

skip() {
    echo "skipped: $1"
    exit 77
}
# A folder that is whole has the mark, which names what is in it.
mark=$environment/with-mypy-vermin-mcp
if [ ! -e "$mark" ]; then
    rm -rf "$environment"
    python3 -m venv "$environment" 2>/dev/null || skip "there is no python3 with venv"
    "$environment/bin/pip" install --quiet --retries 1 --timeout 20 cffi mypy types-cffi vermin mcp ||
        skip "pip cannot get cffi and the checkers"
    touch "$mark"
fi
python=$environment/bin/python

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/onnxvram"
cp "$source"/python/onnxvram/*.py "$source/python/onnxvram/py.typed" "$scratch/onnxvram"
cp "$build/libonnxvram.so" "$scratch/onnxvram"
"$python" "$source/python/interface.py" "$source/include/onnxvram/onnxvram.h" "$scratch/onnxvram/_interface.py" \
    >/dev/null

export PYTHONPATH=$scratch PYTHONDONTWRITEBYTECODE=1 ONV_SOURCE_DIR=$source ONV_BUILD_DIR=$build
(cd "$scratch" && "$environment/bin/mypy" --config-file "$source/pyproject.toml" onnxvram "$source/samples/peak.py")
"$environment/bin/vermin" --quiet --no-tips --target=3.9- --violations "$scratch/onnxvram" "$source/samples/peak.py"
# Warnings are errors, those of files that stay open included.
"${ONV_TEST_PYTHON:-$python}" -W error -m unittest discover -s "$source/tests/python" -t "$source/tests/python"

peak=$("$build/onnxvram" "$source/samples/resnet50.onnx" --batch 8 --json |
    sed -nE 's/.*"peak": *\{[^}]*"bytes": *([0-9]+).*/\1/p')
"$python" "$source/samples/peak.py" "$source/samples/resnet50.onnx" 8 >"$scratch/peak.txt"
grep -q "^peak *${peak:?the report names no peak} bytes" "$scratch/peak.txt" || { cat "$scratch/peak.txt"; exit 1; }
