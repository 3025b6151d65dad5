/* Operators that cut or widen along axes: Slice, Pad. */
#include "ops/rules.h"

#include <string.h>

/* --- Slice ------------------------------------------------------------------------------------- */

/* What one axis keeps: elements start, start + step, ... `size` of them. */
typedef struct cut {
    bool sliced;
    onv_dim start, end, step; /* as given; unknown where not known */
    onv_dim size;
} cut;

/* A position counted from the end where it is negative. */
static onv_dim from_front(onv_dims *dims, onv_dim position, onv_dim size)
{
    onv_dim zero = onv_dim_const(0), minus_one = onv_dim_const(-1);
    if (!onv_dim_is_known(position) || onv_dim_is_infinite(position)) return position;
    if (onv_dim_is_const(position))
        return position.raw >= 0 ? position : onv_dim_add(dims, position, size);
    if (onv_dim_always_le(dims, zero, position)) return position;
    if (onv_dim_always_lt(dims, position, zero)) return onv_dim_add(dims, position, size);
    /* size - 1 is negative only where size is 0, and then either reading cuts the same. */
    if (onv_dim_same(position, onv_dim_add(dims, size, minus_one))) return position;
    /* position + size where position < 0, as an expression: max(-1, min(0, position)) is -1 then. */
    onv_dim sign = onv_dim_max(dims, minus_one, onv_dim_min(dims, zero, position));
    return onv_dim_sub(dims, position, onv_dim_mul(dims, size, sign));
}

/* ceil((min(end, size) - max(start, 0)) / step), not negative. */
static onv_dim forward_size(onv_dims *dims, onv_dim start, onv_dim end, onv_dim step, onv_dim size)
{
    onv_dim zero = onv_dim_const(0);
    onv_dim stop = onv_dim_min(dims, end, size);
    if (onv_dim_is_infinite(stop)) return zero;
    /* A start before the front, and one behind the end, need no clamping: what is subtracted is
     * then too small, which min and max mend. This gives the plainest expressions. */
    onv_dim span = onv_dim_sub(dims, stop, start);
    /* Where the minimum stays open, end - start is often a number: min(1, size - i), not
     * min(size, i + 1) - i. */
    if (onv_dim_is_const(onv_dim_sub(dims, end, start)) && !onv_dim_is_const(span))
        span = onv_dim_min(dims, onv_dim_sub(dims, end, start), onv_dim_sub(dims, size, start));
    if (onv_dim_is_infinite(start))
        span = start.raw < 0 ? stop : zero;
    else if (!onv_dim_always_le(dims, zero, start))
        span = onv_dim_min(dims, span, stop);
    return onv_dim_max(dims, zero, onv_dim_ceildiv(dims, span, step));
}

/* ceil((min(start, size - 1) - max(end, -1)) / -step), not negative. */
static onv_dim backward_size(onv_dims *dims, onv_dim start, onv_dim end, onv_dim step, onv_dim size)
{
    onv_dim zero = onv_dim_const(0), last = onv_dim_add(dims, size, onv_dim_const(-1));
    if (onv_dim_is_infinite(end) && end.raw > 0) return zero;
    onv_dim first = onv_dim_min(dims, start, last);
    if (!onv_dim_always_le(dims, zero, start))
        first = onv_dim_min(dims, onv_dim_max(dims, first, zero), last);
    onv_dim stop = onv_dim_max(dims, end, onv_dim_const(-1));
    onv_dim span = onv_dim_sub(dims, first, stop);
    return onv_dim_max(dims, zero, onv_dim_ceildiv(dims, span, onv_dim_neg(dims, step)));
}

/* Where a limit is not known, the size is the data's to decide, at most what the other allows. */
static onv_dim cut_size(onv_op_ctx *c, uint32_t place, const cut *k, onv_dim size)
{
    onv_dims *dims = c->dims;
    if (!onv_dim_is_known(k->step)) return onv_dim_fresh_at(dims, "slice", place, size);
    bool forward = k->step.raw > 0, single = onv_dim_is_infinite(k->step);
    /* A step too large for any second element. */
    onv_dim step = single ? onv_dim_const(forward ? 1 : -1) : k->step;
    if (!onv_dim_is_const(step)) return onv_dim_fresh_at(dims, "slice", place, size);
    onv_dim lowest = onv_dim_const(-ONV_DIM_INFINITY_RAW);
    onv_dim start = from_front(dims, k->start, size), end = from_front(dims, k->end, size);
    bool open = !onv_dim_is_known(start) || !onv_dim_is_known(end);
    if (!onv_dim_is_known(start)) start = forward ? lowest : ONV_DIM_INFINITY;
    if (!onv_dim_is_known(end)) end = forward ? ONV_DIM_INFINITY : lowest;
    onv_dim result = forward ? forward_size(dims, start, end, step, size)
                             : backward_size(dims, start, end, step, size);
    if (single) result = onv_dim_min(dims, result, onv_dim_const(1));
    if (!open || !onv_dim_is_known(result) || onv_dim_is(result, 0)) return result;
    return onv_dim_fresh_at(dims, "slice", place, result);
}

