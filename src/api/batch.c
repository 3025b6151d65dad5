/* The search for the largest batch, or for the largest size of another dim. What a batch needs is not
 * computed from another: every one that is tried is analysed. */
#include "api/analysis.h"
#include "api/training.h"
#include "base/heap.h"

enum { MAX_PROBES = 256 };

/* What was found out: the totals (upper ends) at some batches, of the runtimes, and last of the
 * checkpointing plan. */
enum { PLAN = ONV_MAX_RUNTIMES, N_TOTALS = ONV_MAX_RUNTIMES + 1 };
typedef struct probe {
    int64_t batch;
    uint64_t totals[N_TOTALS];
} probe;

typedef struct probes {
    const onv_request *from;
    onv_dim_binding *searched; /* the dim, the last one of the options; NULL: the batch */
    int64_t unit;              /* sizes are multiples of it */
    int64_t refused;           /* the least size that the model itself rules out; 0: none */
    onv_error refusal;
    onv_options options;
    size_t count, n_runtimes;
    probe at[MAX_PROBES];
} probes;

/* The analysis at a batch; sizes beyond all bounds count as such. */
static onv_status look_at(probes *p, int64_t batch, const probe **result, onv_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        *result = &p->at[i];
        if (p->at[i].batch == batch) return ONV_OK;
    }
    if (p->count == MAX_PROBES)
        return onv_fail(err, ONV_ERR_LIMIT, "the largest size was not found in %d trials",
                        MAX_PROBES);
    ONV_TRY(onv_watch_check(p->from->watch, err));
    onv_analysis *analysis;
    onv_error local = {0};
    probe *to = &p->at[p->count++];
    *result = to;
    to->batch = batch;
    if (p->searched != NULL)
        p->searched->size = batch * p->unit;
    else
        p->options.batch = batch;
    onv_status status = onv_analysis_create(p->from, &p->options, &analysis, &local);
    for (size_t i = 0; i < N_TOTALS; i++) to->totals[i] = UINT64_MAX;
    if (status == ONV_ERR_OVERFLOW ||
        (status == ONV_ERR_LIMIT && batch > 1 && !p->from->watch->late))
        return ONV_OK;
    if (status == ONV_ERR_MODEL && p->searched != NULL && batch > 1) {
        /* A table of positions ends, say. */
        if (p->refused == 0 || batch < p->refused) {
            p->refused = batch;
            p->refusal = local;
        }
        return ONV_OK;
    }
    if (status != ONV_OK) {
        if (err != NULL) *err = local;
        return status;
    }
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        to->totals[i] = analysis->runtimes[i].total_bytes.high;
    uint64_t of_items[ONV_MAX_PLAN_ITEMS];
    if (onv_training_item_totals(&analysis->training, of_items) > 0) to->totals[PLAN] = of_items[0];
    onv_analysis_destroy(analysis);
    return ONV_OK;
}

/* Doubles until it no longer fits, then halves the gap: ends with N that fits beside N + 1 that
 * does not, both analysed. */
static onv_status find_largest(probes *p, size_t total, uint64_t usable, int64_t *batch,
                               onv_error *err)
{
    int64_t good = 0, bad = 1;
    const probe *at;
    for (;;) {
        ONV_TRY(look_at(p, bad, &at, err));
        if (at->totals[total] > usable) break;
        good = bad;
        if (good >= ONV_MAX_BATCH) break;
        bad *= 2;
    }
    while (good < ONV_MAX_BATCH && bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        ONV_TRY(look_at(p, middle, &at, err));
        if (at->totals[total] <= usable)
            good = middle;
        else
            bad = middle;
    }
    *batch = good < ONV_MAX_BATCH ? good * p->unit : good;
    return ONV_OK;
}

/* The name of what an item asked for, which is a list of its own. */
static const char *name_of_item(const onv_training *t, uint32_t item)
{
    for (uint32_t i = 0; i < t->n_plans; i++)
        if (t->plans[i].item == item) return t->plans[i].name;
    return NULL;
}

/* Of each checkpointing plan, alone: the others would be made at every batch too. Training as a whole
 * reaches what the best of them does. It stands last among the runtimes. */
static onv_status find_plan_batches(probes *p, onv_analysis *analysis, onv_error *err)
{
    onv_training *t = &analysis->training;
    uint64_t totals[ONV_MAX_PLAN_ITEMS];
    uint32_t n_items = onv_training_item_totals(t, totals);
    int64_t most = 0;
    for (uint32_t item = 0; item < n_items; item++) {
        int64_t batch;
        p->count = 0;
        p->options.checkpoint = name_of_item(t, item);
        if (p->options.checkpoint == NULL) continue;
        ONV_TRY(find_largest(p, PLAN, analysis->fit.usable_bytes, &batch, err));
        for (uint32_t i = 0; i < t->n_plans; i++)
            if (t->plans[i].item == item) t->plans[i].max_batch = batch;
        if (batch > most) most = batch;
    }
    if (n_items > 0) analysis->fit.of[analysis->n_runtimes - 1].max_batch = most;
    return ONV_OK;
}

onv_status onv_analysis_find_batch(const onv_request *from, const onv_options *options,
                                   onv_analysis *analysis, onv_error *err)
{
    onv_fit *fit = &analysis->fit;
    probes *p = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return onv_fail_memory(err);
    p->from = from;
    p->options = *options;
    if (options->max_dim != NULL) {
        /* analysis.c has put it last. */
        onv_dim_binding *dims = onv_heap_copy(options->dims, options->n_dims * sizeof *dims);
        if (dims == NULL) {
            onv_heap_free(p);
            return onv_fail_memory(err);
        }
        p->options.dims = dims;
        p->searched = &dims[options->n_dims - 1];
        fit->max_dim = dims[options->n_dims - 1].name;
    }
    p->options.budget = 0;
    p->options.replay = NULL;
    p->options.timelines = false;
    p->options.checkpoint = NULL;
    p->unit = p->searched != NULL ? p->searched->size : 1;
    fit->has_max_batch = true;
    fit->max_batch = ONV_MAX_BATCH;
    onv_status status = ONV_OK;
    for (size_t i = 0; i < analysis->n_runtimes && status == ONV_OK; i++) {
        status = find_largest(p, i, fit->usable_bytes, &fit->of[i].max_batch, err);
    }
    if (status == ONV_OK) status = find_plan_batches(p, analysis, err);
    for (size_t i = 0; i < analysis->n_runtimes; i++) {
        if (fit->of[i].max_batch < fit->max_batch) fit->max_batch = fit->of[i].max_batch;
    }
    if (p->refused > 0 && p->refused * p->unit == fit->max_batch + p->unit) {
        /* The model keeps the name, and `p` goes. */
        const char *node = onv_arena_printf(&analysis->model.arena, "%s", p->refusal.node);
        onv_model_diag(&analysis->model, ONV_WARNING, "max-dim", node,
                       "the model allows no larger '%s' than %lld: %s", fit->max_dim,
                       (long long)fit->max_batch, p->refusal.message);
    }
    if (p->searched != NULL) onv_heap_free(p->searched - (options->n_dims - 1));
    onv_heap_free(p);
    return status;
}
