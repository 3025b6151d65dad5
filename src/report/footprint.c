#include "report/footprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* The form that all unsized rows share, and each one's bytes per unit. False if they do not. */
static bool find_unit(const onv_view *view, onv_growth *unit, uint64_t *rows)
{
    const onv_live *live = &view->live;
    bool found = false;
    uint64_t total = 0;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *interval = &live->timeline.buffers.at[i];
        if (interval->sized) continue;
        onv_growth growth;
        const onv_value *value = onv_model_value(&view->model, interval->value);
        if (!onv_growth_of(&value->type, &growth) || growth.n == 0) return false;
        if (!found) *unit = growth;
        found = true;
        if (growth.n != unit->n ||
            memcmp(growth.factors, unit->factors, growth.n * sizeof *growth.factors) != 0)
            return false;
        rows[i] = growth.coef;
        /* Every later sum is a part of this one. */
        if (!onv_u64_add(total, growth.coef, &total)) return false;
    }
    return found;
}

/* What the rows add up to at every step: the sweep, over buffers of that many bytes. */
static bool sum_steps(const onv_live *live, const uint64_t *rows, uint64_t *steps, onv_arena *arena)
{
    onv_timeline t = live->timeline;
    onv_peak peak;
    t.buffers.at = onv_arena_copy(arena, live->timeline.buffers.at,
                                  live->timeline.buffers.count * sizeof *live->timeline.buffers.at);
    if (t.buffers.at == NULL) return false;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) t.buffers.at[i].bytes = rows[i];
    return onv_timeline_peak(&t, &peak, steps, NULL) == ONV_OK;
}

/* The bytes are summed by liveness. */
static void add_row(onv_amount *amount, const onv_footprint *footprint, const onv_live *live,
                    uint32_t row)
{
    const onv_buffer *interval = &live->timeline.buffers.at[row];
    if (footprint->measure == ONV_MEASURE_UNITS) amount->units += footprint->rows[row];
    if (footprint->measure == ONV_MEASURE_AT_LEAST && !interval->sized) amount->is_open = true;
    if (interval->sized && interval->bound) amount->is_bound = true;
}

static void sum_kinds(onv_footprint *footprint, const onv_view *view)
{
    const onv_live *live = &view->live;
    footprint->input.fixed = live->input_bytes;
    footprint->output.fixed = live->output_bytes;
    footprint->activation.fixed = live->activation_bytes;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_value *value = onv_model_value(&view->model, live->timeline.buffers.at[i].value);
        bool top = value->graph.index == 0;
        if (value->kind != ONV_VALUE_INPUT)
            add_row(&footprint->activation, footprint, live, i);
        else if (top)
            add_row(&footprint->input, footprint, live, i);
        if (top && value->is_output) add_row(&footprint->output, footprint, live, i);
    }
}

static int compare(const void *a, const void *b)
{
    const onv_ranked *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void onv_rank(onv_ranked *items, size_t count)
{
    if (count > 1) qsort(items, count, sizeof *items, compare);
}

static void find_peak(onv_footprint *footprint, const onv_live *live)
{
    const uint64_t *steps = footprint->steps;
    uint32_t peak = 0;
    for (uint32_t s = 1; s < live->timeline.steps.count; s++)
        if (steps[s] > steps[peak] ||
            (steps[s] == steps[peak] && live->live_bytes[s] > live->live_bytes[peak]))
            peak = s;
    footprint->peak_step = peak;
    footprint->peak = (onv_amount){.fixed = live->live_bytes[peak], .units = steps[peak]};
}

/* The rows that are live at the peak and hold memory there. */
static bool find_peak_set(onv_footprint *footprint, const onv_live *live, onv_arena *arena)
{
    uint32_t n = 0;
    onv_ranked *set = ONV_ARENA_ARRAY(arena, onv_ranked, live->timeline.buffers.count);
    if (set == NULL) return false;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *interval = &live->timeline.buffers.at[i];
        if (!onv_buffer_is_live(interval, footprint->peak_step)) continue;
        if (interval->sized && interval->bound) footprint->peak.is_bound = true;
        if (footprint->rows[i] > 0) set[n++] = (onv_ranked){footprint->rows[i], i};
    }
    onv_rank(set, n);
    footprint->peak_set = set;
    footprint->n_peak_set = n;
    return true;
}

static bool measure(onv_footprint *footprint, const onv_view *view, const onv_page *page)
{
    const onv_live *live = &view->live;
    onv_arena *arena = page->arena;
    footprint->rows = ONV_ARENA_ARRAY(arena, uint64_t, live->timeline.buffers.count);
    footprint->steps = ONV_ARENA_ARRAY(arena, uint64_t, live->timeline.steps.count);
    if (footprint->rows == NULL || footprint->steps == NULL) return false;
    onv_growth unit = {0};
    footprint->measure = live->unknown == 0 ? ONV_MEASURE_BYTES : ONV_MEASURE_AT_LEAST;
    if (live->unknown > 0 && find_unit(view, &unit, footprint->rows)) {
        footprint->measure = ONV_MEASURE_UNITS;
        footprint->unit = onv_view_factors(view, page, &unit);
        if (footprint->unit == NULL) return false;
    } else {
        for (uint32_t i = 0; i < live->timeline.buffers.count; i++)
            footprint->rows[i] = live->timeline.buffers.at[i].bytes;
    }
    if (!sum_steps(live, footprint->rows, footprint->steps, arena)) return false;
    sum_kinds(footprint, view);
    find_peak(footprint, live);
    if (footprint->measure != ONV_MEASURE_UNITS) footprint->peak.units = 0;
    footprint->peak.is_open = footprint->measure == ONV_MEASURE_AT_LEAST;
    return find_peak_set(footprint, live, arena);
}

bool onv_footprint_make(onv_footprint *footprint, const onv_view *view, const onv_page *page)
{
    *footprint = (onv_footprint){0};
    if (measure(footprint, view, page)) return true;
    page->arena->failed = true;
    return false;
}

const char *onv_amount_text(const onv_footprint *footprint, const onv_page *page, onv_amount amount)
{
    onv_label fixed = onv_label_bytes(amount.fixed);
    if (amount.is_open && amount.fixed == 0) return "?";
    /* A part that cannot be told outweighs one that is at most so large. */
    const char *sign = amount.is_open    ? onv_page_at_least(page)
                       : amount.is_bound ? onv_page_at_most(page)
                                         : "";
    if (amount.units == 0) return onv_page_print(page, "%s%s", sign, fixed.text);
    const char *times = onv_page_is_unicode(page) ? "×" : "*";
    onv_label units = onv_label_bytes(amount.units);
    if (amount.fixed == 0)
        return onv_page_print(page, "%s%s %s %s", sign, units.text, times, footprint->unit);
    return onv_page_print(page, "%s%s %s %s + %s", sign, units.text, times, footprint->unit,
                          fixed.text);
}
