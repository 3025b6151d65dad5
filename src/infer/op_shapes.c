/* Taught operators: the file, the lookup, and the rule that interprets a line. */
#include "infer/op_shapes.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"

/* --- File -------------------------------------------------------------------------------------- */

onv_status onv_op_shapes_load(onv_op_shapes *table, onv_arena *arena, const char *path,
                              onv_error *err)
{
    onv_file_bytes text;
    onv_status status = onv_file_read(path, ONV_CUSTOM_OP_MAX_BYTES, &text, err);
    if (status == ONV_OK)
        status = onv_op_shapes_parse(table, arena, path, text.at, text.count, err);
    onv_vec_cleanup(&text);
    return status;
}

/* --- Lookup ------------------------------------------------------------------------------------ */

const onv_op *onv_op_shapes_find(const onv_op_shapes *table, const char *domain, const char *name,
                                 int32_t version, bool overrides)
{
    const onv_op *best = NULL;
    for (const onv_custom_op *t = table->first; t != NULL; t = t->next) {
        if (t->overrides != overrides || t->row.since > version) continue;
        if (best != NULL && best->since >= t->row.since) continue;
        if (strcmp(t->row.name, name) == 0 && strcmp(t->domain, domain) == 0) best = &t->row;
    }
    return best;
}

/* --- The rule ---------------------------------------------------------------------------------- */

/* A failure that also names the line that declares the operator. */
#define fail_declared(c, t, format, ...)                                                           \
    onv_op_fail((c), "%s:%u: " format, (t)->file, (t)->line, __VA_ARGS__)

static onv_status read_dim(onv_op_ctx *c, const onv_custom_op *t, const onv_shape_code *code,
                           onv_dim *out)
{
    int rank = onv_op_in_rank(c, (uint32_t)code->a);
    *out = ONV_DIM_UNKNOWN;
    if (rank < 0) return ONV_OK;
    if (code->b < -rank || code->b >= rank)
        return fail_declared(c, t, "input %s has no axis %lld: shape %s", t->inputs[code->a],
                             (long long)code->b,
                             onv_op_shape_text(c, onv_op_in(c, (uint32_t)code->a)));
    *out = onv_op_in_dim(c, (uint32_t)code->a, (int)code->b);
    return ONV_OK;
}

static onv_status read_attr(onv_op_ctx *c, const onv_custom_op *t, const onv_shape_code *code,
                            onv_dim *out)
{
    const onv_attr *attr = onv_op_attr(c, code->name);
    bool list = code->b >= 0;
    if (attr != NULL && attr->kind == (list ? ONV_ATTR_INTS : ONV_ATTR_INT) &&
        (!list || (attr->ints != NULL && code->b < (int64_t)attr->count)))
        *out = onv_dim_const(list ? attr->ints[code->b] : attr->i);
    else if (code->has_default && attr == NULL)
        *out = onv_dim_const(code->a);
    else if (attr == NULL)
        return fail_declared(c, t, "attribute '%s' is missing", code->name);
    else
        return fail_declared(c, t, "attribute '%s' is not %s", code->name,
                             list ? "a list of integers that long" : "an integer");
    return ONV_OK;
}

static onv_status read_operand(onv_op_ctx *c, const onv_custom_op *t, const onv_shape_code *code,
                               onv_dim *out)
{
    int rank;
    switch ((onv_shape_op)code->op) {
    case ONV_SHAPE_NUMBER: *out = onv_dim_const(code->a); return ONV_OK;
    case ONV_SHAPE_DIM: return read_dim(c, t, code, out);
    case ONV_SHAPE_ATTR: return read_attr(c, t, code, out);
    case ONV_SHAPE_VALUE:
        *out = onv_op_in_int(c, (uint32_t)code->a, (uint32_t)code->b);
        return ONV_OK;
    default: break;
    }
    rank = onv_op_in_rank(c, (uint32_t)code->a);
    *out = rank < 0 ? ONV_DIM_UNKNOWN : onv_dim_const(rank);
    return ONV_OK;
}

