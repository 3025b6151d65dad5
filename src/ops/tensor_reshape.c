/* Operators that keep the elements and their order: Reshape, Squeeze, Unsqueeze. */
#include <string.h>

#include "ir/notes.h"
#include "ops/rules.h"

/* --- Reshape ----------------------------------------------------------------------------------- */

typedef struct reshape {
    const onv_dim *want; /* as given: 0 copies, -1 is inferred */
    int n;
    bool allowzero;
    int inferred;    /* the axis that the element count decides; -1: none */
    bool open;       /* some other axis is not known */
    uint32_t copied; /* axes taken over from the input */
    onv_dim out[ONV_MAX_RANK];
} reshape;

static onv_status fail_reshape(onv_op_ctx *c, const reshape *r)
{
    onv_type want = {.kind = ONV_TYPE_TENSOR, .rank = (int16_t)r->n, .dims = r->want};
    return onv_op_fail(c, "cannot reshape %s to %s: the element counts differ",
                       onv_op_in_text(c, 0), onv_op_shape_text(c, &want));
}

static onv_status copy_dim(onv_op_ctx *c, reshape *r, int axis)
{
    int rank = onv_op_in_rank(c, 0);
    r->out[axis] = onv_op_in_dim(c, 0, axis);
    if (rank >= 0 && axis >= rank)
        return onv_op_fail(c, "the new shape copies dim %d of %s, which has none", axis,
                           onv_op_in_text(c, 0));
    r->copied |= ONV_BIT(axis);
    return ONV_OK;
}

/* Reads the new shape as far as it does not depend on the element count. */
static onv_status read_shape(onv_op_ctx *c, reshape *r)
{
    int minus_one = -1, unknown = -1, unknowns = 0;
    bool zero = false;
    for (int i = 0; i < r->n; i++) {
        onv_dim want = r->want[i];
        r->out[i] = want;
        if (onv_dim_is(want, -1)) {
            if (minus_one >= 0) return onv_op_fail(c, "the new shape has more than one -1");
            minus_one = i;
            r->out[i] = ONV_DIM_UNKNOWN;
        } else if (onv_dim_is(want, 0) && !r->allowzero) {
            ONV_TRY(copy_dim(c, r, i));
        } else if (!onv_dim_is_known(want)) {
            unknown = i;
            unknowns++;
        } else if (onv_dim_is_infinite(want) || (onv_dim_is_const(want) && want.raw < 0)) {
            return onv_op_fail(c, "the new shape holds %lld", (long long)want.raw);
        }
        if (onv_dim_is(want, 0)) zero = true;
    }
    if (r->allowzero && zero && minus_one >= 0)
        return onv_op_fail(c, "the new shape holds 0 and -1, which allowzero forbids");
    /* The one dim that is missing follows from the count like a -1. */
    r->inferred = unknowns == 1 && minus_one < 0 ? unknown : minus_one;
    r->open = unknowns > (r->inferred == unknown && unknowns == 1 ? 1 : 0);
    return ONV_OK;
}

/* Drops pairs of equal dims from both lists: what remains has the same ratio, and unknown dims that
 * were copied do not stand in the way. */
static void cancel(onv_op_ctx *c, const reshape *r, onv_dim *above, int *n, onv_dim *below, int *m)
{
    int rank = onv_op_in_rank(c, 0);
    *n = *m = 0;
    for (int i = 0; i < rank; i++)
        if (i >= r->n || !(r->copied & ONV_BIT(i))) above[(*n)++] = onv_op_in_dim(c, 0, i);
    for (int i = 0; i < r->n; i++) {
        if (i == r->inferred || (r->copied & ONV_BIT(i))) continue;
        int k = 0;
        while (k < *n && !onv_dim_same(above[k], r->out[i])) k++;
        if (k < *n && !onv_dim_is(above[k], 0))
            above[k] = above[--*n];
        else
            below[(*m)++] = r->out[i];
    }
}

static onv_status balance(onv_op_ctx *c, reshape *r)
{
    onv_dim above[ONV_MAX_RANK], below[ONV_MAX_RANK];
    int n, m;
    if (onv_op_in_rank(c, 0) < 0 || r->open) return ONV_OK;
    cancel(c, r, above, &n, below, &m);
    onv_dim elems = onv_op_product(c, above, n), rest = onv_op_product(c, below, m);
    bool numbers = onv_dim_is_const(elems) && onv_dim_is_const(rest);
    if (r->inferred < 0) return numbers && elems.raw != rest.raw ? fail_reshape(c, r) : ONV_OK;
    if (onv_dim_is(rest, 0)) return onv_dim_is(elems, 0) ? ONV_OK : fail_reshape(c, r);
    if (numbers && elems.raw % rest.raw != 0) return fail_reshape(c, r);
    /* The division leaves no remainder in any run that succeeds, so where that cannot be seen from
     * the expressions the floor is exact too. */
    onv_dim quotient = onv_dim_exact_div(c->dims, elems, rest);
    if (!onv_dim_is_known(quotient)) quotient = onv_dim_floordiv(c->dims, elems, rest);
    r->out[r->inferred] = quotient;
    return ONV_OK;
}

