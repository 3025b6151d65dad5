/* Of large tapes a list has few plans of a front; what a budget, or an overhead, chooses is the best of all. */
#include "api/analysis.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { LAYERS = 1000 };

static onv_analysis *analyse(const onv_options *options)
{
    onv_analysis *analysis;
    onv_error error = {0};
    model *m = model_new(17);
    size_t bytes;
    model_input(m, "v0", "f32[64,16,32,32]");
    for (int i = 1; i <= LAYERS; i++) {
        char in[32], out[16];
        snprintf(in, sizeof in, "v%d w%d", i - 1, i);
        snprintf(out, sizeof out, "v%d", i);
        model_weight(m, in + strcspn(in, " ") + 1, "f32[16,16,3,3]");
        model_node(m, "Conv", "", in, out, "pads=[1,1,1,1]");
        if (i == LAYERS) model_output(m, out, "f32");
    }
    const void *data = model_bytes(m, &bytes);
    if (onv_analysis_new_from_memory(data, bytes, "test.onnx", options, &analysis, &error) !=
        ONV_OK)
        fail_msg("%s", error.message);
    model_free(m);
    return analysis;
}

/* The row behind which the next one takes the most less. */
static uint32_t widest_gap(const onv_training *t)
{
    uint32_t widest = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i + 1 < t->n_plans; i++) {
        uint64_t gap = t->plans[i].figures.peak_bytes - t->plans[i + 1].figures.peak_bytes;
        if (gap > most) widest = i;
        if (gap > most) most = gap;
    }
    return widest;
}

TEST(what_is_left_out_is_chosen)
{
    onv_options options = onv_options_default();
    options.train = "sgd";
    options.checkpoint = "optimal";
    onv_analysis *whole = analyse(&options), *chosen;
    const onv_training *t = &whole->training;
    assert_in_range(t->n_plans, 8, 32);
    const onv_training_plan *row = &t->plans[widest_gap(t)], *next = row + 1;
    char pick[64];
    snprintf(pick, sizeof pick, "optimal@%.6f%%",
             100.0 * (double)(next->does.recomputed_macs - 1) / (double)next->pass_macs);
    options.checkpoint = pick;
    chosen = analyse(&options);
    assert_int_equal(chosen->training.n_plans, 1);
    assert_true(chosen->training.figures.reserved_peak_bytes < row->figures.reserved_peak_bytes);
    assert_true(chosen->training.plans[0].does.recomputed_macs < next->does.recomputed_macs);
    onv_analysis_destroy(chosen);

    options.checkpoint = "optimal";
    options.budget = UINT64_C(1) << 50; /* with the upper ends */
    onv_analysis *ample = analyse(&options);
    assert_int_equal(ample->training.n_plans, t->n_plans);
    options.budget = ample->training.plans[row - t->plans].total_bytes - 1;
    onv_analysis_destroy(ample);
    chosen = analyse(&options);
    assert_true(chosen->training.plan_fits);
    const onv_training_plan *plan = &chosen->training.plans[chosen->training.chosen];
    assert_true(plan->total_bytes <= options.budget);
    assert_in_range(plan->does.recomputed_macs, row->does.recomputed_macs,
                    next->does.recomputed_macs - 1);
    for (uint32_t i = 0; i + 1 < chosen->training.n_plans; i++)
        assert_true(chosen->training.plans[i].figures.peak_bytes >=
                    chosen->training.plans[i + 1].figures.peak_bytes);
    onv_analysis_destroy(chosen);
    onv_analysis_destroy(whole);
}
