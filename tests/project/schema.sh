#!/usr/bin/env bash
# Reports are as share/report.schema.json says. Needs Python with jsonschema 4 (Debian: python3-jsonschema).
set -euo pipefail
has_schemas() {
    "$1" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null
}
python=${ONV_TEST_PYTHON:-python3}
has_schemas "$python" || python=/usr/bin/python3
has_schemas "$python" || { echo "skipped: no python3 with jsonschema 4"; exit 77; }
"$python" "${ONV_SOURCE_DIR:?}/tests/project/schema.py" "$ONV_SOURCE_DIR" "${ONV_BUILD_DIR:?}/onnxvram"
