/* The two callbacks of a long call: it is told what it works on, and asked to end, replays included. */
#include "api/analysis.h"
#include "api/size_facts.h"
#include "api/watch.h"
#include "load/limits.h"
#include "support/capture.h"
#include "support/test.h"

#define SAMPLE ONV_SOURCE_DIR "/samples/mobilenet_v3_small.onnx"

typedef struct asked {
    size_t calls, most; /* the call after `most` ends it */
} asked;

static bool ask(void *context)
{
    asked *a = context;
    return a->calls++ >= a->most;
}

static onv_status run(asked *a, const char *replay, onv_error *error)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis = NULL;
    options.batch = 1;
    options.runtimes = "ideal,arena";
    options.replay = replay;
    options.cancelled = ask;
    options.cancel_context = a;
    onv_status status = onv_analysis_new(SAMPLE, &options, &analysis, error);
    assert_int_equal(analysis == NULL, status != ONV_OK);
    onv_analysis_destroy(analysis);
    return status;
}

TEST(a_replay_asks_the_same_callback)
{
    onv_error error = {0};
    asked without = {.most = SIZE_MAX}, with = {.most = SIZE_MAX};
    assert_int_equal(run(&without, NULL, &error), ONV_OK);
    assert_int_equal(run(&with, "host", &error), ONV_OK);
    assert_true(with.calls > without.calls + 10);
    asked ends = {.most = (without.calls + with.calls) / 2};
    assert_int_equal(run(&ends, "host", &error), ONV_ERR_CANCELLED);
    assert_int_equal(error.code, ONV_ERR_CANCELLED);
    assert_true(error.message[0] != '\0');
    assert_int_equal(ends.calls, ends.most + 1);
}

static void hear(void *context, const char *stage)
{
    if (strstr(stage, "replay") != NULL) *(bool *)context = true;
}

TEST(a_replay_is_told)
{
    onv_error error = {0};
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    bool heard = false;
    options.batch = 1;
    options.runtimes = "arena";
    options.progress = hear;
    options.progress_context = &heard;
    assert_int_equal(onv_analysis_new(SAMPLE, &options, &analysis, &error), ONV_OK);
    onv_analysis_destroy(analysis);
    assert_false(heard);
    options.replay = "host";
    assert_int_equal(onv_analysis_new(SAMPLE, &options, &analysis, &error), ONV_OK);
    onv_analysis_destroy(analysis);
    assert_true(heard);
}

typedef struct heard {
    size_t trials;
} heard;

static void count_trials(void *context, const char *stage)
{
    ((heard *)context)->trials += strncmp(stage, "trying ", 7) == 0;
}

static onv_analysis *analyse_training(const char *plans, int64_t batch, uint64_t budget,
                                      heard *trials)
{
    onv_error error;
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    options.train = "sgd";
    options.checkpoint = plans;
    options.budget = budget;
    options.batch = batch;
    options.max_batch = batch == 0;
    options.progress = count_trials;
    options.progress_context = trials;
    assert_int_equal(onv_analysis_new(SAMPLE, &options, &analysis, &error), ONV_OK);
    return analysis;
}

/* The largest batch of the last plan, and how many analyses found those of all plans. */
static int64_t largest_batch(const char *plans, uint64_t budget, size_t *trials)
{
    heard h = {0};
    onv_analysis *analysis = analyse_training(plans, 0, budget, &h);
    const onv_training *t = &analysis->training;
    int64_t batch = t->plans[t->n_plans - 1].max_batch;
    onv_analysis_destroy(analysis);
    *trials = h.trials;
    return batch;
}

static bool does_fit(const char *plan, int64_t batch, uint64_t budget)
{
    heard none = {0};
    onv_analysis *analysis = analyse_training(plan, batch, budget, &none);
    bool fits = analysis->fit.all.fits;
    onv_analysis_destroy(analysis);
    return fits;
}

/* Sizes that are far from a plan's answer are not analysed; the answer and the next one are. */
TEST(a_search_for_a_plan_analyses_few_sizes)
{
    for (uint64_t gib = 1; gib <= 64; gib *= 4) {
        size_t of_one, of_both, most = 11;
        largest_batch("blocks", gib << 30, &of_one);
        int64_t batch = largest_batch("blocks,sqrt", gib << 30, &of_both);
        /* Each of the two figures would need two for each bit, were all analysed. */
        for (int64_t b = batch; b > 0; b /= 2) most += 2;
        assert_in_range(of_both - of_one, 2, most);
        assert_true(does_fit("sqrt", batch, gib << 30));
        assert_false(does_fit("sqrt", batch + onv_size_grain(batch), gib << 30));
    }
}

/* Of no plan is the largest batch smaller where there is more memory, and the one of all is no less than any. */
TEST(larger_budgets_have_larger_batches)
{
    enum { MOST = 256 };
    int64_t before[MOST] = {0};
    for (uint64_t mib = 1024; mib <= 1792; mib += 768) {
        heard h = {0};
        OWNED_ANALYSIS analysis = analyse_training("sqrt,optimal", 0, mib << 20, &h);
        int64_t largest = analysis->fit.all.max_batch;
        for (size_t i = 0; i < MOST && i < analysis->training.n_plans; i++) {
            const onv_training_plan *plan = &analysis->training.plans[i];
            assert_true(plan->max_batch >= before[i]);
            assert_true(plan->max_batch_by_release >= plan->max_batch);
            assert_true(largest >= plan->max_batch);
            before[i] = plan->max_batch;
        }
        assert_int_equal(largest, analysis->training.largest.size);
    }
    assert_true(before[0] > 50);
}

