#include "graph/formula.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/strings.h"

/* What a sum is at a few points. Most pairs of sums show there that neither is always above the other,
 * which is proved with more effort. */
enum { SAMPLES = 6 };

typedef struct sample {
    onv_dim at[SAMPLES];
} sample;

typedef struct builder {
    onv_model *model;
    const onv_live *live;
    onv_formula *formula;
    onv_dim *from_one;        /* by piece: the expression for sizes counted from 1 on */
    bool *from_zero;          /* by symbol: sizes that may be 0 */
    sample *samples;          /* by piece */
    onv_dim *points;          /* SAMPLES times: a size for each symbol */
    const onv_value *unsized; /* the first one without an expression for its size */
} builder;

/* --- Sizes ------------------------------------------------------------------------------------- */

/* By buffer. */
static onv_dim *list_sizes(builder *b)
{
    const onv_live *live = b->live;
    onv_dim *sizes = ONV_ARENA_ARRAY(&b->model->arena, onv_dim, live->timeline.buffers.count);
    for (uint32_t i = 0; sizes != NULL && i < live->timeline.buffers.count; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        const onv_value *value = onv_model_value(b->model, row->value);
        sizes[i] = row->sized && row->bytes < (uint64_t)ONV_DIM_INFINITY_RAW
                       ? onv_dim_const((int64_t)row->bytes)
                       : onv_type_bytes(&b->model->dims, &value->type);
        if (!onv_dim_is_known(sizes[i]) && b->unsized == NULL) b->unsized = value;
    }
    /* The input that an output fills further has room for that. */
    for (uint32_t i = 0; sizes != NULL && i < live->timeline.buffers.count; i++) {
        uint32_t whole = live->timeline.buffers.at[i].within;
        if (whole != ONV_NO_BUFFER && b->model->n_shared > 0 &&
            live->timeline.buffers.at[whole].kind == ONV_BUFFER_INPUT)
            sizes[whole] = sizes[i];
    }
    return sizes;
}

static void sum_kinds(builder *b, const onv_dim *sizes)
{
    onv_dims *dims = &b->model->dims;
    onv_formula *f = b->formula;
    f->input_bytes = f->output_bytes = f->activation_bytes = f->macs = onv_dim_const(0);
    for (uint32_t i = 0; i < b->live->timeline.buffers.count; i++) {
        const onv_buffer *row = &b->live->timeline.buffers.at[i];
        const onv_value *value = onv_model_value(b->model, row->value);
        bool top = value->graph.index == 0, is_input = value->kind == ONV_VALUE_INPUT;
        if (is_input && top) f->input_bytes = onv_dim_add(dims, f->input_bytes, sizes[i]);
        if (!is_input && row->becomes == ONV_NO_BUFFER)
            f->activation_bytes = onv_dim_add(dims, f->activation_bytes, sizes[i]);
        if (top && value->is_output) f->output_bytes = onv_dim_add(dims, f->output_bytes, sizes[i]);
    }
    for (uint32_t s = 0; s < b->live->timeline.steps.count; s++)
        f->macs = onv_dim_add(dims, f->macs,
                              onv_dim_substitute_bounds(dims, onv_live_macs(b->model, b->live, s)));
}

/* Where an axis is made of parts (past + sequence), one of them may be empty. */
static void mark_part(void *context, onv_dim symbol)
{
    builder *b = context;
    b->from_zero[onv_dim_symbol_index(&b->model->dims, symbol)] = true;
}

static bool mark_parts(builder *b)
{
    onv_dims *dims = &b->model->dims;
    b->from_zero = ONV_ARENA_ARRAY(&b->model->arena, bool, dims->n_symbols);
    for (size_t i = 0; b->from_zero != NULL && i < b->model->values.count; i++) {
        const onv_type *type = &b->model->values.at[i].type;
        for (int k = 0; onv_type_has_rank(type) && k < type->rank; k++)
            if (onv_dim_is_sum_of_symbols(dims, type->dims[k]))
                onv_dim_each_symbol(dims, type->dims[k], mark_part, b);
    }
    return b->from_zero != NULL;
}

/* --- Pieces ------------------------------------------------------------------------------------ */

/* All ones; then sizes that differ, each the largest once in a while. */
static bool choose_points(builder *b)
{
    const onv_dims *dims = &b->model->dims;
    const size_t n = dims->n_symbols;
    b->samples = ONV_ARENA_ARRAY(&b->model->arena, sample, ONV_MAX_PIECES);
    b->points = ONV_ARENA_ARRAY(&b->model->arena, onv_dim, SAMPLES * n);
    if (b->samples == NULL || b->points == NULL) return false;
    for (uint32_t p = 0; p < SAMPLES; p++)
        for (uint32_t k = 0; k < n; k++)
            b->points[p * n + k] =
                onv_dim_const(p == 0 ? 1 : 1 + (int64_t)(onv_hash_u64(p * n + k + 1) % 1000));
    return true;
}

