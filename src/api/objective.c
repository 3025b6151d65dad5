/* Which batch, and with plans which of them, is the best that fits: the largest batch, or the most samples per second.
 *
 * Under the rules of src/speed the time of an operation is the longest of parts that grow in proportion to the batch, or not
 * at all. So a sample takes less in a larger batch, whatever the plan, and the best batch of a plan is its largest one: these
 * are compared, and the plan that is chosen at the largest batch of all. Rates are ranges; the middle (of their logarithms)
 * ranks them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/analysis.h"
#include "api/known_plans.h"
#include "base/fail.h"

typedef struct comparison {
    const onv_request *from;
    onv_options options;
    onv_fit_best best;
    double rate;
} comparison;

static bool is_throughput(const onv_options *options)
{
    return strcmp(options->objective, "throughput") == 0;
}

onv_status onv_objective_check(const onv_options *options, onv_error *err)
{
    const onv_budget *first = options->n_budgets > 0 ? &options->budgets[0] : NULL;
    bool has_gpu = options->gpu != NULL || (first != NULL && first->compute_capability > 0);
    if (options->objective == NULL) return ONV_OK;
    if (!is_throughput(options) && strcmp(options->objective, "batch") != 0)
        return onv_fail(err, ONV_ERR_USAGE, "the objective is batch or throughput, not '%s'",
                        options->objective);
    if (!is_throughput(options) || has_gpu) return ONV_OK;
    return onv_fail(
        err, ONV_ERR_USAGE,
        "samples per second are those of a GPU: name one, as in --budget L4, or with --gpu "
        "and a size");
}

static const onv_time *time_of(const onv_analysis *analysis)
{
    if (analysis->training.optimizer != NULL) return &analysis->training.figures.time;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (strcmp(analysis->runtimes[i].runtime->name, "torch") == 0)
            return &analysis->runtimes[i].time;
    return NULL;
}

/* Samples per nanosecond. 0: not known. */
static double rate_of(const onv_fit_best *of)
{
    if (!onv_time_is_known(&of->time)) return 0;
    return (double)of->samples / sqrt((double)of->time.all.low * (double)of->time.all.high);
}

static void take(comparison *c, int64_t batch, const onv_analysis *analysis)
{
    const onv_options *options = &c->options;
    const onv_training *t = &analysis->training;
    const onv_time *time = time_of(analysis);
    onv_fit fit = {.budget_bytes = options->budget, .margin_percent = options->margin_percent};
    onv_fit_best found = {.objective = c->best.objective, .batch = batch};
    uint64_t passes = options->accumulate > 1 ? (uint64_t)options->accumulate : 1;
    onv_fit_judge(&fit, analysis->runtimes, analysis->n_runtimes);
    if (!fit.all.fits) return;
    if (t->optimizer == NULL) passes = 1;
    found.samples = (uint64_t)batch * passes;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (analysis->runtimes[i].is_judged &&
            analysis->runtimes[i].total_bytes.high > found.total_bytes)
            found.total_bytes = analysis->runtimes[i].total_bytes.high;
    if (time != NULL) found.time = *time;
    if (t->optimizer != NULL && t->chosen != ONV_NO_PLAN) {
        const onv_training_plan *plan = &t->plans[t->chosen];
        snprintf(found.plan, sizeof found.plan, "%s", plan->does.name);
        if (plan->id != NULL) snprintf(found.id, sizeof found.id, "%s", plan->id);
    }
    double rate = rate_of(&found);
    if (c->best.batch > 0 && rate <= c->rate) return;
    c->best = found;
    c->rate = rate;
}

/* As a run at that batch, or with one plan alone, whose id it then has. */
static onv_status look_at(comparison *c, int64_t batch, const onv_training_plan *plan,
                          uint32_t n_ops, onv_arena *arena, onv_error *err)
{
    onv_analysis *made;
    onv_request from = *c->from;
    onv_known_plan alone;
    const onv_known_plans known = {&alone.plan, &alone.text, 1, n_ops};
    if (plan != NULL && !onv_know_plan(plan, n_ops, arena, &alone)) return onv_fail_memory(err);
    ONV_TRY(onv_watch_check(from.watch, err));
    from.figures_alone = true;
    from.training_alone = c->options.checkpoint != NULL;
    from.known = plan != NULL ? &known : NULL;
    c->options.batch = batch;
    ONV_TRY(onv_analysis_create(&from, &c->options, &made, err));
    if (plan != NULL) made->training.plans[0].id = plan->id;
    if (plan == NULL || !made->training.plans[0].is_missing) take(c, batch, made);
    onv_analysis_destroy(made);
    return ONV_OK;
}

static onv_status compare(comparison *c, const onv_analysis *analysis, onv_arena *arena,
                          onv_error *err)
{
    const onv_training *t = &analysis->training;
    int64_t largest = analysis->fit.all.max_batch;
    if (largest > 0 && largest < ONV_MAX_BATCH) ONV_TRY(look_at(c, largest, NULL, 0, arena, err));
    if (!is_throughput(&c->options)) return ONV_OK;
    for (uint32_t i = 0; i < t->n_plans; i++) {
        int64_t batch = t->plans[i].max_batch;
        if (batch <= 0 || batch >= ONV_MAX_BATCH) continue;
        onv_arena_reset(arena);
        ONV_TRY(look_at(c, batch, &t->plans[i], t->n_plan_ops, arena, err));
    }
    return ONV_OK;
}

onv_status onv_analysis_find_best(const onv_request *from, const onv_options *options,
                                  onv_analysis *analysis, onv_error *err)
{
    comparison c = {.from = from, .options = onv_options_again(options)};
    onv_arena arena;
    c.options.progress = NULL;
    c.best.objective = is_throughput(options) ? "throughput" : "batch";
    onv_arena_init(&arena, SIZE_MAX);
    onv_tell(options, "comparing batches");
    onv_status status = compare(&c, analysis, &arena, err);
    onv_arena_cleanup(&arena);
    analysis->fit.best = c.best;
    if (status == ONV_OK || !onv_watch_forgive_search(from->watch)) return status;
    onv_model_diag(
        &analysis->model, ONV_WARNING, "search-limit", NULL,
        "the comparison of batches ended at the limit on the work of searches: the best one "
        "is the best of those that were analysed until then; --limit work=N raises it");
    return ONV_OK;
}
