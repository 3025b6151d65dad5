/* Taught operators: the file, the lookup, and the rule that interprets a line. */
#include "ops/op_shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "ops/tensor.h"

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

/* A line as it holds for a node. */
typedef struct said {
    onv_op_ctx *c;
    const onv_custom_op *t;
    onv_dim *named;
} said;

/* A failure that also names the line that declares the operator. */
static onv_status refuse(const said *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static onv_status refuse(const said *s, const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (s->t->file == NULL) return onv_op_fail(s->c, "%s", message);
    return onv_op_fail(s->c, "%s:%u: %s", s->t->file, s->t->line, message);
}

#define refuse(...) onv_failed(ONV_ERR_MODEL, refuse(__VA_ARGS__))

static onv_status read_dim(const said *s, const onv_shape_code *code, onv_dim *out)
{
    int rank = onv_op_in_rank(s->c, (uint32_t)code->a);
    *out = ONV_DIM_UNKNOWN;
    if (rank < 0) return ONV_OK;
    if (code->b < -rank || code->b >= rank)
        return refuse(s, "input %s has no axis %lld: shape %s", s->t->inputs[code->a],
                      (long long)code->b,
                      onv_op_shape_text(s->c, onv_op_in(s->c, (uint32_t)code->a)));
    *out = onv_op_in_dim(s->c, (uint32_t)code->a, (int)code->b);
    return ONV_OK;
}

static onv_status read_attr(const said *s, const onv_shape_code *code, onv_dim *out)
{
    const onv_attr *attr = onv_op_attr(s->c, code->name);
    bool list = code->b >= 0;
    *out = ONV_DIM_UNKNOWN;
    if (attr == NULL)
        return code->may_lack ? ONV_OK : refuse(s, "attribute '%s' is missing", code->name);
    if (attr->kind != (list ? ONV_ATTR_INTS : ONV_ATTR_INT) ||
        (list && (attr->ints == NULL || code->b >= (int64_t)attr->count)))
        return refuse(s, "attribute '%s' is not %s", code->name,
                      list ? "a list of integers that long" : "an integer");
    *out = onv_dim_const(list ? attr->ints[code->b] : attr->i);
    return ONV_OK;
}

static onv_status read_operand(const said *s, const onv_shape_code *code, onv_dim *out)
{
    uint32_t input = (uint32_t)code->a;
    int rank;
    switch ((onv_shape_op)code->op) {
    case ONV_SHAPE_NUMBER: *out = onv_dim_const(code->a); return ONV_OK;
    case ONV_SHAPE_DIM: return read_dim(s, code, out);
    case ONV_SHAPE_ATTR: return read_attr(s, code, out);
    case ONV_SHAPE_NAMED: *out = s->named[code->a]; return ONV_OK;
    case ONV_SHAPE_VALUE: *out = onv_op_in_int(s->c, input, (uint32_t)code->b); return ONV_OK;
    case ONV_SHAPE_ELEMS: *out = onv_op_in_elems(s->c, input); return ONV_OK;
    default: break;
    }
    rank = onv_op_in_rank(s->c, input);
    *out = rank < 0 ? ONV_DIM_UNKNOWN : onv_dim_const(rank);
    return ONV_OK;
}

static onv_status divide(const said *s, onv_shape_op op, onv_dim a, onv_dim b, onv_dim *out)
{
    onv_dims *pool = s->c->dims;
    if (onv_dim_is(b, 0)) return refuse(s, "a division by 0");
    if (op == ONV_SHAPE_EXACT && onv_dim_is_const(a) && onv_dim_is_const(b) && a.raw % b.raw != 0)
        return refuse(s, "%lld does not split into %lld", (long long)a.raw, (long long)b.raw);
    *out = op == ONV_SHAPE_DIV    ? onv_dim_floordiv(pool, a, b)
           : op == ONV_SHAPE_CEIL ? onv_dim_ceildiv(pool, a, b)
           : op == ONV_SHAPE_MOD  ? onv_dim_mod(pool, a, b)
                                  : onv_dim_exact_div(pool, a, b);
    /* What has no rest is the same rounded down. */
    if (op == ONV_SHAPE_EXACT && !onv_dim_is_known(*out)) *out = onv_dim_floordiv(pool, a, b);
    return ONV_OK;
}

static onv_dim combine(const said *s, const onv_shape_code *code, onv_dim a, onv_dim b)
{
    onv_dims *pool = s->c->dims;
    switch ((onv_shape_op)code->op) {
    case ONV_SHAPE_ADD: return onv_dim_add(pool, a, b);
    case ONV_SHAPE_SUB: return onv_dim_sub(pool, a, b);
    case ONV_SHAPE_MUL: return onv_dim_mul(pool, a, b);
    case ONV_SHAPE_MIN: return onv_dim_min(pool, a, b);
    case ONV_SHAPE_MAX: return onv_dim_max(pool, a, b);
    default: break;
    }
    bool is_there = code->a >= 0 ? onv_op_has_in(s->c, (uint32_t)code->a)
                                 : onv_op_attr(s->c, code->name) != NULL;
    return is_there ? a : b;
}

/* a where the condition is not 0, else b. */
static onv_dim choose(onv_dim condition, onv_dim a, onv_dim b)
{
    if (onv_dim_same(a, b)) return a;
    if (!onv_dim_is_const(condition)) return ONV_DIM_UNKNOWN;
    return onv_dim_is(condition, 0) ? b : a;
}

/* The parser has made sure that operands are there and the stack is high enough. */
static onv_status evaluate(const said *s, const onv_shape_item *item, onv_dim *out)
{
    onv_dim stack[ONV_CUSTOM_OP_MAX_STACK] = {{0}};
    uint32_t top = 0;
    for (uint32_t i = 0; i < item->n_code; i++) {
        const onv_shape_code *code = &item->code[i];
        onv_shape_op op = (onv_shape_op)code->op;
        if (op < ONV_SHAPE_NEG) {
            ONV_TRY(read_operand(s, code, &stack[top++]));
        } else if (op == ONV_SHAPE_NEG) {
            stack[top - 1] = onv_dim_neg(s->c->dims, stack[top - 1]);
        } else if (op == ONV_SHAPE_UP_TO) {
            const char *name = code->name != NULL ? code->name : s->t->row.name;
            stack[top - 1] = onv_dim_fresh(s->c->dims, name, stack[top - 1]);
        } else if (op == ONV_SHAPE_IF) {
            top -= 2;
            stack[top - 1] = choose(stack[top - 1], stack[top], stack[top + 1]);
        } else if (op >= ONV_SHAPE_DIV && op <= ONV_SHAPE_MOD) {
            top--;
            ONV_TRY(divide(s, op, stack[top - 1], stack[top], &stack[top - 1]));
        } else {
            top--;
            stack[top - 1] = combine(s, code, stack[top - 1], stack[top]);
        }
    }
    *out = stack[0];
    return ONV_OK;
}

/* --- Inputs ------------------------------------------------------------------------------------ */

static onv_status match_axis(said *s, uint32_t k, int axis, const onv_shape_code *is)
{
    const bool named = is->op == ONV_SHAPE_NAMED;
    const char *name = named ? "" : is->name;
    onv_dim number, dim = onv_op_in_dim(s->c, k, axis), *wanted = &number;
    if (named && is->a < 0) return ONV_OK;
    if (named) {
        wanted = &s->named[is->a];
        name = s->t->names[is->a];
    } else {
        ONV_TRY(read_operand(s, is, &number));
    }
    if (onv_dim_is_const(*wanted) && onv_dim_is_const(dim) && wanted->raw != dim.raw)
        return refuse(s, "axis %d of input %s is %lld, not %s%s%lld", axis, s->t->inputs[k],
                      (long long)dim.raw, name != NULL ? name : "", name != NULL ? " = " : "",
                      (long long)wanted->raw);
    return onv_tensor_unify(s->c, "", wanted, dim);
}

static onv_status match_input(said *s, uint32_t k)
{
    const onv_shape_in *in = &s->t->ins[k];
    int n = (int)in->n_axes;
    if (!in->listed || !onv_op_has_in(s->c, k)) return ONV_OK;
    ONV_TRY(onv_tensor_need_rank(s->c, k, n, in->rest < 0 ? n : ONV_MAX_RANK));
    for (int i = 0; i < n; i++) {
        int axis = in->rest < 0 || i < in->rest ? i : i - n;
        ONV_TRY(match_axis(s, k, axis, &in->axis[i]));
    }
    return ONV_OK;
}

static onv_status match_inputs(onv_op_ctx *c, said *s)
{
    *s = (said){.c = c, .t = (const onv_custom_op *)(const void *)c->op};
    if (c->op->says != NULL) { /* a row that another one stands for */
        const onv_op *row;
        ONV_TRY(onv_op_shapes_compile(c->op, c->arena, &row, c->err));
        s->t = (const onv_custom_op *)(const void *)row;
    }
    s->named = ONV_ARENA_ARRAY(c->arena, onv_dim, s->t->n_names);
    if (s->named == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < s->t->n_names; i++) s->named[i] = ONV_DIM_UNKNOWN;
    for (uint32_t k = 0; k < s->t->n_inputs; k++) ONV_TRY(match_input(s, k));
    return ONV_OK;
}

/* --- Outputs ----------------------------------------------------------------------------------- */

/* Appends the dims of a slice; *rank becomes -1 where they are not known. */
static onv_status append_slice(const said *s, const onv_shape_item *item, onv_dim *dims, int *rank)
{
    int64_t size = onv_op_in_rank(s->c, (uint32_t)item->input);
    if (size < 0 && !onv_op_has_in(s->c, (uint32_t)item->input)) return ONV_OK;
    if (size < 0) *rank = -1;
    if (*rank < 0) return ONV_OK;
    int64_t first = item->first < 0 ? item->first + size : item->first;
    int64_t end = item->end < 0 ? item->end + size : item->end;
    if (first < 0) first = 0;
    if (end > size) end = size;
    for (int64_t axis = first; axis < end; axis++) {
        if (*rank == ONV_MAX_RANK) return refuse(s, "more than %d dims", ONV_MAX_RANK);
        dims[(*rank)++] = onv_op_in_dim(s->c, (uint32_t)item->input, (int)axis);
    }
    return ONV_OK;
}

static onv_status infer_out(const said *s, uint32_t k)
{
    const onv_shape_out *out = &s->t->outs[k];
    onv_op_ctx *c = s->c;
    onv_dtype dtype = (onv_dtype)out->dtype;
    onv_dim dims[ONV_MAX_RANK];
    int rank = 0;
    if (!out->known || !onv_op_has_out(c, k)) return ONV_OK;
    if (dtype == ONV_UNDEFINED && out->dtype_like >= 0)
        dtype = onv_op_in_dtype(c, (uint32_t)out->dtype_like);
    if (out->dtype_attr != NULL) dtype = onv_op_attr_dtype(c, out->dtype_attr, dtype);
    if (!out->listed) return onv_op_set_out_like(c, k, (uint32_t)out->like, dtype);
    for (uint32_t i = 0; i < out->n_items; i++) {
        onv_dim d;
        if (out->item[i].code == NULL) {
            ONV_TRY(append_slice(s, &out->item[i], dims, &rank));
            continue;
        }
        ONV_TRY(evaluate(s, &out->item[i], &d));
        if (onv_dim_is_infinite(d)) return refuse(s, "a dim has no end");
        if (onv_dim_is_const(d) && d.raw < 0)
            return refuse(s, "a dim would be %lld, which is not a size", (long long)d.raw);
        if (rank == ONV_MAX_RANK) return refuse(s, "more than %d dims", ONV_MAX_RANK);
        if (rank >= 0) dims[rank++] = d;
    }
    return onv_op_set_out(c, k, dtype, dims, rank);
}

onv_status onv_op_shapes_infer(onv_op_ctx *c)
{
    said s;
    ONV_TRY(match_inputs(c, &s));
    for (uint32_t k = 0; k < s.t->n_outs; k++) ONV_TRY(infer_out(&s, k));
    return ONV_OK;
}

onv_dim onv_op_shapes_macs(onv_op_ctx *c)
{
    said s;
    onv_dim macs;
    if (match_inputs(c, &s) != ONV_OK || evaluate(&s, &s.t->macs, &macs) != ONV_OK)
        return ONV_DIM_UNKNOWN;
    return macs;
}
