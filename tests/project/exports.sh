#!/usr/bin/env bash
# The shared library exports what the public headers declare as ONV_API, and nothing else.
set -euo pipefail
header=$("${ONV_SOURCE_DIR:?}/scripts/header")
library=${ONV_BUILD_DIR:?}/libonnxvram.so

declared=$(grep -v '^#' <<<"$header" | tr '\n' ' ' | grep -oE 'ONV_API [a-z_0-9 *]+\(' |
    sed -E 's/ *\($//; s/.*[ *]//' | LC_ALL=C sort)
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $NF); print $NF }' | LC_ALL=C sort)
[ -n "$declared" ] || { echo "no ONV_API found in the public headers"; exit 1; }
! nm -D --defined-only "$library" | grep ' onv_' | grep -qv '@@ONNXVRAM_' ||
    { echo "a symbol has no version"; exit 1; }
# The declarations were all understood: as many as there are marks.
marks=$(grep -c '^ONV_API ' <<<"$header")
[ "$(wc -l <<<"$declared")" -eq "$marks" ] ||
    { echo "cannot read all $marks declarations"; exit 1; }
diff --label declared --label exported -u <(echo "$declared") <(echo "$exported")
