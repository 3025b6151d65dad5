#include "ops/rules.h"

/* Beyond this many inputs a variadic operator is no shape arithmetic. */
enum { MAX_INPUTS = 64 };

bool onv_fold_wanted(const onv_op_ctx *c)
{
    if (!onv_op_has_out(c, 0) || c->n_in > MAX_INPUTS) return false;
    const onv_type *type = &c->out[0].type;
    if (type->kind != ONV_TYPE_TENSOR || !onv_type_is_static(type)) return false;
    onv_dim elems = onv_type_elems(c->dims, type);
    return onv_dim_is_const(elems) && elems.raw <= c->model->most_known;
}

/* Before opset 7 the second operand lay at `axis` of the first: the same as ones after its dims. */
static onv_known align_legacy(onv_op_ctx *c, const onv_known *known, int rank, int64_t *dims)
{
    onv_known aligned = *known;
    int64_t axis = onv_op_attr_int(c, "axis", rank - known->rank);
    if (axis < 0) axis += rank;
    aligned.rank = (int16_t)(rank - axis);
    if (axis < 0 || aligned.rank <= known->rank || aligned.rank > ONV_MAX_RANK) return *known;
    for (int i = 0; i < aligned.rank; i++) dims[i] = i < known->rank ? known->dims[i] : 1;
    aligned.dims = dims;
    return aligned;
}

static bool broadcasts_to(const onv_known *known, const onv_known *out)
{
    if (known->rank > out->rank) return false;
    for (int axis = 1; axis <= known->rank; axis++) {
        int64_t dim = known->dims[known->rank - axis];
        if (dim != 1 && dim != out->dims[out->rank - axis]) return false;
    }
    return true;
}

onv_status onv_fold_elementwise(onv_op_ctx *c, onv_fold_fn fn)
{
    onv_known views[MAX_INPUTS];
    onv_scalar in[MAX_INPUTS];
    int64_t aligned_dims[ONV_MAX_RANK];
    bool any = false;
    if (!onv_fold_wanted(c)) return ONV_OK;
    onv_dtype dtype = onv_rule_dtype(c, 0, c->n_in);
    for (uint32_t k = 0; k < c->n_in; k++) {
        const onv_known *known = onv_op_in_known(c, k);
        views[k] = (onv_known){0};
        if (known != NULL) {
            views[k] = *known;
            any = true;
        } else if (onv_op_has_in(c, k) && onv_dtype_is_float(dtype)) {
            return ONV_OK; /* an activation: no float operation below is certain without it */
        }
    }
    onv_known *out = any ? onv_op_new_known(c, 0) : NULL;
    if (out == NULL) return ONV_OK;
    if (c->version < 7 && c->n_in == 2 && views[1].elems != NULL &&
        onv_op_attr_int(c, "broadcast", 0) != 0)
        views[1] = align_legacy(c, &views[1], out->rank, aligned_dims);
    /* A limit or the like that the rule did not hold against the output's shape. */
    for (uint32_t k = 0; k < c->n_in; k++)
        if (views[k].elems != NULL && !broadcasts_to(&views[k], out)) views[k].elems = NULL;
    for (uint32_t i = 0; i < out->count; i++) {
        for (uint32_t k = 0; k < c->n_in; k++) {
            in[k] = onv_scalar_unknown();
            if (views[k].elems == NULL) continue;
            uint32_t from = onv_broadcast_index(&views[k], out->dims, out->rank, i);
            in[k] = onv_scalar_canonical(views[k].dtype, views[k].elems[from]);
        }
        out->elems[i] = onv_scalar_fit(c->dims, out->dtype, fn(c, dtype, in, c->n_in));
    }
    return ONV_OK;
}

/* The group that element `index` of `known` falls into when the axes of `mask` are dropped. */
static uint32_t group_of(const onv_known *known, uint32_t mask, uint32_t index)
{
    uint32_t group = 0, stride = 1;
    for (int axis = known->rank - 1; axis >= 0; axis--) {
        uint32_t dim = (uint32_t)known->dims[axis];
        uint32_t position = index % dim;
        index /= dim;
        if (mask & ONV_BIT(axis)) continue;
        group += position * stride;
        stride *= dim;
    }
    return group;
}

onv_status onv_fold_reduce(onv_op_ctx *c, uint32_t mask, onv_fold_step step, onv_fold_finish finish,
                           onv_scalar empty)
{
    if (!onv_fold_wanted(c)) return ONV_OK;
    const onv_known *in = onv_op_in_known(c, 0);
    if (in == NULL) return ONV_OK;
    onv_known *out = onv_op_new_known(c, 0);
    uint32_t *counts = out != NULL ? ONV_ARENA_ARRAY(c->arena, uint32_t, out->count) : NULL;
    if (counts == NULL) return ONV_OK;
    for (uint32_t i = 0; i < in->count; i++) {
        uint32_t group = group_of(in, mask, i);
        onv_scalar next = onv_scalar_canonical(in->dtype, in->elems[i]);
        onv_scalar *sum = &out->elems[group];
        *sum = counts[group]++ == 0 ? next : step(c->dims, in->dtype, *sum, next);
        *sum = onv_scalar_fit(c->dims, in->dtype, *sum);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (counts[i] == 0)
            out->elems[i] = empty;
        else if (finish != NULL)
            out->elems[i] = onv_scalar_fit(c->dims, out->dtype,
                                           finish(c->dims, in->dtype, out->elems[i], counts[i]));
    }
    return ONV_OK;
}
