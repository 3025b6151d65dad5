#include "ops/rules.h"

#include <math.h>
#include <string.h>

onv_status onv_tensor_unify(onv_op_ctx *c, const char *what, onv_dim *dim, onv_dim other)
{
    const onv_dim a = *dim;
    if (onv_dim_is_const(a) && onv_dim_is_const(other) && a.raw != other.raw)
        return onv_op_fail(c, "%s must agree: %lld against %lld", what, (long long)a.raw,
                           (long long)other.raw);
    if (!onv_dim_is_known(other) || (onv_dim_is_const(a) && !onv_dim_is_const(other)))
        return ONV_OK;
    /* An exact expression says more than a bound that the data may fall short of. */
    if (!onv_dim_is_known(a) || onv_dim_is_const(other) || onv_dim_has_bound(c->dims, a))
        *dim = other;
    return ONV_OK;
}

bool onv_tensor_never_splits(onv_dim size, onv_dim parts)
{
    return onv_dim_is_const(size) && onv_dim_is_const(parts) &&
           (parts.raw == 0 || size.raw % parts.raw != 0);
}

onv_status onv_tensor_check_parts(onv_op_ctx *c, onv_dim size, const onv_dim *parts, uint32_t count)
{
    onv_dim sum = onv_dim_const(0);
    for (uint32_t k = 0; k < count; k++) {
        if (onv_dim_is_const(parts[k]) && parts[k].raw < 0)
            return onv_op_fail(c, "split holds %lld", (long long)parts[k].raw);
        sum = onv_dim_add(c->dims, sum, parts[k]);
    }
    if (onv_dim_is_const(sum) && onv_dim_is_const(size) && sum.raw != size.raw)
        return onv_op_fail(c, "the split sizes sum to %lld, the dim is %lld", (long long)sum.raw,
                           (long long)size.raw);
    return ONV_OK;
}

onv_status onv_tensor_axis_list(onv_op_ctx *c, const char *attr, int rank, int *axes, int *n_axes)
{
    uint32_t given, seen = 0;
    const int64_t *list = onv_op_attr_ints(c, attr, &given);
    *n_axes = given > 0 ? (int)given : rank;
    if (*n_axes > rank) return onv_op_fail(c, "%u axes are given for rank %d", given, rank);
    for (int i = 0; i < *n_axes; i++) {
        ONV_TRY(onv_op_axis(c, given > 0 ? list[i] : i, rank, &axes[i]));
        if (seen & ONV_BIT(axes[i])) return onv_op_fail(c, "%s names axis %d twice", attr, axes[i]);
        seen |= ONV_BIT(axes[i]);
    }
    return ONV_OK;
}

onv_status onv_tensor_check_rank(onv_op_ctx *c, int64_t rank)
{
    if (rank <= ONV_MAX_RANK) return ONV_OK;
    return onv_op_fail(c, "a result of rank %lld is beyond the limit of %d", (long long)rank,
                       ONV_MAX_RANK);
}

onv_status onv_tensor_need_rank(onv_op_ctx *c, uint32_t k, int least, int most)
{
    int rank = onv_op_in_rank(c, k);
    if (rank < 0 || (rank >= least && rank <= most)) return ONV_OK;
    const char *shape = onv_op_in_text(c, k);
    if (least == most)
        return onv_op_fail(c, "input %u must have rank %d, not shape %s", k, least, shape);
    return onv_op_fail(c, "input %u has a rank that is not allowed: shape %s", k, shape);
}

onv_status onv_tensor_axes(onv_op_ctx *c, int k, int rank, uint32_t *mask, int *count, bool *known)
{
    const onv_dim *list;
    uint32_t n;
    *mask = 0;
    *count = -1;
    *known = onv_op_ints(c, "axes", k, &list, &n);
    if (!*known) {
        onv_dim length = onv_op_in_dim(c, (uint32_t)k, 0);
        if (onv_op_in_rank(c, (uint32_t)k) == 0) *count = 1;
        if (onv_dim_is_const(length))
            *count = (int)(length.raw < INT16_MAX ? length.raw : INT16_MAX);
        return ONV_OK;
    }
    *count = (int)(n < INT16_MAX ? n : INT16_MAX);
    for (uint32_t i = 0; i < n; i++)
        if (!onv_dim_is_const(list[i])) *known = false;
    if (!*known || rank < 0) {
        *known = false;
        return ONV_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        int axis;
        ONV_TRY(onv_op_axis(c, list[i].raw, rank, &axis));
        if (*mask & ONV_BIT(axis))
            return onv_op_fail(c, "axis %lld is given twice", (long long)list[i].raw);
        *mask |= ONV_BIT(axis);
    }
    return ONV_OK;
}

