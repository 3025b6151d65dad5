/* Options that would change nothing are refused: by the library as by the program, in the same words. */
#include "api/analysis.h"
#include "onnxvram/onnxvram.h"
#include "support/test.h"

#define SAMPLE "/samples/mobilenet_v3_small.onnx"

static onv_options plain(void)
{
    onv_options options = onv_options_default();
    options.batch = 1;
    return options;
}

static onv_status analyse(const onv_options *options, onv_error *error)
{
    onv_analysis *analysis;
    onv_status status = onv_analysis_new(ONV_SOURCE_DIR SAMPLE, options, &analysis, error);
    onv_analysis_destroy(analysis);
    return status;
}

static const char *const one[] = {"a"}, *const setting[] = {"enable_mem_pattern=0"};

#define SET(member, value)                                                                         \
    static void set_##member(onv_options *o)                                                       \
    {                                                                                              \
        o->member = (value);                                                                       \
    }

SET(loss, "mse")
SET(amp, ONV_PRECISION_BF16)
SET(attention_dropout, 0.1)
SET(accumulate, 2)
SET(ema, true)
SET(checkpoint, "sqrt")
SET(compile, true)
SET(compile_budget, 0.5)
SET(world, 2)
SET(ort_advise, true)
SET(channels_last, true)
SET(locals, true)
SET(compute_capability, 80)
SET(align, 64)
SET(margin_percent, 5)
SET(max_batch, true)
SET(max_dim, "batch")
SET(has_max_growth, true)
SET(pool, 4096)

static void set_freeze(onv_options *o)
{
    o->freeze = one;
    o->n_freeze = 1;
}

static void set_ort(onv_options *o)
{
    o->ort = setting;
    o->n_ort = 1;
}

static void set_zero(onv_options *o)
{
    o->train = "adam";
    o->zero_stage = 1;
}

static const struct {
    const char *runtimes;
    void (*set)(onv_options *o);
    const char *name, *part;
    const char *arguments; /* of the program, which says the same; NULL: it has no such option */
} rows[] = {
    {NULL, set_loss, "loss", "training", "--loss mse"},
    {NULL, set_freeze, "freeze", "training", "--freeze a"},
    {NULL, set_attention_dropout, "attention-dropout", "training", "--attention-dropout 0.1"},
    {NULL, set_accumulate, "accumulate", "training", "--accumulate 2"},
    {NULL, set_ema, "ema", "training", "--ema"},
    {NULL, set_checkpoint, "checkpoint", "training", "--checkpoint sqrt"},
    {NULL, set_compile, "compile", "training", "--compile"},
    {NULL, set_compile_budget, "compile budget", "torch.compile", NULL},
    {NULL, set_world, "world", "training", "--world 2"},
    {NULL, set_zero, "zero", "2 devices or more", "--train adam --zero 1"},
    {"torch", set_ort, "ort", "ONNX Runtime", "--runtime torch --ort enable_mem_pattern=0"},
    {"torch", set_ort_advise, "ort-advise", "ONNX Runtime", "--runtime torch --ort-advise"},
    {"ort", set_amp, "amp", "PyTorch", "--runtime ort --amp bf16"},
    {"ort", set_channels_last, "channels-last", "PyTorch", "--runtime ort --channels-last"},
    {"ort", set_pool, "pool", "PyTorch", "--runtime ort --pool 4096"},
    {"ort", set_locals, "locals", "inference in PyTorch", "--runtime ort --locals"},
    {"ideal", set_compute_capability, "gpu", "a runtime with libraries",
     "--runtime ideal --gpu A100-80GB"},
    {"ideal", set_align, "align", "the runtime arena", "--runtime ideal --align 64"},
    {NULL, set_margin_percent, "margin", "a budget", "--margin 5"},
    {NULL, set_max_batch, "max-batch", "a budget or a replay", "--max-batch"},
    {NULL, set_max_dim, "max-dim", "a budget", "--max-dim batch"},
    {NULL, set_has_max_growth, "max-growth", "figures to compare with", "--max-growth 5%"},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static void each_is_refused(void **state)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        char expected[100];
        onv_options options = plain();
        onv_error error = {0};
        options.runtimes = rows[i].runtimes;
        rows[i].set(&options);
        if (strcmp(rows[i].name, "max-dim") == 0) options.batch = 0;
        assert_int_equal(analyse(&options, &error), ONV_ERR_USAGE);
        snprintf(expected, sizeof expected, "--%s needs %s", rows[i].name, rows[i].part);
        if (strncmp(error.message, expected, strlen(expected)) != 0)
            fail_msg("'%s', not '%s'", error.message, expected);
        const char *missing = onv_option_missing(&options, rows[i].name);
        assert_non_null(missing);
        assert_string_equal(missing, strstr(error.message, " needs ") + strlen(" needs "));
    }
}

static void the_program_says_the_same(void **state)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        char command[1000], line[600] = "";
        onv_options options = plain();
        if (rows[i].arguments == NULL) continue;
        options.runtimes = rows[i].runtimes;
        rows[i].set(&options);
        snprintf(command, sizeof command, "%s/onnxvram %s%s %s 2>&1 >/dev/null", ONV_BUILD_DIR,
                 ONV_SOURCE_DIR, SAMPLE, rows[i].arguments);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        assert_non_null(fgets(line, sizeof line, pipe));
        pclose(pipe);
        const char *text = onv_option_missing(&options, rows[i].name);
        if (text == NULL || strstr(line, text) == NULL)
            fail_msg("%s: '%s' is not '%s'", rows[i].arguments, line, text);
    }
}

static void what_is_there_is_taken(void **state)
{
    onv_options options = plain();
    onv_error error = {0};
    options.train = "adam";
    options.runtimes = "torch,ort,arena";
    set_amp(&options);
    set_ema(&options);
    set_compile(&options);
    set_compile_budget(&options);
    set_ort(&options);
    set_channels_last(&options);
    set_locals(&options);
    set_align(&options);
    set_compute_capability(&options);
    options.budget = (uint64_t)1 << 34;
    set_margin_percent(&options);
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].part, "training") == 0 && strcmp(rows[i].name, "world") != 0)
            assert_null(onv_option_missing(&options, rows[i].name));
    if (analyse(&options, &error) != ONV_OK) fail_msg("%s", error.message);
    assert_null(onv_option_missing(&options, "batch"));
    assert_null(onv_option_missing(&options, "nothing of that name"));
}

/* A dim that is searched needs no flag beside it. */
static void a_dim_to_search_is_enough(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_refused),
        cmocka_unit_test(the_program_says_the_same),
        cmocka_unit_test(what_is_there_is_taken),
        cmocka_unit_test(a_dim_to_search_is_enough),
    };
    return cmocka_run_group_tests_name("needs", tests, NULL, NULL);
}
