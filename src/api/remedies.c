/* Ways to make a model fit that does not. */
#include "api/analysis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "speed/gpu.h"

enum { MOST_REMEDIES = 8, MOST_GPUS = 6, MOST_STEPS_OF_PLANS = 5000 };

typedef struct search {
    const onv_request *from;
    onv_options options; /* of an analysis of what is judged, and nothing else */
    onv_analysis *analysis;
    onv_arena *arena;
    onv_remedy *found;
    uint32_t count;
    const onv_answer_row *largest;
} search;

/* What a trial came to. */
typedef struct trial {
    bool is_there; /* the model takes the option */
    bool fits;
    const char *runtime;
    onv_range
        total; /* of the runtime that decided before, or, where it does not fit, decides now */
    const char *plan;
    uint64_t recomputed_macs, pass_macs;
} trial;

/* --- Trials ------------------------------------------------------------------------------------ */

static onv_status take(search *s, const onv_options *how, const onv_analysis *made, trial *t,
                       onv_error *err)
{
    onv_fit fit = {.budget_bytes = how->budget, .margin_percent = how->margin_percent};
    const onv_training *training = &made->training;
    onv_fit_judge(&fit, made->runtimes, made->n_runtimes);
    t->is_there = made->n_runtimes > 0;
    t->fits = fit.all.fits;
    for (size_t i = 0; i < made->n_runtimes; i++) {
        const onv_runtime_result *r = &made->runtimes[i];
        bool decides = strcmp(r->runtime->name, s->largest->runtime) == 0;
        /* Once all fit, the figure of the one that did not. */
        if (!r->is_judged || (t->fits ? !decides : r->total_bytes.high < t->total.high)) continue;
        t->runtime = r->runtime->name;
        t->total = r->total_bytes;
    }
    if (training->optimizer == NULL || training->chosen == ONV_NO_PLAN) return ONV_OK;
    const onv_training_plan *plan = &training->plans[training->chosen];
    t->plan = onv_arena_printf(s->arena, "%s", plan->does.name);
    t->recomputed_macs = plan->does.recomputed_macs;
    t->pass_macs = plan->pass_macs;
    return t->plan != NULL ? ONV_OK : onv_fail_memory(err);
}

/* An analysis with these options. That the model does not take them is no failure. */
static onv_status try_options(search *s, const onv_options *how, trial *t, onv_error *err)
{
    onv_analysis *made;
    *t = (trial){.is_there = false};
    onv_request from = *s->from;
    from.figures_alone = true;
    ONV_TRY(onv_analysis_try(&from, how, &made, err));
    onv_status status = made != NULL ? take(s, how, made, t, err) : ONV_OK;
    onv_analysis_destroy(made);
    return status;
}

/* Takes it in where it gains something. NULL texts come of a lack of memory. */
static onv_status add(search *s, const char *option, const char *what, const trial *t,
                      onv_error *err)
{
    bool helps = t->fits || t->total.high < s->largest->total.high;
    if (option == NULL || what == NULL) return onv_fail_memory(err);
    if (!t->is_there || !helps || s->count == MOST_REMEDIES) return ONV_OK;
    s->found[s->count++] = (onv_remedy){option, what, t->runtime, t->total, t->fits};
    return ONV_OK;
}

/* --- Each remedy ------------------------------------------------------------------------------- */

/* The settings of a row that are not those of the session, as options and as values of `list`. */
static const char *changed_settings(search *s, const onv_ort_settings *to, const char **list,
                                    size_t *n)
{
    const char *text = "";
    for (size_t i = 0; onv_ort_setting_name(i, NULL) != NULL && text != NULL; i++) {
        char number[24], before[24];
        const char *value = onv_ort_setting_value(to, i, number, sizeof number);
        if (strcmp(value, onv_ort_setting_value(&s->analysis->ort, i, before, sizeof before)) == 0)
            continue;
        list[*n] = onv_arena_printf(s->arena, "%s=%s", onv_ort_setting_name(i, NULL), value);
        if (list[*n] == NULL) return NULL;
        text = onv_arena_printf(s->arena, "%s%s--ort %s", text, text[0] != '\0' ? " " : "",
                                list[(*n)++]);
    }
    return text;
}

