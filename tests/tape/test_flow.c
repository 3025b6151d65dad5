/* Calls of higher order, and what a program cannot be trained through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "onnxvram/onnxvram.h"

static onv_status analyse(const char *train, onv_analysis **analysis, onv_error *err)
{
    char path[600];
    onv_options options = onv_options_default();
    options.batch = 4;
    options.train = train;
    options.runtimes = "torch";
    snprintf(path, sizeof path, "%s/tests/program/flow.json.gz", ONV_SOURCE_DIR);
    return onv_analysis_new(path, &options, analysis, err);
}

/* Both branches of torch.cond may run: inference counts the larger one, training says what to do. */
static void branches_are_alternatives(void **state)
{
    onv_analysis *analysis;
    onv_error err = {0};
    onv_runtime_info info;
    (void)state;
    assert_int_equal(analyse(NULL, &analysis, &err), ONV_OK);
    assert_true(onv_analysis_runtime(analysis, 0, &info));
    assert_true(info.tensor_peak_bytes > 0);
    onv_analysis_destroy(analysis);
    assert_int_equal(analyse("adamw", &analysis, &err), ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "training through torch.cond is not sized"));
    onv_analysis_destroy(analysis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(branches_are_alternatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
