/* The answer in one line, where its warnings go, and the status that they make. */
#include <jansson.h>

#include "cli/program.h"
#include "support/capture.h"
#include "support/test.h"

#define SAMPLES ONV_SOURCE_DIR "/samples/"
/* Batch norms are folded into its convolutions: training warns. */
#define FOLDED "-q -b 2 --train sgd " SAMPLES "mobilenet_v2.onnx "

static char text[PROGRAM_TEXT];

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

TEST(what_is_judged_by_default)
{
    EXPECT("-q -b 8 " SAMPLES "resnet18.onnx", 0, "resnet18.onnx: torch ", " MiB, ort ",
           " on H100 (assumed)\n");
    assert_null(strstr(text, "ideal"));
    EXPECT("-q -b 8 --gpu A100-80GB " SAMPLES "resnet18.onnx", 0, " on A100 80GB\n");
    EXPECT("-q -b 8 --train sgd " SAMPLES "resnet18-train.onnx", 0, "resnet18-train.onnx: train ");
    assert_null(strstr(text, "torch "));
    EXPECT("-q -b 8 --runtime arena --budget 1GiB " SAMPLES "resnet18.onnx", 0,
           "resnet18.onnx: arena 93.6 MiB, fits 1.00 GiB\n");
}

/* A status of 3 has its cause next to the figures, with and without a budget. */
TEST(a_limit_that_is_not_enough_is_named)
{
#define LIMITED "-b 8 --runtime ort --ort gpu_mem_limit=20000000 " SAMPLES "resnet18.onnx "
    EXPECT("-q " LIMITED, 3, " MiB (gpu_mem_limit is not enough) on H100 (assumed)\n");
    EXPECT("-q " LIMITED "--budget T4", 3, " MiB (gpu_mem_limit is not enough) on T4, does not");
    EXPECT(LIMITED, 3, "  ort does not run: gpu_mem_limit is not enough.\n");
    EXPECT(LIMITED "--budget T4,L4", 3, "  ort does not run: gpu_mem_limit is not enough.\n");
}

/* By default what theory needs fits no verdict: 93.6 MiB are not enough for PyTorch. */
TEST(bounds_are_no_verdict)
{
    EXPECT("-q -b 8 --budget 100MiB " SAMPLES "resnet18.onnx", 3,
           "does not fit 100.0 MiB (by ort)");
    EXPECT("-q -b 8 --runtime ideal --budget 100MiB " SAMPLES "resnet18.onnx", 0,
           "ideal 93.6 MiB, fits 100.0 MiB");
    EXPECT("-q --budget T4 --max-batch " SAMPLES "resnet18.onnx", 0,
           "; largest batch on T4: torch ");
    assert_null(strstr(text, "ideal"));
}

/* A plan is a file of anybody's. */
TEST(names_of_plans_do_not_act_on_a_terminal)
{
#define TRAINED "-q -b 2 --train sgd " SAMPLES "vit-small-train.onnx "
    EXPECT(TRAINED "--checkpoint none --plan-out p.json", 0, ", checkpoints none");
    EXPECT(TRAINED "--plan evil.json $(sed 's/name\": \"none\"/name\": \"n\\\\u202eevil\"/' p.json "
                   ">evil.json)",
           0, ", checkpoints n", "evil");
    assert_null(strstr(text, "\u202e"));
}

/* What an export says to ONNX Runtime is not said of a program, which PyTorch runs alone. */
TEST(programs_are_not_of_onnx_runtime)
{
    EXPECT("-b 2 " ONV_SOURCE_DIR "/tests/truth/programs/resnet18.recording.json.gz", 0, "Needed");
    assert_null(strstr(text, "ONNX Runtime"));
}

TEST(free_dims_are_asked_for)
{
    EXPECT("-q " SAMPLES "bert.onnx", 0, "bert.onnx: not sized: bind --batch N --dim sequence=N\n");
    EXPECT(SAMPLES "bert.onnx", 0, "Not sized: bind --batch N --dim sequence=N");
}

TEST(warnings_reach_standard_error)
{
    EXPECT(FOLDED, 0, "mobilenet_v2.onnx: warning (folded-batch-norm): ");
    EXPECT(FOLDED "2>/dev/null", 0, "mobilenet_v2.onnx: train ");
    assert_null(strstr(text, "folded"));
}

/* What does not fit says more than a warning. */
TEST(strictness_is_a_status)
{
    EXPECT(FOLDED "--strict", 5, "warning (folded-batch-norm)");
    EXPECT(FOLDED "--strict --budget 1MiB", 3, "does not fit 1.0 MiB");
    EXPECT("-b 2 --train sgd --strict --json=/dev/null " SAMPLES "mobilenet_v2.onnx", 5,
           "warning (folded-batch-norm)");
    EXPECT("-q -b 2 --strict " SAMPLES "resnet18.onnx", 0, "resnet18.onnx: torch ");
    EXPECT(FOLDED "--strict " SAMPLES "absent.onnx", 1, "absent.onnx");
}

