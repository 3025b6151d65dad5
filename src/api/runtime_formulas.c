/* Formulas of what runtimes hold, from analyses at sizes of the free dims. */
#include "api/analysis.h"

#include <string.h>

#include "base/fail.h"
#include "infer/infer.h"

typedef struct asked_at {
    const onv_request *from;
    const onv_options *told;
    onv_options options;
    onv_dim_binding
        *free; /* of the options' dims: those of the formula, then sums of two of them */
    struct {
        onv_dim_binding *dim;
        uint32_t past, sequence; /* of the formula's dims */
    } sums[ONV_SAMPLED_DIMS];
    uint32_t n_dims, n_sums;
    onv_sampled *sampled;
    uint64_t n_analyses;
} asked_at;

/* Ends of the ranges that the answer has, each runtime's lower one first. */
static void take(const onv_answer *answer, uint64_t *values)
{
    for (size_t i = 0; i < answer->n_rows && 2 * i + 1 < ONV_SAMPLED_FIGURES; i++) {
        values[2 * i] = answer->rows[i].live.low;
        values[2 * i + 1] = answer->rows[i].live.high;
    }
}

static onv_status analyse(void *context, const int64_t *sizes, uint64_t *values, bool *has,
                          onv_error *err)
{
    asked_at *a = context;
    onv_analysis *made = NULL;
    onv_request from = *a->from;
    *has = false;
    ONV_TRY(onv_watch_check(a->from->watch, err));
    for (uint32_t i = 0; i < a->n_dims; i++) a->free[i].size = sizes[i];
    for (uint32_t i = 0; i < a->n_sums; i++)
        a->sums[i].dim->size = sizes[a->sums[i].past] + sizes[a->sums[i].sequence];
    onv_tell(a->told, "the formula: %llu sizes", (unsigned long long)++a->n_analyses);
    from.figures_alone = true;
    ONV_TRY(onv_analysis_try(&from, &a->options, &made, err));
    if (made == NULL) return ONV_OK;
    onv_status status = onv_analysis_conclude(&a->options, made, err);
    *has = status == ONV_OK && made->live.unknown == 0 &&
           2 * made->answer.n_rows == a->sampled->n_figures;
    if (*has) take(&made->answer, values);
    onv_analysis_destroy(made);
    return status;
}

/* A batch from 1 to 128; others as usual, up to four times, in steps that kernels and strides do not round. */
static onv_sampled_dim range_of(const onv_free_dim *dim, int64_t usual)
{
    enum { IMAGE = 224, IMAGE_UNIT = 32, UNIT = 8, MOST_BATCH = 128, TIMES = 4, LEAST = 8 };
    if (dim->axis == 0) return (onv_sampled_dim){dim->name, 1, 1, MOST_BATCH};
    int64_t unit = usual == IMAGE ? IMAGE_UNIT : UNIT;
    int64_t high = TIMES * usual / unit;
    return (onv_sampled_dim){dim->name, unit, 1, high > LEAST ? high : LEAST};
}

static int64_t size_in(const onv_infer_info *infer, const char *name)
{
    for (size_t i = 0; i < infer->bounds.count; i++)
        if (strcmp(infer->bounds.at[i].name, name) == 0) return infer->bounds.at[i].size;
    return 1;
}

static uint32_t place_of(const onv_sampled *s, const char *name)
{
    uint32_t i = 0;
    while (i < s->n_dims && strcmp(s->dims[i].name, name) != 0) i++;
    return i;
}

/* The dims of the formula, and those that are sums of two of them. False: there are too many. */
static bool list_dims(asked_at *a, const onv_analysis *analysis)
{
    const onv_infer_info *infer = &analysis->infer;
    const char *past, *sequence;
    onv_sampled *s = a->sampled;
    for (size_t i = 0; i < infer->free_dims.count; i++) {
        const onv_free_dim *dim = &infer->free_dims.at[i];
        if (onv_infer_is_total(infer, dim->name, &past, &sequence)) continue;
        if (s->n_dims == ONV_SAMPLED_DIMS) return false;
        s->dims[s->n_dims++] = range_of(dim, size_in(&analysis->example->infer, dim->name));
    }
    a->n_dims = s->n_dims;
    for (uint32_t i = 0; i < s->n_dims; i++) a->free[i].name = s->dims[i].name;
    for (size_t i = 0; i < infer->free_dims.count; i++) {
        const char *name = infer->free_dims.at[i].name;
        if (!onv_infer_is_total(infer, name, &past, &sequence)) continue;
        uint32_t of[] = {place_of(s, past), place_of(s, sequence)};
        if (of[0] == s->n_dims || of[1] == s->n_dims || a->n_sums == ONV_SAMPLED_DIMS) return false;
        a->free[s->n_dims + a->n_sums].name = name;
        a->sums[a->n_sums].dim = &a->free[s->n_dims + a->n_sums];
        a->sums[a->n_sums].past = of[0];
        a->sums[a->n_sums++].sequence = of[1];
    }
    a->options.n_dims += s->n_dims + a->n_sums;
    return true;
}

onv_status onv_analysis_find_formulas(const onv_request *from, const onv_options *options,
                                      onv_analysis *analysis, onv_error *err)
{
    onv_sampled *s = &analysis->sampled;
    const onv_analysis *example = analysis->example;
    if (!options->formulas || options->runtimes == NULL || example == NULL) return ONV_OK;
    enum { MORE_DIMS = 2 * ONV_SAMPLED_DIMS };
    asked_at a = {
        .from = from, .told = options, .options = onv_options_again(options), .sampled = s};
    onv_dim_binding *dims = onv_own_dims(&a.options, MORE_DIMS, analysis);
    if (dims == NULL) return onv_fail_memory(err);
    a.free = dims + options->n_dims;
    a.options.dims_found = NULL;
    a.options.progress = NULL;
    for (uint32_t i = 0; i < example->answer.n_rows && 2 * i + 1 < ONV_SAMPLED_FIGURES; i++)
        for (uint32_t end = 0; end < 2; end++)
            s->figures[s->n_figures++] =
                (onv_sampled_figure){.name = example->answer.rows[i].runtime, .is_upper = end == 1};
    if (list_dims(&a, analysis))
        return onv_sampled_find(s, &analysis->model.dims, &analysis->model.arena, analyse, &a, err);
    s->why_not = "more than three dims are free, or one is a sum of others that are bound";
    return ONV_OK;
}
