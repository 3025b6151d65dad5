/* Calls of higher order, and what a program cannot be trained through. */
#include "api/analysis.h"
#include "onnxvram/onnxvram.h"
#include "support/test.h"

static onv_status analyse(const char *name, const char *train, onv_analysis **analysis,
                          onv_error *err)
{
    char path[600];
    onv_options options = onv_options_default();
    options.batch = 4;
    options.train = train;
    options.runtimes = "torch";
    snprintf(path, sizeof path, "%s/tests/%s.json.gz", ONV_SOURCE_DIR, name);
    return onv_analysis_new(path, &options, analysis, err);
}

/* Both branches of torch.cond may run: inference counts the larger one, training says what to do. */
TEST(branches_are_alternatives)
{
    onv_analysis *analysis;
    onv_error err = {0};
    assert_int_equal(analyse("program/flow", NULL, &analysis, &err), ONV_OK);
    assert_true(analysis->runtimes[0].tensor_peak_bytes > 0);
    onv_analysis_destroy(analysis);
    assert_int_equal(analyse("program/flow", "adamw", &analysis, &err), ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "training through torch.cond is not sized"));
    onv_analysis_destroy(analysis);
}

/* How often a loop runs is not in an archive, nor what its derivative keeps. */
TEST(loops_are_not_trained)
{
    static const char *const names[] = {"program/scan", "program/while_loop"};
    for (size_t i = 0; i < 2; i++) {
        onv_analysis *analysis;
        onv_error err = {0};
        char text[100];
        assert_int_equal(analyse(names[i], "sgd", &analysis, &err), ONV_ERR_USAGE);
        snprintf(text, sizeof text, "training through torch.%s is not sized: write it as a loop",
                 names[i] + strlen("program/"));
        assert_non_null(strstr(err.message, text));
        onv_analysis_destroy(analysis);
    }
}

/* Attention of no heads is not sized: a width is divided among them. */
TEST(attention_has_heads)
{
    onv_analysis *analysis;
    onv_error err = {0};
    assert_int_equal(analyse("tape/programs/no_heads.recorded", NULL, &analysis, &err), ONV_OK);
    onv_analysis_destroy(analysis);
}

/* Sums and products of strides are places in a storage. */
TEST(strides_are_within_a_storage)
{
    static const char form[] =
        "{\"schema_version\": {\"major\": 8}, \"graph_module\": {\"graph\": {\"inputs\": "
        "[{\"as_tensor\": "
        "{\"name\": \"x\"}}], \"outputs\": [], \"nodes\": [{\"target\": "
        "\"torch.ops.aten.relu.default\", "
        "\"inputs\": [{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}}], "
        "\"outputs\": "
        "[{\"as_tensor\": {\"name\": \"y\"}}]}], \"tensor_values\": {\"y\": {\"dtype\": 7, "
        "\"sizes\": []}, "
        "\"x\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 16}], \"strides\": [{\"as_int\": %s}]}}}, "
        "\"signature\": {\"input_specs\": [{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": "
        "\"x\"}}}}]}}}";
    static const struct {
        const char *stride;
        onv_status status;
    } rows[] = {{"0", ONV_OK},
                {"72057594037927936", ONV_OK},
                {"72057594037927937", ONV_ERR_MODEL},
                {"1152921504606846975", ONV_ERR_MODEL},
                {"-1", ONV_ERR_MODEL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1000];
        onv_options options = onv_options_default();
        onv_analysis *analysis;
        onv_error err = {0};
        options.runtimes = "torch";
        int bytes = snprintf(text, sizeof text, form, rows[i].stride);
        onv_status status =
            onv_analysis_new_from_memory(text, (size_t)bytes, NULL, &options, &analysis, &err);
        assert_int_equal(status, rows[i].status);
        if (status != ONV_OK)
            assert_non_null(strstr(err.message, "'x' has a stride that no storage has"));
        onv_analysis_destroy(analysis);
    }
}
