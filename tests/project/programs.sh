#!/usr/bin/env bash
# Predictions from programs, recordings and default exports of the networks in tests/truth/programs against what PyTorch took:
# every row that was right (right.txt) still is. Rows that became right are printed; --update writes them.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
corpus=$source/tests/truth/programs

cp "$corpus/right.txt" "$scratch/right.txt"
python3 "$source/scripts/programs" table "$corpus" --exe "$build/onnxvram" --right "$scratch/right.txt" >"$scratch/table.md" ||
    { cat "$scratch/table.md"; exit 1; }
[ "${1:-}" != --update ] || cp "$scratch/right.txt" "$corpus/right.txt"

# The list is not empty, and a row that is not right is found.
[ "$(wc -l <"$corpus/right.txt")" -ge 60 ]
{ cat "$corpus/right.txt"; echo "no_such_network recording-training"; } >"$scratch/wrong.txt"
if python3 "$source/scripts/programs" table "$corpus" vit --exe "$build/onnxvram" --right "$scratch/wrong.txt" \
    >/dev/null 2>"$scratch/errors"; then
    echo "a row that is missing was not found"
    exit 1
fi
grep -q "was right, is not: no_such_network recording-training" "$scratch/errors"
