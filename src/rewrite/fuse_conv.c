/* What comes after a convolution or a product with constants, and is constant itself, goes into its
 * weights. */
#include <stdio.h>

#include "base/checked.h"
#include "rewrite/fuse.h"

static const onv_type *type_of(const onv_edit *e, onv_value_id value)
{
    return &onv_edit_value_at(e, value)->type;
}

/* A new weight of the node's graph, of the same type with other numbers, or as a vector. */
static onv_value_id weight_like(onv_edit *e, onv_node_id node, onv_value_id weight, onv_dtype dtype,
                                bool is_vector)
{
    int64_t dims[ONV_MAX_RANK];
    const onv_value *value = onv_edit_value_at(e, weight);
    for (int i = 0; i < value->type.rank; i++) dims[i] = value->type.dims[i].raw;
    int rank = is_vector ? 1 : value->type.rank;
    return onv_edit_add_weight(e, onv_edit_node_at(e, node)->graph, value->name, dtype, dims, rank,
                               NULL);
}

static bool is_floating(uint8_t dtype)
{
    return dtype == ONV_FLOAT || dtype == ONV_DOUBLE || dtype == ONV_FLOAT16;
}

/* The node after a convolution of constant weights that nobody else reads. */
static onv_node_id after_conv(const onv_edit *e, onv_node_id conv, onv_op_name op)
{
    const onv_node *at = onv_edit_node_at(e, conv);
    onv_node_id next = onv_edit_only_user(e, onv_edit_out(e, conv, 0));
    if (!onv_edit_is(e, next, op)) return ONV_NO_NODE;
    if (at->n_inputs < 2 || !onv_edit_is_constant(e, at->inputs[1])) return ONV_NO_NODE;
    bool has_bias = at->n_inputs > 2 && onv_is_value(at->inputs[2]);
    if (has_bias && !onv_edit_is_constant(e, at->inputs[2])) return ONV_NO_NODE;
    for (uint32_t k = 1; k < onv_edit_node_at(e, next)->n_inputs; k++)
        if (!onv_edit_is_constant(e, onv_edit_in(e, next, k))) return ONV_NO_NODE;
    return next;
}

/* [c, 1, ...] of one rank less than the weights, of which the first dim is c; or [1, c, 1, ...]. */
static bool is_per_channel(const onv_type *w, const onv_type *other)
{
    int at = other->rank - (w->rank - 1);
    if (at < 0 || at > 1) return false;
    for (int i = 0; i < other->rank; i++)
        if (i == at ? !onv_dim_same(other->dims[i], w->dims[0]) : !onv_dim_is(other->dims[i], 1))
            return false;
    return true;
}

/* One output, and vectors of `n` elements of that type. */
static bool is_vector_norm(const onv_edit *e, onv_node_id norm, onv_dim n, bool same_dtype,
                           uint8_t dtype)
{
    const onv_node *at = onv_edit_node_at(e, norm);
    if (at->n_inputs != 5) return false;
    for (uint32_t k = 1; k < at->n_outputs; k++)
        if (onv_is_value(at->outputs[k])) return false;
    for (uint32_t k = 1; k < 5; k++) {
        if (!onv_edit_is_constant(e, at->inputs[k])) return false;
        const onv_type *type = type_of(e, at->inputs[k]);
        if (type->rank != 1 || !onv_dim_same(type->dims[0], n) || !is_floating(type->dtype) ||
            (same_dtype && type->dtype != dtype))
            return false;
    }
    return true;
}

/* How many channels it makes: a transposed one has weights of [in, out / groups, ...]. */
static onv_dim filters_of(const onv_edit *e, onv_node_id conv, const onv_type *w)
{
    int64_t filters, groups = onv_edit_int(e, conv, "group", 1);
    if (!onv_edit_is(e, conv, ONV_OP_ConvTranspose)) return w->dims[0];
    bool fits = onv_dim_is_const(w->dims[1]) && onv_i64_mul(w->dims[1].raw, groups, &filters);
    return fits && filters > 0 ? onv_dim_const(filters) : ONV_DIM_UNKNOWN;
}

/* A small bias is one with those of the same numbers (share.c): they are known where the factor is one number. */
static void know_product(onv_edit *e, onv_value_id product, onv_value_id bias, onv_value_id by)
{
    double factor;
    const onv_known *numbers = onv_edit_constant(e, bias);
    if (numbers == NULL || !onv_edit_scalar(e, by, &factor)) return;
    onv_value *value = onv_edit_value_at(e, product);
    onv_known *known = onv_known_new(&e->model->arena, &value->type);
    if (known == NULL) return;
    for (uint32_t i = 0; i < known->count; i++)
        known->elems[i] = (onv_scalar){numbers->elems[i].i, numbers->elems[i].f * factor};
    value->known = known;
}