static onv_status infer_reshape(onv_op_ctx *c)
{
    int input = c->version >= 5 ? 1 : -1;
    reshape r = {.allowzero = c->version >= 14 && onv_op_attr_int(c, "allowzero", 0) != 0,
                 .inferred = -1};
    uint32_t count;
    if (!onv_op_ints(c, "shape", input, &r.want, &count)) {
        onv_dim length = onv_op_in_dim(c, 1, 0);
        onv_dim elems = onv_op_in_elems(c, 0);
        if (!onv_dim_is_const(length)) return onv_op_set_like(c, NULL, -1);
        ONV_TRY(onv_tensor_check_rank(c, length.raw));
        if (onv_dim_is(length, 1))
            onv_op_set_like(c, &elems, 1);
        else
            onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), (int)length.raw);
        return ONV_OK;
    }
    ONV_TRY(onv_tensor_check_rank(c, count));
    r.n = (int)count;
    ONV_TRY(read_shape(c, &r));
    ONV_TRY(balance(c, &r));
    return onv_op_set_like(c, r.out, r.n);
}

/* --- Squeeze and Unsqueeze --------------------------------------------------------------------- */

/* Without axes every dim of 1 goes; whether a symbol is 1 is not known before it is bound. */
static bool ones(onv_op_ctx *c, uint32_t *mask)
{
    int rank = onv_op_in_rank(c, 0);
    *mask = 0;
    for (int axis = 0; axis < rank; axis++) {
        onv_dim dim = onv_op_in_dim(c, 0, axis);
        if (onv_dim_is(dim, 1)) {
            *mask |= ONV_BIT(axis);
        } else if (!onv_dim_is_known(dim) || !onv_dim_always_ne(c->dims, dim, onv_dim_const(1))) {
            return false;
        }
    }
    return true;
}

/* PyTorch's squeeze() leaves a dim that is not 1, which its newer exporter writes down all the same. */
static bool leaves_axis(onv_op_ctx *c, int axis)
{
    static const char call[] = "aten.squeeze";
    const char *aten = onv_noted(c->node)->aten_op;
    if (aten == NULL || strncmp(aten, call, sizeof call - 1) != 0) return false;
    onv_op_warn(
        c, "squeezed-axis",
        "torch.squeeze() leaves axis %d of %s, and so is counted; the ONNX operator does not "
        "allow that, and ONNX Runtime refuses the file",
        axis, onv_op_in_text(c, 0));
    return true;
}

static onv_status infer_squeeze(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), count;
    int input = c->version >= 13 ? 1 : -1;
    bool known;
    uint32_t mask;
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    onv_dim dims[ONV_MAX_RANK];
    bool given = input == 1 ? onv_op_has_in(c, 1) : onv_op_attr(c, "axes") != NULL;
    if (given) {
        ONV_TRY(onv_tensor_axes(c, input, rank, &mask, &count, &known));
    } else {
        count = -1;
        known = rank >= 0 && ones(c, &mask);
    }
    if (!known)
        return onv_op_set_out_rank(c, dtype,
                                   rank >= 0 && count >= 0 && count <= rank ? rank - count : -1);
    int n = 0;
    for (int axis = 0; axis < rank; axis++) {
        onv_dim dim = onv_op_in_dim(c, 0, axis);
        bool is_other = onv_dim_is_const(dim) && dim.raw != 1;
        if (!(mask & ONV_BIT(axis)) || (is_other && leaves_axis(c, axis)))
            dims[n++] = dim;
        else if (is_other)
            return onv_op_fail(c, "cannot squeeze axis %d of %s", axis, onv_op_in_text(c, 0));
    }
    return onv_op_set_out(c, 0, dtype, dims, n);
}

static onv_status infer_unsqueeze(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), count;
    int input = c->version >= 13 ? 1 : -1;
    bool known;
    uint32_t mask;
    onv_dim dims[ONV_MAX_RANK];
    /* The number of axes decides the rank that they are counted in. */
    ONV_TRY(onv_tensor_axes(c, input, -1, &mask, &count, &known));
    if (rank < 0 || count < 0) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(onv_tensor_check_rank(c, (int64_t)rank + count));
    ONV_TRY(onv_tensor_axes(c, input, rank + count, &mask, &count, &known));
    if (!known) return onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), rank + count);
    for (int axis = 0, from = 0; axis < rank + count; axis++)
        dims[axis] = mask & ONV_BIT(axis) ? onv_dim_const(1) : onv_op_in_dim(c, 0, from++);
    return onv_op_set_like(c, dims, rank + count);
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define VIEW .fold = onv_fold_same, .traits = {.view_of = 1}

static const onv_op rows[] = {
    ONV_OP("Reshape", 1, 1, 1, 1, 1, infer_reshape, VIEW),
    ONV_OP("Reshape", 5, 2, 2, 1, 1, infer_reshape, VIEW),
    ONV_OP("Squeeze", 1, 1, 1, 1, 1, infer_squeeze, VIEW),
    ONV_OP("Squeeze", 13, 1, 2, 1, 1, infer_squeeze, VIEW),
    ONV_OP("Unsqueeze", 1, 1, 1, 1, 1, infer_unsqueeze, VIEW),
    ONV_OP("Unsqueeze", 13, 2, 2, 1, 1, infer_unsqueeze, VIEW),
};

const onv_op_family onv_ops_tensor_reshape = {"", rows, sizeof rows / sizeof rows[0]};
