/* Concat and Split. */
#include "ops/rules.h"

#include <string.h>

/* --- Concat ------------------------------------------------------------------------------------ */

/* The axis, required since opset 4. */
static onv_status concat_axis(onv_op_ctx *c, int rank, int *axis)
{
    if (c->version >= 4 && onv_op_attr(c, "axis") == NULL)
        return onv_op_fail(c, "attribute 'axis' is absent");
    return onv_op_axis(c, onv_op_attr_int(c, "axis", 1), rank, axis);
}

/* The sum of the inputs' sizes along the axis. Of more sizes that the data decides than an expression holds, as the boxes
 * of each of ninety classes, only the bound is known. */
static onv_dim joined_size(onv_op_ctx *c, int axis)
{
    uint64_t too_large = c->dims->too_large;
    onv_dim total = onv_dim_const(0), most = onv_dim_const(0);
    for (uint32_t k = 0; k < c->n_in; k++)
        total = onv_dim_add(c->dims, total, onv_op_in_dim(c, k, axis));
    if (c->dims->too_large == too_large) return total;
    for (uint32_t k = 0; k < c->n_in; k++)
        most = onv_dim_add(c->dims, most,
                           onv_dim_substitute_bounds(c->dims, onv_op_in_dim(c, k, axis)));
    if (!onv_dim_is_known(most)) return total;
    c->dims->too_large = too_large;
    return onv_dim_fresh(c->dims, "joined", most);
}

static onv_status infer_concat(onv_op_ctx *c)
{
    int rank = -1, axis = 0;
    onv_dim dims[ONV_MAX_RANK];
    onv_dtype dtype = ONV_UNDEFINED;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int r = onv_op_in_rank(c, k);
        if (dtype == ONV_UNDEFINED) dtype = onv_op_in_dtype(c, k);
        if (r < 0) continue;
        if (rank < 0) {
            rank = r;
            ONV_TRY(concat_axis(c, rank, &axis));
            for (int i = 0; i < rank; i++) dims[i] = onv_op_in_dim(c, k, i);
        } else if (r != rank) {
            return onv_op_fail(c, "inputs of different ranks: shape %s after rank %d",
                               onv_op_in_text(c, k), rank);
        }
        for (int i = 0; i < rank; i++)
            if (i != axis)
                ONV_TRY(onv_tensor_unify(c, "the dims other than the axis", &dims[i],
                                         onv_op_in_dim(c, k, i)));
    }
    if (rank >= 0) dims[axis] = joined_size(c, axis);
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

static onv_status fold_concat(onv_op_ctx *c)
{
    int axis;
    bool any = false;
    for (uint32_t k = 0; k < c->n_in; k++) any = any || onv_fold_source(c, k) != NULL;
    onv_known *out = any ? onv_op_new_known(c, 0) : NULL;
    if (out == NULL || out->count == 0) return ONV_OK;
    ONV_TRY(concat_axis(c, out->rank, &axis));
    /* Parts interleave: a run of each, as long as it has elements behind the axis, for each index before it. */
    size_t row = 1, first = 0;
    for (int i = axis; i < out->rank; i++) row *= (size_t)out->dims[i];
    for (uint32_t k = 0; k < c->n_in; k++) {
        const onv_known *part = onv_op_in_known(c, k);
        onv_dim length = onv_op_in_dim(c, k, axis);
        /* The output is static, so the lengths are numbers that add up to its own. */
        if (!onv_dim_is_const(length)) return ONV_OK;
        size_t run = row / (size_t)out->dims[axis] * (size_t)length.raw, n = out->count / row;
        for (size_t i = 0; part != NULL && part->count == n * run && i < n; i++)
            memcpy(out->elems + i * row + first, part->elems + i * run, run * sizeof *out->elems);
        first += run;
    }
    return ONV_OK;
}

/* --- Split ------------------------------------------------------------------------------------- */