/* One of the lists: element i, `fallback` where the list is absent, unknown where it is not known. */
typedef struct slice_list {
    const onv_dim *at;
    uint32_t count;
    bool known, given; /* count is UINT32_MAX where not even the length is known */
} slice_list;

static slice_list read_list(onv_op_ctx *c, const char *attr, uint32_t input)
{
    slice_list list = {.at = NULL};
    bool inputs = c->version >= 10;
    list.given = inputs ? onv_op_has_in(c, input) : onv_op_attr(c, attr) != NULL;
    list.known =
        onv_op_ints(c, inputs ? "" : attr, inputs ? (int)input : -1, &list.at, &list.count);
    if (!list.known) {
        onv_dim length = onv_op_in_dim(c, input, 0);
        list.count = onv_dim_is_const(length) && length.raw <= ONV_MAX_RANK ? (uint32_t)length.raw
                                                                            : UINT32_MAX;
    }
    return list;
}

static onv_dim item(const slice_list *list, uint32_t i, onv_dim fallback)
{
    if (!list->given) return fallback;
    return list->known && i < list->count ? list->at[i] : ONV_DIM_UNKNOWN;
}

/* Every axis may be cut by what is not known. */
static void cut_all(onv_op_ctx *c, cut *cuts, int rank)
{
    for (int axis = 0; axis < rank; axis++) {
        onv_dim size = onv_op_in_dim(c, 0, axis);
        cuts[axis] = (cut){.sliced = true,
                           .start = ONV_DIM_UNKNOWN,
                           .end = ONV_DIM_UNKNOWN,
                           .step = ONV_DIM_UNKNOWN,
                           .size = onv_dim_is_known(size)
                                       ? onv_dim_fresh_at(c->dims, "slice", (uint32_t)axis, size)
                                       : ONV_DIM_UNKNOWN};
    }
}

static onv_status read_cuts(onv_op_ctx *c, cut *cuts, int rank)
{
    slice_list starts = read_list(c, "starts", 1), ends = read_list(c, "ends", 2);
    slice_list axes = read_list(c, "axes", 3), steps = read_list(c, "steps", 4);
    const slice_list *const lists[] = {&starts, &ends, &axes, &steps};
    uint32_t count = UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        if (i >= 2 && !lists[i]->given) continue;
        if (lists[i]->count == UINT32_MAX) continue;
        if (count != UINT32_MAX && lists[i]->count != count)
            return onv_op_fail(c, "starts, ends, axes and steps must be equally long");
        count = lists[i]->count;
    }
    for (int axis = 0; axis < rank; axis++) cuts[axis] = (cut){.size = onv_op_in_dim(c, 0, axis)};
    bool known = count != UINT32_MAX;
    for (uint32_t i = 0; known && i < count; i++)
        known = onv_dim_is_const(item(&axes, i, onv_dim_const(i)));
    if (!known) {
        cut_all(c, cuts, rank);
        return ONV_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        int axis;
        ONV_TRY(onv_op_axis(c, item(&axes, i, onv_dim_const(i)).raw, rank, &axis));
        cut *k = &cuts[axis];
        if (k->sliced) return onv_op_fail(c, "axis %d is sliced twice", axis);
        *k = (cut){.sliced = true,
                   .start = item(&starts, i, ONV_DIM_UNKNOWN),
                   .end = item(&ends, i, ONV_DIM_UNKNOWN),
                   .step = item(&steps, i, onv_dim_const(1))};
        if (onv_dim_is(k->step, 0)) return onv_op_fail(c, "a step of 0");
        if (onv_dim_is_known(onv_op_in_dim(c, 0, axis)))
            k->size = cut_size(c, i, k, onv_op_in_dim(c, 0, axis));
        else
            k->size = ONV_DIM_UNKNOWN;
    }
    return ONV_OK;
}

