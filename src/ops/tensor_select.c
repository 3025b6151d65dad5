/* Operators whose output size the data decides: NonZero, Compress, Unique. Where the contents are
 * known the size is too; otherwise it is a fresh symbol with what the shapes allow as its bound. */
#include "ops/rules.h"

#include <stdlib.h>
#include <string.h>

/* --- Common ------------------------------------------------------------------------------------ */

/* 1: not zero, 0: zero, -1: cannot tell. */
static int truth(onv_op_ctx *c, onv_dtype dtype, onv_scalar s)
{
    onv_dim flag = onv_scalar_cast(c->dims, dtype, ONV_BOOL, s).i;
    return onv_dim_is_const(flag) ? flag.raw != 0 : -1;
}

/* How many of the first `count` elements are not zero; -1 where one cannot be told. */
static int64_t count_true(onv_op_ctx *c, const onv_known *known, uint32_t count)
{
    int64_t sum = 0;
    if (known == NULL) return -1;
    for (uint32_t i = 0; i < count; i++) {
        int is = truth(c, (onv_dtype)known->dtype, known->elems[i]);
        if (is < 0) return -1;
        sum += is;
    }
    return sum;
}

static onv_dim at_most(onv_op_ctx *c, const char *name, onv_dim bound)
{
    if (onv_dim_is(bound, 0)) return bound;
    return onv_dim_fresh(c->dims, name, bound);
}

/* --- NonZero ----------------------------------------------------------------------------------- */

static onv_status infer_non_zero(onv_op_ctx *c)
{
    const onv_known *known = onv_op_in_known(c, 0);
    int rank = onv_op_in_rank(c, 0);
    int64_t count = count_true(c, known, known != NULL ? known->count : 0);
    onv_dim dims[2] = {rank >= 0 ? onv_dim_const(rank) : ONV_DIM_UNKNOWN,
                       count >= 0 ? onv_dim_const(count)
                                  : at_most(c, "nonzero", onv_op_in_elems(c, 0))};
    onv_op_set_out(c, 0, ONV_INT64, dims, 2);
    int64_t strides[ONV_MAX_RANK], n = 0;
    onv_known *out = known != NULL ? onv_op_new_known(c, 0) : NULL;
    if (out == NULL || out->count == 0) return ONV_OK;
    onv_tensor_strides(known->dims, known->rank, strides);
    for (uint32_t i = 0; i < known->count; i++) {
        if (truth(c, (onv_dtype)known->dtype, known->elems[i]) != 1) continue;
        for (int k = 0; k < known->rank; k++)
            out->elems[k * out->dims[1] + n] =
                onv_scalar_int(onv_dim_const(i / strides[k] % known->dims[k]));
        n++;
    }
    return ONV_OK;
}

/* --- Compress ---------------------------------------------------------------------------------- */

/* Elements of the condition beyond `size` are ignored, as far as both are numbers. */
static uint32_t condition_length(const onv_known *condition, onv_dim size)
{
    if (condition == NULL) return 0;
    bool shorter = onv_dim_is_const(size) && size.raw < (int64_t)condition->count;
    return shorter ? (uint32_t)size.raw : condition->count;
}

static onv_dim kept(onv_op_ctx *c, onv_dim size)
{
    const onv_known *condition = onv_op_in_known(c, 1);
    int64_t count = count_true(c, condition, condition_length(condition, size));
    onv_dim length = onv_op_in_dim(c, 1, 0);
    if (count >= 0) return onv_dim_const(count);
    if (onv_dim_is_known(size) && onv_dim_is_known(length))
        size = onv_dim_min(c->dims, size, length);
    return at_most(c, "compress", onv_dim_is_known(size) ? size : length);
}

static onv_status infer_compress(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis;
    onv_dim dims[ONV_MAX_RANK];
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    ONV_TRY(onv_tensor_need_rank(c, 1, 1, 1));
    if (onv_op_attr(c, "axis") == NULL) {
        dims[0] = kept(c, onv_op_in_elems(c, 0));
        return onv_op_set_like(c, dims, 1);
    }
    if (rank >= 0) ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? kept(c, onv_op_in_dim(c, 0, i)) : onv_op_in_dim(c, 0, i);
    return onv_op_set_like(c, dims, rank);
}

static onv_status fold_compress(onv_op_ctx *c)
{
    const onv_known *from = onv_fold_source(c, 0);
    const onv_known *condition = from != NULL ? onv_op_in_known(c, 1) : NULL;
    int axis = 0;
    if (from == NULL || condition == NULL) return ONV_OK;
    const int64_t count = from->count;
    onv_known flat = *from;
    flat.rank = 1;
    flat.dims = &count;
    if (onv_op_attr(c, "axis") == NULL)
        from = &flat;
    else
        ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), from->rank, &axis));
    onv_picks picks = onv_pick_all(from);
    int64_t *kept = onv_pick_along(c, &picks, axis, condition->count);
    if (kept == NULL) return ONV_OK;
    picks.dims[axis] = 0;
    uint32_t length = condition_length(condition, onv_dim_const(from->dims[axis]));
    for (uint32_t i = 0; i < length; i++) {
        int is = truth(c, (onv_dtype)condition->dtype, condition->elems[i]);
        if (is < 0) return ONV_OK;
        if (is > 0) kept[picks.dims[axis]++] = i;
    }
    return onv_fold_picks(c, 0, from, &picks, onv_scalar_unknown());
}

