#!/usr/bin/env bash
# What Python's package calls of the library is fuzzed: each function has its call in the target `library`.
set -euo pipefail
source=${ONV_SOURCE_DIR:?}
calls() { grep -oh "lib\.onv_[a-z_]*" "$1"/*.py | sed 's/^lib\.//' | sort -u; }
missing() {
    local name
    for name in $(calls "$1"); do
        grep -q "\b$name(" "$source/tests/fuzz/target_library.c" || echo "$name"
    done
}

[ "$(calls "$source/python/onnxvram" | wc -l)" -ge 20 ]
not_there=$(missing "$source/python/onnxvram")
[ -z "$not_there" ] || { echo "not in tests/fuzz/target_library.c: $not_there"; exit 1; }

# A call that is not there is found.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "lib.onv_no_such_function(1)" >"$scratch/module.py"
[ "$(missing "$scratch")" = onv_no_such_function ]