static int64_t first_position(const cut *k, int64_t size)
{
    int64_t start =
        k->start.raw < 0 && onv_dim_is_const(k->start) ? k->start.raw + size : k->start.raw;
    int64_t last = k->step.raw > 0 ? size : size - 1;
    if (start > last) start = last;
    return start < 0 ? 0 : start;
}

static onv_status fold_cuts(onv_op_ctx *c, const cut *cuts)
{
    const onv_known *from = onv_fold_source(c, 0);
    if (from == NULL) return ONV_OK;
    onv_picks picks = onv_pick_all(from);
    for (int axis = 0; axis < from->rank; axis++) {
        const cut *k = &cuts[axis];
        if (!k->sliced) continue;
        bool number = onv_dim_is_const(k->start) || onv_dim_is_infinite(k->start);
        if (!number || !onv_dim_is_const(k->step) || !onv_dim_is_const(k->size)) return ONV_OK;
        int64_t *list = onv_pick_along(c, &picks, axis, k->size.raw);
        if (list == NULL) return ONV_OK;
        int64_t first = first_position(k, from->dims[axis]);
        for (int64_t i = 0; i < k->size.raw; i++) list[i] = first + i * k->step.raw;
    }
    return onv_fold_picks(c, 0, from, &picks, onv_scalar_unknown());
}

static onv_status infer_slice(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    cut cuts[ONV_MAX_RANK];
    onv_dim dims[ONV_MAX_RANK];
    if (rank >= 0) ONV_TRY(read_cuts(c, cuts, rank));
    for (int axis = 0; axis < rank; axis++) dims[axis] = cuts[axis].size;
    onv_op_set_like(c, dims, rank);
    return fold_cuts(c, cuts);
}

/* --- Pad --------------------------------------------------------------------------------------- */

typedef struct pads {
    onv_dim before[ONV_MAX_RANK], after[ONV_MAX_RANK];
    int rank;
} pads;

static onv_status count_of_pads(onv_op_ctx *c, const onv_dim *list, uint32_t count, pads *p)
{
    int n_axes = p->rank;
    int axes[ONV_MAX_RANK];
    const onv_dim *given = NULL;
    uint32_t n_given = 0;
    for (int i = 0; i < p->rank; i++) axes[i] = i;
    if (c->version >= 18 && onv_op_has_in(c, 3)) {
        bool known = onv_op_ints(c, "", 3, &given, &n_given);
        for (uint32_t i = 0; known && i < n_given; i++) known = onv_dim_is_const(given[i]);
        if (!known) {
            for (int i = 0; i < p->rank; i++) p->before[i] = p->after[i] = ONV_DIM_UNKNOWN;
            return ONV_OK;
        }
        if (n_given > (uint32_t)p->rank) return onv_op_fail(c, "more axes than dims");
        n_axes = (int)n_given;
        for (int i = 0; i < n_axes; i++) ONV_TRY(onv_op_axis(c, given[i].raw, p->rank, &axes[i]));
    }
    if (list != NULL && count != 2 * (uint32_t)n_axes)
        return onv_op_fail(c, "%u pads for %d axes of an input of shape %s", count, n_axes,
                           onv_op_in_text(c, 0));
    for (int i = 0; i < n_axes; i++) {
        p->before[axes[i]] = list != NULL ? list[i] : ONV_DIM_UNKNOWN;
        p->after[axes[i]] = list != NULL ? list[n_axes + i] : ONV_DIM_UNKNOWN;
    }
    return ONV_OK;
}

/* The pads of every axis; rank -1 where neither the data nor the pads tell it. */
static onv_status read_pads(onv_op_ctx *c, pads *p)
{
    const onv_dim *list;
    uint32_t count;
    const char *attr = c->version >= 2 ? "pads" : "paddings";
    bool known = onv_op_ints(c, attr, c->version >= 11 ? 1 : -1, &list, &count);
    p->rank = onv_op_in_rank(c, 0);
    if (p->rank < 0 && known && !onv_op_has_in(c, 3)) {
        ONV_TRY(onv_tensor_check_rank(c, count / 2));
        p->rank = (int)(count / 2);
    }
    for (int i = 0; i < p->rank; i++) p->before[i] = p->after[i] = onv_dim_const(0);
    if (p->rank < 0) return ONV_OK;
    static const onv_dim none = {0};
    return count_of_pads(c, known ? (list != NULL ? list : &none) : NULL, count, p);
}

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static pad_mode mode_of(const onv_op_ctx *c)
{
    const char *mode = onv_op_attr_string(c, "mode", "constant");
    if (strcmp(mode, "reflect") == 0) return PAD_REFLECT;
    if (strcmp(mode, "edge") == 0) return PAD_EDGE;
    return strcmp(mode, "wrap") == 0 ? PAD_WRAP : PAD_CONSTANT;
}

