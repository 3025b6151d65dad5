/* Budgets against plans: what is chosen just below, at and above what
 * each plan takes; and the largest batch of each plan. */
#include "api/analysis.h"
#include "support/alike.h"
#include "support/capture.h"
#include "support/flow.h"
#include "support/test.h"

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
static const onv_runtime_result *training_of(const onv_analysis *analysis)
{
    const onv_runtime_result *last = &analysis->runtimes[analysis->n_runtimes - 1];
    assert_string_equal(last->runtime->name, "train");
    return last;
}

/* --- The cheapest that fits -------------------------------------------------------------------- */

typedef struct offer {
    uint64_t macs, segments, saved, reserved;
    uint64_t total; /* with what the driver and libraries take */
} offer;

typedef struct offers {
    offer at[MAX_PLANS];
    size_t count;
} offers;

static uint64_t upper_end(const onv_analysis *ample, size_t plan)
{
    const onv_training_figures *f = &ample->training.plans[plan].figures;
    return f->held_ends[1] > 0 ? f->held_ends[1] : f->reserved_peak_bytes;
}

/* A budget that all fit has the upper ends of all. */
static void list_plans(const question *q, const onv_analysis *analysis, offers *plans)
{
    OWNED_ANALYSIS ample = ask(q, UINT64_MAX / 2, false);
    const onv_training *t = &analysis->training;
    assert_int_equal(ample->training.n_plans, t->n_plans);
    uint64_t beside = training_of(analysis)->total_bytes.high - training_of(analysis)->high_bytes;
    assert_true(t->n_plans <= MAX_PLANS && t->chosen >= t->n_plans);
    for (plans->count = 0; plans->count < t->n_plans; plans->count++) {
        const onv_training_plan *plan = &t->plans[plans->count];
        const onv_training_figures *f = &plan->figures;
        plans->at[plans->count] =
            (offer){plan->does.recomputed_macs, plan->does.n_segments, f->saved_activation_bytes,
                    f->reserved_peak_bytes, upper_end(ample, plans->count) + beside};
    }
}

static bool is_cheaper(const offer *a, const offer *b)
{
    return a->macs < b->macs || (a->macs == b->macs && a->segments < b->segments);
}

/* The first of the cheapest that fit; where none does, of the smallest. */
static size_t best_of(const offers *plans, uint64_t budget)
{
    size_t best = 0;
    bool best_fits = plans->at[0].total <= budget;
    for (size_t i = 1; i < plans->count; i++) {
        bool fits = plans->at[i].total <= budget;
        bool better = fits && best_fits   ? is_cheaper(&plans->at[i], &plans->at[best])
                      : fits || best_fits ? fits
                                          : plans->at[i].total < plans->at[best].total;
        if (!better) continue;
        best = i;
        best_fits = fits;
    }
    return best;
}

static void expect_choice(const question *q, const offers *plans, uint64_t budget)
{
    OWNED_ANALYSIS analysis = ask(q, budget, false);
    size_t expected = best_of(plans, budget);
    const onv_training *t = &analysis->training;
    size_t train = analysis->n_runtimes - 1;
    /* Where none fits, one that fits once cached memory is returned goes before the smallest. */
    if (analysis->fit.of[train].fits_by_release) {
        assert_true(plans->at[expected].total > budget);
        expected = t->chosen;
    }
    if (t->chosen != expected)
        fail_msg("%s, budget %ju: %s is chosen, not %s", q->sample, (uintmax_t)budget,
                 t->plans[t->chosen].does.name, t->plans[expected].does.name);
    assert_int_equal(t->figures.reserved_peak_bytes, plans->at[expected].reserved);
    assert_int_equal(t->figures.saved_activation_bytes, plans->at[expected].saved);
    assert_int_equal(training_of(analysis)->total_bytes.high, plans->at[expected].total);
    assert_int_equal(analysis->fit.all.fits, plans->at[expected].total <= budget);
}

TEST(the_cheapest_that_fits_is_chosen)
{
    static const question questions[] = {
        {"resnet18-train.onnx", "all", "adamw", 64, ONV_PRECISION_AS_EXPORTED},
        {"resnet18-train.onnx", "all", "sgd", 3, ONV_PRECISION_BF16},
        {"unet-train.onnx", "all", "adamw", 8, ONV_PRECISION_AS_EXPORTED},
        {"vit-small-train.onnx", "blocks,segments=9,none,sqrt,every=2", "momentum", 32,
         ONV_PRECISION_FP16},
    };
    for (size_t k = 0; k < sizeof questions / sizeof questions[0]; k++) {
        static offers plans;
        OWNED_ANALYSIS analysis = ask(&questions[k], 0, false);
        list_plans(&questions[k], analysis, &plans);
        size_t step = OF_ALIKE * (plans.count / 6 + 1); /* of long fronts some */
        for (size_t i = 0; i < plans.count; i += step)
            for (uint64_t more = 0; more < 3; more++)
                expect_choice(&questions[k], &plans, plans.at[i].total - 1 + more);
        expect_choice(&questions[k], &plans, 1);
        expect_choice(&questions[k], &plans, UINT64_MAX / 2);
    }
}

/* For checkpoints fewer operations overwrite their input, as ReLU6 does: a plan without any is not of those. */
TEST(the_empty_plan_is_training_without_plans)
{
    question q = {"mobilenet_v2.onnx", NULL, "adamw", 64, ONV_PRECISION_AS_EXPORTED};
    OWNED_ANALYSIS without = ask(&q, 0, false);
    q.checkpoint = "blocks,none";
    OWNED_ANALYSIS with = ask(&q, 0, false);
    OWNED_ANALYSIS judged = ask(&q, UINT64_C(16) << 30, false);
    const onv_training_figures *info = &without->training.figures;
    const onv_training_plan *plan = &with->training.plans[1];
    assert_string_equal(plan->does.name, "none");
    assert_int_equal(plan->figures.peak_bytes, info->peak_bytes);
    assert_int_equal(plan->figures.allocated_peak_bytes, info->allocated_peak_bytes);
    assert_int_equal(plan->figures.reserved_peak_bytes, info->reserved_peak_bytes);
    assert_int_equal(judged->training.plans[1].figures.reserved_peak_bytes,
                     info->reserved_peak_bytes);
}

/* --- The largest batch ------------------------------------------------------------------------- */

static uint64_t total_at(question q, int64_t batch, uint64_t budget)
{
    q.batch = batch;
    onv_analysis *analysis = ask(&q, budget, false);
    uint64_t total = training_of(analysis)->total_bytes.high;
    onv_analysis_destroy(analysis);
    return total;
}

static int64_t largest(const question *q, uint64_t budget)
{
    onv_analysis *analysis = ask(q, budget, true);
    int64_t most = analysis->fit.all.max_batch;
    onv_analysis_destroy(analysis);
    return most;
}

/* It fits, one more does not; of several plans the best one's counts. One that is made at each size may fit at a larger size
 * than the first at which it does not, which another search may meet. */
TEST(the_largest_batch_of_each_plan)
{
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
        int64_t all = largest(&q, budget);
        assert_true(all >= most);
        assert_true(total_at(q, all, budget) <= budget);
        assert_true(total_at(q, all + 1, budget) > budget);
        assert_true(most > none);
    }
}