static onv_status try_settings(search *s, onv_error *err)
{
    enum { MOST_SETTINGS = 64 };
    onv_analysis *a = s->analysis;
    onv_ort_advice advice;
    onv_runtime_options how = {
        .ort = &a->ort, .rewritten = &a->ort_graph.rewritten, .lower.cuda = a->cuda};
    if (strcmp(s->largest->runtime, "ort") != 0) return ONV_OK;
    ONV_TRY(onv_ort_advise(&a->ort_graph.rewritten.model, &a->ort_graph.live, &how, false, &advice,
                           err));
    if (advice.given == 0) return ONV_OK; /* they are the best */
    onv_options options = s->options;
    const char **list = ONV_ARENA_ARRAY(s->arena, const char *, options.n_ort + MOST_SETTINGS);
    if (list == NULL) return onv_fail_memory(err);
    size_t n = options.n_ort;
    if (n > 0) memcpy(list, options.ort, n * sizeof *list);
    const char *text = changed_settings(s, &advice.rows[0].settings, list, &n);
    if (text == NULL) return onv_fail_memory(err);
    options.ort = list;
    options.n_ort = n;
    trial t;
    ONV_TRY(try_options(s, &options, &t, err));
    return add(s, text, "the settings that need least: --ort-advise", &t, err);
}

static onv_status try_half(search *s, onv_error *err)
{
    onv_options options = s->options;
    bool is_training = strcmp(s->largest->runtime, "train") == 0;
    trial t;
    if (options.amp != ONV_PRECISION_AS_EXPORTED || options.precision != ONV_PRECISION_AS_EXPORTED)
        return ONV_OK;
    if (is_training)
        options.amp = ONV_PRECISION_BF16;
    else
        options.precision = ONV_PRECISION_FP16;
    ONV_TRY(try_options(s, &options, &t, err));
    return add(s, is_training ? "--amp bf16" : "--precision fp16",
               is_training ? "mixed precision" : "the model in 16 bits", &t, err);
}

static onv_status try_plans(search *s, onv_error *err)
{
    onv_options options = s->options;
    trial t;
    if (options.train == NULL || options.checkpoint != NULL || options.compile) return ONV_OK;
    bool is_large = s->analysis->live.timeline.steps.count > MOST_STEPS_OF_PLANS;
    options.checkpoint = is_large ? "sqrt,blocks,segments=4" : "sqrt,blocks,segments=4,optimal";
    ONV_TRY(try_options(s, &options, &t, err));
    if (!t.is_there || t.plan == NULL) return ONV_OK;
    double percent = t.pass_macs > 0 ? 100.0 * (double)t.recomputed_macs / (double)t.pass_macs : 0;
    return add(s, onv_arena_printf(s->arena, "--checkpoint %s", t.plan),
               onv_arena_printf(s->arena, "checkpointing, +%.1f%% multiply-accumulates", percent),
               &t, err);
}

/* The dim that has the name of a batch and was bound so; SIZE_MAX: none. */
static size_t dim_of_batch(const onv_options *options, const char *name)
{
    for (size_t i = 0; name != NULL && i < options->n_dims; i++)
        if (options->dims[i].name == name) return i;
    return SIZE_MAX;
}

static onv_status try_batch(search *s, onv_error *err)
{
    onv_options options = s->options;
    const onv_fit *fit = &s->analysis->fit;
    const char *name;
    int64_t given = onv_bound_batch(&options, &name), batch = fit->all.max_batch;
    bool is_searched = fit->has_max_batch && fit->max_dim == NULL;
    trial t;
    if (given < 2 || options.checkpoint != NULL) return ONV_OK;
    size_t dim = dim_of_batch(&options, name);
    if (!is_searched)
        ONV_TRY(onv_analysis_search_size(s->from, &options, dim, s->analysis, &batch, err));
    if (batch < 1 || batch >= given) return ONV_OK;
    if (dim != SIZE_MAX) {
        onv_dim_binding *dims = onv_own_dims(&options, 0, s->analysis);
        if (dims == NULL) return onv_fail_memory(err);
        dims[dim].size = batch;
    } else {
        options.batch = batch;
    }
    ONV_TRY(try_options(s, &options, &t, err));
    const char *text = name != NULL ? onv_arena_printf(s->arena, "--dim %s=%" PRId64, name, batch)
                                    : onv_arena_printf(s->arena, "--batch %" PRId64, batch);
    return add(s, text, "the largest batch that fits", &t, err);
}

