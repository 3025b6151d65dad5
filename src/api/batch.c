/* The search for the largest batch, or for the largest size of another dim. What a batch needs is not
 * computed from another: every one that is tried is analysed. */
#include "api/analysis.h"
#include "api/known_plans.h"
#include "base/fail.h"
#include "base/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROBES = 512, APART = -1, ALL_RUNTIMES = ONV_MAX_RUNTIMES };

/* What was found out at a size. Sizes beyond all bounds fit nothing, and have no figures. */
typedef struct probe {
    int64_t size; /* in units */
    bool in_full; /* with all plans of the list, not with those known from another size */
    bool has_figures;
    onv_fit fit;
    uint64_t totals[ONV_MAX_RUNTIMES], allocated[ONV_MAX_RUNTIMES];
    /* The least total of the checkpointing plans: a budget chooses others, so that the total of the chosen one is below
     * it wherever one fits. */
    uint64_t of_plans;
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
    bool
        skips; /* sizes that are far from the answer are not analysed, those near it mostly with known plans */
    bool is_cut; /* the limit on searches was reached: from then on what is known counts */
    onv_known_plans known; /* of the size that was analysed in full last; in `arena` */
    onv_arena arena;
    size_t count;
    probe at[MAX_PROBES];
} probes;

/* One figure of a search: of a runtime or all of them, where cached memory may be returned or not. */
typedef struct goal {
    size_t runtime;
    bool by_release;
} goal;

static onv_fit_of fit_at(const probe *at, size_t runtime)
{
    return runtime == ALL_RUNTIMES ? at->fit.all : at->fit.of[runtime];
}

static bool reaches(goal g, const probe *at)
{
    onv_fit_of of = fit_at(at, g.runtime);
    return at->has_figures && (of.fits || (g.by_release && of.fits_by_release));
}

static void take(probe *to, const onv_options *options, const onv_analysis *analysis)
{
    to->has_figures = true;
    to->fit.budget_bytes = options->budget;
    to->fit.margin_percent = options->margin_percent;
    onv_fit_judge(&to->fit, analysis->runtimes, analysis->n_runtimes);
    for (size_t i = 0; i < analysis->n_runtimes; i++) {
        to->totals[i] = analysis->runtimes[i].total_bytes.high;
        to->allocated[i] = analysis->runtimes[i].allocated_peak_bytes;
    }
}

static void take_plans(probe *to, const onv_training *t)
{
    to->of_plans = UINT64_MAX;
    for (uint32_t i = 0; i < t->n_plans; i++)
        if (t->plans[i].total_bytes < to->of_plans) to->of_plans = t->plans[i].total_bytes;
}

static void bind(probes *p, int64_t size)
{
    if (p->searched != NULL)
        p->searched->size = size * p->unit;
    else
        p->options.batch = size;
    for (size_t i = 0; p->beside != NULL && i < p->options.n_dims; i++)
        if (p->beside[i] != APART) p->dims[i].size = p->searched->size + p->beside[i];
    onv_tell(p->told, "trying %s %lld", p->searched != NULL ? p->searched->name : "batch",
             (long long)size * p->unit);
}

static probe *find_probe(probes *p, int64_t size)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].size == size) return &p->at[i];
    return NULL;
}

/* The analysis at a size; in full as a run that is asked for that size makes it. */
static onv_status look_at(probes *p, int64_t size, bool in_full, const probe **result,
                          onv_error *err)
{
    probe *to = find_probe(p, size);
    bool is_new = to == NULL;
    if (is_new && p->count == MAX_PROBES)
        return onv_fail(err, ONV_ERR_LIMIT, "the largest size was not found in %d trials",
                        MAX_PROBES);
    if (is_new) to = &p->at[p->count++];
    *result = to;
    if (!is_new && (to->in_full || !in_full)) return ONV_OK;
    *to = (probe){.size = size};
    ONV_TRY(onv_watch_check(p->from->watch, err));
    onv_analysis *analysis;
    onv_error local = {0};
    onv_request from = *p->from;
    from.known = in_full || p->known.count == 0 ? NULL : &p->known;
    from.figures_alone = true;
    to->in_full = from.known == NULL;
    bind(p, size);
    onv_status status = onv_analysis_create(&from, &p->options, &analysis, &local);
    if (status != ONV_OK && p->from->watch->quota.spent) return status;
    if (status == ONV_ERR_OVERFLOW ||
        (status == ONV_ERR_LIMIT && size > 1 && !p->from->watch->late))
        return ONV_OK;
    if (status == ONV_ERR_MODEL && p->searched != NULL && size > 1) {
        /* A table of positions ends, say. */
        if (p->refused == 0 || size < p->refused) {
            p->refused = size;
            p->refusal = local;
        }
        return ONV_OK;
    }
    if (status != ONV_OK) {
        if (err != NULL) *err = local;
        return status;
    }
    take(to, &p->options, analysis);
    take_plans(to, &analysis->training);
    to->in_full |= analysis->training.n_plan_ops != p->known.n_ops;
    if (p->skips && to->in_full)
        status = onv_know_plans(&analysis->training, 0, p->options.checkpoint, &p->arena, &p->known,
                                err);
    onv_analysis_destroy(analysis);
    return status;
}

