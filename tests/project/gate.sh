#!/usr/bin/env bash
# Each rule that tells of an export what PyTorch ran has a stored network that needs it (scripts/gate). With ONV_TEST_DATA, networks of
# that folder count, too; without, rules that only they need are no failure: two of the corpus alone are tried then.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
gate=("$source/scripts/gate" --exe "$build/onnxvram")

# A program that leaves nothing out fails the gate.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#!/bin/sh\nunset ONV_WITHOUT_RULE\nexec "%s" "$@"\n' "$build/onnxvram" >"$scratch/onnxvram"
chmod +x "$scratch/onnxvram"
if "$source/scripts/gate" --exe "$scratch/onnxvram" fuse.linear >"$scratch/out" 2>&1; then
    echo "a rule that changes nothing passed"
    exit 1
fi
grep -q "no stored network needs fuse.linear" "$scratch/out"

if [ -z "${ONV_TEST_DATA:-}" ]; then
    "${gate[@]}" fuse.linear lower.dropped_bias
    exit
fi
"${gate[@]}" --data "$ONV_TEST_DATA"
