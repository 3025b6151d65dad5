/* Taught operators: the file, the lookup, and the rule that interprets a line. */
#include "ops/op_shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "ops/rules.h"

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
    int64_t form;     /* of input 0; -1: its rank is not known */
    const char *what; /* the name that is found right now, or NULL */
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
    const char *what = s->what != NULL ? s->what : "", *colon = s->what != NULL ? ": " : "";
    if (s->t->file == NULL) return onv_op_fail(s->c, "%s%s%s", what, colon, message);
    return onv_op_fail(s->c, "%s:%u: %s%s%s", s->t->file, s->t->line, what, colon, message);
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

static onv_status read_word(const said *s, const onv_shape_code *code, onv_dim *out)
{
    const char *given = onv_op_attr_string(s->c, code->name, code->words[0]);
    int64_t which = 0;
    while (code->words[which] != NULL && strcmp(code->words[which], given) != 0) which++;
    *out = onv_dim_const(which);
    if (code->words[which] != NULL) return ONV_OK;
    const char *list = "";
    for (int64_t i = 0; i < which && list != NULL; i++)
        list = onv_arena_printf(s->c->arena, "%s%s%s", list,
                                i == 0          ? ""
                                : i + 1 < which ? ", "
                                                : " or ",
                                code->words[i]);
    return refuse(s, "attribute '%s' is '%s', not %s", code->name, given, list != NULL ? list : "");
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
    case ONV_SHAPE_WORD: return read_word(s, code, out);
    case ONV_SHAPE_GIVEN: *out = onv_dim_const(onv_op_has_in(s->c, input)); return ONV_OK;
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
    bool numbers = onv_dim_is_const(a) && onv_dim_is_const(b);
    if (op == ONV_SHAPE_EXACT && numbers && (b.raw <= 0 || a.raw % b.raw != 0))
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
    case ONV_SHAPE_MUL:
        if (onv_dim_is(a, 0) || onv_dim_is(b, 0)) return onv_dim_const(0);
        return onv_dim_mul(pool, a, b);
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

/* One that takes a single operand. */
static onv_dim change(const said *s, const onv_shape_code *code, onv_dim a)
{
    if (code->op == ONV_SHAPE_NEG) return onv_dim_neg(s->c->dims, a);
    if (code->op == ONV_SHAPE_KNOWN) return onv_dim_const(onv_dim_is_known(a));
    if (onv_dim_is(a, 0)) return a;
    return onv_dim_fresh(s->c->dims, code->name != NULL ? code->name : s->t->row.name, a);
}

/* The parser has made sure that operands are there and the stack is high enough. What an `if` does not choose is passed over. */
static onv_status evaluate(const said *s, const onv_shape_item *item, onv_dim *out)
{
    onv_dim stack[ONV_CUSTOM_OP_MAX_STACK] = {{0}};
    uint32_t top = 0;
    for (uint32_t i = 0; i < item->n_code; i++) {
        const onv_shape_code *code = &item->code[i];
        onv_shape_op op = (onv_shape_op)code->op;
        if (op < ONV_SHAPE_NEG) {
            ONV_TRY(read_operand(s, code, &stack[top++]));
        } else if (op < ONV_SHAPE_ELSE) {
            stack[top - 1] = change(s, code, stack[top - 1]);
        } else if (op == ONV_SHAPE_ELSE || op == ONV_SHAPE_END) {
            onv_dim condition = stack[op == ONV_SHAPE_ELSE ? top - 1 : top - 2];
            bool is_zero = onv_dim_is(condition, 0);
            if (!onv_dim_is_const(condition) || is_zero != (op == ONV_SHAPE_ELSE)) continue;
            stack[top++] = ONV_DIM_UNKNOWN; /* what is passed over */
            i = (uint32_t)code->a - 1;
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

static onv_status match_axis(said *s, uint32_t k, int axis, const onv_shape_axis *is)
{
    const onv_shape_code *code = &is->is;
    const bool named = code->op == ONV_SHAPE_NAMED;
    const char *name = named ? "" : code->name;
    onv_dim number, times, dim = onv_op_in_dim(s->c, k, axis), *wanted = &number;
    if (named && code->a < 0) return ONV_OK;
    if (is->is_product) {
        ONV_TRY(read_operand(s, &is->times, &times));
        bool is_negative = onv_dim_always_lt(s->c->dims, times, onv_dim_const(0));
        if (onv_dim_is_const(dim) && (is_negative || onv_tensor_never_splits(dim, times)))
            return refuse(s, "axis %d of input %s is %lld, which does not split into %lld", axis,
                          s->t->inputs[k], (long long)dim.raw, (long long)times.raw);
        ONV_TRY(divide(s, ONV_SHAPE_EXACT, dim, times, &dim));
    }
    if (named) {
        wanted = &s->named[code->a];
        name = s->t->names[code->a];
    } else {
        ONV_TRY(read_operand(s, code, &number));
    }
    if (!onv_dim_is_const(*wanted) || !onv_dim_is_const(dim) || wanted->raw == dim.raw)
        return onv_tensor_unify(s->c, "", wanted, dim);
    return refuse(s, "axis %d of input %s is %s%s%lld, not %s%s%lld", axis, s->t->inputs[k],
                  is->is_product ? onv_dim_text(s->c->dims, s->c->arena, times) : "",
                  is->is_product ? " * " : "", (long long)dim.raw, name != NULL ? name : "",
                  name != NULL ? " = " : "", (long long)wanted->raw);
}

/* The form of input k that its rank says, or the only one; NULL where that is open. */
static onv_status find_form(const said *s, uint32_t k, const onv_shape_form **form)
{
    const onv_shape_in *in = &s->t->ins[k];
    int rank = onv_op_in_rank(s->c, k);
    *form = in->n_forms == 1 ? in->form : NULL;
    if (in->n_forms == 1)
        return onv_tensor_need_rank(s->c, k, (int)in->form->n_axes,
                                    in->form->rest < 0 ? (int)in->form->n_axes : ONV_MAX_RANK);
    for (uint32_t i = 0; i < in->n_forms && *form == NULL; i++) {
        int n = (int)in->form[i].n_axes;
        if (rank == n || (in->form[i].rest >= 0 && rank > n)) *form = &in->form[i];
    }
    return *form != NULL || rank < 0 ? ONV_OK : onv_tensor_need_rank(s->c, k, -2, -1);
}

static onv_status match_input(said *s, uint32_t k)
{
    const onv_shape_form *form;
    if (s->t->ins[k].form == NULL || !onv_op_has_in(s->c, k)) return ONV_OK;
    ONV_TRY(find_form(s, k, &form));
    if (form == NULL) return ONV_OK;
    if (k == 0) s->form = form - s->t->ins[k].form;
    int n = (int)form->n_axes;
    for (int i = 0; i < n; i++) {
        int axis = form->rest < 0 || i < form->rest ? i : i - n;
        ONV_TRY(match_axis(s, k, axis, &form->axis[i]));
    }
    return ONV_OK;
}

/* A name gets what it is said to be, or must agree with it. */
static onv_status match_where(said *s, const onv_shape_where *where)
{
    onv_dim value;
    s->what = s->t->names[where->name];
    ONV_TRY(evaluate(s, &where->is, &value));
    if (onv_dim_is_const(value) && value.raw < 0)
        return refuse(s, "%lld is not a size", (long long)value.raw);
    s->what = NULL;
    onv_dim *named = &s->named[where->name];
    if (onv_dim_is_const(value) && onv_dim_is_const(*named) && value.raw != named->raw)
        return refuse(s, "%s is %lld, not %s = %lld", where->text, (long long)value.raw,
                      s->t->names[where->name], (long long)named->raw);
    return onv_tensor_unify(s->c, "", named, value);
}

/* What infer has found is not looked for again: a second size that the data decides would be another one. */
/* What infer has found stands: a second size that the data decides would be another one. */
static onv_status match_inputs(onv_op_ctx *c, said *s)
{
    *s = (said){.c = c, .form = -1, .t = (const onv_custom_op *)(const void *)c->op};
    s->named = c->said;
    if (s->named != NULL) return ONV_OK;
    s->named = ONV_ARENA_ARRAY(c->arena, onv_dim, s->t->n_names);
    if (s->named == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < s->t->n_names; i++) s->named[i] = ONV_DIM_UNKNOWN;
    for (uint32_t k = 0; k < s->t->n_inputs; k++) ONV_TRY(match_input(s, k));
    for (uint32_t i = 0; i < s->t->n_wheres; i++) ONV_TRY(match_where(s, &s->t->wheres[i]));
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
        dtype = onv_op_in_dtype(c, (uint32_t)(onv_op_has_in(c, (uint32_t)out->dtype_like)
                                                  ? out->dtype_like
                                                  : out->dtype_else));
    if (out->dtype_attr != NULL) dtype = onv_op_attr_dtype(c, out->dtype_attr, dtype);
    if (out->list == NULL) return onv_op_set_out_like(c, k, (uint32_t)out->like, dtype);
    if (out->n_lists > 1 && s->form < 0) return onv_op_set_out(c, k, dtype, NULL, -1);
    const onv_shape_list *list = &out->list[out->n_lists > 1 ? s->form : 0];
    for (uint32_t i = 0; i < list->n_items; i++) {
        const onv_shape_item *item = &list->item[i];
        onv_dim d;
        if (item->code == NULL) {
            ONV_TRY(append_slice(s, item, dims, &rank));
            continue;
        }
        ONV_TRY(evaluate(s, item, &d));
        if (item->optional && onv_dim_is(d, 0)) continue;
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
    c->said = s.named;
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
