/* Cast and its kin, Identity, Shape, Size, Where, Trilu, ReverseSequence. */
#include <string.h>

#include "ops/rules.h"

/* --- Cast -------------------------------------------------------------------------------------- */

/* Cast-1 names the type; the position is its number. */
static onv_dtype dtype_from_name(const char *name)
{
    static const char *const names[] = {
        "UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
        "STRING",    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
    for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return (onv_dtype)i;
    return ONV_UNDEFINED;
}

static onv_dtype cast_target(const onv_op_ctx *c)
{
    if (strcmp(c->op->name, "CastLike") == 0) return onv_op_in_dtype(c, 1);
    const onv_attr *to = onv_op_attr(c, "to");
    if (to != NULL && to->kind == ONV_ATTR_STRING) return dtype_from_name(to->s);
    return onv_op_attr_dtype(c, "to", ONV_UNDEFINED);
}

static onv_status infer_cast(onv_op_ctx *c)
{
    onv_dtype to = cast_target(c);
    if (to == ONV_UNDEFINED && strcmp(c->op->name, "CastLike") != 0)
        return onv_op_fail(c, "attribute 'to' is absent or no element type");
    return onv_op_set_out_like(c, 0, 0, to);
}

static onv_status infer_bitcast(onv_op_ctx *c)
{
    onv_dtype from = onv_op_in_dtype(c, 0), to = cast_target(c);
    if (to == ONV_UNDEFINED) return onv_op_fail(c, "attribute 'to' is absent or no element type");
    if (from != ONV_UNDEFINED && onv_dtype_bits(from) != onv_dtype_bits(to))
        return onv_op_fail(c, "%s and %s differ in width", onv_dtype_name(from),
                           onv_dtype_name(to));
    return onv_op_set_out_like(c, 0, 0, to);
}

static onv_status fold_cast(onv_op_ctx *c)
{
    const onv_known *from = onv_fold_source(c, 0);
    onv_known *to = from != NULL ? onv_op_new_known(c, 0) : NULL;
    if (to == NULL) return ONV_OK;
    for (uint32_t i = 0; i < to->count; i++)
        to->elems[i] =
            onv_scalar_cast(c->dims, (onv_dtype)from->dtype, (onv_dtype)to->dtype, from->elems[i]);
    return ONV_OK;
}

/* The result fits the input's buffer where the types are equally wide. */
static onv_op_traits cast_traits(onv_op_ctx *c)
{
    uint32_t bits = onv_dtype_bits(cast_target(c));
    bool same = bits != 0 && bits == onv_dtype_bits(onv_op_in_dtype(c, 0));
    return (onv_op_traits){.inplace = same ? ONV_BIT(0) : 0};
}

/* --- Shape and Size ---------------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The range of axes that Shape gives (start and end since opset 15). */
static void shape_range(const onv_op_ctx *c, int rank, int *start, int *end)
{
    int64_t first = c->version >= 15 ? onv_op_attr_int(c, "start", 0) : 0;
    int64_t last = c->version >= 15 ? onv_op_attr_int(c, "end", rank) : rank;
    *start = (int)clamp(first < 0 ? first + rank : first, 0, rank);
    *end = (int)clamp(last < 0 ? last + rank : last, *start, rank);
}

static onv_status infer_shape(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), start, end;
    if (rank < 0) return onv_op_set_out_rank(c, ONV_INT64, 1);
    shape_range(c, rank, &start, &end);
    onv_dim length = onv_dim_const(end - start);
    onv_op_set_out(c, 0, ONV_INT64, &length, 1);
    onv_known *known = onv_op_new_known(c, 0);
    for (int axis = start; known != NULL && axis < end; axis++)
        known->elems[axis - start] = onv_scalar_int(onv_op_in_dim(c, 0, axis));
    return ONV_OK;
}

static onv_status fold_size(onv_op_ctx *c)
{
    onv_known *known = onv_op_new_known(c, 0);
    if (known != NULL) known->elems[0] = onv_scalar_int(onv_op_in_elems(c, 0));
    return ONV_OK;
}

/* --- Where ------------------------------------------------------------------------------------- */

static onv_status infer_where(onv_op_ctx *c)
{
    return onv_rule_broadcast_as(c, onv_rule_dtype(c, 1, 2));
}

static onv_scalar choose(onv_op_ctx *c, const onv_scalar *in)
{
    if (onv_dim_is_const(in[0].i)) return in[in[0].i.raw != 0 ? 1 : 2];
    bool same =
        onv_scalar_equal(c->dims, (onv_dtype)c->out[0].type.dtype, in[1], in[2]) == ONV_ALWAYS;
    return same ? in[1] : onv_scalar_unknown();
}

ONV_FOLD(where, choose(c, in))

/* --- Trilu ------------------------------------------------------------------------------------- */

typedef struct trilu {
    int rank;
    int64_t k;
    bool upper;
} trilu;

static int64_t place_trilu(const void *how, uint32_t i, const int64_t *at)
{
    const trilu *t = how;
    int64_t above = at[t->rank - 1] - at[t->rank - 2];
    return (t->upper ? above >= t->k : above <= t->k) ? (int64_t)i : -1;
}

static onv_status fold_trilu(onv_op_ctx *c)
{
    onv_dim k = onv_op_has_in(c, 1) ? onv_op_in_scalar(c, 1) : onv_dim_const(0);
    if (!onv_dim_is_const(k)) return ONV_OK;
    trilu how = {
        .rank = onv_op_in_rank(c, 0), .k = k.raw, .upper = onv_op_attr_int(c, "upper", 1) != 0};
    return onv_fold_move(c, onv_fold_source(c, 0), place_trilu, &how,
                         onv_scalar_number(onv_op_in_dtype(c, 0), 0));
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Cast", 1, 1, 1, 1, 1, infer_cast, .fold = fold_cast, .traits_fn = cast_traits),
    ONV_OP("CastLike", 15, 2, 2, 1, 1, infer_cast, .fold = fold_cast, .traits_fn = cast_traits),
    ONV_OP("BitCast", 26, 1, 1, 1, 1, infer_bitcast, .traits = {.view_of = 1}),
    ONV_OP("Identity", 1, 1, 1, 1, 1, onv_infer_identity, .fold = onv_fold_identity,
           .traits = {.view_of = 1}),
    ONV_OP("Shape", 1, 1, 1, 1, 1, infer_shape, .flags = ONV_OP_HOST),
    ONV_SAYS("Size", 1, 1, 1, 1, 1, "(x): [] i64", .fold = fold_size, .flags = ONV_OP_HOST),
    ONV_OP("Where", 9, 3, 3, 1, 1, infer_where, .fold = fold_where,
           .alike = ONV_BIT(1) | ONV_BIT(2), .traits = {.inplace = ONV_BIT(1) | ONV_BIT(2)}),
    ONV_SAYS("Trilu", 14, 1, 2, 1, 1, "(x[..., _, _]): like x", .fold = fold_trilu,
             .traits = {.inplace = ONV_BIT(0)}),
    ONV_SAYS("ReverseSequence", 10, 2, 2, 1, 1,
             "(x[_, _, ...], sequence_lens[batch]) where batch_axis = attr.batch_axis or 1, "
             "time_axis = attr.time_axis or 0, one = 1, one = batch_axis + time_axis, "
             "batch = if(batch_axis, x.1, x.0): like x"),
};

const onv_op_family onv_ops_tensor = {"", rows, sizeof rows / sizeof rows[0]};