/* --- Unique ------------------------------------------------------------------------------------ */

/* The distinct elements of a known, flattened tensor. */
typedef struct distinct {
    uint32_t n;
    uint32_t *first;   /* per distinct element: where it occurs first */
    uint32_t *count;   /* and how often */
    uint32_t *inverse; /* per element: which distinct one it is */
} distinct;

/* An element that is compared: a float, or an integer. */
typedef struct element {
    double real;
    int64_t number;
    uint32_t at;
} element;

static int compare_values(const element *a, const element *b)
{
    if (a->real != b->real) return a->real > b->real ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Equal ones in order of occurrence. */
static int compare_elements(const void *a, const void *b)
{
    const element *x = a, *y = b;
    int order = compare_values(x, y);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Numbers the distinct elements in order of occurrence instead. */
static void unsort(distinct *d, uint32_t elems, uint32_t *now)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < elems; i++) {
        uint32_t k = d->inverse[i];
        if (d->first[k] == i) now[k] = n++;
        d->inverse[i] = now[k];
    }
    memset(d->count, 0, d->n * sizeof *d->count);
    for (uint32_t i = elems; i-- > 0;) {
        d->first[d->inverse[i]] = i;
        d->count[d->inverse[i]]++;
    }
}

/* False where the contents are not all plain numbers, or subtensors are compared. */
static bool find_distinct(onv_op_ctx *c, distinct *d)
{
    const onv_known *known = onv_op_in_known(c, 0);
    if (known == NULL || (onv_op_attr(c, "axis") != NULL && known->rank != 1)) return false;
    const bool is_float = onv_dtype_is_float((onv_dtype)known->dtype);
    element *sorted = ONV_ARENA_ARRAY(c->arena, element, known->count);
    uint32_t *numbers = ONV_ARENA_ARRAY(c->arena, uint32_t, 4 * (size_t)known->count);
    if (sorted == NULL || numbers == NULL) return false;
    for (uint32_t i = 0; i < known->count; i++) {
        onv_scalar s = known->elems[i];
        if (is_float ? !onv_scalar_is_real(s) : !onv_dim_is_const(s.i)) return false;
        sorted[i] = (element){is_float ? s.f : 0, is_float ? 0 : s.i.raw, i};
    }
    *d = (distinct){0, numbers, numbers + known->count, numbers + 2 * (size_t)known->count};
    if (known->count > 0) qsort(sorted, known->count, sizeof *sorted, compare_elements);
    for (uint32_t i = 0; i < known->count; i++) {
        bool is_new = i == 0 || compare_values(&sorted[i - 1], &sorted[i]) != 0;
        if (is_new) d->first[d->n++] = sorted[i].at;
        d->count[d->n - 1]++;
        d->inverse[sorted[i].at] = d->n - 1;
    }
    if (onv_op_attr_int(c, "sorted", 1) == 0)
        unsort(d, known->count, numbers + 3 * (size_t)known->count);
    return true;
}

static void set_numbers(onv_op_ctx *c, uint32_t k, const uint32_t *numbers)
{
    onv_known *out = onv_op_new_known(c, k);
    for (uint32_t i = 0; out != NULL && i < out->count; i++)
        out->elems[i] = onv_scalar_int(onv_dim_const(numbers[i]));
}

static void set_distinct(onv_op_ctx *c, const distinct *d)
{
    const onv_known *known = onv_op_in_known(c, 0);
    onv_known *out = onv_op_new_known(c, 0);
    for (uint32_t i = 0; out != NULL && i < out->count; i++)
        out->elems[i] = known->elems[d->first[i]];
    set_numbers(c, 1, d->first);
    set_numbers(c, 2, d->inverse);
    set_numbers(c, 3, d->count);
}

static onv_status infer_unique(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis = -1;
    bool flat = onv_op_attr(c, "axis") == NULL;
    onv_dim dims[ONV_MAX_RANK], size = onv_op_in_elems(c, 0);
    distinct d = {0};
    if (!flat) {
        size = ONV_DIM_UNKNOWN;
        if (rank >= 0) {
            ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
            size = onv_op_in_dim(c, 0, axis);
        }
    }
    bool is_known = find_distinct(c, &d);
    onv_dim count = is_known ? onv_dim_const(d.n) : at_most(c, "unique", size);
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? count : onv_op_in_dim(c, 0, i);
    if (flat)
        onv_op_set_like(c, &count, 1);
    else
        onv_op_set_like(c, dims, rank);
    onv_op_set_out(c, 1, ONV_INT64, &count, 1);
    onv_op_set_out(c, 2, ONV_INT64, &size, 1);
    onv_op_set_out(c, 3, ONV_INT64, &count, 1);
    if (is_known) set_distinct(c, &d);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("NonZero", 9, 1, 1, 1, 1, infer_non_zero, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_OP("Compress", 9, 2, 2, 1, 1, infer_compress, .fold = fold_compress,
           .traits = {.save_in = ONV_BIT(1)}, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_OP("Unique", 11, 1, 1, 1, 4, infer_unique, .flags = ONV_OP_DATA_DEPENDENT),
};

const onv_op_family onv_ops_tensor_select = {"", rows, sizeof rows / sizeof rows[0]};
