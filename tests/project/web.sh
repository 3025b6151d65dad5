#!/usr/bin/env bash
# The page of --html in Debian's Chromium. The browser is driven by PyPI's playwright, from $ONV_PLAYWRIGHT (a Python that
# has it), the venv that scripts/test makes in the build folder, or python3. Skipped where one of them is missing.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"

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
export PYTHONDONTWRITEBYTECODE=1
"$python" tests/web/page.py "$build/onnxvram" samples "$scratch" "$chromium"
"$python" tests/web/questions.py "$build/onnxvram" samples "$scratch" "$chromium"