/* Equal parts. Until opset 18 they must come out even; since then the last one may be smaller. */
static onv_status even_parts(onv_op_ctx *c, onv_dim size, onv_dim *parts)
{
    onv_dim count = onv_dim_const(c->n_out);
    int64_t asked = onv_op_attr_int(c, "num_outputs", c->n_out);
    if (c->version >= 18 && asked != (int64_t)c->n_out)
        return onv_op_fail(c, "num_outputs is %lld but there are %u outputs", (long long)asked,
                           c->n_out);
    bool even = onv_dim_is_const(size) && size.raw % count.raw == 0;
    onv_dim part = onv_dim_exact_div(c->dims, size, count);
    if (!onv_dim_is_known(part))
        part = c->version >= 18 ? onv_dim_ceildiv(c->dims, size, count)
                                : onv_dim_floordiv(c->dims, size, count);
    if (onv_dim_is_const(size) && !even && c->version < 18)
        return onv_op_fail(c, "a dim of %lld does not split into %u equal parts",
                           (long long)size.raw, c->n_out);
    for (uint32_t k = 0; k < c->n_out; k++) parts[k] = part;
    if (c->version < 18) return ONV_OK;
    onv_dim others = onv_dim_mul(c->dims, part, onv_dim_const((int64_t)c->n_out - 1));
    onv_dim last = onv_dim_sub(c->dims, size, others);
    if (onv_dim_is_const(last) && last.raw < 0)
        return onv_op_fail(c, "a dim of %lld does not split into %u parts of %lld",
                           (long long)size.raw, c->n_out, (long long)part.raw);
    parts[c->n_out - 1] = last;
    return ONV_OK;
}

static onv_status given_parts(onv_op_ctx *c, onv_dim size, const onv_dim *list, uint32_t count,
                              onv_dim *parts)
{
    if (count != c->n_out)
        return onv_op_fail(c, "split has %u sizes for %u outputs", count, c->n_out);
    memcpy(parts, list, count * sizeof *parts);
    return onv_tensor_check_parts(c, size, list, count);
}

/* The sizes along the axis: an attribute before opset 13, an input since (and in Split-1). */
static onv_status split_parts(onv_op_ctx *c, onv_dim size, onv_dim *parts)
{
    const onv_dim *list;
    uint32_t count;
    bool input = c->version >= 13 || c->version == 1;
    bool given = onv_op_has_in(c, 1) || (c->version < 13 && onv_op_attr(c, "split") != NULL);
    if (!given) return even_parts(c, size, parts);
    bool known = onv_op_ints(c, c->version < 13 ? "split" : "", input ? 1 : -1, &list, &count);
    if (known) return given_parts(c, size, list, count, parts);
    for (uint32_t k = 0; k < c->n_out; k++)
        parts[k] = c->n_out == 1            ? size
                   : onv_dim_is_known(size) ? onv_dim_fresh_at(c->dims, "split", k, size)
                                            : ONV_DIM_UNKNOWN;
    return ONV_OK;
}

static onv_status fold_parts(onv_op_ctx *c, int axis, const onv_dim *parts)
{
    const onv_known *from = onv_fold_source(c, 0);
    if (from == NULL || from->count == 0) return ONV_OK;
    onv_picks picks = onv_pick_all(from);
    int64_t *list = onv_pick_along(c, &picks, axis, from->dims[axis]), first = 0;
    if (list == NULL) return ONV_OK;
    for (int64_t i = 0; i < from->dims[axis]; i++) list[i] = i;
    for (uint32_t k = 0; k < c->n_out && onv_dim_is_const(parts[k]); k++) {
        picks.list[axis] = list + first;
        picks.dims[axis] = parts[k].raw;
        ONV_TRY(onv_fold_picks(c, k, from, &picks, onv_scalar_unknown()));
        first += parts[k].raw;
    }
    return ONV_OK;
}

static onv_status infer_split(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    if (rank < 0) {
        for (uint32_t k = 0; k < c->n_out; k++) onv_op_set_out(c, k, dtype, NULL, -1);
        return ONV_OK;
    }
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
    onv_dim *parts = ONV_ARENA_ARRAY(c->arena, onv_dim, c->n_out);
    if (parts == NULL) return ONV_OK;
    ONV_TRY(split_parts(c, onv_op_in_dim(c, 0, axis), parts));
    for (uint32_t k = 0; k < c->n_out; k++) {
        dims[axis] = parts[k];
        onv_op_set_out(c, k, dtype, dims, rank);
    }
    return fold_parts(c, axis, parts);
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Concat", 1, 1, ONV_OP_MAX_ARITY, 1, 1, infer_concat, .fold = fold_concat,
           ONV_ALL_ALIKE),
    ONV_OP("Split", 1, 1, 2, 1, ONV_OP_MAX_ARITY, infer_split),
    ONV_OP("Split", 2, 1, 1, 1, ONV_OP_MAX_ARITY, infer_split),
    ONV_OP("Split", 13, 1, 2, 1, ONV_OP_MAX_ARITY, infer_split),
};

const onv_op_family onv_ops_tensor_concat = {"", rows, sizeof rows / sizeof rows[0]};
