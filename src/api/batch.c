/* The search for the largest batch, or for the largest size of another dim, as size_facts.h says: at the size that is
 * found and at the next one the model is analysed. */
#include "api/analysis.h"
#include "api/plan_sizes.h"
#include "api/size_facts.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum { APART = -1, ALL_RUNTIMES = ONV_MAX_RUNTIMES };

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
    bool is_cut; /* the limit on searches was reached: from then on what is known counts */
    onv_size_facts of[ONV_MAX_RUNTIMES + 1]; /* the last one of all that are judged */
} probes;

/* What an analysis says of each runtime, and of all: of these the one that takes the most. NULL: beyond all bounds. */
static onv_status take(probes *p, int64_t size, const onv_analysis *analysis, onv_error *err)
{
    const onv_size_fact beyond = {.size = size, .is_known = true, .of = {UINT64_MAX, UINT64_MAX}};
    onv_size_fact all = {.size = size, .is_known = true, .reaches = {true, true}};
    bool fits = true;
    for (size_t i = 0; i < ONV_MAX_RUNTIMES && analysis == NULL && fits; i++)
        fits = onv_size_add(&p->of[i], beyond);
    for (size_t i = 0; analysis != NULL && i < analysis->n_runtimes && fits; i++) {
        const onv_runtime_result *r = &analysis->runtimes[i];
        const onv_size_fact f = onv_size_fact_of(r, size, p->of[i].usable_bytes);
        if (!r->is_judged) continue;
        fits = onv_size_add(&p->of[i], f);
        for (int goal = 0; goal < ONV_SIZE_GOALS; goal++) {
            all.reaches[goal] &= f.reaches[goal];
            if (f.of[goal] > all.of[goal]) all.of[goal] = f.of[goal];
        }
    }
    fits = fits && onv_size_add(&p->of[ALL_RUNTIMES], analysis != NULL ? all : beyond);
    return fits ? ONV_OK : onv_fail_memory(err);
}

static void bind(probes *p, int64_t size)
{
    if (p->searched != NULL)
        p->searched->size = size * p->unit;
    else
        p->options.batch = size;
    for (size_t i = 0; p->searched != NULL && p->beside != NULL && i < p->options.n_dims; i++)
        if (p->beside[i] != APART) p->dims[i].size = p->searched->size + p->beside[i];
    onv_tell(p->told, "trying %s %lld", p->searched != NULL ? p->searched->name : "batch",
             (long long)size * p->unit);
}

/* The analysis at a size, as a run that is asked for that size makes it, or of known plans alone. NULL: the size is
 * beyond all bounds. */
static onv_status analyse(void *context, int64_t size, const onv_known_plans *known,
                          onv_analysis **made, onv_error *err)
{
    probes *p = context;
    onv_error local = {0};
    onv_request from = *p->from;
    *made = NULL;
    ONV_TRY(onv_watch_check(p->from->watch, err));
    from.figures_alone = from.judged_alone = true;
    from.training_alone = p->options.checkpoint != NULL;
    from.known = known;
    bind(p, size);
    onv_status status = onv_analysis_create(&from, &p->options, made, &local);
    if (status == ONV_OK || p->from->watch->quota.spent) return status;
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
    if (err != NULL) *err = local;
    return status;
}

static onv_status look_at(probes *p, int64_t size, onv_error *err)
{
    onv_analysis *analysis;
    ONV_TRY(analyse(p, size, NULL, &analysis, err));
    onv_status status = take(p, size, analysis, err);
    onv_analysis_destroy(analysis);
    return status;
}

static onv_status find_largest(probes *p, size_t runtime, int goal, int64_t *size, onv_error *err)
{
    onv_size_facts *of = &p->of[runtime];
    for (;;) {
        onv_size_look(of, goal);
        if (of->wanted[goal] == 0) break;
        ONV_TRY(look_at(p, of->wanted[goal], err));
    }
    *size = of->found[goal] < ONV_MAX_BATCH ? of->found[goal] * p->unit : ONV_MAX_BATCH;
    return ONV_OK;
}

/* Both figures of a runtime, or of all; those that are sure where the search was cut. */
static onv_status find_both(probes *p, size_t runtime, onv_fit_of *of, onv_error *err)
{
    int64_t *sizes[ONV_SIZE_GOALS] = {&of->max_batch, &of->max_batch_by_release};
    for (int goal = 0; goal < ONV_SIZE_GOALS && !p->is_cut; goal++) {
        onv_status status = find_largest(p, runtime, goal, sizes[goal], err);
        p->is_cut = status != ONV_OK && onv_watch_forgive_search(p->from->watch);
        if (status != ONV_OK && !p->is_cut) return status;
    }
    for (int goal = 0; goal < ONV_SIZE_GOALS && p->is_cut; goal++) {
        onv_size_settle(&p->of[runtime], goal);
        *sizes[goal] = p->of[runtime].found[goal] * p->unit;
    }
    return ONV_OK;
}

static void lower_to(int64_t *least, int64_t size)
{
    if (size < *least) *least = size;
}

static bool ends(void *context)
{
    return onv_watch_forgive_search(((probes *)context)->from->watch);
}

/* Of each checkpointing plan, and of training as a whole, which chooses among them. It stands last among the runtimes. */
static onv_status find_plan_batches(probes *p, const onv_options *options, onv_analysis *analysis,
                                    onv_error *err)
{
    onv_fit_of *of = &analysis->fit.of[analysis->n_runtimes - 1];
    const onv_sizing sizing = {.analyse = analyse,
                               .ends = ends,
                               .context = p,
                               .arena = &analysis->model.arena,
                               .first = p->searched != NULL ? 1 : options->batch,
                               .unit = p->unit,
                               .usable_bytes =
                                   onv_budget_usable(options->budget, options->margin_percent)};
    bool is_cut = false;
    p->options.checkpoint = options->checkpoint;
    ONV_TRY(onv_plan_sizes_find(&sizing, &analysis->training, of, &is_cut, err));
    p->is_cut |= is_cut;
    return ONV_OK;
}

