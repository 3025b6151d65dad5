#!/usr/bin/env bash
# Reports are as share/report.schema.json says. Needs Python with jsonschema 4 (Debian: python3-jsonschema).
set -euo pipefail
for python in "${ONV_TEST_PYTHON:-python3}" /usr/bin/python3; do
    "$python" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || continue
    exec "$python" "${ONV_SOURCE_DIR:?}/tests/project/schema.py" "$ONV_SOURCE_DIR" "${ONV_BUILD_DIR:?}/onnxvram"
done
echo "skipped: no python3 with jsonschema 4"
exit 77
