#!/usr/bin/env bash
# --untrusted: the same report as without it; no file is opened but the model and the outputs once the
# process is confined; no replay, no external data.
set -euo pipefail
build=$(cd "${1:-${ONV_BUILD_DIR:?}}" && pwd)
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
program=$build/onnxvram
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

for model in samples/resnet18.onnx samples/functions.onnx; do
    "$program" -b 2 "$model" >"$scratch/plain"
    "$program" --untrusted -b 2 --json="$scratch/json" --csv="$scratch/csv" "$model" \
        >"$scratch/confined" 2>"$scratch/errors" || fail "$model: $(cat "$scratch/errors")"
    # Contents of external data are the only difference.
    grep -v "external-data\|is not read" "$scratch/confined" >"$scratch/cleaned"
    diff "$scratch/plain" "$scratch/cleaned" || fail "$model: another report"
    "$program" -b 2 --no-external-data --json "$model" | cmp - "$scratch/json"
done
# Several models: threads that are started before system calls are filtered.
"$program" -b 2 --no-external-data --json samples/{resnet18,functions,scan}.onnx >"$scratch/plain"
"$program" -b 2 --untrusted --jobs 3 --json samples/{resnet18,functions,scan}.onnx | cmp - "$scratch/plain"
"$program" -q -b 1 --untrusted - <samples/resnet18.onnx >"$scratch/piped"
grep -q "^-: torch " "$scratch/piped" || fail "from standard input: $(cat "$scratch/piped")"
"$program" --untrusted --train adam -b 2 --checkpoint all --plan-out="$scratch/plans" \
    samples/resnet18.onnx >/dev/null
[ -s "$scratch/plans" ] || fail "no plans were written"

status=0
"$program" --untrusted --replay=host samples/resnet18.onnx 2>"$scratch/errors" || status=$?
[ "$status" = 2 ] || fail "a replay gave $status"
status=0
"$program" --untrusted --limit memory=100000 samples/resnet18.onnx 2>"$scratch/errors" || status=$?
[ "$status" = 1 ] || fail "too little memory gave $status"
grep -q "limit memory=N raises it" "$scratch/errors" || fail "$(cat "$scratch/errors")"

# looks_at MODEL OPTION...: opens nothing but the model and what it writes into $scratch/out, once the last rule of
# Landlock is in force; starts and connects to nothing.
looks_at() {
    local model=$1
    shift
    rm -rf "$scratch/out"
    mkdir "$scratch/out"
    strace -f -o "$scratch/trace" "$program" --untrusted -q "$@" "$model" >/dev/null 2>"$scratch/errors" ||
        fail "$model $*: $(cat "$scratch/errors")"
    awk '/landlock_restrict_self|SECCOMP_SET_MODE_FILTER/ { confined = 1; next } confined' "$scratch/trace" |
        grep -E "(open|creat|link|rename|symlink|exec|mknod)[a-z0-9]*\(|connect|socket|fork|clone" >"$scratch/opened" || true
    grep -q "open.*\"$model\"" "$scratch/opened" || fail "the trace lacks the model"
    # An output has no name while it is written, where the file system can do that.
    if grep -v "openat([A-Z_]*, \"$model\", O_RDONLY|\|\"$scratch/out/[a-z.]*\"\|\"$scratch/out\", [A-Z_|]*O_TMPFILE" \
        "$scratch/opened"; then
        fail "$model $*: something else was opened"
    fi
}

if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    out=$scratch/out
    looks_at samples/resnet18.onnx -b 2 --json="$out/json"
    looks_at tests/fuzz/corpus/models/residual.onnx -b 2 --json="$out/json" --html="$out/html" --csv="$out/csv" --svg "$out/svg" \
        --onnx-out "$out/model.onnx" --perfetto "$out/perfetto" --memory-viz "$out/viz" --model-explorer "$out/explorer"
    looks_at samples/resnet18-train.onnx -b 2 --train adam --checkpoint all --plan-out "$out/plans"
    looks_at samples/llama.onnx -b 1 --json="$out/json" --html="$out/html"
    # No thread opens anything else, either, and none is started then.
    strace -f -o "$scratch/trace" "$program" --untrusted -q --jobs 2 samples/resnet18.onnx \
        samples/functions.onnx >/dev/null
    awk '/SECCOMP_SET_MODE_FILTER/ { confined = 1; next } confined' "$scratch/trace" |
        grep -E "open(at)?\(|connect|socket|execve|fork|clone" >"$scratch/opened" || true
    grep -q "samples/functions.onnx" "$scratch/opened" || fail "the trace lacks the second model"
    # The allocator of threads asks for a setting of the kernel, in vain.
    if grep -v "samples/resnet18.onnx\|samples/functions.onnx\|overcommit_memory.*EACCES" "$scratch/opened"; then
        fail "something else was done"
    fi
    # Nor do contents that a model says lie beside it, where they do.
    cp samples/llama.onnx "$scratch/llama.onnx"
    head -c 30000000 /dev/zero >"$scratch/weights.bin"
    looks_at "$scratch/llama.onnx" -b 1 --json="$out/json"
else
    echo "there is no strace here: what is opened was not looked at"
fi