/* What a search for any size shares. Starts with the options as they are. */
static probes *begin(const onv_request *from, const onv_options *options, bool copies_dims,
                     onv_analysis *of)
{
    probes *p = ONV_ARENA_ARRAY(&of->making->arena, probes, 1);
    if (p == NULL) return NULL;
    p->from = from;
    p->options = onv_options_again(options);
    p->told = options;
    p->options.progress = NULL;
    p->options.checkpoint = NULL;
    p->unit = 1;
    for (size_t i = 0; i <= ALL_RUNTIMES; i++)
        p->of[i].usable_bytes = onv_budget_usable(options->budget, options->margin_percent);
    if (copies_dims) p->dims = onv_own_dims(&p->options, 0, of);
    return !copies_dims || p->dims != NULL ? p : NULL;
}

static void end(probes *p)
{
    for (size_t i = 0; i <= ALL_RUNTIMES; i++) onv_vec_cleanup(&p->of[i].at);
}

static int by_size(const void *a, const void *b)
{
    const onv_size_fact *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static const char *cause_of_fall(const onv_size_fact *smaller, const onv_size_fact *larger)
{
    if (larger->allocated < smaller->allocated)
        return "libraries choose algorithms with smaller workspaces there";
    return "the allocator's segments have less unused space there";
}

/* A total that is smaller at a larger size, of those that were analysed: the one that falls most. */
static void note_falls(probes *p, onv_analysis *analysis, size_t runtime)
{
    const onv_size_fact *from = NULL, *to = NULL, *at = p->of[runtime].at.at;
    size_t n = p->of[runtime].at.count;
    uint64_t most = 0;
    int64_t fits = 0;
    if (n > 0) qsort(p->of[runtime].at.at, n, sizeof *at, by_size);
    for (size_t i = 0; i < n && at[i].of[ONV_FITS] < UINT64_MAX; i++) {
        if (at[i].reaches[ONV_FITS]) fits = at[i].size * p->unit;
        for (size_t k = 0; k < i; k++) {
            if (at[k].of[ONV_FITS] <= at[i].of[ONV_FITS] + most) continue;
            from = &at[k];
            to = &at[i];
            most = from->of[ONV_FITS] - to->of[ONV_FITS];
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
                   (unsigned long long)from->of[ONV_FITS], what, (long long)from->size * p->unit,
                   (unsigned long long)to->of[ONV_FITS], (long long)to->size * p->unit,
                   cause_of_fall(from, to), also != NULL ? also : "");
}

/* Of each runtime that is judged, and of all of them: one alone may take more at some smaller size. */
static onv_status find_of_all(probes *p, const onv_options *options, onv_analysis *analysis,
                              onv_error *err)
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
    ONV_TRY(find_plan_batches(p, options, analysis, err));
    fit->all.max_batch = fit->all.max_batch_by_release = ONV_MAX_BATCH;
    for (size_t i = 0; i < n; i++) {
        if (!of[i].is_judged) continue;
        lower_to(&fit->all.max_batch, fit->of[i].max_batch);
        lower_to(&fit->all.max_batch_by_release, fit->of[i].max_batch_by_release);
    }
    return ONV_OK;
}

static onv_status find_of_runtimes(probes *p, const onv_options *options, onv_analysis *analysis,
                                   onv_error *err)
{
    uint64_t before = onv_watch_begin_sizes(p->from->watch, analysis->training.n_plans > 0);
    onv_status status = find_of_all(p, options, analysis, err);
    onv_watch_end_sizes(p->from->watch, before);
    return status;
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
    probes *p = begin(from, options, options->max_dim != NULL, analysis);
    if (p == NULL) return onv_fail_memory(err);
    if (options->max_dim != NULL) {
        p->searched = &p->dims[options->n_dims - 1]; /* analysis.c has put it last */
        p->unit = p->searched->size;
        analysis->fit.max_dim = p->searched->name;
    }
    int64_t known = p->searched != NULL ? 1 : options->batch; /* the size of the analysis at hand */
    onv_status status = known > 0 ? take(p, known, analysis, err) : ONV_OK;
    if (status == ONV_OK) status = find_of_runtimes(p, options, analysis, err);
    if (status == ONV_OK) note_cut(p, analysis);
    if (status == ONV_OK) note_refusal(p, analysis, analysis->fit.all.max_batch);
    end(p);
    return status;
}

onv_status onv_analysis_search_size(const onv_request *from, const onv_options *options, size_t dim,
                                    onv_analysis *analysis, int64_t *largest, onv_error *err)
{
    probes *p = begin(from, options, dim != SIZE_MAX, analysis);
    if (p == NULL) return onv_fail_memory(err);
    if (dim != SIZE_MAX) p->searched = &p->dims[dim];
    *largest = 0;
    onv_status status = find_largest(p, ALL_RUNTIMES, ONV_FITS, largest, err);
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
    probes *p = begin(from, options, true, analysis);
    if (p == NULL) return onv_fail_memory(err);
    p->searched = &p->dims[at];
    p->beside = find_totals(options, cache, arena);
    onv_status status =
        p->beside != NULL ? find_of_runtimes(p, options, analysis, err) : onv_fail_memory(err);
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
