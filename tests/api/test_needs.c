/* Options that would change nothing are refused. */
#include "api/analysis.h"
#include "onnxvram/onnxvram.h"
#include "support/test.h"

#define SAMPLE "/samples/mobilenet_v3_small.onnx"

static onv_status analyse(const onv_options *options, onv_error *error)
{
    onv_analysis *analysis;
    onv_status status = onv_analysis_new(ONV_SOURCE_DIR SAMPLE, options, &analysis, error);
    onv_analysis_destroy(analysis);
    return status;
}

static const char *const one[] = {"a"}, *const setting[] = {"enable_mem_pattern=0"};

/* What tests/cli/test_mistakes.c says to the program, said to the library. */
static const struct {
    const char *name, *part;
    onv_options options;
} rows[] = {
    {"loss", "training", {.loss = "mse"}},
    {"freeze", "training", {.freeze = one, .n_freeze = 1}},
    {"attention-dropout", "training", {.attention_dropout = 0.1}},
    {"accumulate", "training", {.accumulate = 2}},
    {"ema", "training", {.ema = true}},
    {"checkpoint", "training", {.checkpoint = "sqrt"}},
    {"compile", "training", {.compile = true}},
    {"compile budget", "torch.compile", {.compile_budget = 0.5}},
    {"world", "training", {.world = 2}},
    {"zero", "2 devices or more", {.train = "adam", .zero_stage = 1}},
    {"ort", "ONNX Runtime", {.runtimes = "torch", .ort = setting, .n_ort = 1}},
    {"ort-advise", "ONNX Runtime", {.runtimes = "torch", .ort_advise = true}},
    {"amp", "PyTorch", {.runtimes = "ort", .amp = ONV_PRECISION_BF16}},
    {"channels-last", "PyTorch", {.runtimes = "ort", .channels_last = true}},
    {"pool", "PyTorch", {.runtimes = "ort", .pool = 4096}},
    {"locals", "inference in PyTorch", {.runtimes = "ort", .locals = true}},
    {"gpu", "a runtime with libraries", {.runtimes = "ideal", .compute_capability = 80}},
    {"align", "the runtime arena", {.runtimes = "ideal", .align = 64}},
    {"margin", "a budget", {.margin_percent = 5}},
    {"max-batch", "a budget or a replay", {.max_batch = true}},
    {"max-dim", "a budget", {.max_dim = "batch"}},
    {"max-growth", "figures to compare with", {.has_max_growth = true}},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

TEST(each_is_refused)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        char expected[100];
        onv_options options = rows[i].options;
        onv_error error = {0};
        options.struct_size = sizeof options;
        options.batch = options.max_dim == NULL;
        if (options.attention_dropout == 0) options.attention_dropout = -1;
        if (options.compile_budget == 0) options.compile_budget = 1;
        assert_int_equal(analyse(&options, &error), ONV_ERR_USAGE);
        snprintf(expected, sizeof expected, "--%s needs %s", rows[i].name, rows[i].part);
        if (strncmp(error.message, expected, strlen(expected)) != 0)
            fail_msg("'%s', not '%s'", error.message, expected);
        const char *missing = onv_option_missing(&options, rows[i].name);
        assert_non_null(missing);
        assert_string_equal(missing, strstr(error.message, " needs ") + strlen(" needs "));
    }
}

TEST(what_is_there_is_taken)
{
    onv_options options = onv_options_default();
    options.batch = 1;
    onv_error error = {0};
    options.train = "adam";
    options.runtimes = "torch,ort,arena";
    options.amp = ONV_PRECISION_BF16;
    options.ema = options.compile = options.channels_last = options.locals = true;
    options.compile_budget = 0.5;
    options.ort = setting;
    options.n_ort = 1;
    options.align = 64;
    options.compute_capability = 80;
    options.budget = (uint64_t)1 << 34;
    options.margin_percent = 5;
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].part, "training") == 0 && strcmp(rows[i].name, "world") != 0)
            assert_null(onv_option_missing(&options, rows[i].name));
    if (analyse(&options, &error) != ONV_OK) fail_msg("%s", error.message);
    assert_null(onv_option_missing(&options, "batch"));
    assert_null(onv_option_missing(&options, "nothing of that name"));
}

/* A dim that is searched needs no flag beside it. */
TEST(a_dim_to_search_is_enough)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error = {0};
    options.max_dim = "batch";
    options.budget = (uint64_t)1 << 28;
    options.runtimes = "ideal";
    if (onv_analysis_new(ONV_SOURCE_DIR SAMPLE, &options, &analysis, &error) != ONV_OK)
        fail_msg("%s", error.message);
    const onv_fit *fit = &analysis->fit;
    assert_true(fit->has_max_batch && fit->all.max_batch > 1);
    assert_string_equal(fit->max_dim, "batch");
    onv_analysis_destroy(analysis);
}