static onv_dim combine(onv_dims *pool, onv_shape_op op, onv_dim a, onv_dim b)
{
    switch (op) {
    case ONV_SHAPE_ADD: return onv_dim_add(pool, a, b);
    case ONV_SHAPE_SUB: return onv_dim_sub(pool, a, b);
    case ONV_SHAPE_MUL: return onv_dim_mul(pool, a, b);
    case ONV_SHAPE_DIV: return onv_dim_floordiv(pool, a, b);
    case ONV_SHAPE_CEIL: return onv_dim_ceildiv(pool, a, b);
    case ONV_SHAPE_MOD: return onv_dim_mod(pool, a, b);
    case ONV_SHAPE_MIN: return onv_dim_min(pool, a, b);
    case ONV_SHAPE_MAX: return onv_dim_max(pool, a, b);
    default: return ONV_DIM_UNKNOWN;
    }
}

/* The parser has made sure that operands are there and the stack is high enough. */
static onv_status evaluate(onv_op_ctx *c, const onv_custom_op *t, const onv_shape_item *item,
                           onv_dim *out)
{
    onv_dim stack[ONV_CUSTOM_OP_MAX_STACK] = {{0}};
    uint32_t top = 0;
    for (uint32_t i = 0; i < item->n_code; i++) {
        const onv_shape_code *code = &item->code[i];
        onv_shape_op op = (onv_shape_op)code->op;
        if (op < ONV_SHAPE_NEG) {
            ONV_TRY(read_operand(c, t, code, &stack[top++]));
        } else if (op == ONV_SHAPE_NEG) {
            stack[top - 1] = onv_dim_neg(c->dims, stack[top - 1]);
        } else if (op == ONV_SHAPE_UP_TO) {
            stack[top - 1] = onv_dim_fresh(c->dims, t->row.name, stack[top - 1]);
        } else {
            onv_dim b = stack[--top];
            bool divides = op == ONV_SHAPE_DIV || op == ONV_SHAPE_CEIL || op == ONV_SHAPE_MOD;
            if (divides && onv_dim_is(b, 0)) return fail_declared(c, t, "%s", "a division by 0");
            stack[top - 1] = combine(c->dims, op, stack[top - 1], b);
        }
    }
    *out = stack[0];
    return ONV_OK;
}

/* Appends the dims of a slice; *rank becomes -1 where they are not known. */
static onv_status append_slice(onv_op_ctx *c, const onv_custom_op *t, const onv_shape_item *item,
                               onv_dim *dims, int *rank)
{
    int64_t size = onv_op_in_rank(c, (uint32_t)item->input);
    if (size < 0) *rank = -1;
    if (*rank < 0) return ONV_OK;
    int64_t first = item->first < 0 ? item->first + size : item->first;
    int64_t end = item->end < 0 ? item->end + size : item->end;
    if (first < 0) first = 0;
    if (end > size) end = size;
    for (int64_t axis = first; axis < end; axis++) {
        if (*rank == ONV_MAX_RANK) return fail_declared(c, t, "more than %d dims", ONV_MAX_RANK);
        dims[(*rank)++] = onv_op_in_dim(c, (uint32_t)item->input, (int)axis);
    }
    return ONV_OK;
}

static onv_status infer_out(onv_op_ctx *c, const onv_custom_op *t, uint32_t k)
{
    const onv_shape_out *out = &t->outs[k];
    onv_dtype dtype = (onv_dtype)out->dtype;
    onv_dim dims[ONV_MAX_RANK];
    int rank = 0;
    if (!out->known || !onv_op_has_out(c, k)) return ONV_OK;
    if (dtype == ONV_UNDEFINED && out->dtype_like >= 0)
        dtype = onv_op_in_dtype(c, (uint32_t)out->dtype_like);
    if (!out->listed) {
        onv_op_set_out_like(c, k, (uint32_t)out->like, dtype);
        return ONV_OK;
    }
    for (uint32_t i = 0; i < out->n_items; i++) {
        onv_dim d;
        if (out->item[i].code == NULL) {
            ONV_TRY(append_slice(c, t, &out->item[i], dims, &rank));
            continue;
        }
        ONV_TRY(evaluate(c, t, &out->item[i], &d));
        if (onv_dim_is_infinite(d)) return fail_declared(c, t, "%s", "a dim has no end");
        if (rank == ONV_MAX_RANK) return fail_declared(c, t, "more than %d dims", ONV_MAX_RANK);
        if (rank >= 0) dims[rank++] = d;
    }
    onv_op_set_out(c, k, dtype, dims, rank);
    return ONV_OK;
}

onv_status onv_op_shapes_infer(onv_op_ctx *c)
{
    const onv_custom_op *t = (const onv_custom_op *)(const void *)c->op;
    for (uint32_t k = 0; k < t->n_outs; k++) ONV_TRY(infer_out(c, t, k));
    return ONV_OK;
}