static int by_memory(const void *a, const void *b)
{
    const onv_gpu *const *x = a, *const *y = b;
    if ((*x)->usable_mib != (*y)->usable_mib) return (*x)->usable_mib < (*y)->usable_mib ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* The smallest first, each size and kind of libraries once. */
static onv_status try_gpus(search *s, onv_error *err)
{
    const onv_gpu **gpus = ONV_ARENA_ARRAY(s->arena, const onv_gpu *, onv_n_gpus);
    if (gpus == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < onv_n_gpus; i++) gpus[i] = &onv_gpus[i];
    qsort(gpus, onv_n_gpus, sizeof *gpus, by_memory);
    const onv_gpu *last = NULL;
    for (size_t i = 0, tried = 0; i < onv_n_gpus && tried < MOST_GPUS; i++) {
        onv_options options = s->options;
        trial t;
        unsigned capability = 10 * gpus[i]->cc_major + gpus[i]->cc_minor;
        uint64_t usable = onv_budget_usable(onv_gpu_bytes(gpus[i]), options.margin_percent);
        if (usable < s->largest->total.low || usable < s->largest->live.high) continue;
        if (last != NULL && last->usable_mib == gpus[i]->usable_mib &&
            last->cc_major == gpus[i]->cc_major && last->cc_minor == gpus[i]->cc_minor)
            continue;
        last = gpus[i];
        tried++;
        options.budget = onv_gpu_bytes(gpus[i]);
        options.compute_capability = capability;
        options.gpu = gpus[i]->name;
        ONV_TRY(try_options(s, &options, &t, err));
        if (t.fits)
            return add(s, onv_arena_printf(s->arena, "--budget '%s'", gpus[i]->name),
                       "the smallest GPU of --list-gpus that fits", &t, err);
    }
    return ONV_OK;
}

/* --- All of them ------------------------------------------------------------------------------- */

/* The runtimes that are judged, as --runtime takes them; training comes by itself. */
static const char *judged_runtimes(const onv_answer *answer, onv_arena *arena)
{
    const char *list = "";
    for (uint32_t i = 0; i < answer->n_rows && list != NULL; i++)
        if (strcmp(answer->rows[i].runtime, "train") != 0)
            list = onv_arena_printf(arena, "%s%s%s", list, list[0] != '\0' ? "," : "",
                                    answer->rows[i].runtime);
    return list;
}

/* Those that fit come first. */
static void rank(onv_remedy *found, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!found[i].fits) continue;
        onv_remedy one = found[i];
        memmove(&found[n + 1], &found[n], (i - n) * sizeof *found);
        found[n++] = one;
    }
}

onv_status onv_analysis_find_remedies(const onv_request *from, const onv_options *options,
                                      onv_analysis *analysis, onv_error *err)
{
    static onv_status (*const all[])(search * s, onv_error * err) = {
        try_settings, try_half, try_plans, try_batch, try_gpus};
    onv_answer *answer = &analysis->answer;
    if (!options->remedies || answer->verdict == ONV_VERDICT_NONE || answer->fits_some)
        return ONV_OK;
    if (!onv_watch_has_room(from->watch)) {
        onv_model_diag(&analysis->model, ONV_NOTE, "no-remedies", NULL,
                       "ways to make it fit are not searched: the limits of memory and work leave "
                       "no room for further analyses");
        return ONV_OK;
    }
    search s = {.from = from,
                .options = onv_options_again(options),
                .analysis = analysis,
                .arena = &analysis->model.arena,
                .largest = &answer->rows[answer->largest]};
    s.found = ONV_ARENA_ARRAY(s.arena, onv_remedy, MOST_REMEDIES + 1);
    const char *list = judged_runtimes(answer, s.arena);
    if (s.found == NULL || list == NULL) return onv_fail_memory(err);
    if (list[0] != '\0') s.options.runtimes = list;
    onv_tell(options, "ways to make it fit");
    s.options.progress = NULL;
    s.options.max_batch = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) ONV_TRY(all[i](&s, err));
    rank(s.found, s.count);
    answer->remedies = s.found;
    answer->n_remedies = s.count;
    return ONV_OK;
}
