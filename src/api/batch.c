/* The search for the largest batch, or for the largest size of another dim. What a batch needs is not
 * computed from another: every one that is tried is analysed. */
#include "api/analysis.h"
#include "api/training.h"
#include "base/fail.h"
#include "base/heap.h"

#include <string.h>

enum { MAX_PROBES = 256, APART = -1 };

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
    /* Dims that grow with the one that is searched: how much more each is, or APART; NULL: none does. */
    const int64_t *beside;
    onv_dim_binding *dims; /* those of the options, this search's own */
    int64_t refused;       /* the least size that the model itself rules out; 0: none */
    onv_error refusal;
    const onv_options *told; /* who is told of each trial; its stages are not */
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
    onv_tell(p->told, "trying %s %lld", p->searched != NULL ? p->searched->name : "batch",
             (long long)batch * p->unit);
    for (size_t i = 0; p->beside != NULL && i < p->options.n_dims; i++)
        if (p->beside[i] != APART) p->dims[i].size = p->searched->size + p->beside[i];
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

/* What a search for any size shares. Starts with the options as they are. */
static probes *begin(const onv_request *from, const onv_options *options, bool copies_dims)
{
    probes *p = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->from = from;
    p->options = *options;
    p->told = options;
    p->options.progress = NULL;
    p->options.budget = 0;
    p->options.replay = NULL;
    p->options.timelines = false;
    p->options.checkpoint = NULL;
    p->options.savings = false;
    p->unit = 1;
    if (!copies_dims) return p;
    p->dims = onv_heap_copy(options->dims, options->n_dims * sizeof *p->dims);
    p->options.dims = p->dims;
    if (p->dims != NULL) return p;
    onv_heap_free(p);
    return NULL;
}

static void end(probes *p)
{
    onv_heap_free(p->dims);
    onv_heap_free(p);
}

/* Of each runtime, and of all of them. */
static onv_status find_of_runtimes(probes *p, onv_analysis *analysis, onv_error *err)
{
    onv_fit *fit = &analysis->fit;
    fit->has_max_batch = true;
    fit->max_batch = ONV_MAX_BATCH;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        ONV_TRY(find_largest(p, i, fit->usable_bytes, &fit->of[i].max_batch, err));
    return ONV_OK;
}

static void take_least(onv_analysis *analysis)
{
    onv_fit *fit = &analysis->fit;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (fit->of[i].max_batch < fit->max_batch) fit->max_batch = fit->of[i].max_batch;
}

/* Where it is the model that allows no more. */
static void note_refusal(const probes *p, onv_analysis *analysis, int64_t largest)
{
    if (p->refused == 0 || p->refused * p->unit != largest + p->unit) return;
    /* The model keeps the name, and `p` goes. */
    const char *node = onv_arena_printf(&analysis->model.arena, "%s", p->refusal.node);
    onv_model_diag(&analysis->model, ONV_WARNING, "max-dim", node,
                   "the model allows no larger '%s' than %lld: %s", p->searched->name,
                   (long long)largest, p->refusal.message);
}

onv_status onv_analysis_find_batch(const onv_request *from, const onv_options *options,
                                   onv_analysis *analysis, onv_error *err)
{
    probes *p = begin(from, options, options->max_dim != NULL);
    if (p == NULL) return onv_fail_memory(err);
    if (options->max_dim != NULL) {
        p->searched = &p->dims[options->n_dims - 1]; /* analysis.c has put it last */
        p->unit = p->searched->size;
        analysis->fit.max_dim = p->searched->name;
    }
    onv_status status = find_of_runtimes(p, analysis, err);
    if (status == ONV_OK) status = find_plan_batches(p, analysis, err);
    take_least(analysis);
    note_refusal(p, analysis, analysis->fit.max_batch);
    end(p);
    return status;
}

/* By dim of the options: how much longer than the past it is, where it is the past of another pair, or as long
 * as the present, as a mask is that is over both. */
static int64_t *find_totals(const onv_options *options, const onv_kv_cache *cache, onv_arena *arena)
{
    int64_t *beside = ONV_ARENA_ARRAY(arena, int64_t, options->n_dims);
    for (size_t i = 0; beside != NULL && i < options->n_dims; i++) {
        const onv_dim_binding *dim = &options->dims[i];
        beside[i] = dim->size == cache->tokens ? cache->tokens - cache->past_tokens : APART;
        for (uint32_t k = 0; k < cache->n_pairs; k++)
            if (cache->pairs[k].past_dim != NULL &&
                strcmp(cache->pairs[k].past_dim, dim->name) == 0)
                beside[i] = 0;
    }
    return beside;
}

onv_status onv_analysis_find_context(const onv_request *from, const onv_options *options,
                                     onv_analysis *analysis, onv_error *err)
{
    const onv_kv_cache *cache = &analysis->cache;
    onv_arena *arena = &analysis->model.arena;
    onv_fit *fit = &analysis->fit;
    size_t at = 0;
    while (at < options->n_dims &&
           (cache->past_dim == NULL || strcmp(options->dims[at].name, cache->past_dim) != 0))
        at++;
    if (at == options->n_dims) {
        onv_model_diag(&analysis->model, ONV_WARNING, "kv-cache", NULL,
                       "the longest context is not searched: it needs a name for the length of the "
                       "past that --dim binds");
        return ONV_OK;
    }
    probes *p = begin(from, options, true);
    if (p == NULL) return onv_fail_memory(err);
    p->searched = &p->dims[at];
    p->beside = find_totals(options, cache, arena);
    onv_status status =
        p->beside != NULL ? find_of_runtimes(p, analysis, err) : onv_fail_memory(err);
    take_least(analysis);
    note_refusal(p, analysis, fit->max_batch);
    end(p);
    /* What was searched is the past: the context is what the cache holds after the step. */
    int64_t more = cache->tokens - cache->past_tokens;
    fit->max_dim = "context";
    for (size_t i = 0; i <= analysis->n_runtimes; i++) {
        int64_t *size = i < analysis->n_runtimes ? &fit->of[i].max_batch : &fit->max_batch;
        if (*size > 0 && *size < ONV_MAX_BATCH) *size += more;
    }
    analysis->cache.longest = fit->max_batch;
    return status;
}
