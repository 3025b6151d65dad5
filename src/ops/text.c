/* Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. */
#include "ops/rules.h"

static onv_status infer_string_concat(onv_op_ctx *c)
{
    return onv_rule_broadcast_as(c, ONV_STRING);
}

/* One more axis, as long as the most parts of any string: nothing but maxsplit bounds it. */
static onv_status infer_string_split(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims);
    const onv_attr *attr = onv_op_attr(c, "maxsplit");
    int64_t most = onv_op_attr_int(c, "maxsplit", 0);
    if (attr != NULL && most < 0) return onv_op_fail(c, "maxsplit is %lld", (long long)most);
    ONV_TRY(onv_tensor_check_rank(c, rank + 1));
    if (rank >= 0) {
        bool bounded = attr != NULL && most < ONV_DIM_INFINITY_RAW - 1;
        dims[rank] =
            onv_dim_fresh(c->dims, "parts", bounded ? onv_dim_const(most + 1) : ONV_DIM_UNKNOWN);
    }
    onv_op_set_out(c, 0, ONV_STRING, dims, rank < 0 ? -1 : rank + 1);
    return onv_op_set_out_like(c, 1, 0, ONV_INT64);
}

/* Stop words go; where none remains there is one empty string. */
static onv_status infer_string_normalizer(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    const onv_attr *words = onv_op_attr(c, "stopwords");
    bool stops = words != NULL && words->count > 0;
    onv_dim dims[2], last = onv_op_in_dim(c, 0, -1), one = onv_dim_const(1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, 2));
    dims[0] = onv_op_in_dim(c, 0, 0);
    if (rank == 2) ONV_TRY(onv_tensor_unify(c, "the first dim and 1", &dims[0], one));
    onv_dim most = onv_dim_max(c->dims, last, one);
    if (rank > 0)
        dims[rank - 1] =
            !stops || onv_dim_is(most, 1) ? most : onv_dim_fresh(c->dims, "words", most);
    return onv_op_set_out(c, 0, ONV_STRING, dims, rank);
}

/* [C] or [N, C] becomes [max(ngram_indexes) + 1] per row. */
static onv_status infer_tf_idf(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    uint32_t count;
    const int64_t *indexes = onv_op_attr_ints(c, "ngram_indexes", &count);
    int64_t last = -1;
    onv_dim dims[2];
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, 2));
    if (count == 0) return onv_op_fail(c, "attribute 'ngram_indexes' is absent or empty");
    for (uint32_t i = 0; i < count; i++) {
        if (indexes[i] < 0 || indexes[i] >= ONV_DIM_INFINITY_RAW - 1)
            return onv_op_fail(c, "ngram_indexes holds %lld", (long long)indexes[i]);
        if (indexes[i] > last) last = indexes[i];
    }
    if (rank == 2) dims[0] = onv_op_in_dim(c, 0, 0);
    if (rank > 0) dims[rank - 1] = onv_dim_const(last + 1);
    return onv_op_set_out(c, 0, ONV_FLOAT, dims, rank);
}

static const onv_op rows[] = {
    ONV_OP("StringConcat", 20, 2, 2, 1, 1, infer_string_concat),
    ONV_OP("StringSplit", 20, 1, 1, 2, 2, infer_string_split, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_OP("StringNormalizer", 10, 1, 1, 1, 1, infer_string_normalizer,
           .flags = ONV_OP_DATA_DEPENDENT),
    ONV_SAYS("RegexFullMatch", 20, 1, 1, 1, 1, "(x): like x bool"),
    ONV_OP("TfIdfVectorizer", 9, 1, 1, 1, 1, infer_tf_idf, .flags = ONV_OP_WEIGHT_ATTRS),
};

const onv_op_family onv_ops_text = {"", rows, sizeof rows / sizeof rows[0]};
