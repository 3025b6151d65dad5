/* The answer of results made by hand: who is judged, who decides, on which GPU, and which warnings count. */
#include "answer/answer.h"
#include "support/test.h"

enum { IDEAL, TORCH, ORT, N_RESULTS };

/* A bound that needs most is not judged; of the others ORT needs most at its upper end. */
static void make_results(onv_runtime_result *results)
{
    static const char *const names[] = {"ideal", "torch", "ort"};
    static const onv_range totals[] = {{900, 900}, {300, 400}, {200, 500}};
    for (size_t i = 0; i < N_RESULTS; i++)
        results[i] = (onv_runtime_result){.runtime = onv_runtime_find(names[i]),
                                          .total_bytes = totals[i],
                                          .is_judged = i != IDEAL,
                                          .low_bytes = totals[i].low,
                                          .held_bytes = totals[i].high,
                                          .peak_node = ONV_NO_NODE,
                                          .peak_label = "relu"};
}

static onv_answer_device device(const char *name, uint64_t bytes, const onv_runtime_result *results)
{
    size_t n = 0;
    onv_answer_device made = {.name = name, .gpu = name, .fit.budget_bytes = bytes};
    for (size_t i = 0; i < N_RESULTS; i++)
        if (results[i].is_judged) made.totals[n++] = results[i].total_bytes;
    onv_fit_judge(&made.fit, results, N_RESULTS);
    return made;
}

TEST(the_larger_upper_end_decides)
{
    onv_model model;
    onv_runtime_result results[N_RESULTS];
    onv_model_init(&model, SIZE_MAX);
    make_results(results);
    onv_answer_device devices[] = {device(NULL, 499, results), device("T4", 500, results)};
    onv_answer answer = {.devices = devices, .n_devices = 2};
    assert_int_equal(onv_answer_make(&model, results, N_RESULTS, NULL, &answer, NULL), ONV_OK);
    assert_int_equal(answer.n_rows, 2);
    assert_string_equal(answer.rows[0].runtime, "torch");
    assert_int_equal(answer.rows[answer.largest].total.high, 500);
    assert_string_equal(answer.rows[answer.largest].set_by,
                        "ONNX Runtime's arena, with the peak at relu");
    assert_string_equal(answer.gpu, "H100");
    assert_true(answer.is_assumed);
    assert_int_equal(answer.verdict, ONV_VERDICT_DOES_NOT_FIT);
    assert_int_equal(answer.devices[1].verdict, ONV_VERDICT_FITS);
    assert_true(answer.fits_some);
    assert_true(answer.devices[0].is_assumed);
    assert_string_equal(answer.devices[1].gpu, "T4");
    assert_false(answer.devices[1].is_assumed);
    assert_true(onv_answer_fit_of(&answer, &answer.devices[0], 0)->fits); /* torch's 400 do */
    assert_false(onv_answer_fit_of(&answer, &answer.devices[0], 1)->fits);
    onv_model_cleanup(&model);
}

/* Figures of theory have no libraries, so no GPU counts. */
TEST(theory_has_no_gpu)
{
    onv_model model;
    onv_runtime_result results[N_RESULTS];
    onv_model_init(&model, SIZE_MAX);
    make_results(results);
    for (size_t i = 0; i < N_RESULTS; i++) results[i].is_judged = i == IDEAL;
    onv_answer_device devices[] = {device("T4", 900, results)};
    onv_answer answer = {.devices = devices, .n_devices = 1};
    assert_int_equal(onv_answer_make(&model, results, N_RESULTS, "T4", &answer, NULL), ONV_OK);
    assert_null(answer.gpu);
    assert_null(answer.devices[0].gpu);
    assert_int_equal(answer.verdict, ONV_VERDICT_FITS);
    assert_int_equal(answer.rows[0].live.high, 900);
    onv_model_cleanup(&model);
}

/* Devices that are only shown make no verdict. */
TEST(usual_devices_are_no_verdict)
{
    onv_model model;
    onv_runtime_result results[N_RESULTS];
    onv_model_init(&model, SIZE_MAX);
    make_results(results);
    onv_answer_device usual[] = {device("T4", 10000, results)};
    onv_answer answer = {.devices = usual, .n_usual = 1};
    assert_int_equal(onv_answer_make(&model, results, N_RESULTS, "A10G", &answer, NULL), ONV_OK);
    assert_int_equal(answer.verdict, ONV_VERDICT_NONE);
    assert_false(answer.fits_some);
    assert_int_equal(answer.n_devices, 0);
    assert_int_equal(answer.n_usual, 1);
    assert_int_equal(answer.devices[0].verdict, ONV_VERDICT_FITS);
    assert_string_equal(answer.gpu, "A10G");
    assert_false(answer.is_assumed);
    onv_model_cleanup(&model);
}

/* Each code once, notes not; without results there is nothing else. */
TEST(warnings_count_once)
{
    onv_model model;
    onv_answer answer = {0};
    onv_model_init(&model, SIZE_MAX);
    onv_model_diag(&model, ONV_WARNING, "one", NULL, "a");
    onv_model_diag(&model, ONV_NOTE, "note", NULL, "b");
    onv_model_diag(&model, ONV_WARNING, "two", NULL, "c");
    onv_model_diag(&model, ONV_WARNING, "one", "node", "d");
    assert_int_equal(onv_answer_make(&model, NULL, 0, NULL, &answer, NULL), ONV_OK);
    assert_int_equal(answer.n_rows, 0);
    assert_int_equal(answer.n_warnings, 2);
    assert_string_equal(answer.warnings[0], "one");
    assert_string_equal(answer.warnings[1], "two");
    onv_model_cleanup(&model);
}
