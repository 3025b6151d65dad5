#!/usr/bin/env bash
# The table of measurements is made of its rows, and a row that says too much or nothing is refused. Needs Python with jsonschema 4
# (Debian: python3-jsonschema).
set -euo pipefail
source=${ONV_SOURCE_DIR:?}
has_schemas() {
    "$1" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null
}
python=${ONV_TEST_PYTHON:-python3}
has_schemas "$python" || python=/usr/bin/python3
has_schemas "$python" || { echo "skipped: no python3 with jsonschema 4"; exit 77; }
"$python" "$source/scripts/measured" --check

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/scripts" "$scratch/share" "$scratch/docs"
cp "$source/scripts/measured" "$scratch/scripts"
cp -r "$source"/share/measured* "$scratch/share"
cd "$scratch"

# row CHANGE: a row as onnxvram verify writes it, changed by a statement of Python.
row() {
    "$python" - "$1" >row.json <<'PYTHON'
import json, sys
row = {"schema_version": 1, "source": "verify", "date": "2026-11-24", "network": None, "program": "onnxvram 0.2.0",
       "gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "13.0", "versions": {"torch": "2.15.0"},
       "options": ["--batch=8", "--train=adamw"], "sizes": [8], "nodes": 69, "parameters": 11699112,
       "figures": [{"runtime": "train", "what": "allocated", "low_bytes": 100, "high_bytes": 100, "measured_bytes": 104,
                    "is_outside": True}],
       "parts_at": [{"runtime": "train", "step": 3, "phase": "forward", "operation": "forward of <b>conv</b>", "predicted_bytes": 1,
                     "measured_bytes": 2}]}
exec(sys.argv[1])
json.dump(row, sys.stdout)
PYTHON
}

# refuses CHANGE TEXT: such a row is not added, and that is said.
refuses() {
    row "$1"
    if "$python" scripts/measured add row.json wrong 2>said; then
        echo "a row was added: $1"
        exit 1
    fi
    grep -qF -- "$2" said || { cat said; echo "this is not said: $2"; exit 1; }
    [ ! -e share/measured/wrong.json ]
}

row pass
"$python" scripts/measured add row.json an-l4
"$python" scripts/measured --check
grep -qF '| train: allocated, bytes | 100 | 104 | -3.85 % |' docs/measured.md
grep -qF 'a network of 69 nodes and 11,699,112 parameters (NVIDIA L4, torch 2.15.0)' docs/measured.md
! grep -qF '<b>' docs/measured.md || { echo "what a row says acts on the page"; exit 1; }
if "$python" scripts/measured add row.json an-l4 2>said; then exit 1; fi
grep -q 'choose another name' said
refuses 'row["model"] = "secret.onnx"' "'model' was unexpected"
refuses 'row["figures"] = []' 'figures'
refuses 'row["figures"][0]["measured_bytes"] = -1' 'figures/0/measured_bytes'
refuses 'row["figures"][0]["low_bytes"] = 101' 'at least 101 and at most 100'
refuses 'row["figures"][0]["measured_bytes"] = None' 'nothing was measured'
refuses 'row["source"] = "recording"' 'needs a reference'
echo "measured: the page is that of its rows"
