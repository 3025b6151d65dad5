/* What the library says does not depend on the locale of the program that calls it: its numbers have a
 * point, and no byte of a name is a letter because Latin-1 calls it one. */
#include <locale.h>

#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/folder.h"
#include "support/test.h"

/* All formats there are, one after the other. */
static capture report_all(void)
{
    capture all = {0};
    onv_analysis *analysis;
    onv_error error = {0};
    onv_options options = onv_options_default();
    const char *settings[] = {"session.use_device_allocator_for_initializers=1"};
    options.batch = 2;
    options.train = "adam";
    options.checkpoint = "all";
    options.runtimes = "ideal,arena,torch,ort,async";
    options.timelines = options.savings = options.compile = true;
    options.compile_budget = 0.5;
    options.ort = settings;
    options.n_ort = 1;
    if (onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet18-train.onnx", &options, &analysis,
                         &error) != ONV_OK)
        fail_msg("%s", error.message);
    for (int format = 0; format <= ONV_FORMAT_MODEL_EXPLORER; format++) {
        onv_status status = onv_report((const onv_analysis *const *)&analysis, 1,
                                       (onv_format)format, NULL, capture_write, &all, &error);
        assert_true(status == ONV_OK || status == ONV_ERR_USAGE);
    }
    onv_analysis_destroy(analysis);
    return all;
}

TEST(reports_are_the_same_in_german)
{
    char number[16];
    capture plain = report_all();
    assert_true(plain.length > 100000);
    /* Without the locale's source: one of a comma alone. */
    static const char make[] =
        "{ localedef -i de_DE -f ISO-8859-1 ./de_DE || "
        "{ printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3;3\\n"
        "END LC_NUMERIC\\n' >comma; localedef -c -i comma -f ANSI_X3.4-1968 ./de_DE; "
        "[ -e de_DE/LC_NUMERIC ]; }; } >/dev/null 2>&1";
    if (system(make) != 0 || setenv("LOCPATH", ".", 1) != 0 || setlocale(LC_ALL, "de_DE") == NULL) {
        free(plain.text);
        skip();
    }
    snprintf(number, sizeof number, "%.1f", 0.5);
    assert_string_equal(number, "0,5");
    capture german = report_all();
    snprintf(number, sizeof number, "%.1f", 0.5);
    assert_string_equal(number, "0,5"); /* the caller's locale is as it was */
    for (size_t i = 0; i < plain.length && i < german.length; i++)
        if (plain.text[i] != german.text[i])
            fail_msg("byte %zu: '%.60s' is '%.60s'", i, plain.text + i, german.text + i);
    assert_int_equal(plain.length, german.length);
    free(plain.text);
    free(german.text);
}

TEST_GROUP(folder_enter, folder_leave)
