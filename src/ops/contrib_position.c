/* com.microsoft: what stands around attention: positions, padding. */
#include "ops/contrib.h"
#include "ops/rules.h"

#define ROTARY(op)                                                                                 \
    ONV_OP(op, 1, 4, 4, 1, 1, onv_infer_same, .traits = {.save_in = ONV_BIT(2) | ONV_BIT(3)})

static const onv_op rows[] = {
    ROTARY("RotaryEmbedding"),
    ROTARY("MRotaryEmbedding"),
    ONV_SAYS("GemmaRotaryEmbedding", 1, 5, 5, 2, 2, "(x, q): like q, like q",
             .traits = {.save_in = ONV_BIT(0)}),
    ONV_SAYS("RelativePositionBias", 1, 3, 3, 1, 1,
             "(table[_, heads], queries, keys): [1, heads, queries[0], keys[0]]"),
    /* Where tokens are packed, the offsets say batch and length. */
    ONV_SAYS("GatedRelativePositionBias", 1, 6, 7, 1, 1,
             "(x[_, _, ...], b, c, d, e, f, offsets[_, _]): "
             "[offsets.0 or x.0, attr.num_heads, offsets.1 or x.1, offsets.1 or x.1]"),
    ONV_SAYS("RemovePadding", 1, 2, 2, 4, 4,
             "(x[b, s, n]): [upto(b * s, tokens), n], [b, s] i32, [b + 1] i32, [1] i32",
             .flags = ONV_OP_DATA_DEPENDENT),
    ONV_SAYS("RestorePadding", 1, 2, 2, 1, 1, "(x[_, n], offsets[b, s]): [b, s, n]"),
};

const onv_op_family onv_ops_contrib_position = {"com.microsoft", rows,
                                                sizeof rows / sizeof rows[0]};
