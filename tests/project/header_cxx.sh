#!/usr/bin/env bash
# The public header is also a C++11 header.
set -euo pipefail
include=${ONV_SOURCE_DIR:?}/include
compiler=${CXX:-g++}
if ! command -v "$compiler" >/dev/null; then
    echo "skipped: there is no C++ compiler ($compiler) here"
    exit 77
fi
"$compiler" -std=c++11 -pedantic-errors -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast \
    -Werror "-I$include" -fsyntax-only -x c++ - <<'END'
#include <onnxvram/onnxvram.h>
int main()
{
    onv_options options = onv_options_default();
    onv_report_options report = onv_report_options_default();
    const char *(*declared)(onv_status) = onv_status_name; // a declaration with C linkage
    return options.batch == 0 && report.width == 0 && declared != nullptr ? 0 : 1;
}
END