/* The convolution does what the next node did: with another bias, and but for a sum with other weights. */
static bool absorb(onv_edit *e, onv_node_id conv, onv_op_name op)
{
    onv_node_id next = after_conv(e, conv, op);
    if (!onv_is_node(next)) return false;
    bool is_sum = op == ONV_OP_Add, is_norm = op == ONV_OP_BatchNormalization;
    onv_value_id w = onv_edit_in(e, conv, 1), b = onv_edit_in(e, conv, 2);
    onv_value_id other = onv_edit_in(e, next, 1);
    if (!onv_is_value(other)) return false;
    const onv_type *type = type_of(e, w), *by = type_of(e, other);
    const onv_dtype dtype = (onv_dtype)by->dtype;
    if (!is_floating(by->dtype) || type->rank < 3 || (!is_sum && type->dtype != dtype) ||
        (onv_is_value(b) && type_of(e, b)->dtype != dtype))
        return false;
    bool is_scale = op == ONV_OP_Mul && by->rank == 0;
    if (is_norm ? !is_vector_norm(e, next, filters_of(e, conv, type), true, by->dtype)
                : !is_scale && !is_per_channel(type, by))
        return false;
    const int64_t channels = type->dims[0].raw;
    const onv_value *value = onv_edit_value_at(e, other);
    if (is_sum)
        b = onv_edit_add_weight(e, onv_edit_node_at(e, conv)->graph, value->name, dtype, &channels,
                                1, NULL);
    else if (is_norm || onv_is_value(b))
        b = weight_like(e, conv, is_norm ? onv_edit_in(e, next, 2) : b, dtype, true);
    if (is_scale && onv_is_value(b)) know_product(e, b, onv_edit_in(e, conv, 2), other);
    if (!is_sum) onv_edit_set_input(e, conv, 1, weight_like(e, conv, w, dtype, false));
    if (onv_is_value(b)) onv_edit_set_input(e, conv, 2, b);
    onv_edit_bypass(e, next, 0);
    return true;
}

bool onv_rule_conv_add(onv_edit *e, onv_node_id conv)
{
    return absorb(e, conv, ONV_OP_Add);
}

bool onv_rule_conv_mul(onv_edit *e, onv_node_id conv)
{
    return absorb(e, conv, ONV_OP_Mul);
}

bool onv_rule_conv_bn(onv_edit *e, onv_node_id conv)
{
    return absorb(e, conv, ONV_OP_BatchNormalization);
}

/* The normalisation after a product, through Reshapes and Transposes that nobody else reads. */
static onv_node_id norm_after(const onv_edit *e, onv_node_id node)
{
    enum { MOST_BETWEEN = 16 };
    for (int i = 0; i < MOST_BETWEEN; i++) {
        node = onv_edit_only_user(e, onv_edit_out(e, node, 0));
        if (!onv_is_node(node)) return ONV_NO_NODE;
        if (onv_edit_is(e, node, ONV_OP_BatchNormalization)) return node;
        if ((!onv_edit_is(e, node, ONV_OP_Reshape) && !onv_edit_is(e, node, ONV_OP_Transpose)) ||
            onv_edit_node_at(e, node)->version > 20)
            return ONV_NO_NODE;
    }
    return ONV_NO_NODE;
}

bool onv_rule_matmul_bn(onv_edit *e, onv_node_id matmul)
{
    onv_node_id norm = norm_after(e, matmul);
    onv_value_id b = onv_edit_in(e, matmul, 1);
    if (!onv_is_node(norm) || !onv_edit_is_constant(e, b)) return false;
    const onv_type *type = type_of(e, b);
    const onv_attr *epsilon = onv_node_attr(onv_edit_node_at(e, norm), "epsilon");
    uint8_t dtype = type->dtype;
    if (type->rank != 2 || !is_floating(dtype) || epsilon == NULL) return false;
    if (!is_vector_norm(e, norm, type->dims[1], false, dtype)) return false;
    const onv_type *a = onv_edit_seen(e, onv_edit_in(e, matmul, 0));
    if (onv_type_has_rank(a) && a->rank != 2) return false;
    onv_value_id bias = weight_like(e, matmul, onv_edit_in(e, norm, 2),
                                    (onv_dtype)type_of(e, onv_edit_in(e, norm, 2))->dtype, true);
    onv_value_id inputs[] = {onv_edit_in(e, matmul, 0),
                             weight_like(e, matmul, b, (onv_dtype)dtype, false), bias};
    onv_value_id out = onv_edit_out(e, matmul, 0);
    if (!onv_edit_makes_result(e, norm) || onv_edit_in_node(e, norm, 0).index != matmul.index) {
        if (!onv_edit_bypass(e, norm, 0)) return false;
    } else {
        out = onv_edit_out(e, norm, 0);
        onv_edit_remove(e, norm);
    }
    ONV_MAKE(e, matmul, "Gemm", .name = "MatMulBnFusion_Gemm", .inputs = inputs, .n_inputs = 3,
             ONV_OUTPUTS(out));
    onv_edit_remove(e, matmul);
    return true;
}

/* --- Activations ------------------------------------------------------------------------------- */

/* Its other operands are constant. */
bool onv_fuse_conv_activation(onv_edit *e, onv_node_id activation)
{
    onv_form_match m;
    char form[64];
    const onv_node *act = onv_edit_node_at(e, activation);
    snprintf(form, sizeof form, "^%s(Conv(?))", act->op_type);
    if (act->provider != ONV_PROVIDER_CPU || !onv_fuse_form(e, activation, form, &m) ||
        m.nodes[0].index != activation.index || onv_edit_dtype(e, act->inputs[0]) != ONV_FLOAT)
        return false;
    for (uint32_t k = 1; k < act->n_inputs; k++)
        if (onv_is_value(act->inputs[k]) && !onv_edit_is_constant(e, act->inputs[k])) return false;
    const onv_node *at = onv_edit_node_at(e, m.nodes[1]);
    return ONV_FORM_BY(e, &m, "FusedConv", .domain = ONV_MS_DOMAIN, .version = 1,
                       .inputs = at->inputs, .n_inputs = at->n_inputs, .attrs = at->attrs,
                       .n_attrs = at->n_attrs);
}
