#!/usr/bin/env bash
# scripts/gpu-check as a machine without a GPU can try it: the program, a few samples and the script are
# copied to a folder of their own, and its replays run on host memory and on the fake driver. It finds
# what is planted, and says what ran.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
root=$(cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}" && pwd)

command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    { echo "skipped: python3 is older than 3.9"; exit 77; }
[ -x "$build/onnxvram" ] || { echo "there is no program in $build"; exit 1; }
fake=$build/tests/libonnxvram_fake_cuda.so

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/samples"
cp "$build/onnxvram" "$root/scripts/gpu-check" "$root"/python/onnxvram/{_runs,verify}.py "$folder"
samples=(scan control-flow unet-train)
for sample in "${samples[@]}" resnet18-train; do
    cp "$root/samples/$sample.onnx" "$folder/samples"
done
cd "$folder"
unset ONNXVRAM_CUDA_DRIVER

# check STATUS ARGUMENTS...: the script ends with that status; what it says lands in "said".
check() {
    local expected=$1 status=0
    shift
    python3 gpu-check --dry-run --seconds 1200 --out results "$@" >said 2>&1 || status=$?
    [ "$status" -eq "$expected" ] && return
    cat said
    echo "gpu-check $*: status $status, not $expected"
    exit 1
}

# shows TEXT...: all of these are in "said", and in the file with the tables.
shows() {
    local text
    for text; do
        grep -qF -- "$text" said && grep -qF -- "$text" results/tables.md && continue
        cat said
        echo "this is not said: $text"
        exit 1
    done
}

only=()
for sample in "${samples[@]}"; do only+=(--sample "$sample"); done

check 0 --only replays "${only[@]}"
shows "no GPU took part" "Replayed on: host memory (no GPU)"
# Five modes for each sample, and of the trained one for training twice and for two plans.
[ "$(grep -c '| agrees |$' said)" -eq $((5 * 3 + 5 * 4)) ] || { cat said; exit 1; }

export ONNXVRAM_CUDA_DRIVER=$fake
check 0 --only replays --sample scan
shows "Replayed on: fake driver (no GPU)" "context: 300.0 MiB" "| scan | async | async |"
check 0 --only max-batch --sample resnet18-train
shows "The largest batch that allocates" "| resnet18-train | train | torch |"
! grep -q differs said || { cat said; exit 1; }

# A copy that never arrives is a contradiction; without a driver there is one line and no table.
ONNXVRAM_FAKE_LOSE=2 check 4 --only replays --sample scan
shows "lost-write"
ONNXVRAM_CUDA_DRIVER=/nonexistent/libcuda.so check 1 --only replays --sample scan
shows "/nonexistent/libcuda.so"
! grep -q '^|' said || { cat said; exit 1; }
check 1 --only replays --sample nothing
shows "There are no such samples"
check 2 --only nothing
echo "gpu-check: replays agree on host memory and on the fake driver"
