#!/usr/bin/env bash
# The step of the GitHub Action: the summary is Markdown, the report is JSON, one annotation says the verdict,
# and the exit status is onnxvram's. Text of inputs is no code, and no second annotation.
set -euo pipefail
cd "${ONV_SOURCE_DIR:?}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# size STATUS NAME=VALUE...: runs the step, which has to end so.
size() {
    local wanted=$1 status=0
    : >"$scratch/summary" && : >"$scratch/output"
    env ONNXVRAM="${ONV_BUILD_DIR:?}/onnxvram" GITHUB_ACTION_PATH="$PWD" RUNNER_TEMP="$scratch" \
        GITHUB_STEP_SUMMARY="$scratch/summary" GITHUB_OUTPUT="$scratch/output" "${@:2}" \
        packaging/github/size >"$scratch/log" 2>"$scratch/errors" || status=$?
    [ "$status" -eq "$wanted" ] || { echo "$*: ended with $status"; cat "$scratch/log" "$scratch/errors"; exit 1; }
    [ "$(grep -c '^::' "$scratch/log")" -eq 1 ] || { echo "$*: not one annotation"; cat "$scratch/log"; exit 1; }
}
model=samples/resnet18.onnx
size 0 MODELS="$model" OPTIONS="--batch 8" BUDGET=T4
grep -q '^| peak |' "$scratch/summary"
grep -q "report=$scratch/onnxvram.json" "$scratch/output"
grep -q '"models"' "$scratch/onnxvram.json"
grep -q '^::notice ' "$scratch/log"

size 3 MODELS="$model" OPTIONS="--batch 8" BUDGET=64MiB
grep -q '^::error ' "$scratch/log"

size 0 MODELS="$model" OPTIONS="--batch 4"
cp "$scratch/onnxvram.json" "$scratch/before.json"
size 0 MODELS="$model" OPTIONS="--batch 4" BASELINE="$scratch/before.json" MAX_GROWTH=5%

size 1 MODELS="none.onnx"
grep -q '^::error .*none.onnx' "$scratch/log"
# shellcheck disable=SC2016 # it is not to be expanded
size 1 MODELS='$(touch${IFS}'"$scratch"'/run).onnx'
[ ! -e "$scratch/run" ]
