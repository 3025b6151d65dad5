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

# Options are echoed, and limits are a part of them.
without_limits() { grep -v '^ *"options": '; }

for model in samples/resnet18.onnx samples/functions.onnx; do
    "$program" --no-external-data -b 2 "$model" >"$scratch/plain"
    "$program" --untrusted -b 2 --json="$scratch/json" --csv="$scratch/csv" "$model" \
        >"$scratch/confined" 2>"$scratch/errors" || fail "$model: $(cat "$scratch/errors")"
    # Contents of external data are the only difference.
    grep -v "external-data\|is not read" "$scratch/confined" >"$scratch/cleaned"
    diff "$scratch/plain" "$scratch/cleaned" || fail "$model: another report"
    "$program" -b 2 --no-external-data --json "$model" | without_limits | cmp - <(without_limits <"$scratch/json")
done
grep -q '"given":{[^}]*"no_external_data":true[^}]*"seconds":30' "$scratch/json" || fail "the limits are not echoed"
# Several models, a process each.
"$program" -b 2 --no-external-data --json samples/{resnet18,functions,scan}.onnx | without_limits >"$scratch/plain"
"$program" -b 2 --untrusted --jobs 3 --json samples/{resnet18,functions,scan}.onnx | without_limits | cmp - "$scratch/plain"
"$program" -q -b 1 --untrusted - <samples/resnet18.onnx >"$scratch/piped"
grep -q "^-: torch [0-9]" "$scratch/piped" || fail "from standard input: $(cat "$scratch/piped")"
"$program" --untrusted --train adam -b 2 --checkpoint all --plan-out="$scratch/plan.json" \
    samples/resnet18.onnx >/dev/null
[ -s "$scratch/plan.json" ] || fail "no plan was written"
"$program" --untrusted -q --train adam -b 2 --plan "$scratch/plan.json" samples/resnet18.onnx >/dev/null

status=0
"$program" --untrusted --replay=host samples/resnet18.onnx 2>"$scratch/errors" || status=$?
[ "$status" = 2 ] || fail "a replay gave $status"
status=0
"$program" --untrusted --limit memory=100000 samples/resnet18.onnx 2>"$scratch/errors" || status=$?
[ "$status" = 1 ] || fail "too little memory gave $status"
grep -q "limit memory=N raises it" "$scratch/errors" || fail "$(cat "$scratch/errors")"

# looks_at MODEL OPTION...: the process that analyses opens nothing but the model, to read it; the one that waits for it
# opens nothing but what it writes into $scratch/out. Both start and connect to nothing else.
looks_at() {
    local model=$1 trace
    shift
    rm -rf "$scratch/out" "$scratch"/trace.*
    mkdir "$scratch/out"
    # Of what is written nothing is printed (-s 0): its text would read as calls.
    strace -ff -s 0 -o "$scratch/trace" "$program" --untrusted -q "$@" "$model" >/dev/null 2>"$scratch/errors" ||
        fail "$model $*: $(cat "$scratch/errors")"
    [ "$(find "$scratch" -name "trace.*" | wc -l)" = 2 ] || fail "$model $*: not two processes"
    for trace in "$scratch"/trace.*; do
        if grep -q SECCOMP_SET_MODE_FILTER "$trace"; then
            awk '/SECCOMP_SET_MODE_FILTER/ { confined = 1; next } confined' "$trace" >"$scratch/confined"
            may="openat([A-Z_]*, \"$model\", O_RDONLY|"
        else
            awk '/landlock_restrict_self/ { confined = 1; next } confined' "$trace" >"$scratch/confined"
            # An output has no name while it is written, where the file system can do that.
            may="\"$scratch/out/[a-z.]*\"\|\"$scratch/out\", [A-Z_|]*O_TMPFILE\|^clone(\|^memfd_create("
        fi
        [ -s "$scratch/confined" ] || fail "$model $*: a process is not confined"
        if grep -E "(open|creat|link|rename|symlink|exec|mknod)[a-z0-9]*\(|connect|socket|fork|clone" "$scratch/confined" |
            grep -v "$may"; then
            fail "$model $*: something else was done"
        fi
    done
}

if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    out=$scratch/out
    looks_at samples/resnet18.onnx -b 2 --json="$out/json"
    looks_at tests/fuzz/corpus/models/residual.onnx -b 2 --json="$out/json" --html="$out/html" --csv="$out/csv" --svg "$out/svg" \
        --onnx-out "$out/model.onnx" --perfetto "$out/perfetto" --memory-viz "$out/viz" --model-explorer "$out/explorer"
    looks_at samples/resnet18-train.onnx -b 2 --train adam --checkpoint all --plan-out "$out/plan.json"
    looks_at samples/llama.onnx -b 1 --json="$out/json" --html="$out/html"
    # Of several models each process opens its own.
    rm -f "$scratch"/trace.*
    strace -ff -o "$scratch/trace" "$program" --untrusted -q --jobs 2 samples/resnet18.onnx \
        samples/functions.onnx >/dev/null
    readers=$(for name in resnet18 functions; do
        grep "openat([A-Z_]*, \"samples/$name.onnx\", O_RDONLY|" "$scratch"/trace.* | grep -v O_PATH | cut -d: -f1 | sort -u
    done)
    [ "$(wc -l <<<"$readers") $(sort -u <<<"$readers" | wc -l)" = "2 2" ] || fail "models are read by: $readers"
    # Nor do contents that a model says lie beside it, where they do.
    cp samples/llama.onnx "$scratch/llama.onnx"
    head -c 30000000 /dev/zero >"$scratch/weights.bin"
    looks_at "$scratch/llama.onnx" -b 1 --json="$out/json"
else
    echo "there is no strace here: what is opened was not looked at"
fi
