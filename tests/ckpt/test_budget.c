/* Budgets against plans, through the public interface: what is chosen just below, at and above what
 * each plan takes; and the largest batch of each plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "onnxvram/onnxvram.h"
#include "support/alike.h"
#include "support/flow.h"

enum { MAX_PLANS = 256 };

typedef struct question {
    const char *sample, *checkpoint, *optimizer;
    int64_t batch;
    onv_precision amp;
} question;

static onv_options options_of(const question *q, const onv_dim_binding dims[2])
{
    onv_options options = onv_options_default();
    options.train = q->optimizer;
    options.amp = q->amp;
    options.checkpoint = q->checkpoint;
    options.runtimes = "ideal";
    options.batch = q->batch;
    if (strstr(q->sample, "unet") != NULL) {
        options.dims = dims;
        options.n_dims = 2;
    }
    return options;
}

static onv_analysis *ask(const question *q, uint64_t budget, bool max_batch)
{
    static const onv_dim_binding dims[2] = {{"height", 96}, {"width", 64}};
    onv_error err = {0};
    onv_analysis *analysis;
    onv_options options = options_of(q, dims);
    options.budget = budget;
    options.max_batch = max_batch;
    if (onv_analysis_new(flow_sample(q->sample), &options, &analysis, &err) != ONV_OK)
        fail_msg("%s: %s", q->sample, err.message);
    return analysis;
}

/* Training stands last among the runtimes. */
static onv_runtime_info training_of(const onv_analysis *analysis)
{
    onv_runtime_info info;
    assert_true(onv_analysis_runtime(analysis, onv_analysis_runtime_count(analysis) - 1, &info));
    assert_string_equal(info.name, "train");
    return info;
}

/* --- The cheapest that fits -------------------------------------------------------------------- */

typedef struct offers {
    onv_checkpoint_info at[MAX_PLANS];
    uint64_t totals[MAX_PLANS]; /* with what the driver and libraries take */
    size_t count;
} offers;

static void list_plans(const onv_analysis *analysis, offers *plans)
{
    onv_runtime_info info = training_of(analysis);
    onv_training_info training;
    assert_true(onv_analysis_training(analysis, &training));
    uint64_t beside = info.total_high - training.reserved_peak_bytes;
    for (plans->count = 0;
         onv_analysis_checkpoint(analysis, plans->count, &plans->at[plans->count]);
         plans->count++) {
        assert_true(plans->count + 1 < MAX_PLANS);
        plans->totals[plans->count] = plans->at[plans->count].reserved_peak_bytes + beside;
    }
}

static bool is_cheaper(const onv_checkpoint_info *a, const onv_checkpoint_info *b)
{
    return a->recompute_macs < b->recompute_macs ||
           (a->recompute_macs == b->recompute_macs && a->segments < b->segments);
}

/* The first of the cheapest that fit; where none does, of the smallest. */
static size_t best_of(const offers *plans, uint64_t budget)
{
    size_t best = 0;
    bool best_fits = plans->totals[0] <= budget;
    for (size_t i = 1; i < plans->count; i++) {
        bool fits = plans->totals[i] <= budget;
        bool better = fits && best_fits   ? is_cheaper(&plans->at[i], &plans->at[best])
                      : fits || best_fits ? fits
                                          : plans->totals[i] < plans->totals[best];
        if (!better) continue;
        best = i;
        best_fits = fits;
    }
    return best;
}

static void expect_choice(const question *q, const offers *plans, uint64_t budget)
{
    onv_analysis *analysis = ask(q, budget, false);
    size_t expected = best_of(plans, budget), n_chosen = 0;
    onv_checkpoint_info info;
    /* Where none fits, one that fits once cached memory is returned goes before the smallest. */
    if (training_of(analysis).fits_by_release) {
        assert_true(plans->totals[expected] > budget);
        for (expected = 0; onv_analysis_checkpoint(analysis, expected, &info) && !info.chosen;)
            expected++;
    }
    for (size_t i = 0; onv_analysis_checkpoint(analysis, i, &info); i++) {
        n_chosen += info.chosen;
        if (info.chosen != (i == expected))
            fail_msg("%s, budget %ju: %s (%zu) is %schosen", q->sample, (uintmax_t)budget,
                     info.name, i, info.chosen ? "" : "not ");
    }
    assert_int_equal(n_chosen, 1);
    onv_training_info training;
    onv_fit_info fit;
    assert_true(onv_analysis_training(analysis, &training));
    assert_true(onv_analysis_fit(analysis, &fit));
    assert_int_equal(training.reserved_peak_bytes, plans->at[expected].reserved_peak_bytes);
    assert_int_equal(training.saved_activation_bytes, plans->at[expected].saved_activation_bytes);
    assert_int_equal(training_of(analysis).total_high, plans->totals[expected]);
    assert_int_equal(fit.fits, plans->totals[expected] <= budget);
    onv_analysis_destroy(analysis);
}

