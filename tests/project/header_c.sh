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

# Where sizes have 32 bits, the headers say so. Compilers that know no such platform fail for that.
found=$("${CC:-cc}" -m32 -ffreestanding -fsyntax-only "-I$include" -x c "$include/onnxvram/onnxvram.h" 2>&1) &&
    { echo "a platform of 32 bits is taken"; exit 1; }
if [[ $found == *error* && $found != *-m32* && $found != *"needs a 64-bit platform"* ]]; then
    echo "no word of 64 bits: $found"
    exit 1
fi