/* The position along one axis, -1 for the filler. */
static int64_t unpadded(pad_mode mode, int64_t at, int64_t size)
{
    if (at >= 0 && at < size) return at;
    if (mode == PAD_CONSTANT || size == 0) return -1;
    if (mode == PAD_EDGE) return at < 0 ? 0 : size - 1;
    int64_t period = mode == PAD_WRAP ? size : 2 * (size - 1);
    if (period == 0) return 0;
    at = (at % period + period) % period;
    return at < size ? at : period - at;
}

static onv_scalar pad_value(onv_op_ctx *c)
{
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    if (c->version < 11)
        return onv_dtype_is_float(dtype) ? onv_scalar_real(onv_op_attr_float(c, "value", 0))
                                         : onv_scalar_unknown();
    if (!onv_op_has_in(c, 2)) return onv_scalar_number(dtype, 0);
    const onv_known *value = onv_op_in_known(c, 2);
    return value != NULL && value->count == 1 ? value->elems[0] : onv_scalar_unknown();
}

static onv_status fold_pads(onv_op_ctx *c, const pads *p)
{
    const onv_known *from = onv_fold_source(c, 0);
    if (from == NULL) return ONV_OK;
    onv_picks picks = onv_pick_all(from);
    for (int axis = 0; axis < from->rank; axis++) {
        int64_t n = c->out[0].type.dims[axis].raw, size = from->dims[axis];
        int64_t *list = onv_pick_along(c, &picks, axis, n);
        if (list == NULL || !onv_dim_is_const(p->before[axis])) return ONV_OK;
        for (int64_t i = 0; i < n; i++)
            list[i] = unpadded(mode_of(c), i - p->before[axis].raw, size);
    }
    return onv_fold_picks(c, 0, from, &picks, pad_value(c));
}

static onv_status infer_pad(onv_op_ctx *c)
{
    pads p;
    onv_dim dims[ONV_MAX_RANK];
    const char *mode = onv_op_attr_string(c, "mode", "constant");
    if (mode_of(c) == PAD_CONSTANT && strcmp(mode, "constant") != 0)
        return onv_op_fail(c, "mode is '%s', not constant, reflect, edge or wrap", mode);
    ONV_TRY(read_pads(c, &p));
    for (int i = 0; i < p.rank; i++) {
        onv_dim size = onv_op_in_dim(c, 0, i);
        dims[i] = onv_dim_add(c->dims, size, onv_dim_add(c->dims, p.before[i], p.after[i]));
        if (onv_dim_is_const(dims[i]) && dims[i].raw < 0)
            return onv_op_fail(c, "the pads %lld and %lld remove more than axis %d of %s has",
                               (long long)p.before[i].raw, (long long)p.after[i].raw, i,
                               onv_op_in_text(c, 0));
    }
    onv_op_set_like(c, dims, p.rank);
    return fold_pads(c, &p);
}

/* The gradient of mirrored or repeated borders needs the input (its shape alone does not do). */
static onv_op_traits pad_traits(onv_op_ctx *c)
{
    pad_mode mode = mode_of(c);
    bool saves = mode == PAD_REFLECT || mode == PAD_EDGE;
    return (onv_op_traits){.save_in = saves ? ONV_BIT(0) : 0};
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Slice", 1, 1, 1, 1, 1, infer_slice),
    ONV_OP("Slice", 10, 3, 5, 1, 1, infer_slice),
    ONV_OP("Pad", 1, 1, 1, 1, 1, infer_pad, .traits_fn = pad_traits),
    ONV_OP("Pad", 11, 2, 3, 1, 1, infer_pad, .traits_fn = pad_traits),
    ONV_OP("Pad", 18, 2, 4, 1, 1, infer_pad, .traits_fn = pad_traits),
};

const onv_op_family onv_ops_tensor_slice = {"", rows, sizeof rows / sizeof rows[0]};
