#!/usr/bin/env bash
# The table of jobs in docs/guide.md: each command is run, and prints what the table says to look for, or writes that file.
set -euo pipefail
build=$(cd "${ONV_BUILD_DIR:?}" && pwd)
source=${ONV_SOURCE_DIR:?} scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ln -s "$source/samples" samples
export PATH="$build:$PATH" LC_ALL=C.UTF-8

count=0 failed=0
# shellcheck disable=SC2016 # the quotes are of Markdown
while IFS=$'\t' read -r command answer; do
    count=$((count + 1)) status=0
    text=$(eval "$command" 2>&1 </dev/null) || status=$?
    # 3 and 4 are verdicts.
    [[ $status == 0 || $status == 3 || $status == 4 ]] && { [[ $text == *"$answer"* ]] || [ -s "$answer" ]; } && continue
    echo "$command: status $status, expected '$answer': $text" | head -20
    failed=1
done < <(sed -nE 's/^\| .* \| `(onnxvram .*)` \| `(.+)` \|$/\1\t\2/p' "$source/docs/guide.md")
[ "$count" -ge 30 ] || { echo "docs/guide.md has $count jobs, expected 30 or more"; exit 1; }
exit "$failed"
