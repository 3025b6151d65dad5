#!/usr/bin/env bash
# Instructions that commands take, within 5 % of the table beside this file, so that a regression is seen however fast the machine
# is. Counts are of one compiler and kind of build; for others there is nothing to compare with, and the test is skipped.
#
#     ONV_UPDATE_INSTRUCTIONS=1 tests/project/instructions.sh     writes the rows of this compiler and build anew
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
table=$source/tests/project/instructions.tsv
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
# of VARIABLE: what the build was configured with.
of() { sed -nE "s/^$1:[A-Z]+=//p" "$build/CMakeCache.txt"; }
kind=$(of CMAKE_BUILD_TYPE)
kind="$kind $(of "CMAKE_C_FLAGS_${kind^^}")"
compiler=$("${CC:-cc}" --version | head -n 1 | cut -d ' ' -f 2-)
grep -q '^ONV_SANITIZE:STRING=.' "$build/CMakeCache.txt" && { echo "skipped: a build with sanitizers"; exit 77; }
grep -qE '^CMAKE_C_FLAGS:STRING=.' "$build/CMakeCache.txt" && { echo "skipped: a build with flags of its own"; exit 77; }
key=$kind$'\t'$compiler
update=${ONV_UPDATE_INSTRUCTIONS:-}
if [ -z "$update" ] && ! grep -qF "$key"$'\t' "$table"; then
    echo "skipped: the table has no counts of $compiler, $kind"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Intervals like those of a deep network: kept for backward, and short-lived ones between.
awk 'BEGIN { print "id,lower,upper,size"
    for (i = 0; i < 300; i++) { print 2 * i "," i "," 600 - i "," 4096 * (i % 7 + 1)
        print 2 * i + 1 "," i "," i + 2 + i % 3 "," 1024 * (i % 31 + 1) } }' >"$work/intervals.csv"
cd "$source"
names=(report quiet transformer parts parts-json language-text language-json training plan)
# shellcheck disable=SC2034 # by their names, below
{
report=(samples/resnet50.onnx -b 256)
quiet=(samples/resnet50.onnx -b 256 -q)
transformer=(samples/vit_b_16-dynamo.onnx -b 8 -q --json="$work/report.json")
parts=(samples/swin_t-dynamo.onnx -b 8 -q)
partsjson=("${parts[@]}" --json="$work/report.json")
languagetext=(samples/llama.onnx -b 8)
languagejson=("${languagetext[@]}" -q --json="$work/report.json")
training=(samples/resnet18-train.onnx -b 8 -q --train adamw)
plan=(plan "$work/intervals.csv" -o "$work/planned.csv")
}

failed=0
[ -z "$update" ] || { grep -vF "$key"$'\t' "$table" >"$work/table" || true; }
for name in "${names[@]}"; do
    declare -n arguments=${name//-/}
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/onnxvram" "${arguments[@]}" \
        >"$work/out" 2>"$work/err" || { cat "$work/err"; exit 1; }
    count=$(sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$work/err")
    [ -n "$count" ] || { cat "$work/err"; exit 1; }
    if [ -n "$update" ]; then
        printf '%s\t%s\t%s\n' "$key" "$name" "$count" >>"$work/table"
        continue
    fi
    expected=$(awk -F '\t' -v kind="$kind" -v compiler="$compiler" -v name="$name" \
        '$1 == kind && $2 == compiler && $3 == name { print $4 }' "$table")
    if [ -z "$expected" ]; then
        echo "$name: not in the table; ONV_UPDATE_INSTRUCTIONS=1 adds it"
        failed=1
    elif [ $((count * 100)) -gt $((expected * 105)) ]; then
        echo "$name: $count instructions, more than 5 % above the $expected of the table"
        failed=1
    elif [ $((count * 100)) -lt $((expected * 95)) ]; then
        echo "$name: $count instructions, more than 5 % below the $expected of the table; ONV_UPDATE_INSTRUCTIONS=1 notes that"
        failed=1
    fi
done
[ -z "$update" ] || cp "$work/table" "$table"
exit "$failed"
