#!/usr/bin/env bash
# The steps of the GitHub Action: the program is the release's where there is one; the summary is Markdown, the report
# is JSON, one annotation says the verdict, and the exit status is onnxvram's. Text of inputs is no code, and no second
# annotation.
set -euo pipefail
cd "${ONV_SOURCE_DIR:?}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# size STATUS NAME=VALUE...: runs the step, which has to end so.
size() {
    local wanted=$1 status=0
    : >"$scratch/summary" && : >"$scratch/output"
    env ONNXVRAM="${ONV_BUILD_DIR:?}/onnxvram" GITHUB_ACTION_PATH="$PWD" RUNNER_TEMP="$scratch" \
        GITHUB_STEP_SUMMARY="$scratch/summary" GITHUB_OUTPUT="$scratch/output" "${@:2}" \
        packaging/github/size >"$scratch/log" 2>"$scratch/errors" || status=$?
    [ "$status" -eq "$wanted" ] || { echo "$*: ended with $status"; cat "$scratch/log" "$scratch/errors"; exit 1; }
    [ "$(grep -c '^::' "$scratch/log")" -eq 1 ] || { echo "$*: not one annotation"; cat "$scratch/log"; exit 1; }
}
model=samples/resnet18.onnx
size 0 MODELS="$model" OPTIONS="--batch 8" BUDGET=T4
grep -q '^| peak |' "$scratch/summary"
grep -q "report=$scratch/onnxvram.json" "$scratch/output"
grep -q '"models"' "$scratch/onnxvram.json"
grep -q '^::notice ' "$scratch/log"

size 3 MODELS="$model" OPTIONS="--batch 8" BUDGET=64MiB
grep -q '^::error ' "$scratch/log"

size 0 MODELS="$model" OPTIONS="--batch 4"
cp "$scratch/onnxvram.json" "$scratch/before.json"
size 0 MODELS="$model" OPTIONS="--batch 4" BASELINE="$scratch/before.json" MAX_GROWTH=5%

size 1 MODELS="none.onnx"
grep -q '^::error .*none.onnx' "$scratch/log"
# shellcheck disable=SC2016 # it is not to be expanded
size 1 MODELS='$(touch${IFS}'"$scratch"'/run).onnx'
[ ! -e "$scratch/run" ]

# Patterns become files, also those whose names have blanks; quotes hold a name together.
mkdir -p "$scratch/my models/deep/er"
cp samples/resnet18.onnx "$scratch/my models/one.onnx"
cp samples/resnet18.onnx "$scratch/my models/it is [two].onnx"
cp samples/resnet18.onnx "$scratch/my models/deep/er/three.onnx"
sized() { sed -nE 's|^ *"path": *".*/([^/]*\.onnx)",$|\1|p' "$scratch/onnxvram.json" | LC_ALL=C sort | tr '\n' ';'; }
expect() {
    local found
    found=$(sized)
    [ "$found" = "$1" ] || { echo "sized '$found', not '$1'"; exit 1; }
}
size 0 OPTIONS="--batch 1" MODELS="\"$scratch/my models/*.onnx\""
expect "it is [two].onnx;one.onnx;"
size 0 OPTIONS="--batch 1" MODELS="'$scratch/my models/it is [two].onnx'"
expect "it is [two].onnx;"
size 0 OPTIONS="--batch 1" MODELS="$scratch/my\\ models/**/*.onnx
$model"
expect "it is [two].onnx;one.onnx;resnet18.onnx;three.onnx;"
size 0 OPTIONS="--dim 'batch=3'" MODELS="samples/resnet18.o* samples/unet.onnx"
expect "resnet18.onnx;unet.onnx;"
size 1 MODELS="$scratch/none*.onnx"
grep -q '^::error .*none\*.onnx' "$scratch/log"
size 1 MODELS="it's.onnx"
grep -q '^::error .*models: a quote is not closed' "$scratch/log"

# The program: of the release whose tag the action is used at, with its checksum; else one that is built.
version=$(sed -nE 's/^project\(onnxvram VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
file=onnxvram-$version-linux-$(uname -m)
action=$scratch/action release=$scratch/server/OWNER/onnxvram/releases/download/v$version
mkdir -p "$action/scripts" "$release"
cp CMakeLists.txt "$action"
printf '#!/bin/sh\necho built "%s"\n' "\$1" >"$action/scripts/run"
printf '#!/bin/sh\necho released "%s"\n' "\$1" >"$release/$file"
chmod +x "$action/scripts/run"
(cd "$release" && sha256sum "$file" >SHA256SUMS)
# get STATUS REF TEXT: what it prints last.
get() {
    local status=0
    rm -rf "$action/build"
    GITHUB_ACTION_PATH=$action GITHUB_SERVER_URL=file://$scratch/server ACTION_REPOSITORY=OWNER/onnxvram ACTION_REF=$2 \
        packaging/github/get >"$scratch/log" 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || ! tail -n 1 "$scratch/log" | grep -q -- "$3"; then
        echo "get $*: ended with $status"
        cat "$scratch/log"
        exit 1
    fi
}
command -v curl >/dev/null || { echo "skipped in part: there is no curl"; exit 0; }
get 0 "v$version" "^released --version"
[ -x "$action/build/release/onnxvram" ]
get 0 main "^built --version"
get 0 v0.0.1 "^built --version"
if command -v git >/dev/null; then
    git init -q "$scratch/tagged" && cd "$scratch/tagged"
    git -c user.name=n -c user.email=e@invalid commit -q --allow-empty -m one
    git -c user.name=n -c user.email=e@invalid tag -a -m tag "v$version"
    commit=$(git rev-parse HEAD)
    cd "$OLDPWD"
    git clone -q --bare "$scratch/tagged" "$scratch/bare"
    mv "$scratch/bare"/* "$scratch/server/OWNER/onnxvram/"
    get 0 "$commit" "^released --version"
    get 0 "${commit//[0-9]/a}" "^built --version"
fi
echo tampered >>"$release/$file"
get 1 "v$version" "^::error .*checksum"
[ ! -e "$action/build/release/onnxvram" ]
rm "$release/$file"
get 0 "v$version" "^built --version"
