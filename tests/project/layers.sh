#!/usr/bin/env bash
# The layers of the architecture: a file of src/ includes only its own folder and lower layers.
# Which layer a folder is in is read from the table in ARCHITECTURE.md: | layer | `src/folder` |
#
#     tests/project/layers.sh [ROOT]     checks ROOT (default: $ONV_SOURCE_DIR)
#
# Without an argument it also checks itself, on a small tree where every rule is broken once.
set -euo pipefail

# Prints one line for every include that breaks a rule, and fails if there was one.
check() {
    find "$1/src" -name '*.[chd]*' -type f | LC_ALL=C sort | awk -v root="$1/" '
        BEGIN {
            while ((getline text < (root "ARCHITECTURE.md")) > 0) {
                if (text !~ /^\| *[0-9]+ *\|/) continue
                split(text, cell, "|")
                for (n = split(cell[3], word, "`"); n > 0; n--)
                    if (sub(/^src\//, "", word[n])) layer[word[n]] = cell[2] + 0
            }
        }
        function wrong(why) {
            printf "%s:%d: \"%s\": %s\n", substr(path, length(root) + 1), line, target, why
            bad = 1
        }
        function rule(mine, theirs) {
            if (theirs == "onnxvram") return
            if (target ~ /onnx\.pb-c\.h$/ || theirs == "protobuf-c") {
                if (mine != "load") wrong("only load sees the generated code")
                return
            }
            if (system_header) return
            if (!(theirs in layer)) wrong("is in no layer of ARCHITECTURE.md")
            else if (theirs == mine) return
            else if (mine == "cli") wrong("the program uses only the public header")
            else if (layer[theirs] >= layer[mine])
                wrong(theirs " (layer " layer[theirs] ") is not below " \
                      mine " (layer " layer[mine] ")")
        }
        {
            path = $0
            line = 0
            mine = substr(path, length(root "src/") + 1)
            target = mine
            if (mine !~ /\// || !(substr(mine, 1, index(mine, "/") - 1) in layer)) {
                wrong("is in no layer of ARCHITECTURE.md")
                next
            }
            sub(/\/.*/, "", mine)
            files++
            while ((getline text < path) > 0) {
                line++
                if (text !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) continue
                target = text
                sub(/^[^"<]*/, "", target)
                system_header = target ~ /^</
                sub(/^["<]/, "", target)
                sub(/[">].*/, "", target)
                theirs = target ~ /\// ? substr(target, 1, index(target, "/") - 1) : ""
                rule(mine, theirs)
            }
            close(path)
        }
        END {
            if (!files) { print "no sources below " root "src"; bad = 1 }
            exit bad
        }'
}

# make FOLDER INCLUDE: a file of the tree below that includes it.
make() {
    mkdir -p "$tree/src/$1"
    echo "#include $2" >>"$tree/src/$1/a.c"
}

self_check() {
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    cat >"$tree/ARCHITECTURE.md" <<'END'
| layer | folder | what |
|---|---|---|
| 0 | `src/base` | x |
| 1 | `src/ir` | x |
| 2 | `src/load`, `src/ops` | x |
| 3 | `src/infer` | unlike `src/extra` |
| 4 | `src/live` | x |
| 7 | `src/api`, `src/cli` | x |
END
    make ops '"base/arena.h"'
    make load '"onnx.pb-c.h"'
    make load '<protobuf-c/protobuf-c.h>'
    make cli '"onnxvram/onnxvram.h"'
    make api '<string.h>'
    check "$tree" || { echo "self-check: refuses what is allowed"; return 1; }
    make ops '"load/load.h"'     # a neighbour
    make ir '"ops/op.h"'         # upwards
    make cli '"base/arena.h"'    # past the public header
    make live '"onnx.pb-c.h"'    # the generated code
    make infer '"other/file.h"'  # nobody's folder
    make infer '"infer.h"'       # no folder
    make extra '"base/arena.h"'  # a folder without a layer
    local found
    found=$(check "$tree" | wc -l) || true
    [ "$found" -eq 7 ] || { echo "self-check: $found of 7 broken rules found"; return 1; }
}

if [ $# -gt 0 ]; then
    check "$1"
else
    self_check
    check "${ONV_SOURCE_DIR:?}"
fi