onv_status onv_tensor_index(onv_op_ctx *c, onv_dim element, int64_t size, int64_t *index)
{
    *index = -1;
    if (!onv_dim_is_const(element)) return ONV_OK;
    if (element.raw < -size || element.raw >= size)
        return onv_op_fail(c, "index %lld is out of range for a dim of %lld",
                           (long long)element.raw, (long long)size);
    *index = element.raw < 0 ? element.raw + size : element.raw;
    return ONV_OK;
}

onv_status onv_tensor_size_at(onv_op_ctx *c, uint32_t k, uint32_t i, onv_dim *size)
{
    *size = onv_op_in_int(c, k, i);
    if (!onv_dim_is_infinite(*size) && !onv_dim_always_lt(c->dims, *size, onv_dim_const(0)))
        return ONV_OK;
    return onv_op_fail(c, "element %u of input %u is %s, which is not a size", i, k,
                       onv_dim_text(c->dims, c->arena, *size));
}

onv_dim onv_tensor_scalar_int(onv_op_ctx *c, uint32_t k)
{
    const onv_known *known = onv_op_in_known(c, k);
    if (known == NULL || known->count != 1) return ONV_DIM_UNKNOWN;
    return onv_scalar_cast(c->dims, (onv_dtype)known->dtype, ONV_INT64, known->elems[0]).i;
}

/* --- Elements ---------------------------------------------------------------------------------- */

/* Towards zero. */
static onv_scalar truncate(onv_dims *dims, onv_dtype dtype, onv_scalar s)
{
    if (onv_scalar_is_real(s)) {
        if (!(fabs(s.f) < (double)ONV_DIM_INFINITY_RAW)) return onv_scalar_unknown();
        return onv_scalar_int(onv_dim_const((int64_t)s.f));
    }
    onv_scalar floored = onv_scalar_floor(dims, dtype, s);
    onv_scalar raised = onv_scalar_ceil(dims, dtype, s);
    bool whole = onv_scalar_equal(dims, dtype, floored, raised) == ONV_ALWAYS;
    if (!whole && onv_dim_lower(dims, s.i).raw < 0) return onv_scalar_unknown();
    onv_scalar result = s.f < 0 ? raised : floored;
    if (!onv_scalar_is_known(dtype, result)) return onv_scalar_unknown();
    if (onv_dim_is_const(result.i)) return onv_scalar_int(onv_dim_const((int64_t)result.f));
    if (result.f != trunc(result.f) || fabs(result.f) > INT32_MAX) return onv_scalar_unknown();
    return onv_scalar_int(onv_dim_mul(dims, result.i, onv_dim_const((int64_t)result.f)));
}

static onv_scalar cast_to_int(onv_dims *dims, onv_dtype from, onv_dtype to, onv_scalar s)
{
    if (onv_dtype_is_float(from)) s = truncate(dims, from, s);
    /* An infinity stands for some number near the end of 64 bits; narrower types wrap it. */
    if (onv_dim_is_infinite(s.i) && onv_dtype_bits(to) < 64) return onv_scalar_unknown();
    return onv_scalar_fit(dims, to, s);
}

static onv_scalar cast_to_bool(onv_dims *dims, onv_dtype from, onv_scalar s)
{
    onv_dim zero = onv_dim_const(0);
    if (onv_dtype_is_float(from) && s.f == 0) return onv_scalar_int(zero);
    if (onv_dim_is(s.i, 0)) return onv_scalar_int(zero);
    if (onv_dim_is_infinite(s.i) || onv_dim_always_ne(dims, s.i, zero))
        return onv_scalar_int(onv_dim_const(1));
    return onv_scalar_unknown();
}

