#!/usr/bin/env bash
# The documents show what the program prints. Every block of README.md, docs/guide.md and docs/usage.md that is fenced as
# ```console and begins with "$ onnxvram" is run, command by command, from the root of the sources, and its
# whole text is compared with what came out. Other blocks (```sh ...) are not run.
#
# The program is the one of the build folder $ONV_BUILD_DIR, or of the folder given. With
# ONV_UPDATE_EXAMPLES=1 the blocks are rewritten instead.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
documents=(README.md docs/guide.md docs/usage.md)

[ -x "$build/onnxvram" ] || { echo "there is no program in $build"; exit 1; }
export PATH="$build:$PATH" LC_ALL=C.UTF-8
unset COLUMNS NO_COLOR

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# transcript FILE: the commands of a block, each followed by what it prints now.
transcript() {
    local line last status=0
    while IFS= read -r line; do
        [[ $line == "\$ "* ]] || continue
        printf '%s\n' "$line"
        # "$ echo $?" shows the status of the command before it.
        last=$status status=0
        (set +e; (exit "$last"); eval "${line#\$ }") </dev/null 2>&1 || status=$?
    done <"$1"
}

# blocks DOCUMENT FOLDER: one file a block; its name is the line where the block begins.
blocks() {
    awk -v folder="$2" '
        /^```/ { inside = !inside && $0 == "```console"; at = NR + 1; file = ""; next }
        inside && NR == at && /^\$ onnxvram / { file = sprintf("%s/%05d.shown", folder, NR) }
        file != "" { print > file }' "$1"
}

# update DOCUMENT FOLDER: the document with what the program prints now in its blocks.
update() {
    awk -v folder="$2" '
        /^```/ && skips { skips = 0 }
        skips { next }
        { print }
        /^```/ { inside = !inside && $0 == "```console"; at = NR + 1 }
        inside && NR == at && /^\$ onnxvram / {
            file = sprintf("%s/%05d.now", folder, NR); getline first < file
            while ((getline line < file) > 0) print line
            skips = 1
        }' "$1" >"$2/updated"
    cp "$2/updated" "$1"
}

failed=0 count=0
for document in "${documents[@]}"; do
    folder="$scratch/${document//\//-}"
    mkdir "$folder"
    blocks "$document" "$folder"
    shown_here=0
    for shown in "$folder"/*.shown; do
        [ -e "$shown" ] || break
        shown_here=$((shown_here + 1))
        transcript "$shown" >"${shown%.shown}.now"
        [ -n "${ONV_UPDATE_EXAMPLES:-}" ] && continue
        line=$(basename "$shown" .shown)
        diff -u --label "$document:$((10#$line))" --label "what it prints" "$shown" \
            "${shown%.shown}.now" || failed=$((failed + 1))
    done
    [ "$shown_here" -gt 0 ] || { echo "$document shows no example that could be checked"; exit 1; }
    count=$((count + shown_here))
    if [ -n "${ONV_UPDATE_EXAMPLES:-}" ]; then update "$document" "$folder"; fi
done
echo "$count examples, $failed differ"
[ "$failed" -eq 0 ]