static sample take_sample(const builder *b, onv_dim bytes)
{
    onv_dims *dims = &b->model->dims;
    const uint64_t overflows = dims->overflows;
    sample result;
    for (uint32_t p = 0; p < SAMPLES; p++)
        result.at[p] = onv_dim_eval(dims, bytes, b->points + (size_t)p * dims->n_symbols);
    dims->overflows = overflows; /* at a point that was made up */
    return result;
}

static bool is_above_somewhere(const sample *a, const sample *b)
{
    for (uint32_t p = 0; p < SAMPLES; p++)
        if (onv_dim_is_const(a->at[p]) && onv_dim_is_const(b->at[p]) && a->at[p].raw > b->at[p].raw)
            return true;
    return false;
}

static void remove_piece(builder *b, uint32_t at)
{
    onv_formula *f = b->formula;
    uint32_t after = --f->n_pieces - at;
    memmove(&f->pieces[at], &f->pieces[at + 1], after * sizeof *f->pieces);
    memmove(&b->from_one[at], &b->from_one[at + 1], after * sizeof *b->from_one);
    memmove(&b->samples[at], &b->samples[at + 1], after * sizeof *b->samples);
}

/* False where there are too many. */
static bool add_piece(builder *b, onv_dim bytes, uint32_t step)
{
    onv_formula *f = b->formula;
    onv_dims *dims = &b->model->dims;
    const sample here = take_sample(b, bytes);
    onv_dim from_one = onv_dim_from_one(dims, bytes, b->from_zero);
    if (!onv_work(1 + f->n_pieces)) return false;
    for (uint32_t i = 0; i < f->n_pieces; i++)
        if (!is_above_somewhere(&here, &b->samples[i]) &&
            onv_dim_never_above(dims, from_one, b->from_one[i]))
            return true;
    for (uint32_t i = f->n_pieces; i-- > 0;)
        if (!is_above_somewhere(&b->samples[i], &here) &&
            onv_dim_never_above(dims, b->from_one[i], from_one))
            remove_piece(b, i);
    if (f->n_pieces == ONV_MAX_PIECES) return false;
    b->from_one[f->n_pieces] = from_one;
    b->samples[f->n_pieces] = here;
    f->pieces[f->n_pieces++] = (onv_piece){
        .bytes = bytes, .step = step, .decided_by = ONV_DIM_UNKNOWN, .from = 1, .until = INT64_MAX};
    return true;
}

/* --- Which piece when -------------------------------------------------------------------------- */

/* Compares piece `i` with all others; false where no single dim decides. */
static bool find_range(builder *b, uint32_t i)
{
    onv_formula *f = b->formula;
    onv_piece *here = &f->pieces[i];
    onv_dim symbol;
    int64_t at;
    for (uint32_t k = 0; k < f->n_pieces; k++) {
        onv_dim other = f->pieces[k].bytes;
        if (k == i) continue;
        if (onv_dim_overtakes(&b->model->dims, other, here->bytes, &symbol, &at))
            here->from = at > here->from ? at : here->from;
        else if (onv_dim_overtakes(&b->model->dims, here->bytes, other, &symbol, &at))
            here->until = at < here->until ? at : here->until;
        else
            return false;
        if (onv_dim_is_known(here->decided_by) && here->decided_by.raw != symbol.raw) return false;
        here->decided_by = symbol;
    }
    return true;
}

/* Pieces that are the largest nowhere go. */
static void find_ranges(builder *b)
{
    onv_formula *f = b->formula;
    for (uint32_t i = 0; i < f->n_pieces; i++) {
        if (find_range(b, i)) continue;
        f->pieces[i].decided_by = ONV_DIM_UNKNOWN;
    }
    for (uint32_t i = f->n_pieces; i-- > 0;)
        if (onv_dim_is_known(f->pieces[i].decided_by) && f->pieces[i].from >= f->pieces[i].until)
            remove_piece(b, i);
}

/* Sums that were looked at already, by their words. */
typedef struct seen {
    int64_t *slots; /* 0: empty; no sum of a step that holds something is 0 */
    uint32_t mask;
} seen;

static bool is_new(seen *set, onv_dim sum)
{
    uint32_t slot = (uint32_t)onv_hash_word((uint64_t)sum.raw) & set->mask;
    while (set->slots[slot] != 0 && set->slots[slot] != sum.raw) slot = (slot + 1) & set->mask;
    if (set->slots[slot] == sum.raw) return false;
    set->slots[slot] = sum.raw;
    return true;
}