/* What repeats an analysis has a limit of its own, which the caller's takes the place of. */
TEST(searches_share_a_limit)
{
    onv_limits limits = onv_limits_default();
    for (int given = 0; given < 2; given++) {
        onv_options options = onv_options_default();
        onv_error error = {0};
        onv_watch watch;
        if (given == 1) limits.work = UINT64_MAX;
        options.limits = &limits;
        onv_watch_start(&watch, &options);
        assert_true(onv_work((uint64_t)1 << 40)); /* the analysis itself has none */
        onv_watch_begin_searches(&watch);
        uint64_t before_sizes =
            onv_watch_begin_sizes(&watch, false); /* of one size, a part of it */
        assert_int_equal(watch.quota.most_work - watch.quota.work,
                         given == 1 ? limits.work - watch.quota.work : ONV_DEFAULT_SIZES_WORK);
        onv_watch_end_sizes(&watch, before_sizes);
        assert_true(onv_work(ONV_DEFAULT_SEARCH_WORK));
        onv_watch_end_searches(&watch);
        assert_true(onv_work((uint64_t)1 << 40));
        onv_watch_begin_searches(&watch);
        assert_int_equal(onv_work(ONV_DEFAULT_SEARCH_WORK + 1), given == 1);
        onv_watch_end_searches(&watch);
        onv_status status = onv_watch_verdict(&watch, ONV_OK, &error);
        assert_int_equal(status, given == 1 ? ONV_OK : ONV_ERR_LIMIT);
        if (given == 0) assert_non_null(strstr(error.message, "--limit work=N"));
        onv_watch_leave(&watch, ONV_OK, &error);
    }
}

/* An analysis that makes plans has a limit, too; what repeats it begins anew. */
TEST(plans_have_a_limit)
{
    onv_options options = onv_options_default();
    onv_error error = {0};
    onv_watch watch;
    options.checkpoint = "all";
    onv_watch_start(&watch, &options);
    assert_true(onv_work(ONV_DEFAULT_PLANS_WORK));
    onv_watch_begin_searches(&watch);
    assert_true(onv_work(ONV_DEFAULT_SEARCH_WORK));
    onv_watch_end_searches(&watch);
    onv_watch_leave(&watch, ONV_OK, &error);
    onv_watch_start(&watch, &options);
    assert_false(onv_work(ONV_DEFAULT_PLANS_WORK + 1));
    assert_int_equal(onv_watch_verdict(&watch, ONV_OK, &error), ONV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "--limit work=N"));
    onv_watch_leave(&watch, ONV_OK, &error);
}

/* One sample alone leaves out copies that more need: a plan of its tape is found on theirs by the names of its places. */
TEST(a_plan_of_another_tape_has_the_same_largest_batch)
{
    int64_t found[2][2] = {{0}};
    for (int64_t batch = 1; batch <= 8; batch += 7) {
        onv_options options = onv_options_default();
        onv_error error = {0};
        OWNED_ANALYSIS analysis = NULL;
        options.train = "momentum";
        options.checkpoint = "none,blocks";
        options.batch = batch;
        options.budget = (uint64_t)15 << 30;
        options.max_batch = true;
        assert_int_equal(onv_analysis_new(ONV_SOURCE_DIR "/samples/vit-small-train.onnx", &options,
                                          &analysis, &error),
                         ONV_OK);
        const onv_training *t = &analysis->training;
        assert_int_equal(t->n_plans, 2);
        for (uint32_t i = 0; i < t->n_plans; i++) {
            assert_true(t->plans[i].max_batch > 4000);
            if (batch == 8) assert_int_equal(t->plans[i].max_batch, found[i][0]);
            if (batch == 8) assert_int_equal(t->plans[i].max_batch_by_release, found[i][1]);
            found[i][0] = t->plans[i].max_batch;
            found[i][1] = t->plans[i].max_batch_by_release;
        }
        assert_true(analysis->fit.all.max_batch > 10000);
        assert_true(analysis->fit.all.max_batch_by_release >= analysis->fit.all.max_batch);
    }
}

/* A search that passes its limit ends with what it found until then, and says so. */
TEST(a_search_ends_at_its_limit)
{
    int64_t before_that = 0;
    for (uint64_t millions = 1; millions <= 256; millions *= 16) {
        onv_options options = onv_options_default();
        onv_error error = {0};
        OWNED_ANALYSIS analysis = NULL;
        onv_watch watch;
        options.train = "sgd";
        options.checkpoint = "none,optimal";
        options.batch = 1;
        options.budget = (uint64_t)16 << 30;
        options.max_batch = true;
        onv_watch_start(&watch, &options);
        onv_request from = {.path = SAMPLE, .watch = &watch};
        assert_int_equal(onv_analysis_create(&from, &options, &analysis, &error), ONV_OK);
        from.loaded = analysis->making->loaded;
        from.views = &analysis->making->loaded_views;
        onv_watch_begin_searches(&watch);
        watch.quota.most_work = watch.quota.work + millions * 1000000;
        assert_int_equal(onv_analysis_judge(&from, &options, analysis, &error), ONV_OK);
        onv_watch_end_searches(&watch);
        assert_int_equal(onv_watch_verdict(&watch, ONV_OK, &error), ONV_OK);
        onv_analysis_forget_loaded(analysis);
        int64_t largest = analysis->fit.of[analysis->n_runtimes - 1].max_batch;
        assert_int_equal(message_of(analysis, "search-limit") != NULL, millions < 256);
        assert_true(largest >= 1 && largest >= before_that); /* a batch of 1 fits */
        before_that = largest;
        for (uint32_t i = 0; i < analysis->training.n_plans; i++)
            assert_int_not_equal(analysis->training.plans[i].max_batch, 0);
        onv_watch_leave(&watch, ONV_OK, &error);
    }
    assert_true(before_that > 100);
}
