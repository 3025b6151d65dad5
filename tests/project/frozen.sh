#!/usr/bin/env bash
# Programs that were compiled against the header of an earlier release get the same answers from the
# present library as those compiled today. Headers with fewer fields at the ends of structs do, too; a
# field in the middle of one is found.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sanitize=$(sed -nE 's/^ONV_SANITIZE:[A-Z]*=(.+)/-fsanitize=\1/p' "$build/CMakeCache.txt")

# run NAME HEADER: what the caller prints, compiled against a header.
run() {
    mkdir -p "$scratch/$1"
    cp "$2" "$scratch/$1/onnxvram.h"
    "${CC:-cc}" -std=c11 ${sanitize:+"$sanitize"} "-I$scratch/$1" -o "$scratch/$1/caller" \
        "$source/tests/frozen/caller.c" "-L$build" -lonnxvram "-Wl,-rpath,$build"
    # A wrong layout may do anything, crash included.
    "$scratch/$1/caller" "$source/samples/resnet18-train.onnx" >"$scratch/$1.txt" 2>/dev/null || true
}

# Without comments every field stands in lines of its own.
present=$scratch/onnxvram.h
"$source/scripts/header" | "${CC:-cc}" -fpreprocessed -dD -E -P -x c - >"$present" 2>"$scratch/log"
run present "$present"
grep -q '^peak [1-9]' "$scratch/present.txt" || { cat "$scratch/present.txt"; exit 1; }
shopt -s nullglob
for header in "$source"/tests/frozen/onnxvram-*.h; do
    run "$(basename "$header" .h)" "$header"
    diff "$scratch/present.txt" "$scratch/$(basename "$header" .h).txt"
done

# less STRUCT LINE: the present header without a line of a struct.
less() {
    awk -v struct="typedef struct $1 {" -v line="$2" '
        $0 == struct { inside = 1 }
        /^}/ { inside = 0 }
        inside && index($0, line) { found = 1; next }
        { print }
        END { exit !found }' "$present" >"$scratch/less.h" || { echo "no '$2' in $1"; exit 1; }
}
last_field() {
    awk -v struct="typedef struct $1 {" '
        $0 == struct { inside = 1 }
        /^}/ { inside = 0 }
        inside && /;/ { last = $0; sub(/;.*/, ";", last) }
        END { print last }' "$present"
}
for struct in onv_options onv_limits onv_summary onv_report_options onv_answer_runtime_info; do
    less "$struct" "$(last_field "$struct")"
    run older "$scratch/less.h"
    diff "$scratch/present.txt" "$scratch/older.txt" || { echo "older header: $struct"; exit 1; }
done
for middle in 'onv_options|  const char *order;' 'onv_limits|  uint64_t attr_elems;' 'onv_summary|  uint64_t trainable;' \
    'onv_answer_runtime_info|  uint64_t context_low, context_high;' 'onv_gpu_info|  uint64_t nominal_bytes;'; do
    less "${middle%%|*}" "${middle#*|}"
    run other "$scratch/less.h"
    ! cmp -s "$scratch/present.txt" "$scratch/other.txt" || { echo "not found: $middle"; exit 1; }
done
