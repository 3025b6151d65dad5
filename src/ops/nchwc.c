/* com.microsoft.nchwc: the convolutions of graphs that ONNX Runtime optimised at its highest level
 * for a CPU. Channels lie in blocks of 8 or 16, whichever suits the CPU that wrote the file, and
 * their number is rounded up to whole blocks; shapes stay [batch, channels, spatial ...].
 */
#include "ops/contrib.h"
#include "ops/rules.h"

enum { LARGEST_BLOCK = 16 };

/* Exact where the channels fill blocks of either size. */
static onv_dim whole_blocks(onv_op_ctx *c, onv_dim channels)
{
    onv_dim block = onv_dim_const(LARGEST_BLOCK);
    onv_dim most = onv_dim_mul(c->dims, onv_dim_ceildiv(c->dims, channels, block), block);
    if (!onv_dim_is_known(most) || onv_dim_same(most, channels)) return most;
    return onv_dim_fresh(c->dims, "channels", most);
}

static onv_status infer_reorder_input(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    bool last = onv_op_attr_int(c, "channels_last", 0) != 0;
    onv_dim dims[ONV_MAX_RANK];
    if (rank >= 0) ONV_TRY(onv_tensor_need_rank(c, 0, 2, ONV_MAX_RANK));
    for (int i = 0; i < rank; i++) dims[i] = onv_op_in_dim(c, 0, last && i > 1 ? i - 1 : i);
    int64_t made = onv_op_attr_int(c, "channels", 0); /* where the size of blocks is known */
    if (rank >= 0)
        dims[1] =
            made > 0 ? onv_dim_const(made) : whole_blocks(c, onv_op_in_dim(c, 0, last ? -1 : 1));
    return onv_op_set_like(c, dims, rank);
}

static onv_status infer_upsample(onv_op_ctx *c)
{
    uint32_t count;
    int rank = onv_op_in_rank(c, 0);
    onv_dim dims[ONV_MAX_RANK];
    const int64_t *scales = onv_op_attr_ints(c, "scales", &count);
    if (rank >= 0 && count != (uint32_t)rank)
        return onv_op_fail(c, "%u scales for rank %d", count, rank);
    for (int i = 0; i < rank; i++) {
        if (scales[i] < 1) return onv_op_fail(c, "a scale of %lld", (long long)scales[i]);
        dims[i] = onv_dim_mul(c->dims, onv_op_in_dim(c, 0, i), onv_dim_const(scales[i]));
    }
    return onv_op_set_like(c, dims, rank);
}

#define ALIAS(op, ...)                                                                             \
    .with = &(const onv_alias)                                                                     \
    {                                                                                              \
        .as = op, .version = 22, .in = __VA_ARGS__                                                 \
    }
#define POOL(op) ONV_OP(op, 1, 1, 1, 1, 1, onv_alias_infer, ALIAS(op, {1}))

static const onv_op rows[] = {
    ONV_OP("ReorderInput", 1, 1, 1, 1, 1, infer_reorder_input),
    ONV_SAYS("ReorderOutput", 1, 1, 1, 1, 1,
             "(x[n, _, ...]) where channels = attr.channels, channels_but_one = channels - 1: "
             "[n, if(attr.channels_last or 0, 0, channels)?, x.2:, "
             "if(attr.channels_last or 0, channels, 0)?]"),
    ONV_OP("Conv", 1, 2, 4, 1, 1, onv_alias_infer, .macs = onv_alias_macs,
           ALIAS("Conv", {1, 2, 3})),
    POOL("MaxPool"),
    POOL("AveragePool"),
    POOL("GlobalMaxPool"),
    POOL("GlobalAveragePool"),
    ONV_OP("Upsample", 1, 1, 1, 1, 1, infer_upsample),
};

const onv_op_family onv_ops_nchwc = {"com.microsoft.nchwc", rows, sizeof rows / sizeof rows[0]};
