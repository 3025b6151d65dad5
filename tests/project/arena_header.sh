#!/usr/bin/env bash
# The header of --dump=header compiles as C and as C++, whatever values are called, its asserts hold, and they fail where an offset
# is moved.
set -euo pipefail
program=${ONV_BUILD_DIR:?}/onnxvram
samples=${ONV_SOURCE_DIR:?}/samples
flags=(-Wall -Wextra -Werror -fsyntax-only)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

compiles() { # as C11 and as C++17
    "${CC:-cc}" -std=c11 -pedantic-errors "${flags[@]}" -x c "$1" &&
        { ! command -v "${CXX:-c++}" >/dev/null || "${CXX:-c++}" -std=c++17 "${flags[@]}" -x c++ "$1"; }
}

for align in 1 256; do
    for sample in "resnet18 --batch 2" "control-flow --batch 2" "bert --batch 1 --dim sequence=16"; do
        read -r name options <<<"$sample"
        # shellcheck disable=SC2086
        "$program" "$samples/$name.onnx" $options --align $align --dump=header >"$scratch/$name.h"
        grep -q "^#define ONV_ARENA_ALIGNMENT UINT64_C($align)$" "$scratch/$name.h"
        printf '#include "%s.h"\n#include "%s.h"\n' "$name" "$name" >"$scratch/use.c"
        compiles "$scratch/use.c"
    done
done

# Offsets that are not as planned do not compile.
sed -E '0,/^(#define ONV_OFFSET_[^ ]+ UINT64_C\()[0-9]+/s//\199/' "$scratch/resnet18.h" >"$scratch/moved.h"
printf '#include "moved.h"\n' >"$scratch/use.c"
if compiles "$scratch/use.c" 2>/dev/null; then
    echo "an offset that is not aligned compiles"
    exit 1
fi