/* --- Sizes that need no analysis --------------------------------------------------------------- */

static int64_t times_apart(int64_t a, int64_t b)
{
    return a > b ? a / b : b / a;
}

/* The two analysed sizes that are nearest. False: there are fewer. */
static bool find_nearest(const probes *p, int64_t size, const probe *near[2])
{
    near[0] = near[1] = NULL;
    for (size_t i = 0; i < p->count; i++) {
        const probe *at = &p->at[i];
        if (!at->has_figures) continue;
        int64_t gap = llabs(at->size - size);
        if (near[0] == NULL || gap < llabs(near[0]->size - size)) {
            near[1] = near[0];
            near[0] = at;
        } else if (near[1] == NULL || gap < llabs(near[1]->size - size)) {
            near[1] = at;
        }
    }
    return near[1] != NULL;
}

/* A line through the two, as memory grows nearly in proportion to the size. */
typedef struct line {
    int64_t times; /* the nearest one is so many times as large or small */
    double bytes;  /* at the size */
} line;

static bool draw_line(const probes *p, int64_t size, line *to)
{
    const probe *near[2];
    if (!find_nearest(p, size, near)) return false;
    double from = (double)near[0]->of_plans, step = (double)near[1]->of_plans - from;
    *to = (line){times_apart(near[0]->size, size),
                 from + step * (double)(size - near[0]->size) /
                            (double)(near[1]->size - near[0]->size)};
    return true;
}

typedef struct search {
    probes *p;
    goal goal;
    bool in_full;  /* every size */
    bool assumes;  /* what is clear is not analysed */
    bool is_local; /* the answer is near the size that fits */
    double
        error; /* of the last line that was close, as a part of what is usable; 0: there was none */
} search;

/* The part of what is usable by which a line has to miss it, so that the size needs no analysis; 1: it needs one. */
static double clear_part(const search *s, int64_t times)
{
    static const double least = 1.0 / 256, most = 1.0 / 32;
    if (times >= 2)
        return times <= 4 ? 1.0 / 16 : times <= 16 ? 1.0 / 4 : times <= 64 ? 1.0 / 2 : 1;
    double part = s->error > 0 ? 16 * s->error : most;
    return part < least ? least : part > most ? most : part;
}

static onv_status try_size(search *s, int64_t size, bool *fits, onv_error *err)
{
    const probe *at;
    line l;
    probes *p = s->p;
    size_t before = p->count;
    bool has_line = s->assumes && draw_line(p, size, &l);
    double usable = (double)onv_fit_usable(p->options.budget, p->options.margin_percent);
    if (has_line) {
        double part = clear_part(s, l.times);
        *fits = l.bytes < usable;
        if (part < 1 && fabs(l.bytes - usable) > part * usable) return ONV_OK;
    }
    ONV_TRY(look_at(p, size, s->in_full, &at, err));
    *fits = reaches(s->goal, at);
    if (has_line && l.times < 2 && p->count > before && at->has_figures)
        s->error = fabs(l.bytes - (double)at->of_plans) / usable + 1e-9;
    return ONV_OK;
}

/* --- The search -------------------------------------------------------------------------------- */

/* From a size that fits (0: none is known) and one that does not: halves the gap. Where there is no such one (0), it is
 * found by ever larger steps. */
static onv_status narrow(search *s, int64_t *good, int64_t *bad, onv_error *err)
{
    enum { NEAR = 64 };
    int64_t gap = s->is_local ? *good / NEAR + 1 : 1;
    bool fits = true;
    while (*bad == 0 && *good < ONV_MAX_BATCH) {
        int64_t next = *good + gap;
        ONV_TRY(try_size(s, next, &fits, err));
        *(fits ? good : bad) = next;
        gap = s->is_local ? 2 * gap : next;
    }
    while (*bad - *good > 1) {
        int64_t middle = *good + (*bad - *good) / 2;
        ONV_TRY(try_size(s, middle, &fits, err));
        *(fits ? good : bad) = middle;
    }
    return ONV_OK;
}

/* What was found with known plans, in full: then one end moves to there, or both. */
static onv_status confirm(search *s, int64_t good, int64_t bad, int64_t *low, int64_t *high,
                          onv_error *err)
{
    const probe *at;
    if (bad != *high) {
        ONV_TRY(look_at(s->p, bad, true, &at, err));
        *(reaches(s->goal, at) ? low : high) = bad;
        if (*low == bad) return ONV_OK;
    }
    if (good == *low) return ONV_OK;
    ONV_TRY(look_at(s->p, good, true, &at, err));
    *(reaches(s->goal, at) ? low : high) = good;
    return ONV_OK;
}

