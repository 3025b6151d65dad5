#!/usr/bin/env bash
# The steps of the GitHub Action: the program is the release's where there is one; the summary is Markdown, the report
# is JSON, one annotation says the verdict, and the exit status is onnxvram's. Text of inputs is no code, and no second
# annotation.
set -euo pipefail
ONV_SOURCE_DIR=$(realpath "${ONV_SOURCE_DIR:?}") ONV_BUILD_DIR=$(realpath "${ONV_BUILD_DIR:?}")
cd "$ONV_SOURCE_DIR"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# size STATUS NAME=VALUE...: runs the step, which has to end so.
size() {
    local wanted=$1 status=0
    : >"$scratch/summary" && : >"$scratch/output"
    env ONNXVRAM="$ONV_BUILD_DIR/onnxvram" GITHUB_ACTION_PATH="$PWD" RUNNER_TEMP="$scratch" \
        GITHUB_STEP_SUMMARY="$scratch/summary" GITHUB_OUTPUT="$scratch/output" "${@:2}" \
        "$ONV_SOURCE_DIR/packaging/github/size" >"$scratch/log" 2>"$scratch/errors" || status=$?
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

# What grew since a commit: models of one name are told apart, a new one has no growth, and the comment is short.
if command -v git >/dev/null; then
    repository=$scratch/repository
    commit_all() { git -C "$repository" add -A && git -C "$repository" -c user.name=n -c user.email=e@invalid commit -q -m "$1"; }
    git init -q -b main "$repository"
    mkdir "$repository/a" "$repository/b"
    cp samples/resnet18.onnx "$repository/a/model.onnx"
    cp samples/unet.onnx "$repository/b/model.onnx"
    commit_all before
    git -C "$repository" checkout -q -b change
    cd "$repository"
    size 0 MODELS="*/model.onnx" OPTIONS="--batch 1 -d height=64 -d width=64" COMPARE_WITH=main MAX_GROWTH=0%
    cp "$ONV_SOURCE_DIR/samples/resnet50.onnx" a/model.onnx
    cp "$ONV_SOURCE_DIR/samples/unet.onnx" a/added.onnx
    commit_all after
    size 3 MODELS="a/*.onnx b/model.onnx" OPTIONS="--batch 1 -d height=64 -d width=64" COMPARE_WITH=main MAX_GROWTH=5%
    grep -q '^::error .*a/model.onnx: grew' "$scratch/log"
    grep -q "comment=$scratch/onnxvram.md" "$scratch/output"
    [ "$(head -n 1 "$scratch/onnxvram.md")" = '<!-- onnxvram -->' ]
    grep -q '| weights .*too much' "$scratch/onnxvram.md"
    grep -q 'more lines are in the summary' "$scratch/onnxvram.md"
    [ "$(wc -l <"$scratch/onnxvram.md")" -eq 25 ]
    grep -q 'a/added.onnx' "$scratch/summary"
    [ ! -e "$scratch/before" ] && [ "$(git worktree list | wc -l)" -eq 1 ]
    size 1 MODELS=a/model.onnx COMPARE_WITH=absent
    grep -q '^::error .*expected a branch or a commit' "$scratch/log"
    size 1 MODELS=a/model.onnx COMPARE_WITH=--upload-pack=x
    size 1 MODELS=a/model.onnx COMPARE_WITH=main BASELINE=x.json
    cd "$ONV_SOURCE_DIR"
fi

# The comment of an earlier run is changed, else there is a new one. A program in place of GitHub's says what it is asked.
mkdir "$scratch/bin"
# shellcheck disable=SC2016 # it is not to be expanded
printf '#!/bin/sh\ncase " $* " in *" --jq "*) cat "$EARLIER" ;; *) echo "$@" ;; esac\n' >"$scratch/bin/gh"
chmod +x "$scratch/bin/gh"
comment() {
    env PATH="$scratch/bin:$PATH" EARLIER="$scratch/ids" GITHUB_REPOSITORY=OWNER/REPO PULL_REQUEST=7 COMMENT=c.md packaging/github/comment
}
: >"$scratch/ids"
[ "$(comment)" = "api --silent --method POST repos/OWNER/REPO/issues/7/comments --field body=@c.md" ]
printf '%s\n' 12 34 >"$scratch/ids"
[ "$(comment)" = "api --silent --method PATCH repos/OWNER/REPO/issues/comments/12 --field body=@c.md" ]

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
    # The hook, in a clone as pre-commit makes it: the release's program is got once.
    git clone -q "file://$scratch/server/OWNER/onnxvram" "$scratch/clone"
    cp -r CMakeLists.txt packaging "$action/scripts" "$scratch/clone"
    hook() { env -u GITHUB_SERVER_URL "$scratch/clone/packaging/github/hook" "$@" 2>"$scratch/log"; }
    [ "$(hook -q --)" = 'released -q' ] && grep -q '^released --version' "$scratch/log"
    [ "$(hook -q --)" = 'released -q' ] && [ ! -s "$scratch/log" ]
fi
echo tampered >>"$release/$file"
get 1 "v$version" "^::error .*checksum"
[ ! -e "$action/build/release/onnxvram" ]
rm "$release/$file"
get 0 "v$version" "^built --version"
