/* Asserts, sizes, and calls of higher order. */
#include "aten/aten.h"

static const onv_aten_op ops[] = {
    {.name = "_assert_async", .form = ONV_ATEN_NOTHING},
    {.name = "_assert_scalar", .form = ONV_ATEN_NOTHING},
    {.name = "_assert_tensor_metadata", .form = ONV_ATEN_NOTHING},
    {.name = "_local_scalar_dense", .form = ONV_ATEN_NOTHING},
    {.name = "higher_order.cond", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.tag_activation_checkpoint", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.while_loop", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.wrap", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.wrap_activation_checkpoint", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.wrap_with_autocast", .rule = ONV_RULE_GRAPHS},
    {.name = "higher_order.wrap_with_set_grad_enabled", .rule = ONV_RULE_GRAPHS},
    {.name = "is_nonzero", .form = ONV_ATEN_NOTHING},
    {.name = "item", .form = ONV_ATEN_NOTHING},
    {.name = "sym_constrain_range", .form = ONV_ATEN_NOTHING},
    {.name = "sym_constrain_range_for_size", .form = ONV_ATEN_NOTHING},
    {.name = "sym_numel", .form = ONV_ATEN_NOTHING},
    {.name = "sym_size", .form = ONV_ATEN_NOTHING},
    {.name = "sym_stride", .form = ONV_ATEN_NOTHING},
};

const onv_aten_family onv_aten_other = {ops, sizeof ops / sizeof ops[0]};
