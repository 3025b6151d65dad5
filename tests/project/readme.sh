#!/usr/bin/env bash
# The README shows what the program prints. Every block of README.md that is fenced as ```console
# and begins with "$ onnxvram" is run, command by command, from the root of the sources, and its
# whole text is compared with what came out. Other blocks (```sh ...) are not run.
#
# The program is the one of the build folder $ONV_BUILD_DIR, or of the folder given.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"

if [ ! -e README.md ]; then
    echo "there is no README.md, so it shows nothing wrong"
    exit 0
fi
[ -x "$build/onnxvram" ] || { echo "there is no program in $build"; exit 1; }
export PATH="$build:$PATH" LC_ALL=C.UTF-8
unset COLUMNS NO_COLOR

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One file a block; its name is the line where the block begins.
awk -v folder="$scratch" '
    /^```/ { inside = !inside && $0 == "```console"; at = NR + 1; file = ""; next }
    inside && NR == at && /^\$ onnxvram / { file = sprintf("%s/%05d.shown", folder, NR) }
    file != "" { print > file }' README.md

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

failed=0 blocks=0
for shown in "$scratch"/*.shown; do
    [ -e "$shown" ] || break
    blocks=$((blocks + 1))
    transcript "$shown" >"${shown%.shown}.now"
    name=$(basename "$shown" .shown)
    diff -u --label "README.md:$((10#$name))" --label "what it prints" "$shown" \
        "${shown%.shown}.now" || failed=$((failed + 1))
done
echo "$blocks examples, $failed differ"
[ "$blocks" -gt 0 ] || { echo "README.md shows no example that could be checked"; exit 1; }
[ "$failed" -eq 0 ]
