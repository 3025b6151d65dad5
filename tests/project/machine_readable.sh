#!/usr/bin/env bash
# What programs read stays readable whatever the model is: JSON and CSV of models that were damaged
# at random are read by Python's own parsers. JSON is strict (no key twice, no NaN), CSV has its
# columns and no cell that a spreadsheet would run as a formula.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || exit 77

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$build/tests/fuzz/fuzz-driver" -m "${MUTATIONS:-600}" -s 500000 -w "$scratch" analysis \
    tests/fuzz/corpus/models samples/{control-flow,functions,scan,resnet18-train}.onnx
cp tests/fuzz/corpus/models/*.onnx "$scratch"

# analyse NAME OPTION...: many of the models are refused, each with its line.
analyse() {
    local name=$1 status=0
    shift
    "$build/onnxvram" -q "$@" --json="$scratch/$name.json" --csv="$scratch/$name.csv" \
        "$scratch"/*.onnx >/dev/null 2>"$scratch/errors" || status=$?
    if [ "$status" -gt 2 ] || grep -v '^onnxvram: ' "$scratch/errors"; then
        echo "$name: status $status"
        exit 1
    fi
}
analyse free
analyse bound --batch 2
analyse train --batch 2 --train adamw --checkpoint all

python3 - "$scratch" <<'END'
import csv, json, sys

def refuse(text):
    raise ValueError("not JSON: " + text)

def distinct(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        refuse("a key stands twice in " + repr(keys))
    return dict(pairs)

for name in "free", "bound", "train":
    with open(f"{sys.argv[1]}/{name}.json", encoding="ascii") as file:
        models = json.load(file, parse_constant=refuse, object_pairs_hook=distinct)["models"]
    with open(f"{sys.argv[1]}/{name}.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    tensors = sum(len(model["tensors"]) for model in models)
    assert len(rows) == tensors, (len(rows), tensors)
    for row in rows:
        assert len(row) == len(header), row
        for cell in row:
            assert cell[:1] not in tuple("=+-@\t\r"), row
            assert all(c.isprintable() or c == " " for c in cell), row
    print(f"{name}: {len(models)} models, {tensors} tensors")
    assert len(models) >= 10
END