static void forget_known(probes *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].in_full) p->at[kept++] = p->at[i];
    p->count = kept;
}

/* Ends with N that fits beside N + 1 that does not, both analysed in full. What is assumed on the way, lines and that plans
 * known from other sizes do as well, leads near to there; then the search goes on from the sizes that are sure. */
static onv_status find_largest(probes *p, goal g, int64_t *size, onv_error *err)
{
    enum { ROUNDS_WITH_PLANS = 6 };
    search s = {.p = p, .goal = g, .assumes = p->skips && !g.by_release, .in_full = !p->skips};
    int64_t low = *size, high = 0;
    for (int rounds = 1; low < ONV_MAX_BATCH && high != low + 1; rounds++) {
        int64_t good = low, bad = high;
        ONV_TRY(narrow(&s, &good, &bad, err));
        if (s.in_full) {
            low = good;
            break;
        }
        ONV_TRY(confirm(&s, good, bad, &low, &high, err));
        forget_known(p);
        s.assumes = false;
        s.is_local = true;
        s.in_full = rounds >= ROUNDS_WITH_PLANS;
    }
    *size = low;
    return ONV_OK;
}

static void raise_to(int64_t *most, int64_t size)
{
    if (size > *most) *most = size;
}

/* What is sure where the search was cut: the largest size that was found to fit. */
static void settle(const probes *p, size_t runtime, onv_fit_of *of)
{
    for (size_t i = 0; i < p->count; i++) {
        const probe *at = &p->at[i];
        if (reaches((goal){runtime, false}, at)) raise_to(&of->max_batch, at->size * p->unit);
        if (reaches((goal){runtime, true}, at))
            raise_to(&of->max_batch_by_release, at->size * p->unit);
    }
}

/* Both figures of a runtime, or of all. */
static onv_status find_both(probes *p, size_t runtime, onv_fit_of *of, onv_error *err)
{
    int64_t size = 0;
    onv_status status = p->is_cut ? ONV_OK : find_largest(p, (goal){runtime, false}, &size, err);
    of->max_batch = size < ONV_MAX_BATCH ? size * p->unit : size;
    if (status == ONV_OK && !p->is_cut && size < ONV_MAX_BATCH)
        status = find_largest(p, (goal){runtime, true}, &size, err);
    of->max_batch_by_release = size < ONV_MAX_BATCH ? size * p->unit : size;
    p->is_cut |= status != ONV_OK && onv_watch_forgive_search(p->from->watch);
    if (!p->is_cut) return status;
    settle(p, runtime, of);
    return ONV_OK;
}

static void lower_to(int64_t *least, int64_t size)
{
    if (size < *least) *least = size;
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
    size_t train = analysis->n_runtimes - 1;
    onv_fit_of *of = &analysis->fit.of[train];
    p->skips = true; /* a plan is searched for at each size */
    for (uint32_t item = 0; item < ONV_CKPT_MAX_ITEMS; item++) {
        onv_fit_of found = {0};
        p->count = 0;
        p->options.checkpoint = name_of_item(t, item);
        if (p->options.checkpoint == NULL) continue;
        ONV_TRY(onv_know_plans(t, item, p->options.checkpoint, &p->arena, &p->known, err));
        ONV_TRY(find_both(p, train, &found, err));
        if (p->is_cut && found.max_batch_by_release == 0)
            found.max_batch = found.max_batch_by_release = ONV_BATCH_NOT_FOUND;
        for (uint32_t i = 0; i < t->n_plans; i++) {
            if (t->plans[i].item != item) continue;
            t->plans[i].max_batch = found.max_batch;
            t->plans[i].max_batch_by_release = found.max_batch_by_release;
        }
        raise_to(&of->max_batch, found.max_batch);
        raise_to(&of->max_batch_by_release, found.max_batch_by_release);
    }
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
    p->options.replay = NULL;
    p->options.timelines = false;
    p->options.snapshot = NULL;
    p->options.checkpoint = NULL;
    p->options.savings = false;
    p->unit = 1;
    onv_arena_init(&p->arena, SIZE_MAX);
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
    onv_arena_cleanup(&p->arena);
    onv_heap_free(p);
}

