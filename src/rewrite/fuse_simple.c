/* Two nodes that are one. */
#include <string.h>

#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

/* 1 / x * y is y / x. */
bool onv_rule_div_mul(onv_edit *e, onv_node_id node)
{
    onv_form_match m;
    return onv_fuse_form(e, node, "^*Mul(yDiv({1}x))", &m) &&
           ONV_FORM_BY(e, &m, "Div", ONV_INPUTS(onv_form_value(&m, 'y'), onv_form_value(&m, 'x')));
}

/* A Clip from 0 on does what a Relu before it does. */
bool onv_rule_relu_clip(onv_edit *e, onv_node_id node)
{
    double least = -1;
    onv_form_match m;
    if (!onv_fuse_form(e, node, "^Clip(Relu(x))", &m) || !onv_edit_can_remove(e, node))
        return false;
    onv_node_id clip = m.nodes[0];
    onv_value_id min = onv_edit_in(e, clip, 1);
    bool is_input = onv_edit_node_at(e, clip)->version >= 11;
    if (is_input && onv_is_value(min) && !onv_edit_scalar(e, min, &least)) return false;
    if (is_input && least < 0) {
        onv_dtype dtype = (onv_dtype)onv_edit_seen(e, onv_edit_in(e, clip, 0))->dtype;
        const int64_t zero = 0;
        min = onv_edit_add_weight(e, onv_edit_node_at(e, node)->graph, "min_zero_constant", dtype,
                                  NULL, 0, &zero);
        onv_edit_set_input(e, clip, 1, min);
    }
    return onv_edit_remove_single(e, node);
}

/* --- Gemm -------------------------------------------------------------------------------------- */

bool onv_fuse_is_gemm_bias(const onv_type *bias, onv_dim m, onv_dim n)
{
    if (!onv_type_has_rank(bias)) return false;
    if (bias->rank == 1) return onv_dim_same(bias->dims[0], n);
    if (bias->rank != 2) return false;
    if (onv_dim_is(bias->dims[0], 1) && onv_dim_same(bias->dims[1], n)) return true;
    return onv_dim_same(bias->dims[0], m) &&
           (onv_dim_is(bias->dims[1], 1) || onv_dim_same(bias->dims[1], n));
}

/* A Gemm without C, and a Sum of two: C is the other. */
bool onv_rule_gemm_sum(onv_edit *e, onv_node_id node)
{
    onv_form_match m;
    const onv_node *gemm = onv_edit_node_at(e, node);
    if (!onv_fuse_form(e, node, "^*Sum(Gemm(ab)c)", &m) || gemm->n_inputs != 2 ||
        gemm->version < 11 || onv_edit_node_at(e, m.nodes[0])->n_inputs != 2)
        return false;
    const onv_type *out = onv_edit_seen(e, onv_edit_out(e, node, 0));
    onv_value_id bias = onv_form_value(&m, 'c');
    if (!onv_type_has_rank(out) || out->rank != 2 ||
        !onv_fuse_is_gemm_bias(onv_edit_seen(e, bias), out->dims[0], out->dims[1]))
        return false;
    return ONV_FORM_BY(e, &m, "Gemm", ONV_INPUTS(gemm->inputs[0], gemm->inputs[1], bias),
                       .attrs = gemm->attrs, .n_attrs = gemm->n_attrs);
}

static bool is_matrix_transpose(const onv_edit *e, onv_node_id node)
{
    onv_perm p;
    return onv_edit_is(e, node, ONV_OP_Transpose) && onv_perm_of(e, node, &p) && p.rank == 2 &&
           p.at[0] == 1;
}

/* Whether such operators alone read what the node makes, in its graph. */
static bool is_only_for(const onv_edit *e, onv_node_id node, onv_op_name op)
{
    onv_value_id out = onv_edit_out(e, node, 0);
    if (onv_edit_n_uses(e, out) > ONV_MOST_READERS) return false;
    ONV_EACH_USE(e, out, u)
    if (!onv_edit_is(e, u->node, op) || (op == ONV_OP_Where && u->input != 0) ||
        !onv_edit_is_beside(e, u->node, node))
        return false;
    return !onv_edit_makes_result(e, node);
}

static bool is_for_gemms(const onv_edit *e, onv_node_id node)
{
    return is_matrix_transpose(e, node) && is_only_for(e, node, ONV_OP_Gemm);
}

bool onv_rule_gemm_transpose(onv_edit *e, onv_node_id node)
{
    onv_node at = *onv_edit_node_at(e, node);
    if (at.n_inputs < 2 || onv_edit_n_output_uses(e, node) > 1) return false;
    onv_node_id a = onv_edit_in_node(e, node, 0), b = onv_edit_in_node(e, node, 1);
    onv_form_match m;
    bool has_last = at.n_inputs == 2 && at.version >= 11 &&
                    onv_fuse_form(e, node, "^Transpose(Gemm(?))", &m) &&
                    is_matrix_transpose(e, m.nodes[0]);
    onv_node_id last = has_last ? m.nodes[0] : node;
    bool has_a = is_for_gemms(e, a), has_b = is_for_gemms(e, b);
    if (!has_a && !has_b && last.index == node.index) return false;
    bool trans_a = (onv_edit_int(e, node, "transA", 0) != 0) != has_a;
    bool trans_b = (onv_edit_int(e, node, "transB", 0) != 0) != has_b;
    onv_value_id inputs[3] = {at.inputs[0], at.inputs[1],
                              at.n_inputs > 2 ? at.inputs[2] : ONV_NO_VALUE};
    if (has_a) inputs[0] = onv_edit_in(e, a, 0);
    if (has_b) inputs[1] = onv_edit_in(e, b, 0);
    if (last.index != node.index) { /* (AB)' = B'A' */
        onv_value_id first = inputs[0];
        inputs[0] = inputs[1];
        inputs[1] = first;
        bool second = !trans_a;
        trans_a = !trans_b;
        trans_b = second;
    }
    onv_node_id nodes[4] = {node, last};
    uint32_t n_nodes = 2;
    if (has_a) nodes[n_nodes++] = a;
    if (has_b) nodes[n_nodes++] = b;
    return onv_fuse_replace(
        e, last, nodes, n_nodes,
        ONV_NEW_NODE(.op_type = "Gemm", .inputs = inputs, .n_inputs = at.n_inputs,
                     ONV_ATTRS(onv_fuse_float(e, "alpha", onv_edit_float(e, node, "alpha", 1)),
                               onv_fuse_float(e, "beta", onv_edit_float(e, node, "beta", 1)),
                               onv_fuse_int(e, "transA", trans_a),
                               onv_fuse_int(e, "transB", trans_b))));
}