TEST(sizes_that_contradict_are_told)
{
    EXPECT("-q -b 1 -d sequence=1 -d past=31 -d total=40 " SAMPLES "llama.onnx", 0,
           "warning (contradicting-dims): 'total' is bound to 40, but 'past' and 'sequence' are 31 "
           "and 1",
           "bind --dim 'total=32'");
    EXPECT("-q -b 1 -d sequence=1 -d past=31 -d total=32 " SAMPLES "llama.onnx", 0,
           "llama.onnx: torch ");
    assert_null(strstr(text, "contradicting"));
}

/* What training keeps, module by module, is the figure of the report. */
TEST(modules_show_training)
{
    EXPECT("-b 64 --train adamw --layers=1 " SAMPLES "resnet18-train.onnx", 0,
           "saved for backward with adamw", "392.0 MiB   29.0%", " 1.32 GiB  100.0%\n");
    EXPECT("-b 64 --train adamw " SAMPLES "resnet18-train.onnx", 0,
           "activations  1.32 GiB  saved for backward");
    EXPECT("-b 64 --train adamw --checkpoint sqrt,blocks --layers " SAMPLES "resnet18-train.onnx",
           2, "with one checkpointing plan, not with 2");
}

/* The answer of a run; the caller drops it. */
static json_t *answer_of(const char *arguments, int status)
{
    char all[1000];
    json_error_t why;
    snprintf(all, sizeof all, "-q --json=answer.json %s", arguments);
    assert_int_equal(program_run(all, text), status);
    json_t *report = json_load_file("answer.json", 0, &why);
    if (report == NULL) fail_msg("%s: %s", arguments, why.text);
    json_t *of = json_array_get(json_object_get(report, "models"), 0);
    json_t *answer = json_deep_copy(json_object_get(of, "answer"));
    json_decref(report);
    return answer;
}

static json_int_t high_of(const json_t *answer, const char *runtime)
{
    size_t i;
    json_t *row;
    json_array_foreach(
        json_object_get(answer, "runtimes"), i,
        row) if (strcmp(json_string_value(json_object_get(row, "runtime")), runtime) ==
                 0) return json_integer_value(json_object_get(row, "high_bytes"));
    fail_msg("no %s", runtime);
    return 0;
}

/* Typed behind the command, each remedy gives the figure and the verdict that it promises. */
static size_t expect_remedies(const char *arguments)
{
    json_t *answer = answer_of(arguments, 3), *remedies = json_object_get(answer, "remedies"), *r;
    size_t i, n = json_array_size(remedies);
    bool fits = true;
    json_array_foreach(remedies, i, r)
    {
        char with[800];
        const char *runtime = json_string_value(json_object_get(r, "runtime"));
        bool promised = json_is_true(json_object_get(r, "fits"));
        snprintf(with, sizeof with, "%s %s", arguments,
                 json_string_value(json_object_get(r, "option")));
        OWNED_JSON then = answer_of(with, promised ? 0 : 3);
        assert_int_equal(json_is_true(json_object_get(then, "fits")), promised);
        if (high_of(then, runtime) != json_integer_value(json_object_get(r, "high_bytes")))
            fail_msg("%s: %lld bytes", with, (long long)high_of(then, runtime));
        assert_true(fits || !promised); /* those that fit come first */
        fits = promised;
    }
    json_decref(answer);
    return n;
}

TEST(remedies_keep_their_promise)
{
    assert_int_equal(expect_remedies("-b 600 --budget T4 " SAMPLES "resnet50.onnx"), 3);
    assert_int_equal(
        expect_remedies("-b 500 --train adamw --budget T4 " SAMPLES "resnet18-train.onnx"), 4);
    /* By its dim, for one runtime, less a margin. */
    assert_int_equal(expect_remedies("-d batch=1000 -d sequence=512 --budget 2GiB --margin 5 "
                                     "--runtime torch " SAMPLES "bert.onnx"),
                     3);
    EXPECT("-b 600 --budget T4 " SAMPLES "resnet50.onnx", 3, "To make it fit, add one of these",
           "GiB, fits (the largest batch that fits)");
    EXPECT("-b 8 --budget T4 " SAMPLES "resnet50.onnx", 0, "It fits T4, 15.00 GiB");
    assert_null(strstr(text, "To make it fit"));
}

TEST_GROUP(folder_enter, folder_leave)
