/* The rest of ONNX's math definitions: softmax, cumulative sums, TopK, Det, losses. */

#include <string.h>

#include "ops/rules.h"

/* --- Softmax, LogSoftmax, Hardmax ------------------------------------------------------------- */

static onv_status infer_softmax(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis;
    onv_op_set_out_like(c, 0, 0, onv_op_in_dtype(c, 0));
    if (rank < 0) return ONV_OK;
    int64_t given = onv_op_attr_int(c, "axis", c->version < 13 ? 1 : -1);
    /* The older form cuts the shape in two before the axis, which may lie behind the last dim; the
     * newer one leaves scalars alone. */
    if (given == rank && c->version < 13) return ONV_OK;
    if (rank == 0 && given == -1) return ONV_OK;
    return onv_op_axis(c, given, rank, &axis);
}

/* --- Cumulative sums and products ------------------------------------------------------------- */

/* Runs along `length` elements that lie `stride` apart. */
static void cumulate(onv_op_ctx *c, const onv_known *in, onv_scalar *out, uint32_t length,
                     uint32_t stride, onv_fold_step step, onv_scalar neutral)
{
    bool reverse = onv_op_attr_int(c, "reverse", 0) != 0;
    bool exclusive = onv_op_attr_int(c, "exclusive", 0) != 0;
    uint32_t offset = (uint32_t)(out - c->out[0].known->elems);
    onv_scalar sum = neutral;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t at = (reverse ? length - 1 - i : i) * stride;
        onv_scalar next = onv_scalar_canonical(in->dtype, in->elems[offset + at]);
        onv_scalar before = sum;
        sum = onv_scalar_fit(c->dims, in->dtype, step(c->dims, in->dtype, sum, next));
        out[at] = exclusive ? before : sum;
    }
}

static onv_status infer_cumulative(onv_op_ctx *c)
{
    bool adds = strcmp(c->op->name, "CumSum") == 0;
    int rank = onv_op_in_rank(c, 0), axis;
    onv_infer_same(c);
    onv_dim given = onv_op_in_scalar(c, 1);
    if (rank < 0 || !onv_dim_is_const(given)) return ONV_OK;
    ONV_TRY(onv_op_axis(c, given.raw, rank, &axis));
    const onv_known *in = onv_fold_source(c, 0);
    onv_known *out = in != NULL ? onv_op_new_known(c, 0) : NULL;
    if (out == NULL || out->count == 0) return ONV_OK;
    uint32_t length = (uint32_t)in->dims[axis], stride = 1;
    for (int k = axis + 1; k < in->rank; k++) stride *= (uint32_t)in->dims[k];
    onv_scalar start = onv_scalar_number(in->dtype, adds ? 0 : 1);
    for (uint32_t i = 0; i < out->count; i++)
        if (i / stride % length == 0) /* the first element of a run */
            cumulate(c, in, &out->elems[i], length, stride, adds ? onv_scalar_add : onv_scalar_mul,
                     start);
    return ONV_OK;
}

/* --- TopK ------------------------------------------------------------------------------------- */

static onv_status topk_count(onv_op_ctx *c, onv_dim size, onv_dim *k)
{
    if (c->version < 10) {
        const onv_attr *attr = onv_op_attr(c, "k");
        if (attr == NULL || attr->kind != ONV_ATTR_INT)
            return onv_op_fail(c, "attribute 'k' is missing");
        *k = onv_dim_const(attr->i);
    } else {
        *k = onv_op_in_scalar(c, 1);
        /* Only the data tells; it cannot be more than there are. */
        if (!onv_dim_is_known(*k)) *k = onv_dim_fresh(c->dims, "topk", size);
    }
    if (onv_dim_is_const(*k) && k->raw < 0)
        return onv_op_fail(c, "k is negative: %lld", (long long)k->raw);
    if (onv_dim_is_const(*k) && onv_dim_is_const(size) && k->raw > size.raw)
        return onv_op_fail(c, "k is %lld, but the axis has %lld elements", (long long)k->raw,
                           (long long)size.raw);
    return ONV_OK;
}

static onv_status infer_topk(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    onv_op_set_like(c, NULL, -1);
    onv_op_set_out(c, 1, ONV_INT64, NULL, -1);
    if (rank < 0) return ONV_OK;
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", -1), rank, &axis));
    ONV_TRY(topk_count(c, dims[axis], &dims[axis]));
    onv_op_set_like(c, dims, rank);
    return onv_op_set_out(c, 1, ONV_INT64, dims, rank);
}

/* --- Losses ----------------------------------------------------------------------------------- */

/* Scores are [N, C, d...], labels [N, d...]: the dims of the labels, as both tell them. */
static onv_status label_dims(onv_op_ctx *c, onv_dim *dims, int *rank)
{
    int scores = onv_op_in_rank(c, 0), labels = onv_op_in_rank(c, 1);
    if ((scores >= 0 && scores < 2) || (scores >= 0 && labels >= 0 && labels != scores - 1))
        return onv_op_fail(c, "labels %s do not fit scores %s, which are [N, C, ...]",
                           onv_op_in_text(c, 1), onv_op_in_text(c, 0));
    *rank = labels >= 0 ? labels : scores >= 0 ? scores - 1 : -1;
    for (int i = 0; i < *rank; i++) {
        dims[i] = onv_op_in_dim(c, 0, i == 0 ? 0 : i + 1);
        ONV_TRY(onv_tensor_unify(c, "dims of scores and labels", &dims[i], onv_op_in_dim(c, 1, i)));
    }
    return ONV_OK;
}

static onv_status infer_loss(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK] = {0};
    onv_dim classes = onv_op_in_rank(c, 0) > 1 ? onv_op_in_dim(c, 0, 1) : ONV_DIM_UNKNOWN;
    int rank = -1;
    const char *reduction = onv_op_attr_string(c, "reduction", "mean");
    ONV_TRY(label_dims(c, dims, &rank));
    ONV_TRY(
        onv_tensor_unify(c, "numbers of classes and weights", &classes, onv_op_in_dim(c, 2, 0)));
    bool none = strcmp(reduction, "none") == 0;
    if (!none && strcmp(reduction, "sum") != 0 && strcmp(reduction, "mean") != 0)
        return onv_op_fail(c, "unknown reduction '%s'", reduction);
    onv_op_set_like(c, dims, none ? rank : 0);
    onv_op_set_out_like(c, 1, 0, onv_op_in_dtype(c, 0)); /* log_prob, where asked for */
    return ONV_OK;
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define SOFTMAX(op) ONV_OP(op, 1, 1, 1, 1, 1, infer_softmax)
#define TOPK(version, inputs, ...)                                                                 \
    ONV_OP("TopK", version, inputs, inputs, 2, 2, infer_topk, __VA_ARGS__)

static const onv_op rows[] = {
    SOFTMAX("Softmax"),
    SOFTMAX("LogSoftmax"),
    SOFTMAX("Hardmax"),
    ONV_OP("CumSum", 11, 2, 2, 1, 1, infer_cumulative),
    ONV_OP("CumProd", 26, 2, 2, 1, 1, infer_cumulative),
    TOPK(1, 1),
    TOPK(10, 2, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_SAYS("Det", 11, 1, 1, 1, 1, "(x[..., n, n]): [x.:-2]"),
    ONV_OP("NegativeLogLikelihoodLoss", 12, 2, 3, 1, 1, infer_loss,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2)}),
    ONV_OP("SoftmaxCrossEntropyLoss", 12, 2, 3, 1, 2, infer_loss),
};

const onv_op_family onv_ops_math = {"", rows, sizeof rows / sizeof rows[0]};