/* --- Where, Pad -------------------------------------------------------------------------------- */

bool onv_rule_not_where(onv_edit *e, onv_node_id node)
{
    onv_node_id not = onv_edit_in_node(e, node, 0);
    if (!onv_edit_is(e, not, ONV_OP_Not) || !onv_edit_can_remove(e, not ) ||
        !is_only_for(e, not, ONV_OP_Where))
        return false;
    onv_value_id out = onv_edit_out(e, not, 0);
    for (const onv_use *u; (u = onv_edit_first_use(e, out)) != NULL && e->status == ONV_OK;) {
        const onv_node_id where = u->node;
        const onv_value_id first = onv_edit_in(e, where, 1);
        onv_edit_set_input(e, where, 0, onv_edit_in(e, not, 0));
        onv_edit_set_input(e, where, 1, onv_edit_in(e, where, 2));
        onv_edit_set_input(e, where, 2, first);
    }
    onv_edit_remove(e, not );
    return true;
}

static bool takes_pads(const onv_edit *e, onv_node_id node)
{
    const onv_node *at = onv_edit_node_at(e, node);
    const onv_attr *mode = onv_node_attr(at, "auto_pad"), *pads = onv_node_attr(at, "pads");
    if (!ONV_IS_ANY(at, ONV_OP_Conv, ONV_OP_AveragePool, ONV_OP_MaxPool) || at->domain[0] != '\0' ||
        at->version > 21 || at->n_outputs > 1)
        return false;
    if (mode != NULL && mode->kind == ONV_ATTR_STRING && strcmp(mode->s, "NOTSET") != 0)
        return false;
    if (pads == NULL || pads->kind != ONV_ATTR_INTS || pads->ints == NULL) return false;
    for (uint32_t i = 0; i < pads->count; i++)
        if (pads->ints[i] < 0 || pads->ints[i] > INT32_MAX) return false;
    return true;
}

/* The pads of a Pad with zeros, in all dims but the first two; at most as many as fit `pads`. */
static bool constant_pads(onv_edit *e, onv_node_id node, int64_t *pads, uint32_t *count)
{
    const onv_attr *mode = onv_node_attr(onv_edit_node_at(e, node), "mode");
    const onv_scalar *list;
    double value = 0;
    onv_value_id constant = onv_edit_in(e, node, 2);
    if (mode != NULL && (mode->kind != ONV_ATTR_STRING || strcmp(mode->s, "constant") != 0))
        return false;
    if (onv_edit_node_at(e, node)->version < 11 || onv_edit_node_at(e, node)->n_inputs > 3)
        return false;
    if (onv_is_value(constant) && (!onv_edit_scalar(e, constant, &value) || value != 0))
        return false;
    if (!onv_edit_ints(e, onv_edit_in(e, node, 1), &list, count)) return false;
    if (*count < 6 || *count > 2 * ONV_MAX_RANK || *count % 2 != 0) return false;
    for (uint32_t i = 0; i < *count; i++) {
        pads[i] = list[i].i.raw;
        if (pads[i] < 0 || pads[i] > INT32_MAX || (i % (*count / 2) < 2 && pads[i] != 0))
            return false;
    }
    return true;
}

static void add_pads(onv_edit *e, onv_node_id node, const int64_t *pads, uint32_t count)
{
    const onv_attr *own = onv_node_attr(onv_edit_node_at(e, node), "pads");
    int64_t sum[2 * ONV_MAX_RANK];
    for (uint32_t k = 0, half = own->count / 2; k < own->count; k++)
        sum[k] = own->ints[k] + pads[2 + k % half + (k >= half ? count / 2 : 0)];
    onv_edit_set_attr(e, node, onv_fuse_ints(e, "pads", sum, own->count));
}

bool onv_rule_pad(onv_edit *e, onv_node_id node)
{
    int64_t pads[2 * ONV_MAX_RANK];
    uint32_t count;
    onv_node_id next = onv_edit_only_user(e, onv_edit_out(e, node, 0)), cast = ONV_NO_NODE;
    if (!onv_is_node(next)) return false;
    if (onv_edit_is(e, next, ONV_OP_Cast)) {
        cast = next;
        next = onv_edit_only_user(e, onv_edit_out(e, cast, 0));
        if (!onv_is_node(next)) return false;
    }
    if (!takes_pads(e, next) || !constant_pads(e, node, pads, &count)) return false;
    if (onv_node_attr(onv_edit_node_at(e, next), "pads")->count != count - 4) return false;
    onv_edit_replace(e, onv_edit_out(e, node, 0), onv_edit_in(e, node, 0));
    onv_edit_remove(e, node);
    if (onv_is_node(cast)) onv_edit_retype(e, cast);
    add_pads(e, next, pads, count);
    onv_edit_retype(e, next);
    return true;
}
