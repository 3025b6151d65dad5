#!/usr/bin/env bash
# Numbers are written and read alike whatever the caller's locale is: a program that has set one with a comma in
# fractions and points between thousands gets the same reports. Needs localedef (glibc).
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
command -v localedef >/dev/null || { echo "skipped: there is no localedef here"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf 'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n' >"$scratch/comma"
localedef -c -i "$scratch/comma" -f ANSI_X3.4-1968 "$scratch/xx_XX" 2>"$scratch/log" || true # it warns
[ -e "$scratch/xx_XX/LC_NUMERIC" ] || { echo "skipped: localedef makes no locale here"; cat "$scratch/log"; exit 77; }
cat >"$scratch/caller.c" <<'END'
#include <locale.h>
#include <onnxvram/onnxvram.h>
#include <stdio.h>
#include <string.h>

static bool write_out(void *unused, const char *text, size_t bytes)
{
    (void)unused;
    return fwrite(text, 1, bytes, stdout) == bytes;
}

int main(int argc, char **argv)
{
    static const onv_format formats[] = {ONV_FORMAT_TEXT, ONV_FORMAT_JSON, ONV_FORMAT_CSV, ONV_FORMAT_LAYERS,
        ONV_FORMAT_MARKDOWN, ONV_FORMAT_CHECKPOINTS, ONV_FORMAT_HTML, ONV_FORMAT_SVG, ONV_FORMAT_DUMP_GRAPH,
        ONV_FORMAT_DUMP_PLAN, ONV_FORMAT_DUMP_TRACE, ONV_FORMAT_MODEL_EXPLORER};
    const char *settings[] = {"session.use_device_allocator_for_initializers=1"};
    if (argc != 3 || setlocale(LC_ALL, argv[1]) == NULL) return 2;
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error = {0};
    options.batch = 3;
    options.runtimes = "ideal,arena,torch,ort";
    options.train = "adamw";
    options.checkpoint = "sqrt";
    options.compile = true;
    options.compile_budget = 0.5;
    options.timelines = options.savings = true;
    options.ort = settings;
    options.n_ort = 1;
    if (onv_analysis_new(argv[2], &options, &analysis, &error) != ONV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (onv_report((const onv_analysis *const *)&analysis, 1, formats[i], NULL, write_out, NULL, &error) == ONV_OK)
            continue;
        fprintf(stderr, "format %d: %s\n", (int)formats[i], error.message);
        return 1;
    }
    onv_analysis_destroy(analysis);
    printf("%.1f\n", 0.5);
    return 0;
}
END
sanitize=$(sed -nE 's/^ONV_SANITIZE:[A-Z]*=(.+)/-fsanitize=\1/p' "$build/CMakeCache.txt")
"${CC:-cc}" -std=c11 ${sanitize:+"$sanitize"} "-I$source/include" "$scratch/caller.c" -o "$scratch/caller" "-L$build" \
    -lonnxvram "-Wl,-rpath,$build"
export LOCPATH=$scratch
"$scratch/caller" C "$source/samples/resnet18-train.onnx" >"$scratch/plain"
"$scratch/caller" xx_XX "$source/samples/resnet18-train.onnx" >"$scratch/comma.out"
[ "$(tail -n 1 "$scratch/comma.out")" = 0,5 ] || { echo "the locale has no comma"; exit 1; }
diff <(sed '$d' "$scratch/plain") <(sed '$d' "$scratch/comma.out") >"$scratch/diff" || { head -c 2000 "$scratch/diff"; exit 1; }
