#!/usr/bin/env bash
# The public headers stand alone, each: strict C11, no header before it, no warning; and what they declare
# inline can be used from two files of one program.
set -euo pipefail
include=${ONV_SOURCE_DIR:?}/include
flags=(-std=c11 -pedantic-errors -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Werror "-I$include")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for header in "$include"/onnxvram/*.h; do
    "${CC:-cc}" "${flags[@]}" -x c -fsyntax-only "$header"
done

for name in one two; do
    cat >"$scratch/$name.c" <<END
#include <onnxvram/onnxvram.h>
#include <onnxvram/onnxvram.h>
size_t $name(void);
size_t $name(void)
{
    onv_options options = onv_options_default();
    onv_report_options report = onv_report_options_default();
    return options.struct_size + report.struct_size;
}
END
done
# Both in one object: nothing is defined twice.
"${CC:-cc}" "${flags[@]}" -nostdlib -r -o "$scratch/program.o" "$scratch"/{one,two}.c
