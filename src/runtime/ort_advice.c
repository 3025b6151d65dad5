#include "runtime/ort_advice.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* Limits are looked for in these steps. */
static const uint64_t LIMIT_STEP = (uint64_t)1 << 20;

enum { N_SEARCHES = 3, MOST_ROWS = 2 * 2 * 2 * N_SEARCHES };

static bool has_convolutions(const onv_model *model)
{
    for (size_t i = 0; i < model->nodes.count; i++)
        if (strstr(model->nodes.at[i].op_type, "Conv") != NULL) return true;
    return false;
}

static onv_status compute(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, const onv_ort_settings *settings,
                          onv_runtime_result *result, onv_error *err)
{
    onv_runtime_options how = *options;
    how.ort = settings;
    return onv_runtime_compute(onv_runtime_find("ort"), model, live, &how, result, err);
}

/* Up to what is taken without a limit, which is enough. */
static onv_status find_limit(onv_model *model, const onv_live *live,
                             const onv_runtime_options *options, onv_ort_advice_row *row,
                             onv_error *err)
{
    uint64_t bad = 0, good = row->steady_bytes / LIMIT_STEP + 1;
    onv_ort_settings limited = row->settings;
    while (good - bad > 1) {
        onv_runtime_result result;
        uint64_t middle = bad + (good - bad) / 2;
        limited.gpu_mem_limit = middle * LIMIT_STEP;
        ONV_TRY(compute(model, live, options, &limited, &result, err));
        if (result.out_of_memory)
            bad = middle;
        else
            good = middle;
    }
    row->least_limit = good * LIMIT_STEP;
    return ONV_OK;
}

static onv_status add_row(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, const onv_ort_settings *settings,
                          bool finds_limits, onv_ort_advice *advice, onv_error *err)
{
    onv_runtime_result result;
    onv_ort_advice_row *row = &advice->rows[advice->count++];
    ONV_TRY(compute(model, live, options, settings, &result, err));
    *row = (onv_ort_advice_row){.settings = *settings,
                                .first_run_bytes = result.first_run_bytes,
                                .steady_bytes = result.held_bytes,
                                .low_bytes = result.low_bytes,
                                .peak_bytes = result.allocated_peak_bytes};
    return finds_limits ? find_limit(model, live, options, row, err) : ONV_OK;
}

/* How far from the defaults: what needs no less is no reason to change anything. */
static uint32_t count_changes(const onv_ort_settings *s)
{
    const onv_ort_settings *d = &onv_ort_settings_default;
    return (s->arena_extend_strategy != d->arena_extend_strategy) +
           (s->enable_mem_pattern != d->enable_mem_pattern) +
           (s->use_device_allocator_for_initializers != d->use_device_allocator_for_initializers) +
           (s->cudnn_conv_algo_search != d->cudnn_conv_algo_search);
}

/* What is held counts; of equals, what is nearer to the defaults. */
static int compare_rows(const void *a, const void *b)
{
    const onv_ort_advice_row *x = a, *y = b;
    if (x->steady_bytes != y->steady_bytes) return x->steady_bytes < y->steady_bytes ? -1 : 1;
    if (x->least_limit != y->least_limit) return x->least_limit < y->least_limit ? -1 : 1;
    uint32_t of_x = count_changes(&x->settings), of_y = count_changes(&y->settings);
    if (of_x != of_y) return of_x < of_y ? -1 : 1;
    return memcmp(&x->settings, &y->settings, sizeof x->settings);
}

static void vary(onv_ort_settings *s, uint32_t i, bool convolves)
{
    s->arena_extend_strategy = i & 1 ? ONV_BFC_SAME_AS_REQUESTED : ONV_BFC_NEXT_POWER_OF_TWO;
    s->enable_mem_pattern = (i >> 1 & 1) == 0;
    s->use_device_allocator_for_initializers = i >> 2 & 1;
    if (!convolves) return;
    s->cudnn_conv_algo_search = i >> 3; /* onv_ort_conv_search */
}

onv_status onv_ort_advise(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, bool finds_limits,
                          onv_ort_advice *advice, onv_error *err)
{
    const onv_ort_settings *given = options->ort != NULL ? options->ort : &onv_ort_settings_default;
    bool convolves = has_convolutions(model);
    uint32_t n = convolves ? MOST_ROWS : MOST_ROWS / N_SEARCHES;
    *advice = (onv_ort_advice){0};
    advice->rows = ONV_ARENA_ARRAY(&model->arena, onv_ort_advice_row, MOST_ROWS + 1);
    if (advice->rows == NULL) return onv_fail_memory(err);
    onv_ort_settings base = *given;
    base.gpu_mem_limit = 0; /* a limit of its own is found for each */
    ONV_TRY(add_row(model, live, options, &base, finds_limits, advice, err));
    for (uint32_t i = 0; i < n; i++) {
        onv_ort_settings settings = base;
        vary(&settings, i, convolves);
        bool is_new = true;
        for (uint32_t k = 0; k < advice->count && is_new; k++)
            is_new = memcmp(&advice->rows[k].settings, &settings, sizeof settings) != 0;
        if (is_new) ONV_TRY(add_row(model, live, options, &settings, finds_limits, advice, err));
    }
    qsort(advice->rows, advice->count, sizeof *advice->rows, compare_rows);
    for (uint32_t i = 0; i < advice->count; i++)
        if (memcmp(&advice->rows[i].settings, &base, sizeof base) == 0) advice->given = i;
    return ONV_OK;
}
