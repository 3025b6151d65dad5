#!/usr/bin/env bash
# Models that no sample can be: a file of more than 2 GiB (a hole on the disk) and graphs of 20,000
# nodes. The numbers follow from how they are made: activations of 16 channels take 64 KiB each;
# a chain holds two of them, a residual block three. The pages of weights must stay untouched.
set -euo pipefail
program=${ONV_BUILD_DIR:?}/onnxvram
synth=$ONV_BUILD_DIR/bench/onnxvram-synth
measure=$ONV_BUILD_DIR/bench/measure
if [ ! -x "$synth" ]; then
    echo "skipped: the benchmark programs are not built"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# peak FILE: the peak in bytes, of the JSON report.
peak() {
    "$program" "$1" --batch 1 --json | sed -nE 's/.*"peak": *\{"bytes": *([0-9]+).*/\1/p'
}

expect() {
    [ "$2" = "$3" ] || { echo "$1: $2, not $3"; exit 1; }
}

"$synth" chain 20000 "$scratch/chain.onnx"
expect "peak of a chain" "$(peak "$scratch/chain.onnx")" $((2 * 65536))
"$synth" residual 20000 "$scratch/residual.onnx"
expect "peak of residual blocks" "$(peak "$scratch/residual.onnx")" $((3 * 65536))

# 1 Conv and 1 Relu with all the weights in one tensor, and 500 of each.
for nodes in 2 1000; do
    "$synth" chain "$nodes" "$scratch/large.onnx" --weights 2200000000
    "$synth" chain "$nodes" "$scratch/small.onnx" --weights 2200000000 --external
    [ "$(stat -c %s "$scratch/large.onnx")" -gt 2147483648 ]
    large=$(peak "$scratch/large.onnx")
    expect "peak with weights inside" "${large:?}" "$(peak "$scratch/small.onnx")"
    read -r _ _ resident < <("$measure" "$program" "$scratch/large.onnx" --batch 1)
    [ "$resident" -lt 51200 ] || { echo "$resident KiB resident with $nodes nodes"; exit 1; }
done