static int by_size(const void *a, const void *b)
{
    const probe *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static const char *cause_of_fall(const probe *smaller, const probe *larger, size_t runtime)
{
    if (larger->allocated[runtime] < smaller->allocated[runtime])
        return "libraries choose algorithms with smaller workspaces there";
    return "the allocator's segments have less unused space there";
}

/* A total that is smaller at a larger size, of those that were analysed: the one that falls most. */
static void note_falls(probes *p, onv_analysis *analysis, size_t runtime)
{
    const probe *from = NULL, *to = NULL;
    uint64_t most = 0;
    int64_t fits = 0;
    qsort(p->at, p->count, sizeof p->at[0], by_size);
    for (size_t i = 0; i < p->count; i++) {
        const probe *at = &p->at[i];
        if (!at->has_figures) continue;
        if (at->fit.of[runtime].fits) fits = at->size * p->unit;
        for (size_t k = 0; k < i; k++) {
            if (p->at[k].totals[runtime] <= at->totals[runtime] + most) continue;
            from = &p->at[k];
            to = at;
            most = from->totals[runtime] - to->totals[runtime];
        }
    }
    if (from == NULL) return;
    const char *what = p->searched != NULL ? p->searched->name : "batch";
    const char *also = "";
    if (fits > analysis->fit.of[runtime].max_batch)
        also =
            onv_arena_printf(&analysis->model.arena, "; %s %lld fits, too", what, (long long)fits);
    onv_model_diag(&analysis->model, ONV_NOTE, "total-falls", NULL,
                   "%s: the total falls from %llu bytes at %s %lld to %llu at %lld: %s%s",
                   analysis->runtimes[runtime].runtime->name,
                   (unsigned long long)from->totals[runtime], what, (long long)from->size * p->unit,
                   (unsigned long long)to->totals[runtime], (long long)to->size * p->unit,
                   cause_of_fall(from, to, runtime), also != NULL ? also : "");
}

/* Of each runtime that is judged, and of all of them: one alone may take more at some smaller size. */
static onv_status find_of_runtimes(probes *p, onv_analysis *analysis, onv_error *err)
{
    onv_fit *fit = &analysis->fit;
    size_t n = analysis->n_runtimes;
    bool has_plans = analysis->training.n_plans > 0;
    fit->has_max_batch = true;
    const onv_runtime_result *of = analysis->runtimes;
    for (size_t i = 0; i < n - has_plans; i++)
        if (of[i].is_judged) ONV_TRY(find_both(p, i, &fit->of[i], err));
    if (!has_plans) ONV_TRY(find_both(p, ALL_RUNTIMES, &fit->all, err));
    for (size_t i = 0; i < n - has_plans; i++)
        if (of[i].is_judged) note_falls(p, analysis, i);
    if (!has_plans) return ONV_OK;
    ONV_TRY(find_plan_batches(p, analysis, err));
    fit->all.max_batch = fit->all.max_batch_by_release = ONV_MAX_BATCH;
    for (size_t i = 0; i < n; i++) {
        if (!of[i].is_judged) continue;
        lower_to(&fit->all.max_batch, fit->of[i].max_batch);
        lower_to(&fit->all.max_batch_by_release, fit->of[i].max_batch_by_release);
    }
    return ONV_OK;
}

static void note_cut(const probes *p, onv_analysis *analysis)
{
    if (!p->is_cut) return;
    onv_model_diag(&analysis->model, ONV_WARNING, "search-limit", NULL,
                   "the search for the largest %s ended at the limit on the work of searches: the "
                   "largest ones are those that were found to fit until then, and larger ones may; "
                   "--limit work=N raises it",
                   p->searched != NULL ? "size" : "batch");
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
    if (status == ONV_OK) note_cut(p, analysis);
    if (status == ONV_OK) note_refusal(p, analysis, analysis->fit.all.max_batch);
    end(p);
    return status;
}

onv_status onv_analysis_search_size(const onv_request *from, const onv_options *options, size_t dim,
                                    int64_t *largest, onv_error *err)
{
    probes *p = begin(from, options, dim != SIZE_MAX);
    if (p == NULL) return onv_fail_memory(err);
    if (dim != SIZE_MAX) p->searched = &p->dims[dim];
    *largest = 0;
    onv_status status = find_largest(p, (goal){ALL_RUNTIMES, false}, largest, err);
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

static void add_to_found(onv_fit_of *of, int64_t more)
{
    int64_t *sizes[] = {&of->max_batch, &of->max_batch_by_release};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (*sizes[i] > 0 && *sizes[i] < ONV_MAX_BATCH) *sizes[i] += more;
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
    if (status == ONV_OK) note_cut(p, analysis);
    if (status == ONV_OK) note_refusal(p, analysis, fit->all.max_batch);
    end(p);
    /* What was searched is the past: the context is what the cache holds after the step. */
    int64_t more = cache->tokens - cache->past_tokens;
    fit->max_dim = "context";
    for (size_t i = 0; i < analysis->n_runtimes; i++) add_to_found(&fit->of[i], more);
    add_to_found(&fit->all, more);
    analysis->cache.longest = fit->all.max_batch;
    return status;
}
