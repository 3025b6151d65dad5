#!/usr/bin/env bash
# The release build is hardened: what is shipped is read with readelf. Flags that leave no trace in a
# file are looked up among the commands of the build.
#
#     tests/project/hardening.sh [BUILD]     a release build (default: $ONV_BUILD_DIR if it is one,
#                                            else build/release; skipped where there is none)
#
# It also checks itself, on a program where every rule is broken.
set -euo pipefail
source=${ONV_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
command -v readelf >/dev/null || { echo "skipped: there is no readelf here"; exit 77; }

is_release() {
    grep -qs '^CMAKE_BUILD_TYPE:[A-Z]*=Rel' "$1/CMakeCache.txt" &&
        ! grep -q '^ONV_SANITIZE:[A-Z]*=.' "$1/CMakeCache.txt" && [ -x "$1/onnxvram" ]
}

# check FILE: prints one line for every property that a linked file lacks.
check() {
    local header segments dynamic symbols
    header=$(readelf -hW "$1") segments=$(readelf -lW "$1")
    dynamic=$(readelf -dW "$1") symbols=$(readelf --dyn-syms -W "$1")
    grep -qE 'Type: +DYN' <<<"$header" || echo "$1: not position independent"
    grep -q 'GNU_RELRO' <<<"$segments" || echo "$1: no RELRO"
    grep -qE 'BIND_NOW|FLAGS_1.* NOW' <<<"$dynamic" || echo "$1: symbols are bound late"
    grep -qE 'GNU_STACK .* RW +0x' <<<"$segments" || echo "$1: the stack can be executed"
    ! grep -qE 'LOAD .* RWE +0x' <<<"$segments" || echo "$1: memory is both written and executed"
    ! grep -qE 'TEXTREL|RPATH|RUNPATH' <<<"$dynamic" || echo "$1: TEXTREL, RPATH or RUNPATH"
    grep -q ' __stack_chk_fail' <<<"$symbols" || echo "$1: no stack protector"
    grep -qE ' __(snprintf|vsnprintf|memcpy|fprintf|printf)_chk' <<<"$symbols" ||
        echo "$1: not fortified"
}

self_check() {
    local found
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    echo 'int main(void) { return 0; }' >"$scratch/soft.c"
    "${CC:-cc}" -O0 -fno-stack-protector -U_FORTIFY_SOURCE -no-pie -fno-pie "$scratch/soft.c" \
        -Wl,-z,norelro,-z,lazy,-z,execstack,-rpath,/nowhere -o "$scratch/soft" 2>"$scratch/log" ||
        { cat "$scratch/log"; return 1; }
    found=$(check "$scratch/soft" | wc -l)
    [ "$found" -eq 7 ] || { echo "self-check: $found of 7 faults found"; return 1; }
}

self_check
build=${1:-$source/build/release}
if [ $# -eq 0 ] && is_release "${ONV_BUILD_DIR:-}"; then build=$ONV_BUILD_DIR; fi
is_release "$build" || { echo "skipped: there is no release build in $build"; exit 77; }
if [ $# -eq 0 ] && [ "$source/cmake/hardening.cmake" -nt "$build/onnxvram" ]; then
    echo "skipped: the release build in $build is older than its flags"
    exit 77
fi

# marks BUILD: the objects of ours that lack the marks of -fcf-protection. A linked file has them only
# if every object of Debian's archives has, and not all do.
marks() {
    grep -q '^ONV_HAVE_fcf_protection:[A-Z]*=1' "$1/CMakeCache.txt" || return 0
    readelf -nW "$1/libonnxvram.a" | awk '
        function verdict() { if (name != "" && !marked) print name ": no IBT and SHSTK" }
        /^File: / { verdict(); name = $2; marked = 0 }
        /x86 feature: .*IBT.*SHSTK/ { marked = 1 }
        END { verdict(); if (name == "") print "nothing is known of the objects" }'
}

# commands BUILD: the files of ours that are compiled without what leaves no mark.
commands() {
    grep '"command":' "$1/compile_commands.json" | grep -E ' -c .*/(src|generated)/' |
        awk '!/-fstack-clash-protection/ || !/ -D_FORTIFY_SOURCE=[23]/ {
                sub(/.* -c /, ""); sub(/",?$/, ""); print $0 ": compiled without hardening" }'
}

faults=$(
    check "$build/onnxvram"
    check "$build/libonnxvram.so"
    marks "$build"
    commands "$build"
)
[ -z "$faults" ] || { echo "$faults"; exit 1; }
