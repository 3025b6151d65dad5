#!/usr/bin/env bash
# The page that scripts/page makes, in Debian's Chromium, beside the program of the build folder. It takes Emscripten and
# minutes to make, so that the page is tested where there is one: ONV_PAGE=FILE, as scripts/check-page sets it.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"

[ -n "${ONV_PAGE:-}" ] || {
    echo "skipped: ONV_PAGE names no page; scripts/check-page makes one and tests it"
    exit 77
}
chromium=$(command -v chromium || command -v chromium-browser) || {
    echo "skipped: there is no chromium"
    exit 77
}
python=
for candidate in "${ONV_PLAYWRIGHT:-}" "$build/../web-venv/bin/python" python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import playwright' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "skipped: no Python here has playwright (pip install playwright, or ONV_PLAYWRIGHT=PYTHON)"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PYTHONDONTWRITEBYTECODE=1 "$python" tests/web/drop.py "$build/onnxvram" samples "$scratch" "$chromium" "$ONV_PAGE"