/* A step holds most once all that it allocates is there. NULL, or why the pieces are not all. */
static const char *add_pieces(builder *b, const onv_dim *sizes, const onv_timeline_events *events,
                              seen *set)
{
    onv_dims *dims = &b->model->dims;
    onv_dim sum = onv_dim_const(0);
    for (size_t i = 0; i < events->count; i++) {
        const onv_timeline_event *e = &events->at[i], *next = e + 1;
        if (b->live->timeline.buffers.at[e->buffer].within == ONV_NO_BUFFER)
            sum = e->is_free ? onv_dim_sub(dims, sum, sizes[e->buffer])
                             : onv_dim_add(dims, sum, sizes[e->buffer]);
        bool goes_on = i + 1 < events->count && !next->is_free && next->step == e->step;
        if (e->is_free || goes_on) continue;
        if (!onv_dim_is_known(sum)) return "the sizes of a step have too many parts";
        if (sum.raw != 0 && is_new(set, sum) && !add_piece(b, sum, e->step))
            return "too many steps could be the peak";
    }
    return NULL;
}

static onv_status find_pieces(builder *b, const onv_dim *sizes, onv_error *err)
{
    onv_arena *arena = &b->model->arena;
    const onv_timeline *t = &b->live->timeline;
    onv_formula *f = b->formula;
    onv_timeline_events events = {0};
    seen set = {.mask = 63};
    while (set.mask / 2 < t->steps.count) set.mask = set.mask * 2 + 1;
    set.slots = ONV_ARENA_ARRAY(arena, int64_t, (size_t)set.mask + 1);
    f->pieces = ONV_ARENA_ARRAY(arena, onv_piece, ONV_MAX_PIECES);
    b->from_one = ONV_ARENA_ARRAY(arena, onv_dim, ONV_MAX_PIECES);
    if (set.slots == NULL || f->pieces == NULL || b->from_one == NULL) return onv_fail_memory(err);
    onv_status status = onv_timeline_list_events(t, &events, err);
    if (status == ONV_OK) f->why_not = add_pieces(b, sizes, &events, &set);
    onv_vec_cleanup(&events);
    if (f->why_not != NULL) f->n_pieces = 0;
    if (status != ONV_OK || f->why_not != NULL) return status;
    if (f->n_pieces == 0) add_piece(b, onv_dim_const(0), 0);
    find_ranges(b);
    return ONV_OK;
}

/* Beyond what a dim holds it is infinite. */
static onv_dim number(uint64_t value)
{
    return value < (uint64_t)ONV_DIM_INFINITY_RAW ? onv_dim_const((int64_t)value)
                                                  : ONV_DIM_INFINITY;
}

/* Where every size is a number, liveness has summed them. */
static onv_status take_numbers(builder *b, onv_error *err)
{
    const onv_live *live = b->live;
    onv_formula *f = b->formula;
    f->pieces = ONV_ARENA_ARRAY(&b->model->arena, onv_piece, 1);
    if (f->pieces == NULL) return onv_fail_memory(err);
    f->pieces[f->n_pieces++] = (onv_piece){.bytes = number(live->peak_bytes),
                                           .step = live->peak_step,
                                           .decided_by = ONV_DIM_UNKNOWN,
                                           .from = 1,
                                           .until = INT64_MAX};
    f->input_bytes = number(live->input_bytes);
    f->output_bytes = number(live->output_bytes);
    f->activation_bytes = number(live->activation_bytes);
    if (live->macs_known) f->macs = number(live->macs);
    return ONV_OK;
}

/* Factors that detectors compute from sizes are rounded as float32, step by step. */
static const char *reason(const onv_model *model, const onv_value *value)
{
    if (!onv_is_node(value->producer) ||
        !ONV_IS_ANY(onv_model_node(model, value->producer), ONV_OP_Resize, ONV_OP_Upsample))
        return "";
    return ": a Resize multiplies its input by floats that are themselves computed from sizes, and "
           "their rounding is not a formula";
}

onv_status onv_formula_compute(onv_model *model, const onv_live *live, onv_formula *formula,
                               onv_error *err)
{
    *formula = (onv_formula){.macs = ONV_DIM_UNKNOWN};
    builder b = {.model = model, .live = live, .formula = formula};
    if (live->unknown == 0) return take_numbers(&b, err);
    onv_dim *sizes = list_sizes(&b);
    if (sizes == NULL || !mark_parts(&b) || !choose_points(&b)) return onv_fail_memory(err);
    sum_kinds(&b, sizes);
    if (b.unsized == NULL) return find_pieces(&b, sizes, err);
    formula->why_not = onv_arena_printf(&model->arena, "the size of '%s' has no expression%s",
                                        b.unsized->name, reason(model, b.unsized));
    return formula->why_not != NULL ? ONV_OK : onv_fail_memory(err);
}