static void the_cheapest_that_fits_is_chosen(void **state)
{
    (void)state;
    static const question questions[] = {
        {"resnet18-train.onnx", "all", "adamw", 64, ONV_PRECISION_AS_EXPORTED},
        {"resnet18-train.onnx", "all", "sgd", 3, ONV_PRECISION_BF16},
        {"unet-train.onnx", "all", "adamw", 8, ONV_PRECISION_AS_EXPORTED},
        {"vit-small-train.onnx", "blocks,segments=9,none,sqrt,every=2", "momentum", 32,
         ONV_PRECISION_FP16},
    };
    for (size_t k = 0; k < sizeof questions / sizeof questions[0]; k++) {
        static offers plans;
        onv_analysis *analysis = ask(&questions[k], 0, false);
        list_plans(analysis, &plans);
        onv_analysis_destroy(analysis);
        for (size_t i = 0; i < plans.count; i++) assert_false(plans.at[i].chosen);
        size_t step = OF_ALIKE * (plans.count / 6 + 1); /* of long fronts some */
        for (size_t i = 0; i < plans.count; i += step)
            for (uint64_t more = 0; more < 3; more++)
                expect_choice(&questions[k], &plans, plans.totals[i] - 1 + more);
        expect_choice(&questions[k], &plans, 1);
        expect_choice(&questions[k], &plans, UINT64_MAX / 2);
    }
}

/* For checkpoints fewer operations overwrite their input, as ReLU6 does: a plan without any is not of those. */
static void the_empty_plan_is_training_without_plans(void **state)
{
    (void)state;
    question q = {"mobilenet_v2.onnx", NULL, "adamw", 64, ONV_PRECISION_AS_EXPORTED};
    onv_analysis *without = ask(&q, 0, false);
    q.checkpoint = "blocks,none";
    onv_analysis *with = ask(&q, 0, false);
    onv_training_info info;
    onv_checkpoint_info plan;
    assert_true(onv_analysis_training(without, &info));
    assert_true(onv_analysis_checkpoint(with, 1, &plan));
    assert_string_equal(plan.name, "none");
    assert_int_equal(plan.peak_bytes, info.peak_bytes);
    assert_int_equal(plan.allocated_peak_bytes, info.allocated_peak_bytes);
    assert_int_equal(plan.reserved_peak_bytes, info.reserved_peak_bytes);
    onv_analysis_destroy(with);
    onv_analysis_destroy(without);
}

/* --- The largest batch ------------------------------------------------------------------------- */

static uint64_t total_at(question q, int64_t batch, uint64_t budget)
{
    q.batch = batch;
    onv_analysis *analysis = ask(&q, budget, false);
    uint64_t total = training_of(analysis).total_high;
    onv_analysis_destroy(analysis);
    return total;
}

static int64_t largest(const question *q, uint64_t budget)
{
    onv_analysis *analysis = ask(q, budget, true);
    onv_fit_info fit;
    assert_true(onv_analysis_fit(analysis, &fit));
    onv_analysis_destroy(analysis);
    return fit.max_batch;
}

/* It fits, one more does not; and of several plans the best one's counts. */
static void the_largest_batch_of_each_plan(void **state)
{
    (void)state;
    static const char *const plans[] = {"none", "sqrt", "blocks", "optimal"};
    static const char *const samples[] = {"resnet18-train.onnx", "unet-train.onnx"};
    const uint64_t budget = UINT64_C(3) << 29;
    for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k += OF_ALIKE) {
        int64_t most = 0, none = 0;
        question q = {samples[k], NULL, "adamw", 0, ONV_PRECISION_AS_EXPORTED};
        for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
            q.checkpoint = plans[p];
            int64_t batch = largest(&q, budget);
            assert_true(batch >= 1);
            assert_true(total_at(q, batch, budget) <= budget);
            assert_true(total_at(q, batch + 1, budget) > budget);
            if (p == 0) none = batch;
            if (batch > most) most = batch;
        }
        q.checkpoint = "none,sqrt,blocks,optimal";
        assert_int_equal(largest(&q, budget), most);
        assert_true(most > none);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_that_fits_is_chosen),
        cmocka_unit_test(the_empty_plan_is_training_without_plans),
        cmocka_unit_test(the_largest_batch_of_each_plan),
    };
    return cmocka_run_group_tests_name("ckpt.budget", tests, NULL, NULL);
}
