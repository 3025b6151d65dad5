#!/usr/bin/env bash
# What --memory-viz, --perfetto and --model-explorer write, read as JSON and pickle, and by the Python packages of these viewers: torch and
# ai-edge-model-explorer, each from python3 or from a Python of $ONV_VIEWERS (paths with : between). Skipped where one is missing,
# once the others have passed.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v python3 >/dev/null || exit 77

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1
for check in snapshot perfetto; do
    python3 tests/viewers/viewers.py "$check" "$build/onnxvram" samples "$scratch"
done

IFS=: read -r -a pythons <<<"${ONV_VIEWERS:-}:python3"
missing=
for viewer in torch model-explorer; do
    status=77
    for python in "${pythons[@]}"; do
        [ -n "$python" ] || continue
        status=0
        "$python" tests/viewers/viewers.py "$viewer" "$build/onnxvram" samples "$scratch" || status=$?
        [ "$status" = 77 ] || break
    done
    [ "$status" = 0 ] || [ "$status" = 77 ] || exit "$status"
    [ "$status" = 0 ] || missing+=" $viewer"
done
[ -z "$missing" ] || {
    echo "skipped: no Python here reads what is for$missing"
    exit 77
}