onv_scalar onv_scalar_cast(onv_dims *dims, onv_dtype from, onv_dtype to, onv_scalar s)
{
    if (!onv_scalar_is_known(from, s)) return onv_scalar_unknown();
    s = onv_scalar_canonical(from, s);
    if (from == to) return s;
    if (to == ONV_BOOL) return cast_to_bool(dims, from, s);
    if (onv_dtype_is_integer(to)) return cast_to_int(dims, from, to, s);
    if (onv_dim_is_infinite(s.i)) return onv_scalar_unknown();
    s = onv_scalar_canonical(to, s);
    if (onv_scalar_is_real(s)) s.f = onv_dtype_round(to, s.f);
    /* Types that are not rounded to here stay unknown. */
    return onv_scalar_fit(dims, to, s);
}

/* --- Moves ------------------------------------------------------------------------------------- */

const onv_known *onv_fold_source(onv_op_ctx *c, uint32_t k)
{
    return onv_fold_wanted(c) ? onv_op_in_known(c, k) : NULL;
}

void onv_tensor_strides(const int64_t *dims, int rank, int64_t *strides)
{
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        /* Unsigned, as an empty tensor may have dims whose product does not fit. */
        stride = (int64_t)((uint64_t)stride * (uint64_t)dims[axis]);
    }
}

static void next_position(int64_t *at, const int64_t *dims, int rank)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (++at[axis] < dims[axis]) return;
        at[axis] = 0;
    }
}

onv_status onv_fold_move(onv_op_ctx *c, const onv_known *source, onv_place place, const void *how,
                         onv_scalar filler)
{
    onv_known *known = source != NULL ? onv_op_new_known(c, 0) : NULL;
    int64_t at[ONV_MAX_RANK] = {0};
    for (uint32_t i = 0; known != NULL && i < known->count; i++) {
        int64_t from = place(how, i, at);
        known->elems[i] = from >= 0 && from < (int64_t)source->count ? source->elems[from] : filler;
        next_position(at, known->dims, known->rank);
    }
    return ONV_OK;
}

onv_status onv_fold_same(onv_op_ctx *c)
{
    const onv_known *source = onv_fold_source(c, 0);
    onv_known *known = source != NULL ? onv_op_new_known(c, 0) : NULL;
    if (known != NULL && known->count == source->count)
        memcpy(known->elems, source->elems, known->count * sizeof *known->elems);
    return ONV_OK;
}

onv_picks onv_pick_all(const onv_known *source)
{
    onv_picks picks = {.rank = source->rank};
    for (int axis = 0; axis < picks.rank; axis++) {
        picks.order[axis] = axis;
        picks.dims[axis] = source->dims[axis];
    }
    return picks;
}

int64_t *onv_pick_along(onv_op_ctx *c, onv_picks *picks, int axis, int64_t n)
{
    int64_t *list = ONV_ARENA_ARRAY(c->arena, int64_t, (size_t)n);
    picks->list[axis] = list;
    picks->dims[axis] = n;
    return list;
}

onv_status onv_fold_picks(onv_op_ctx *c, uint32_t k, const onv_known *source,
                          const onv_picks *picks, onv_scalar filler)
{
    onv_known *known = onv_op_new_known(c, k);
    int64_t at[ONV_MAX_RANK] = {0}, strides[ONV_MAX_RANK] = {0};
    const int inner = picks->rank > 0 ? picks->order[picks->rank - 1] : 0;
    const int64_t n = picks->rank > 0 ? picks->dims[inner] : 1;
    onv_tensor_strides(source->dims, source->rank, strides);
    for (uint32_t i = 0; known != NULL && n > 0 && i < known->count;) {
        int64_t row = 0;
        bool is_there = true;
        for (int axis = 0; axis < picks->rank; axis++) {
            const int64_t *list = picks->list[axis];
            int64_t position = axis == inner ? 0 : list != NULL ? list[at[axis]] : at[axis];
            is_there &= position >= 0;
            row += position * strides[axis];
        }
        const int64_t *list = picks->rank > 0 ? picks->list[inner] : NULL;
        for (int64_t j = 0; j < n && i < known->count; j++, i++) {
            int64_t position = list != NULL ? list[j] : j, from = row + position * strides[inner];
            bool is_in = position >= 0 && from >= 0 && from < (int64_t)source->count;
            known->elems[i] = is_there && is_in ? source->elems[from] : filler;
        }
        for (int last = picks->rank - 2; last >= 0; last--) {
            int axis = picks->order[last];
            if (++at[axis] < picks->dims[axis]) break;
            at[axis] = 0;
        }
    }
    return ONV_OK;
}
